"""Which runs are reference runs, and what they cost: see `orchestrator.policy.reference`."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.journal.state import RunState, RunStatus, State
from orchestrator.types import Point

REASON = "reference: "
"""How the reasons of reference runs begin."""


@dataclass(frozen=True, slots=True)
class References:
    """The reference runs of a campaign: their points, how many were measured, their core-seconds.

    ``cost``: what they were charged; ``reserved``: what those in flight may be charged at most.
    """

    points: tuple[Point, ...] = ()
    runs: int = 0
    cost: float = 0.0
    reserved: float = 0.0


def is_reference(item: RunState) -> bool:
    """Return whether a run was proposed only to see a drift."""
    return item.chosen.startswith(REASON)


def references(state: State) -> References:
    """Return the reference runs so far."""
    chosen = [run for run, item in state.runs.items() if is_reference(item)]
    chosen.sort(key=lambda run: run.id)
    reserved = {attempt.run: item.reserved for attempt, item in state.in_flight.items()}
    return References(
        tuple(dict.fromkeys(run.point for run in chosen)),
        sum(state.runs[run].status is RunStatus.MEASURED for run in chosen),
        sum(state.runs[run].cost for run in chosen),
        sum(reserved.get(run, 0.0) for run in chosen),
    )
