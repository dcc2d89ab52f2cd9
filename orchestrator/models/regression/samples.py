"""Measurements of one call path as rows of coordinates, categories among them: what learners are fitted to.

Unlike `orchestrator.models.data`, which arranges one group per combination of categories, all categories are
together here, because a learner shares between them what they have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from orchestrator.models import data
from orchestrator.models.base import Floats, Integers, Key, Label, label_of
from orchestrator.models.noise import locate
from orchestrator.models.regression import alignment
from orchestrator.models.regression.first import first_runs
from orchestrator.models.symbolic import LARGEST_LOG
from orchestrator.models.unvaried import Unvaried
from orchestrator.types import Measurement, Measurements, Point, format_value

_WHOLE = 1e-9  # by which logarithms of whole numbers are rounded

Levels = Mapping[str, tuple[str, ...]]
"""Categorical parameters with the texts of their values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One parameter as a coordinate."""

    name: str
    # Texts of the values of a categorical parameter, whose coordinate is their index; None for numbers.
    levels: tuple[str, ...] | None = None
    logarithmic: bool = False  # whether the coordinate is the logarithm of the value
    # low, high: smallest and largest measured coordinate.
    low: float = 0.0
    high: float = 1.0
    # Whole numbers that differ by a multiple of it are equally aligned; 1 where that does not matter.
    period: int = 1

    @property
    def is_categorical(self) -> bool:
        """Whether neighbouring coordinates have nothing in common."""
        return self.levels is not None

    @property
    def width(self) -> int:
        """How many columns `columns` has."""
        return 1 if self.levels is None else len(self.levels)

    def columns(self, x: Floats) -> Floats:
        """Return coordinates as they are, or an indicator per category, shape (n, width)."""
        if self.levels is None:
            return x[:, None]
        return np.asarray(x[:, None] == np.arange(len(self.levels)), np.float64)

    def coordinate(self, points: Sequence[Point]) -> Floats:
        """Return the coordinates of points, shape (points,); NaN for what has none."""
        if self.levels is not None:
            codes = {text: float(code) for code, text in enumerate(self.levels)}
            return np.array([codes.get(format_value(point[self.name]), np.nan) for point in points], float)
        values = np.array([point.number(self.name) for point in points], dtype=float)
        return self.of_value(values)

    def of_value(self, values: Floats) -> Floats:
        """Return the coordinates of numbers."""
        if not self.logarithmic:
            return values
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(values > 0, np.log(values), np.nan))

    def numbers(self, x: Floats) -> Floats:
        """Return the numbers at coordinates, as far as rounding leaves them; none is infinite."""
        return np.exp(np.minimum(x, LARGEST_LOG)) if self.logarithmic else x

    def nearest(self, x: Floats, low: float, high: float) -> Floats:
        """Return the nearest coordinates within a range, of values that are aligned as those beyond it."""
        if self.period == 1:
            return np.clip(x, low, high)
        least, most = _rounded(self.numbers(np.array([low, high])), _WHOLE)
        values = alignment.within(self.numbers(x), float(least), float(most), self.period)
        if not self.logarithmic:
            return values
        return np.clip(np.log(values), low, high)

    def values(self, column: Floats) -> list[float] | list[str]:
        """Return the values at coordinates: those that `of_value` takes, or texts of categories."""
        if self.levels is not None:
            return ["" if np.isnan(code) else self.levels[int(code)] for code in column]
        return [float(value) for value in _rounded(np.exp(column) if self.logarithmic else column)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Samples:
    """Measured points of one call path and metric."""

    axes: tuple[Axis, ...]  # what the columns of ``x`` are: every parameter that has at least two values
    x: Floats  # coordinates, shape (points, axes), in the order of measurement; a row appears once
    y: Floats  # logarithms of the locations, shape (points,)
    runs: Floats  # effective number of repetitions behind each, shape (points,)

    def __len__(self) -> int:
        return len(self.y)

    def rows(self, index: Integers | NDArray[np.bool_]) -> Self:
        """Select points; the axes keep the range of all."""
        return replace(self, x=self.x[index], y=self.y[index], runs=self.runs[index])

    def within(self, axis: int, low: float, high: float) -> Self:
        """Replace the range of an axis."""
        axes = list(self.axes)
        axes[axis] = replace(axes[axis], low=low, high=high)
        return replace(self, axes=tuple(axes))

    def with_y(self, y: Floats) -> Self:
        """Replace the values."""
        return replace(self, y=y)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The samples of a call path with what a model says of them."""

    callpath: str
    metric: str
    samples: Samples
    # Returns those that were measured first, without the repetitions that followed: a choice among learners
    # is made with them, which most call paths do not need.
    first: Callable[[], Samples]
    sigma: float  # relative noise of a single repetition
    is_guess: bool  # whether that is a guess, because nothing was repeated
    shared_sigma: float  # the part of it that repetitions of one origin share
    notes: tuple[str, ...]  # remarks of the arrangement
    unvaried: Unvaried  # parameters that were measured at one value, which are no axes


