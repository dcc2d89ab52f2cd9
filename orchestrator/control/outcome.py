"""What a rehearsed campaign would have cost and found, as a document."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import SimulatedOptions
from orchestrator.control import fastest
from orchestrator.control.assembly import assemble
from orchestrator.control.execution import true_values
from orchestrator.control.rehearsal import Rehearsal
from orchestrator.executors.simulated import dataset
from orchestrator.journal.measurements import ELAPSED, measurements
from orchestrator.journal.state import State, runs_measured
from orchestrator.resources import core_hours
from orchestrator.types import Point

_COMPARED = 500  # points of the space with which the fastest one is compared


def document(rehearsal: Rehearsal, state: State, models: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Return what the campaign would have cost and found, JSON-ready; costs in core-hours.

    Parameters
    ----------
    rehearsal, state
        The rehearsal and its last state.
    models
        The models of that state as in the status; they are compared with the truth.
    """
    options = rehearsal.campaign.executor
    assert isinstance(options, SimulatedOptions)
    point, stop = rehearsal.campaign.evaluation_point, state.stopped or state.stopping
    return {
        "source": rehearsal.source,
        "truth": rehearsal.truth,
        "notes": list(rehearsal.notes),
        "core_hours": core_hours(state.spent),
        "budget": core_hours(rehearsal.campaign.stop.budget),
        "shown_in": rehearsal.campaign.stop.unit,
        "rounds": state.rounds_completed,
        "runs": runs_measured(state),
        "wall_seconds": state.time - (state.time if state.started is None else state.started),
        "queue_delay": options.queue_delay,
        "stop_rule": None if stop is None else stop.rule,
        "stop_detail": None if stop is None else stop.detail,
        "point": None if point is None else point.as_dict(),
        "uncertainty_percent": None if state.uncertainty is None else 100 * state.uncertainty,
        "uncertainty_targets": state.targets,
        "found": _found(rehearsal.campaign, models),
        "fastest": _fastest(rehearsal.campaign, state) if models else None,
    }


def _fastest(campaign: Campaign, state: State) -> dict[str, Any] | None:
    """Return the fastest measured configuration against the truly fastest one.

    That is among the points of the data set that is replayed, or by a stated truth among `_COMPARED` random
    points and those measured. None with an evaluation point, without times, or where models are the truth:
    asking them so often takes minutes. ``rank`` is the place of the one found among these points, from 1.
    """
    options = campaign.executor
    if campaign.evaluation_point is not None or not isinstance(options, SimulatedOptions) or options.models:
        return None
    built, known = assemble(campaign), measurements(state, campaign.parameters)
    paths = fastest.counted(built, known)
    measured = fastest.totals(known, paths)
    if campaign.replayed is not None:
        points = _replayed(campaign, campaign.replayed)
    else:
        points = [*measured, *itertools.islice(built.drawn(State()), _COMPARED)]
    true = _true_times(campaign, paths, [point for point in points if point in built.space])
    if not measured or not true:
        return None
    best, lowest = (min(times, key=lambda point: times[point]) for times in (measured, true))
    own = true.get(best, measured[best][0])
    return {
        "point": best.as_dict(),
        "seconds": own,
        "best_point": lowest.as_dict(),
        "best_seconds": true[lowest],
        "times_best": own / true[lowest] if true[lowest] else None,
        "rank": 1 + sum(seconds < own for seconds in true.values()),
        "points": len(true),
    }


def _replayed(campaign: Campaign, path: str) -> list[Point]:
    """Return the points of a data set."""
    names = [item.name for item in campaign.parameters]
    return [Point(tuple((name, at[name]) for name in names)) for at in dataset.read(path, names).points]


def _true_times(campaign: Campaign, paths: Sequence[str], points: Iterable[Point]) -> dict[Point, float]:
    """Return the true time (s) of a run, as the sum over call paths, where the truth says it."""
    at, times = true_values(campaign), dict[Point, float]()
    for point in points:
        values = at(point)
        own = [values[path, "time"] for path in paths if (path, "time") in values]
        if own:
            times[point] = sum(own)
    return times


def _found(campaign: Campaign, models: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each model of times that predicts the evaluation point: predicted against true."""
    point = campaign.evaluation_point
    if point is None or not models:
        return []
    true = true_values(campaign)(point)
    rows = []
    for model in models:
        value = true.get((model["callpath"], model["metric"]))
        if value is None or model["metric"] not in ("time", ELAPSED) or not model["predictions"]:
            continue
        predicted = model["predictions"][0]
        if predicted["value"] is None:
            continue
        low, high = predicted["low"], predicted["high"]
        rows.append(
            {
                "callpath": model["callpath"],
                "metric": model["metric"],
                "truth": value,
                "predicted": predicted["value"],
                "low": low,
                "high": high,
                "error_percent": 100 * (predicted["value"] - value) / value if value else None,
                "inside": None if low is None or high is None else low <= value <= high,
            }
        )
    return rows
