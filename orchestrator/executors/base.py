"""The contract of an executor. One file per executor; one contract suite over all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from orchestrator.types import AttemptRequest, Observation, Run, Sample

if TYPE_CHECKING:  # whoever looks at a campaign reads this file, too, and needs no numpy
    import numpy as np


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """What a run would yield if nothing went wrong: its samples and its duration in seconds.

    ``fails``: its program ends with an error instead, as at every run at this point.
    """

    samples: tuple[Sample, ...]
    seconds: float
    fails: bool = False


Truth = Callable[[Run, "np.random.Generator"], SimulatedRun]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorContext:
    """What an executor's ``build(context)``, the attribute in the registry, gets.

    Attributes
    ----------
    directory
        The campaign directory.
    options
        The campaign's ``executor:`` section with its defaults.
    seed
        The campaign's seed.
    start
        First instant of a virtual clock, in Unix seconds.
    truth
        What simulated runs yield; None outside a simulation.
    """

    directory: Path
    options: Mapping[str, Any]
    seed: int = 0
    start: float = 0.0
    truth: Truth | None = None


QUEUE = "queue"
"""The name of an outage in which every job waits for what no other job's end changes."""

DISK = "disk"
"""The name of an outage in which the file system of the campaign directory is full."""


@dataclass(frozen=True, slots=True)
class Outage:
    """A service that does not answer; or a queue in which nothing moves, or a full disk.

    Attributes
    ----------
    since
        When it first did not answer, or every job was first seen to wait (Unix seconds).
    reason
        What was seen last, for people.
    blocking
        Whether nothing can be submitted without it.
    """

    since: float
    reason: str
    blocking: bool


def services(executor: Executor) -> Mapping[str, Outage | None]:
    """Return the services that an executor has asked, by name: None for one that answers.

    From the executor's method ``services()``, which asks again where that is due. An executor that depends on
    no service needs no such method.
    """
    ask = getattr(executor, "services", None)
    found: Mapping[str, Outage | None] = {} if ask is None else ask()
    return found


def cluster_name(executor: Executor) -> str:
    """Return the name of the cluster on which an executor starts attempts; empty where it is not known.

    From the executor's method ``cluster()``. Only an executor that is one among several on the same file
    system needs it.
    """
    ask = getattr(executor, "cluster", None)
    return "" if ask is None else str(ask())


class Executor(Protocol):
    """Start attempts, look after them, and never start one twice.

    Exactly-once rests on one file: whoever creates ``claim`` in the attempt's directory
    (``O_CREAT | O_EXCL``) owns the attempt. The attempt's own process claims it before it starts the
    application and exits at once if the claim is taken; the controller claims it before it calls an
    attempt lost or absent for good. A queued job that starts late therefore does nothing.
    """

    name: str

    def now(self) -> float:
        """Return the time in Unix seconds; virtual where time is simulated."""
        ...

    def ready(self) -> str | None:
        """Return why nothing can be started at all now (no scheduler answers), or None.

        Asked before a campaign begins. Later a scheduler that does not answer is waited for.
        """
        ...

    def reserved_seconds(self, *limits: float) -> float:
        """Return the most seconds that a job of attempts with these limits can be charged, with delays."""
        ...

    def submit(self, requests: Sequence[AttemptRequest]) -> list[Observation]:
        """Start or queue attempts; one observation each, in order.

        Attempts with the same ``pack`` share an allocation where there are allocations: one after another in
        this order, each as if it were alone. If the allocation ends early, those that had not begun are
        ABSENT and ``revoked``.

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
        submitted again. Where that is not certain, UNKNOWN.
        """
        ...

    def charged(self, attempts: Sequence[AttemptRequest]) -> list[Observation | None]:
        """Report attempts that were settled with an estimate, once their charge is known; None before."""
        ...

    def cancel(self, attempts: Sequence[AttemptRequest]) -> None:
        """Ask attempts to end; the outcome is seen by `poll`."""
        ...

    def wait(self, seconds: float) -> None:
        """Return when something may have changed, at the latest after ``seconds``."""
        ...
