"""The call paths of a report: models with their predictions over the grid, measured values and curves."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orchestrator.models.base import Category, Floats, Model, Prediction, holds_at, key_of
from orchestrator.models.callpaths import callers, parts
from orchestrator.models.mpi_costs import operation
from orchestrator.models.summed import Summed
from orchestrator.models.symbolic import sum_text
from orchestrator.report.models_document import number, short_form
from orchestrator.report.page import growth
from orchestrator.report.page import runs as measured_runs
from orchestrator.report.page.answers import Answers, asked_at
from orchestrator.report.page.encoding import bands, packed, place, tidy
from orchestrator.report.page.formulas import Formula
from orchestrator.report.page.grid import Grid
from orchestrator.report.page.runs import Runs
from orchestrator.report.page.subject import Subject
from orchestrator.types import Point

# The size of the document: most predicted values of all call paths together, most points of one call path,
# points that every call path has if that is possible, most measured values, and call paths with curves and
# with typeset formulas.
_MOST_VALUES, _MOST_POINTS, _LEAST_POINTS = 80_000, 2_500, 24
_MOST_MEASURED, _MOST_CURVES, _MOST_TYPESET = 150_000, 240, 400
# Seconds that predictions over the grid may take, and the points and models that show how long one takes.
_SECONDS, _TRIED_POINTS, _TRIED_MODELS, _FEWEST_POINTS = 60.0, (4, 64), 5, 9
_CURVE = 40  # points of a curve
# What deserves a badge: relative noise, SMAPE in percent, relative width of an interval, measured points.
_NOISY, _MISFIT, _UNCERTAIN, _FEW = 0.1, 10.0, 1.0, 5


@dataclass(frozen=True, slots=True)
class Line:
    """A line through parameter space: one parameter varies, the others keep their values."""

    parameter: str
    at: Point
    x: Floats

    def points(self, category: Category = ()) -> list[Point]:
        """Return its points, of a category."""
        values = {**self.at.as_dict(), **dict(category)}
        return [Point.of({**values, self.parameter: tidy(float(x))}) for x in self.x]

    def document(self) -> dict[str, Any]:
        """Return it as the page reads it."""
        return {"parameter": self.parameter, "at": place(self.at, [self.parameter]), "x": self.x.tolist()}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPaths:
    """All models of a report, largest first, and what they predict."""

    models: tuple[Model, ...]  # in the order of the document: a model's number is its place
    grid: Grid  # at whose points they were asked
    predictions: tuple[Prediction, ...]  # over the grid, one per model
    documents: tuple[dict[str, Any], ...]  # as the page reads them
    lines: tuple[Line, ...]  # along which curves are drawn

    def at_default(self, k: int) -> tuple[float, float, float]:
        """Return value, low and high of a model at the point where the sliders stand first."""
        return _at(self.grid, self.predictions[k])

    def ids(self, callpaths: Sequence[str], metric: str | None) -> list[int]:
        """Return the numbers of call paths with a metric, of all categories."""
        wanted = set(callpaths)
        return [
            k for k, model in enumerate(self.models) if model.metric == metric and model.callpath in wanted
        ]


def call_paths(
    subject: Subject, runs: Runs, grid: Grid, clock: Callable[[], float] = time.process_time
) -> CallPaths:
    """Predict with all models.

    Parameters
    ----------
    subject, runs
        What the report is about, and its measured runs.
    grid
        All stops that are worth having; it is thinned until predictions are few and quick enough.
    clock
        Seconds of computing, by which the first predictions are timed.
    """
    kept = grid.thinned(_affordable(_by_measured(subject), grid, clock))
    lines = tuple(lines_through(subject, kept))
    every = len(subject.models) * len(lines) <= _MOST_CURVES
    asked = {
        category: _points(kept, runs, category, lines if every else ())
        for category in {model.category for model in subject.models}
    }
    found = _largest_first(
        [(model, asked_at(model, asked[model.category])) for model in subject.models], kept, subject.metric
    )
    models, answers = tuple(model for model, _ in found), [item for _, item in found]
    numbers = {key_of(model): k for k, model in enumerate(models)}
    points = kept.points()
    predictions = tuple(item.over(points) for item in answers)
    documents = tuple(
        {
            "id": k,
            "parent": numbers.get((_parent(model, subject), model.metric, model.category)),
            **_described(model, subject, kept.default, k < _MOST_TYPESET),
            "growth": growth.described(model, kept, over.value),
            "badges": list(_badges(model, subject, _at(kept, over))),
            **bands(over),
            **_measured(model, item, runs, (k + 1) * len(runs.points) <= _MOST_MEASURED),
            "curves": curves(model, lines, item if every else None) if k * len(lines) < _MOST_CURVES else [],
        }
        for k, (model, item, over) in enumerate(zip(models, answers, predictions, strict=True))
    )
    return CallPaths(models=models, grid=kept, predictions=predictions, documents=documents, lines=lines)


def _points(grid: Grid, runs: Runs, category: Category, lines: Sequence[Line]) -> list[Point]:
    """Return all points at which models of a category are asked: once, because every call has its price."""
    own = Point.of({**grid.default.as_dict(), **dict(category)})
    along = (point for line in lines for point in line.points(category))
    return list(dict.fromkeys([*grid.points(), *runs.points, own, *along]))


def _affordable(models: Sequence[Model], grid: Grid, clock: Callable[[], float]) -> int:
    """Return at how many points every model can be asked."""
    by_size = max(_LEAST_POINTS, min(_MOST_POINTS, _MOST_VALUES // max(len(models), 1)))
    if grid.size <= _LEAST_POINTS:
        return by_size
    middle = [len(models) * (2 * k + 1) // (2 * _TRIED_MODELS) for k in range(_TRIED_MODELS)]
    tried = [models[k] for k in dict.fromkeys(middle)]  # not the largest, which may be a sum of all others
    few, many = grid.thinned(_TRIED_POINTS[0]).points(), grid.points(_TRIED_POINTS[1])
    for model in tried:
        model.predict(few)  # the first call may compile
    seconds = [_seconds(tried, points, clock) for points in (few, many)]
    price = (seconds[1] - seconds[0]) / max(len(many) - len(few), 1)  # of a point, beyond that of a call
    by_time = int((_SECONDS / len(models) - seconds[0]) / max(price, 1e-9))
    return min(by_size, max(by_time, _FEWEST_POINTS))


def _seconds(models: Sequence[Model], points: Sequence[Point], clock: Callable[[], float]) -> float:
    """Return the seconds that a model needs for predictions at points."""
    begin = clock()
    for model in models:
        model.predict(points)
    return (clock() - begin) / max(len(models), 1)


def _by_measured(subject: Subject) -> list[Model]:
    """Return models of the metric first, those with the largest measured values first."""

    def order(model: Model) -> tuple[bool, float]:
        item = subject.measured.get((model.callpath, model.metric))
        return model.metric != subject.metric, -max(map(max, item.values.values())) if item else 0.0

    return sorted(subject.models, key=order)


def _largest_first(
    answered: Sequence[tuple[Model, Answers]], grid: Grid, metric: str | None
) -> list[tuple[Model, Answers]]:
    """Return models of the metric first, those with the largest predictions first."""

    def order(pair: tuple[Model, Answers]) -> tuple[bool, str, float]:
        model, answers = pair
        value = answers.at(Point.of({**grid.default.as_dict(), **dict(model.category)}))[0]
        return model.metric != metric, model.metric, -value if np.isfinite(value) else 0.0

    return sorted(answered, key=order)


def _parent(model: Model, subject: Subject) -> str:
    """Return the nearest caller that was measured; empty for outermost call paths."""
    measured = subject.measured
    for caller in callers(model.callpath)[1:]:
        if (caller, model.metric) in measured:
            return caller
    if model.metric == subject.metric:
        return next((above for above, below in subject.children.items() if model.callpath in below), "")
    return ""


def _described(model: Model, subject: Subject, point: Point, is_typeset: bool) -> dict[str, Any]:
    expression = model.expression
    formula = Formula.of(expression, model.parameters) if is_typeset else None
    return {
        "name": model.callpath,
        "metric": model.metric,
        "unit": subject.unit(model.metric),
        "category": dict(model.category),
        "mpi": operation(parts(model.callpath)[-1]) is not None,
        "exclusive": not subject.includes,
        "expression": expression,
        "short": _short(model, point, is_typeset),
        "latex": None if formula is None else formula.latex,
        "mathml": None if formula is None else formula.mathml,
        "python": None if formula is None else formula.python,
        "c": None if formula is None else formula.c,
        "notes": list(model.notes),
        "smape": number(model.smape),
        "noise": number(model.noise),
    }


def _short(model: Model, point: Point, is_typeset: bool) -> dict[str, Any] | None:
    """Return a long sum of parts for the table: as text, and its largest terms typeset; None for others."""
    if not isinstance(model, Summed) or (text := short_form(model, point)) is None:
        return None
    # Corrections of the terms are named in the text.
    exact = is_typeset and model.expression == model.normal_form
    largest = Formula.of(sum_text(model.largest_terms(point)), model.parameters) if exact else None
    return {
        "text": text,
        "parts": len(model.parts),
        "mathml": None if largest is None else largest.mathml,
    }


def _at(grid: Grid, prediction: Prediction) -> tuple[float, float, float]:
    """Return value, low and high at the default point."""
    index = np.ravel_multi_index([axis.stops.index(axis.default) for axis in grid.axes], grid.shape)
    return float(prediction.value[index]), float(prediction.low[index]), float(prediction.high[index])


def _badges(model: Model, subject: Subject, there: tuple[float, float, float]) -> list[str]:
    value, low, high = there
    item = subject.measured.get((model.callpath, model.metric))
    points = [] if item is None else [point for point in item.values if holds_at(model, point)]
    said = {
        "noisy": model.noise > _NOISY,
        "few points": 0 < len(points) < _FEW,
        "poor fit": model.smape > _MISFIT,
        "uncertain": value > 0 and high - low > _UNCERTAIN * value,
        "not monotone": any(note.startswith("not monotone") for note in model.notes),
        "jumps": any(note.startswith(("jumps", "changes at")) for note in model.notes),
    }
    return [name for name, holds in said.items() if holds]


def _measured(model: Model, answers: Answers, runs: Runs, is_kept: bool) -> dict[str, Any]:
    if not is_kept:
        return {"measured": None, "predicted_at_runs": None, "outliers": []}
    values = runs.of(key_of(model))
    return {
        "measured": packed(values),
        "predicted_at_runs": packed(answers.over(runs.points).value),
        "outliers": measured_runs.outliers(values, runs.groups(), model.noise),
    }


def lines_through(subject: Subject, grid: Grid) -> list[Line]:
    """Return lines along every numeric parameter: through the default point, and where most was measured."""
    points = subject.known.points
    lines = []
    for axis in grid.axes:
        if axis.is_categorical or len(axis.stops) < 2:
            continue
        rest = Counter(tuple(pair for pair in point.items if pair[0] != axis.name) for point in points)
        asked = {name: value for name, value in grid.default.items if name != axis.name}
        most = max(rest, key=lambda others: (rest[others], dict(others) == asked, str(others)))
        best = Point.of({**dict(most), axis.name: axis.default})
        ends = float(axis.stops[0]), float(axis.stops[-1])
        x = np.geomspace(*ends, _CURVE) if axis.is_logarithmic else np.linspace(*ends, _CURVE)
        x = np.unique(np.concatenate([x[1:-1], [float(stop) for stop in axis.stops]]))
        for at in dict.fromkeys([grid.default, Point.of({name: best[name] for name in grid.names})]):
            lines.append(Line(axis.name, at, x))
    return lines


def curves(model: Model, lines: Sequence[Line], answers: Answers | None = None) -> list[dict[str, Any]]:
    """Return what a model gives along the lines of its category; it is asked unless ``answers`` have them."""
    along = [line.points(model.category) for line in lines]
    if not along:
        return []
    if answers is None:
        answers = asked_at(model, list(dict.fromkeys(point for points in along for point in points)))
    return [
        {
            "line": k,
            **bands(answers.over(points)),
            "change_points": [at for name, at in getattr(model, "changes", ()) if name == line.parameter],
        }
        for k, (line, points) in enumerate(zip(lines, along, strict=True))
    ]
