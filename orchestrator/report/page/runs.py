"""Every measured run once, and the values of all call paths in these runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from orchestrator.journal.measurements import ELAPSED, WHOLE_RUN
from orchestrator.journal.state import RunState, RunStatus, State
from orchestrator.models.base import Floats, Integers, Key, inside
from orchestrator.report.page.encoding import place
from orchestrator.types import Measurements, Point, Run

# A single value is an outlier if it is farther from the median of its point than so many standard deviations
# of the noise; fewer repetitions show nothing. Chosen by hand.
_FAR, _FEWEST, _LEAST_NOISE = 4.0, 3, 0.01


@dataclass(frozen=True, slots=True)
class Runs:
    """Measured runs: their points, descriptions, and values by call path and metric, NaN where none is."""

    points: tuple[Point, ...]
    documents: tuple[dict[str, Any], ...]
    values: Mapping[tuple[str, str], Floats]

    def of(self, key: Key) -> Floats:
        """Return what the model of a key is compared with, shape (runs,): NaN in runs of other categories."""
        callpath, metric, category = key
        values = self.values.get((callpath, metric), np.full(len(self.points), np.nan))
        return inside(self.points, category, values)

    def groups(self) -> Integers:
        """Return a number per run that is the same for runs at the same point."""
        numbers: dict[Point, int] = {}
        return np.array([numbers.setdefault(point, len(numbers)) for point in self.points], dtype=np.intp)


def of_measurements(known: Measurements) -> Runs:
    """Return the runs of measurements: the k-th value of every call path at a point is of the k-th run."""
    most: dict[Point, int] = {}
    for item in known.items:
        for point, values in item.values.items():
            most[point] = max(most.get(point, 0), len(values))
    begin: dict[Point, int] = {}
    points: list[Point] = []
    for point, number in most.items():
        begin[point] = len(points)
        points += [point] * number
    rows: dict[tuple[str, str], Floats] = {}
    for item in known.items:
        row = np.full(len(points), np.nan)
        for point, found in item.values.items():
            row[begin[point] : begin[point] + len(found)] = found
        rows[item.callpath, item.metric] = row
    documents = tuple(
        {"point": place(point), "id": None, "validation": False, "node": None, "t": None} for point in points
    )
    return Runs(tuple(points), documents, rows)


def of_state(state: State) -> Runs:
    """Return the measured runs of a campaign, the validation included, in order of their ids."""
    measured = sorted(
        ((run, item) for run, item in state.runs.items() if item.status is RunStatus.MEASURED),
        key=lambda pair: (pair[0].point.order, pair[0].kind, pair[0].repetition),
    )
    values: dict[tuple[str, str], Floats] = {}
    for k, (run, item) in enumerate(measured):
        for key, value in _values(run, item):
            if key not in values:
                values[key] = np.full(len(measured), np.nan)
            values[key][k] = value
    return Runs(
        tuple(run.point for run, _ in measured),
        tuple(_document(run, item, state) for run, item in measured),
        values,
    )


def _values(run: Run, item: RunState) -> list[tuple[tuple[str, str], float]]:
    whole = [((WHOLE_RUN, ELAPSED), item.elapsed)] if run.kind == "time" else []
    return whole + [
        ((callpath, metric), value)
        for metric, by_callpath in item.samples.items()
        for callpath, value in by_callpath.items()
    ]


def _document(run: Run, item: RunState, state: State) -> dict[str, Any]:
    start = state.started
    return {
        "point": place(run.point),
        "id": run.id,
        "validation": run == state.validation,
        "node": item.node or None,
        "t": None if item.began is None or start is None else item.began - start,
    }


def outliers(values: Floats, groups: Integers, noise: float) -> list[int]:
    """Return which values are far from the median of their point.

    Parameters
    ----------
    values, groups
        Of one call path, and the point of each as a number, shape (runs,).
    noise
        Relative standard deviation of a single value.
    """
    far: list[int] = []
    for group in np.unique(groups):
        there = np.flatnonzero((groups == group) & np.isfinite(values) & (values > 0))
        if len(there) >= _FEWEST:
            deviations = np.abs(np.log(values[there] / np.median(values[there])))
            far += there[deviations > _FAR * max(noise, _LEAST_NOISE)].tolist()
    return sorted(far)
