"""Where runs and attempts stand: the small parts of the state."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import immutables

from orchestrator import events, packs
from orchestrator.types import FailureClass, Point, Run


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


Runs = immutables.Map[Run, RunState]
Proposed = immutables.Map[str, immutables.Map[Point, int]]


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


def price_after(price: packs.Price, event: events.AttemptFinished, flight: InFlight) -> packs.Price:
    """Return what jobs cost beside their attempts; one that did not fail says so."""
    known = event.failure is None and not event.estimated and not flight.pack
    if not known or event.started is None or event.finished is None:
        return price
    return packs.seen(price, event.elapsed, flight.since, event.started, event.finished)


def price_after_pack(price: packs.Price, event: events.AttemptCharged, flight: InFlight) -> packs.Price:
    """Return what jobs cost beside their attempts: the first of a pack pays that, unless another failed."""
    if flight.pack != flight.name or flight.span is None or event.elapsed <= flight.span:
        return price
    return packs.seen_in_pack(price, event.elapsed - flight.span)


def taken_back(runs: Runs, proposed: Proposed, run: Run) -> Proposed:
    """Return the last repetitions after a run was skipped, whose number is thereby free again."""
    known, skipped = proposed[run.kind], RunState(RunStatus.SKIPPED)
    last = known.get(run.point, 0)
    while last and runs.get(replace(run, repetition=last), skipped).status is RunStatus.SKIPPED:
        last -= 1
    return proposed.set(run.kind, known.set(run.point, last))


def tried_anew(runs: Runs, proposed: Proposed, points: frozenset[Point]) -> tuple[Runs, Proposed]:
    """Return runs and repetitions after what was given up at points counts as skipped, to be proposed again.

    What was skipped while it was tried has all its attempts again, too. They keep their numbers, as their
    directories are taken.
    """
    new = runs.mutate()
    for run, item in runs.items():
        if item.status is RunStatus.GIVEN_UP and run.point in points:
            reason = f"given up under other rules: {item.reason}"
            new[run] = item._replace(status=RunStatus.SKIPPED, failures=(), reason=reason)
        elif item.status is RunStatus.SKIPPED and item.failures:
            new[run] = item._replace(failures=())
    runs = new.finish()
    for run in runs:
        if run.point in points:
            proposed = taken_back(runs, proposed, run)
    return runs, proposed
