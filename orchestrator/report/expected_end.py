"""When a round is likely to be over: from what its runs took before, or what the models say. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.journal.measurements import ELAPSED, WHOLE_RUN
from orchestrator.journal.state import InFlight, RunStatus, State
from orchestrator.report.models_document import value_at
from orchestrator.types import Point, Run

_NEAR = 20  # repetitions that the usual time of a point is taken from


def seconds_to_next_round(state: State, models: Sequence[Mapping[str, Any]], now: float) -> float | None:
    """Return the seconds until the runs of a round are measured; None where nothing says how long they take.

    What is left of the open runs, side by side as those in flight are now, and at least as long as the
    longest of these.

    Parameters
    ----------
    state, now
        The state, and the time in Unix seconds.
    models
        The described models, among which that of whole runs may be.
    """
    waiting = [*state.waiting, *state.failed]
    flights = list(state.in_flight.items())
    if not waiting and not flights:
        return None
    left = [_left(expected(attempt.run, state, models), flight, now) for attempt, flight in flights]
    later = [expected(run, state, models) for run in waiting]
    if any(item is None for item in (*left, *later)):
        return None
    known = [item for item in (*left, *later) if item is not None]
    longest = max((item for item in left if item is not None), default=0.0)
    return max(math.fsum(known) / max(1, len(flights)), longest)


def _left(seconds: float | None, flight: InFlight, now: float) -> float | None:
    return None if seconds is None else max(0.0, seconds - max(0.0, now - flight.since))


def expected(run: Run, state: State, models: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the seconds that a run is expected to take; None where that is not known."""
    same = (state.runs.get(Run(run.point, run.kind, k)) for k in range(1, _NEAR + 1))
    measured = [item.elapsed for item in same if item is not None and item.status is RunStatus.MEASURED]
    if measured:
        return math.fsum(measured) / len(measured)
    if run.kind != "time":
        return None
    model = next((item for item in models if _predicts_duration_at(item, run.point)), None)
    return None if model is None else value_at(model.get("terms") or (), run.point)


def _predicts_duration_at(model: Mapping[str, Any], point: Point) -> bool:
    """Return whether a described model is that of whole runs, and of the categories of a point."""
    whole = (model["callpath"], model["metric"]) == (WHOLE_RUN, ELAPSED)
    return whole and dict(model.get("category") or {}).items() <= point.as_dict().items()
