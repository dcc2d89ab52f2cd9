"""Check whether effort models predict counts that they were not fitted to.

Counts are deterministic (de Morais et al., Denoising Application Performance Models with Noise-Resilient
Priors, section III-A). So once the effort models predict counts at further points exactly, no further effort
run is needed. The paper counts at every point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models.base import Category, Modeler, label_of
from orchestrator.models.effort import TOLERANCE, CountCheck, category
from orchestrator.models.swc.skeleton import counted
from orchestrator.types import Measurement, Measurements, Parameter, Point

_PREDICTED = 0.01  # largest relative error of counts that are predicted; chosen by hand
_SHOWN = 0.01  # percent; the least error that is told
_LEAST_VALUES = 3  # of a parameter: two to fit, the largest to be predicted


def check_counts(
    known: Measurements,
    space: Sequence[Parameter],
    modeler: Modeler,
    *,
    times: Sequence[str] = ("time",),
    tolerance: float = TOLERANCE,
    ranks: str | None = None,
) -> dict[Category, CountCheck]:
    """Check whether the effort models predict the counts at the points that lie furthest out.

    Held out are, one after the other: for every parameter, the points at its largest counted value; and the
    furthest point at which more than one parameter differs from its smallest value. The models of the
    remaining counts are settled if they predict each of these within 1 %. The error is the mean over
    call paths, weighed by their share of the measured time, of the largest relative error of their counts.
    Counts that are not reproducible are left out.

    Parameters
    ----------
    known
        All measurements.
    space
        The parameters with all values that they may have. Where all values of a parameter were counted, there
        is no value to predict.
    modeler
        For the effort models.
    times, tolerance, ranks
        As for the modeler `orchestrator.models.swc.modeler`.

    Returns
    -------
    One check per combination of categorical values that was counted.
    """
    timed = tuple(item for item in known.items if item.metric in times)
    items = counted(known, dict.fromkeys(item.callpath for item in timed), tolerance, ranks)
    categorical = [parameter.name for parameter in space if parameter.categorical]
    groups: dict[Category, list[Point]] = {}
    for point in dict.fromkeys(point for item in items for point in item.values):
        groups.setdefault(category(point, categorical), []).append(point)
    numeric = [parameter for parameter in space if not parameter.categorical]
    return {
        name: _check(_Counts(known.parameters, items, timed, points), numeric, modeler)
        for name, points in groups.items()
    }


@dataclass(frozen=True, slots=True)
class _Counts:
    """Counts and times of one category, and the points that were counted."""

    parameters: tuple[str, ...]
    items: tuple[Measurement, ...]
    timed: tuple[Measurement, ...]
    points: Sequence[Point]

    def shares(self, points: Sequence[Point]) -> dict[str, float]:
        """Share of every call path in the time at some points, or at all of them if not timed there."""
        for chosen in (set(points), {point for item in self.timed for point in item.values}):
            seconds: dict[str, float] = {}
            for item in self.timed:
                mean = sum(float(np.mean(v)) for p, v in item.values.items() if p in chosen and v)
                seconds[item.callpath] = seconds.get(item.callpath, 0.0) + mean
            if (total := sum(seconds.values())) > 0:
                return {path: value / total for path, value in seconds.items()}
        return {}


def _check(counts: _Counts, numeric: Sequence[Parameter], modeler: Modeler) -> CountCheck:
    worst = 0.0
    for what, held in _tests(counts.points, numeric):
        if not held:
            return CountCheck(False, what)
        error, path = _error(counts, held, modeler)
        if error > _PREDICTED:
            where = f"counts {what} are predicted to {100 * error:.2g} % only"
            return CountCheck(False, where + (f", mostly because of {path}" if path else ""))
        worst = max(worst, error)
    # What is less is rounding of the fit: its digits would change from round to round.
    within = f"{max(100 * worst, _SHOWN):.1g}"
    return CountCheck(True, f"counts are predicted within {within} % from those at cheaper points")


def _tests(points: Sequence[Point], numeric: Sequence[Parameter]) -> Iterator[tuple[str, list[Point]]]:
    """Yield what is held out, in words, and these points; no points where too little was counted."""
    varied = []
    for parameter in numeric:
        name = parameter.name
        values = sorted({point.number(name) for point in points})
        if len(values) > 1:
            varied.append(name)
        if len(values) == len(parameter.values):
            continue  # there is no value left to predict
        if len(values) < _LEAST_VALUES:
            yield f"only {len(values)} of {len(parameter.values)} values of {name} were counted", []
        yield f"at the largest {name}", [p for p in points if p.number(name) == values[-1]]
    lowest = {name: min(point.number(name) for point in points) for name in varied}
    apart = [p for p in points if sum(p.number(name) > low for name, low in lowest.items()) > 1]
    if len(varied) > 1:
        if not apart:
            yield "nothing was counted where more than one parameter varies", []
        places = {n: sorted({p.number(n) for p in points}) for n in varied}
        far = max(
            apart,
            key=lambda p: sum(places[n].index(p.number(n)) / len(places[n]) for n in varied),
            default=None,
        )
        yield f"at {far}", [far] if far else []


def _error(counts: _Counts, held: Sequence[Point], modeler: Modeler) -> tuple[float, str]:
    """Return the weighed error of models fitted without some points, and the call path with most of it."""
    gone, here = set(held), set(counts.points)
    train = tuple(
        Measurement(item.callpath, item.metric, values)
        for item in counts.items
        if (values := {p: v for p, v in item.values.items() if p in here and p not in gone})
    )
    try:
        models = {label_of(m): m for m in modeler(Measurements(counts.parameters, train))}
    except ModelError:
        return 1.0, ""
    errors: dict[str, float] = {}
    for item in counts.items:
        seen = {p: float(np.mean(item.values[p])) for p in held if item.values.get(p)}
        if not seen:
            continue
        model = models.get(label_of(item))
        expected = model.value(list(seen)) if model is not None else np.zeros(len(seen))
        actual = np.array(list(seen.values()))
        apart = np.abs(expected - actual) / np.maximum(np.abs(actual), np.finfo(float).tiny)
        error = float(np.max(np.where(expected == actual, 0.0, np.where(np.isnan(apart), 1.0, apart))))
        errors[item.callpath] = max(errors.get(item.callpath, 0.0), min(error, 1.0))
    parts = {path: share * errors.get(path, 0.0) for path, share in counts.shares(held).items()}
    return sum(parts.values()), max(parts, key=lambda path: parts[path], default="")
