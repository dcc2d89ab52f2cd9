"""What a campaign has measured, as models and strategies see it."""

from __future__ import annotations

from typing import Any

from orchestrator.state import RunStatus, State
from orchestrator.types import Measurement, Measurements, Point, Run, RunKind

WHOLE_RUN = "(run)"
ELAPSED = "elapsed"


def measurements(state: State, parameters: tuple[str, ...]) -> Measurements:
    """Return what was measured, without the validation run, in an order that does not depend on timing.

    The duration of whole attempts is a measurement, too (`WHOLE_RUN`, `ELAPSED`): it predicts costs.
    Time runs and effort runs have no metric in common, so no model sees values of both.
    """
    values: dict[tuple[str, str], dict[Point, list[float]]] = {}
    accepted = [
        (run, item)
        for run, item in state.runs.items()
        if item.status is RunStatus.MEASURED and run != state.validation
    ]
    accepted.sort(key=lambda pair: _order(pair[0]))
    for run, item in accepted:
        if run.kind == "time":
            values.setdefault((WHOLE_RUN, ELAPSED), {}).setdefault(run.point, []).append(item.elapsed)
        for metric, by_callpath in item.samples.items():
            for callpath, value in by_callpath.items():
                values.setdefault((callpath, metric), {}).setdefault(run.point, []).append(value)
    items = tuple(
        Measurement(callpath, metric, {point: tuple(v) for point, v in by_point.items()})
        for (callpath, metric), by_point in sorted(values.items())
    )
    return Measurements(parameters, items)


def _order(run: Run) -> tuple[Any, ...]:
    numbers = tuple((isinstance(v, str), v if isinstance(v, str) else float(v)) for _, v in run.point.items)
    return (*numbers, run.kind, run.repetition)


def repetitions(state: State, kind: RunKind = "time") -> dict[Point, int]:
    """Return how many runs of a kind were proposed per point, skipped ones excepted."""
    done: dict[Point, int] = {}
    for run, item in state.runs.items():
        if run.kind == kind and run != state.validation and item.status is not RunStatus.SKIPPED:
            done[run.point] = max(done.get(run.point, 0), run.repetition)
    return done


def counting_is_in_vain(state: State, tries: int = 3) -> bool:
    """Whether effort runs were given up ``tries`` times and none was ever measured: that will not change."""
    effort = [item.status for run, item in state.runs.items() if run.kind == "effort"]
    return RunStatus.MEASURED not in effort and effort.count(RunStatus.GIVEN_UP) >= tries
