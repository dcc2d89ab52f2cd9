"""What a campaign has measured, as models and strategies see it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from orchestrator.journal.state import RunState, RunStatus, State
from orchestrator.types import Measurement, Measurements, Parameter, Point, Run, RunKind

WHOLE_RUN = "(run)"
ELAPSED = "elapsed"
_TRIES = 3  # effort runs that were given up, after which no further one is tried
_SETTLED = {RunStatus.MEASURED, RunStatus.GIVEN_UP, RunStatus.SKIPPED, RunStatus.DISCARDED}


def measurements(state: State, parameters: Sequence[Parameter]) -> Measurements:
    """Return what was measured, without the validation run: point for point in the order of the rounds.

    Within a round points are sorted. So the order does not depend on timing, and further rounds only add to
    it: what depends on the first points need not be found again.
    The duration of whole attempts is a measurement, too (`WHOLE_RUN`, `ELAPSED`): it predicts costs.
    Time runs and effort runs have no metric in common, so no model sees values of both.
    """
    return Collector(parameters).measurements(state)


class Collector:
    """`measurements` of one state after the other, at the cost of what is new in each.

    Only runs of the current round change. Where more than one round may have passed, all runs are collected
    again.
    """

    def __init__(self, parameters: Sequence[Parameter]):
        self._parameters = tuple(item.name for item in parameters)
        self._categorical = frozenset(item.name for item in parameters if item.categorical)
        self._round = 0
        self._queue: tuple[Run, ...] | None = None  # of the state that was seen last
        self._settled = False  # whether nothing of it was open
        self._points: dict[Point, int] = {}  # with the first round of each
        self._values: dict[tuple[str, str], dict[Point, tuple[float, ...]]] = {}
        self._origins: dict[tuple[str, str], dict[Point, tuple[str, ...]]] = {}

    def measurements(self, state: State) -> Measurements:
        """Return what `measurements` does; states must be later ones of the same campaign."""
        for point, found in self._changed(state).items():
            self._renew(point, found)
        order = sorted(self._points, key=lambda point: (self._points[point], point.order))
        known: dict[tuple[int, ...], dict[Point, tuple[str, ...]]] = {}
        items = tuple(
            Measurement(
                callpath,
                metric,
                {point: values[point] for point in order if point in values},
                self._shared_origins((callpath, metric), known),
            )
            for (callpath, metric), values in sorted(self._values.items())
        )
        return Measurements(self._parameters, items, self._categorical)

    def _shared_origins(
        self, key: tuple[str, str], known: dict[tuple[int, ...], dict[Point, tuple[str, ...]]]
    ) -> dict[Point, tuple[str, ...]]:
        """Return the origins of a call path's values: one object for all call paths of the same runs."""
        found = self._origins.get(key, {})
        runs = tuple(number for pair in found.items() for number in map(id, pair))
        return known.setdefault(runs, dict(found))

    def _changed(self, state: State) -> Mapping[Point, Iterable[tuple[Run, RunState]]]:
        """Return the points that may have new values, each with all its measured runs in order."""
        near = state.queue is self._queue or (self._settled and state.round <= self._round + 1)
        self._round, self._queue = state.round, state.queue
        self._settled = all(state.runs[run].status in _SETTLED for run in state.queue)
        if not near:
            return _all_measured(state)
        points = {run.point for run in state.queue if _is_measured(run, state.runs[run], state)}
        return {point: _measured_at(point, state) for point in points}

    def _renew(self, point: Point, runs: Iterable[tuple[Run, RunState]]) -> None:
        """Collect the values of a point again, by kind and repetition."""
        found: dict[tuple[str, str], list[float]] = {}
        origins: dict[tuple[str, str], list[str]] = {}
        known: dict[tuple[str, ...], tuple[str, ...]] = {}  # call paths share their tuples
        rounds: list[int] = []

        def add(key: tuple[str, str], value: float, origin: str) -> None:
            found.setdefault(key, []).append(value)
            origins.setdefault(key, []).append(origin)

        for run, item in runs:
            rounds.append(item.round)
            if run.kind == "time":
                add((WHOLE_RUN, ELAPSED), item.elapsed, item.origin)
            for metric, by_callpath in item.samples.items():
                for callpath, value in by_callpath.items():
                    add((callpath, metric), value, item.origin)
        self._points[point] = min(rounds, default=0)
        for key, values in found.items():
            self._values.setdefault(key, {})[point] = tuple(values)
            names = tuple(origins[key])
            if any(names):
                self._origins.setdefault(key, {})[point] = known.setdefault(names, names)


def _measured_at(point: Point, state: State) -> Iterator[tuple[Run, RunState]]:
    kinds: tuple[RunKind, ...] = ("effort", "time")
    for kind in kinds:
        last: Mapping[Point, int] = state.proposed.get(kind, {})
        for repetition in range(1, last.get(point, 0) + 1):
            run = Run(point, kind, repetition)
            item = state.runs.get(run)
            if item is not None and _is_measured(run, item, state):
                yield run, item


def _all_measured(state: State) -> dict[Point, list[tuple[Run, RunState]]]:
    """Return what `_measured_at` yields, for all points at once."""
    found: dict[Point, list[tuple[Run, RunState]]] = {}
    for run, item in state.runs.items():
        if _is_measured(run, item, state):
            found.setdefault(run.point, []).append((run, item))
    for runs in found.values():
        runs.sort(key=lambda pair: (pair[0].kind, pair[0].repetition))
    return found


def _is_measured(run: Run, item: RunState, state: State) -> bool:
    return item.status is RunStatus.MEASURED and run != state.validation


def repetitions(state: State, kind: RunKind = "time") -> dict[Point, int]:
    """Return how many runs of a kind were proposed per point, skipped ones excepted; points in order."""
    proposed: Mapping[Point, int] = state.proposed.get(kind, {})
    order = sorted(proposed, key=lambda point: point.order)
    return {point: proposed[point] for point in order if proposed[point]}


def standing(state: State, kind: RunKind = "time") -> dict[Point, int]:
    """Return `repetitions` without those whose measurement was discarded; points without any are left out.

    The number of a further run follows from `repetitions`, so that no run has the id of another one.
    """
    found = repetitions(state, kind)
    for run, entry in state.discarded.items():
        if run.kind == kind and not entry.validation:
            found[run.point] -= 1
    return {point: number for point, number in found.items() if number > 0}


def counting_keeps_failing(state: State) -> bool:
    """Whether `_TRIES` effort runs were given up and none was ever measured: that will not change."""
    most: Mapping[Point, int] = state.proposed.get("effort", {})
    runs = (Run(point, "effort", k) for point, number in most.items() for k in range(1, number + 1))
    effort = [state.runs[run].status for run in runs if run in state.runs]
    counted = {RunStatus.MEASURED, RunStatus.DISCARDED}
    return counted.isdisjoint(effort) and effort.count(RunStatus.GIVEN_UP) >= _TRIES
