"""What a campaign has measured, as models and strategies see it."""

from __future__ import annotations

from typing import Any

from orchestrator.state import RunState, RunStatus, State
from orchestrator.types import Measurement, Measurements, Point, RunKind

WHOLE_RUN = "(run)"
ELAPSED = "elapsed"


def measurements(state: State, parameters: tuple[str, ...]) -> Measurements:
    """Return what was measured, without the validation run, in an order that does not depend on timing.

    The duration of whole attempts is a measurement, too (`WHOLE_RUN`, `ELAPSED`): it predicts costs.
    Time runs and effort runs have no metric in common, so no model sees values of both.
    """
    return Collector(parameters).measurements(state)


class Collector:
    """`measurements` of one state after the other, at the cost of what is new in each.

    A campaign asks twice a round. Runs that did not change since are recognised by their state being the
    same object, which persistent maps guarantee; the object is kept, so that its identity stays its own.
    """

    def __init__(self, parameters: tuple[str, ...]):
        self._parameters = parameters
        self._seen: dict[int, RunState] = {}
        self._runs: dict[Point, dict[tuple[RunKind, int], RunState]] = {}  # accepted ones
        self._values: dict[tuple[str, str], dict[Point, tuple[float, ...]]] = {}

    def measurements(self, state: State) -> Measurements:
        """Return what `measurements` does; states must be later ones of the same campaign."""
        for point in self._changed(state):
            self._renew(point)
        order = sorted(self._runs, key=_order)
        items = tuple(
            Measurement(callpath, metric, {point: values[point] for point in order if point in values})
            for (callpath, metric), values in sorted(self._values.items())
        )
        return Measurements(self._parameters, items)

    def _changed(self, state: State) -> set[Point]:
        seen = self._seen
        new = [(run, item) for run, item in state.runs.items() if id(item) not in seen]
        points = set()
        for run, item in new:
            seen[id(item)] = item
            if item.status is RunStatus.MEASURED and run != state.validation:
                self._runs.setdefault(run.point, {})[run.kind, run.repetition] = item
                points.add(run.point)
        return points

    def _renew(self, point: Point) -> None:
        """Put the values of a point together anew, by kind and repetition."""
        found: dict[tuple[str, str], list[float]] = {}
        for (kind, _), item in sorted(self._runs[point].items(), key=lambda pair: pair[0]):
            if kind == "time":
                found.setdefault((WHOLE_RUN, ELAPSED), []).append(item.elapsed)
            for metric, by_callpath in item.samples.items():
                for callpath, value in by_callpath.items():
                    found.setdefault((callpath, metric), []).append(value)
        for key, values in found.items():
            self._values.setdefault(key, {})[point] = tuple(values)


def _order(point: Point) -> tuple[Any, ...]:
    return tuple((isinstance(v, str), v if isinstance(v, str) else float(v)) for _, v in point.items)


def repetitions(state: State, kind: RunKind = "time") -> dict[Point, int]:
    """Return how many runs of a kind were proposed per point, skipped ones excepted."""
    done: dict[Point, int] = {}
    skipped, validation = RunStatus.SKIPPED, state.validation
    for run, item in state.runs.items():
        if run.kind == kind and item.status is not skipped and (validation is None or run != validation):
            point = run.point
            if run.repetition > done.get(point, 0):
                done[point] = run.repetition
    return done


def counting_is_in_vain(state: State, tries: int = 3) -> bool:
    """Whether effort runs were given up ``tries`` times and none was ever measured: that will not change."""
    effort = [item.status for run, item in state.runs.items() if run.kind == "effort"]
    return RunStatus.MEASURED not in effort and effort.count(RunStatus.GIVEN_UP) >= tries
