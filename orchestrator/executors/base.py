"""The contract of an executor. One file per executor; one contract suite over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from orchestrator.types import AttemptRequest, Observation


class Executor(Protocol):
    """Start attempts, look after them, and never start one twice.

    Exactly-once rests on one file: whoever creates ``claim`` in the attempt's directory
    (``O_CREAT | O_EXCL``) owns the attempt. The attempt's own process claims it before it starts the
    application and exits at once if the claim is taken; the controller claims it before it calls an
    attempt lost or absent for good. A queued ghost that wakes up late therefore does nothing.
    """

    name: str

    def now(self) -> float:
        """Return the time in Unix seconds; virtual where time is simulated."""
        ...

    def reserved_seconds(self, limit: float) -> float:
        """Return the most seconds an attempt with this limit can be charged (kill delays, rounding)."""
        ...

    def submit(self, requests: Sequence[AttemptRequest]) -> list[Observation]:
        """Start or queue attempts; one observation each, in order.

        Returns within seconds. State is QUEUED, RUNNING, LOST with a reason (certainly rejected: cost
        nothing, ``elapsed=0``) or UNKNOWN (may have happened: look it up with `find`).
        """
        ...

    def poll(self, attempts: Sequence[AttemptRequest]) -> list[Observation]:
        """Report attempts that were submitted, one observation each, in order; never raises for one."""
        ...

    def find(self, requests: Sequence[AttemptRequest]) -> list[Observation]:
        """Look up attempts by name, after a crash or an uncertain submission; adopts what runs.

        ABSENT means that the attempt certainly never started and is not queued: it may be
        submitted again. Where that cannot be told, UNKNOWN.
        """
        ...

    def cancel(self, attempts: Sequence[AttemptRequest]) -> None:
        """Ask attempts to end; the outcome is seen by `poll`."""
        ...

    def wait(self, seconds: float) -> None:
        """Return when something may have changed, at the latest after ``seconds``."""
        ...
