"""Where runs and attempts stand: the small parts of the state."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import immutables

from orchestrator import events
from orchestrator.types import FailureClass


class RunStatus(StrEnum):
    """Where a run stands."""

    WAITING = "waiting"  # proposed, not begun
    IN_FLIGHT = "in flight"
    FAILED = "failed"  # its last attempt failed; to be tried again or given up
    MEASURED = "measured"
    GIVEN_UP = "given up"
    SKIPPED = "skipped"  # the budget left could not hold it


class RunState(NamedTuple):
    """One run: how many attempts were begun, how they failed, and what the accepted one measured.

    ``elapsed``: seconds of the accepted attempt; ``cost``: core-seconds of all attempts; ``limit``: seconds
    that the last attempt had; ``node``: where the accepted one ran, if on one only; ``packed``: whether it
    shared its job, so that ``elapsed`` has the usual overhead of a job instead of its own.
    """

    status: RunStatus = RunStatus.WAITING
    attempts: int = 0
    failures: tuple[FailureClass, ...] = ()
    reason: str = ""
    accepted: int | None = None
    samples: events.Samples = immutables.Map()
    elapsed: float = 0.0
    cost: float = 0.0
    limit: float = 0.0
    node: str = ""
    packed: bool = False


class InFlight(NamedTuple):
    """An attempt that was intended and is not settled. ``reserved`` in core-seconds, ``limit`` in seconds.

    ``pack``: what it shares with the other attempts of its job, or empty; ``since``: when it was intended;
    ``span``: seconds from its start to its end, if it was accepted and its cost is not confirmed.
    """

    name: str
    cores: int
    limit: float
    reserved: float
    submitted: bool = False
    running: bool = False
    handle: str = ""
    pack: str = ""
    since: float = 0.0
    span: float | None = None


@dataclass(frozen=True, slots=True)
class StopReason:
    """The rule that ended the campaign, and its figures in words."""

    rule: str
    detail: str


def allocation(event: events.AttemptFinished | events.AttemptCharged, flight: InFlight) -> float:
    """Return how many cores were charged for each that was asked for."""
    estimated = isinstance(event, events.AttemptFinished) and event.estimated
    if estimated or event.elapsed <= 0 or math.isclose(event.cost, event.elapsed * flight.cores):
        return 1.0
    return event.cost / (event.elapsed * flight.cores)


def took(event: events.AttemptFinished, flight: InFlight, overhead: float) -> float:
    """Return what an attempt takes in a job of its own, in seconds, so that all can be compared.

    One that shares its job is charged without the ``overhead`` of a job, or with all of it.
    """
    if not flight.pack or event.started is None or event.finished is None:
        return event.elapsed
    return event.finished - event.started + overhead