def arranged(measurements: Measurements, aggregate: str = "auto") -> tuple[list[Series], list[Key]]:
    """Arrange measurements for learners.

    Parameters
    ----------
    measurements
        What was measured; values that are not positive are left out with a note.
    aggregate
        How repetitions become one value.

    Returns
    -------
    The series in the order of the measurements, and the labels of those whose every value is zero.

    Raises
    ------
    ModelError
        When a parameter has a value that is not finite, or when no usable value remains.
    """
    levels = categories(measurements)
    coded = _coded(measurements, levels)
    groups, zeros = data.groups(coded)
    series: dict[Label, Series] = {}
    for group in groups:
        located = locate(group.values, aggregate, group.origins)
        axes = tuple(
            _axis(name, column, levels.get(name))
            for name, column in zip(group.parameters, group.points.T, strict=True)
        )
        columns = [axis.of_value(column) for axis, column in zip(axes, group.points.T, strict=True)]
        x = np.column_stack(columns) if columns else np.empty((len(group.points), 0))
        order = _in_time(coded, group)
        for k, label in enumerate(group.labels):
            samples = Samples(
                axes=axes, x=x[order], y=located.log_value[k, order], runs=located.count[k, order]
            )
            series[label] = Series(
                callpath=label[0],
                metric=label[1],
                samples=samples,
                first=cache(partial(_first, samples, group, k, order, aggregate)),
                sigma=float(located.sigma[k]),
                is_guess=bool(located.is_guess[k]),
                shared_sigma=float(located.shared_sigma[k]),
                notes=group.notes[k],
                unvaried=group.unvaried.without(levels),
            )
    labels = dict.fromkeys(map(label_of, measurements.items))
    return [series[label] for label in labels if label in series], zeros


def _first(samples: Samples, group: data.Group, row: int, order: Integers, aggregate: str) -> Samples:
    """Return the samples of the first points, with the values of their first runs; see `first_runs`.

    They are located by themselves: the noise, which decides how repetitions count, changes with every run.
    """
    values = group.values[row, order]
    # The first runs of a point are the first that have a value: those without one are in between.
    places = np.argsort(np.isnan(values), axis=1, kind="stable")
    some = first_runs(np.take_along_axis(values, places, 1))
    points, runs = some.shape
    origins = None
    if group.origins is not None:
        origins = np.take_along_axis(group.origins[row, order], places, 1)[None, :points, :runs]
    located = locate(some[None], aggregate, origins)
    return replace(samples, x=samples.x[:points], y=located.log_value[0], runs=located.count[0])


def encoded(axes: Sequence[Axis], points: Sequence[Point]) -> Floats:
    """Return the coordinates of points, shape (points, axes); NaN for an unknown category or no logarithm."""
    x = np.empty((len(points), len(axes)))
    for column, axis in enumerate(axes):
        x[:, column] = axis.coordinate(points)
    return x


def decoded(axes: Sequence[Axis], x: Floats) -> list[Point]:
    """Return the points at coordinates (n, axes), with texts of categories; empty for an unknown one."""
    columns = [axis.values(column) for axis, column in zip(axes, x.T, strict=True)]
    names = [axis.name for axis in axes]
    return [Point(tuple(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


def categories(measurements: Measurements) -> Levels:
    """Return the categorical parameters with the texts of their values, in an order of their own.

    That of appearance would make fits depend on the order of measurement.
    """
    names = [name for name in measurements.parameters if measurements.is_categorical(name)]
    points = measurements.points if names else ()
    return {name: tuple(sorted({format_value(point[name]) for point in points})) for name in names}


def _coded(measurements: Measurements, levels: Levels) -> Measurements:
    """Return the measurements with categories as their numbers."""
    if not levels:
        return measurements
    codes = {name: {text: code for code, text in enumerate(texts)} for name, texts in levels.items()}
    coded: dict[Point, Point] = {}
    for point in measurements.points:
        values = {
            name: codes[name][format_value(value)] if name in codes else value for name, value in point.items
        }
        coded[point] = Point.of(values)
    items = [
        Measurement(
            item.callpath,
            item.metric,
            {coded[point]: values for point, values in item.values.items()},
            {coded[point]: names for point, names in item.origins.items()},
        )
        for item in measurements.items
    ]
    return Measurements(measurements.parameters, tuple(items))


def plain_columns(axes: Sequence[Axis], x: Floats) -> Floats:
    """Return coordinates as they are, and an indicator per category, shape (n, columns)."""
    parts = [axis.columns(values) for axis, values in zip(axes, x.T, strict=True)]
    return np.hstack([np.empty((len(x), 0)), *parts])


def where_known(x: Floats, function: Callable[[Floats], Floats]) -> Floats:
    """Return a function of coordinates (n, axes), shape (n,); NaN where one of the coordinates is unknown."""
    known = np.isfinite(x).all(axis=1)
    result = np.full(len(x), np.nan)
    if known.any():
        result[known] = function(x[known])
    return result


def _rounded(values: Floats, share: float = 1e-12) -> Floats:
    """Return whole numbers where rounding alone, by a share, keeps values from being whole."""
    whole = np.round(values)
    return np.where(np.abs(values - whole) <= share * np.abs(values), whole, values)


def _in_time(measurements: Measurements, group: data.Group) -> Integers:
    """Return the points of a group in the order in which they were measured: groups sort them."""
    places: dict[tuple[float, ...], int] = {}
    for place, point in enumerate(measurements.points):
        values = point.as_dict()
        places.setdefault(tuple(float(values[name]) for name in group.parameters), place)
    return np.argsort([places[tuple(row)] for row in group.points.tolist()], kind="stable")


def _axis(name: str, values: Floats, levels: tuple[str, ...] | None) -> Axis:
    logarithmic = levels is None and bool(values.min() > 0)
    ends = (values.min(), values.max())
    low, high = (float(np.log(end)) if logarithmic else float(end) for end in ends)
    period = alignment.period(values) if levels is None else 1
    return Axis(name=name, levels=levels, logarithmic=logarithmic, low=low, high=high, period=period)
