"""Measurements as arrays: call paths that were measured at the same points are fitted together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models.hypotheses import Floats
from orchestrator.types import Measurement, Measurements, Point, Value, format_value

Category = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Call paths (and metrics) with the same measured points, in one category.

    Attributes
    ----------
    parameters
        Numeric parameters with at least two values among the points; they may appear in a model.
    fixed
        Numeric parameters with one value only, and that value.
    category
        The value of every categorical parameter.
    points
        Coordinates of the measured points in the order of ``parameters``, shape (points, parameters).
    values
        Positive measured values, shape (call paths, points, repetitions), padded with NaN.
    labels
        Call path and metric of every row of ``values``.
    notes
        Remarks per row of ``values``.
    """

    parameters: tuple[str, ...]
    fixed: tuple[tuple[str, float], ...]
    category: Category
    points: Floats
    values: Floats
    labels: tuple[tuple[str, str], ...]
    notes: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class _Series:
    measurement: Measurement
    category: Category
    values: Mapping[tuple[float, ...], tuple[float, ...]]
    zero: bool
    notes: tuple[str, ...]


def groups(measurements: Measurements) -> tuple[list[Group], list[tuple[Measurement, Category]]]:
    """Arrange measurements into groups that share points.

    Returns
    -------
    The groups, and the (measurement, category) pairs whose every value is zero.

    Raises
    ------
    ModelError
        When a parameter has a negative or non-finite value, or when no usable value remains.
    """
    names = measurements.parameters
    categorical = [name for name in names if any(isinstance(p[name], str) for p in measurements.points)]
    numeric = tuple(name for name in names if name not in categorical)
    _check_coordinates(measurements.points, numeric)
    series = [part for item in measurements.items for part in _series_of(item, numeric, categorical)]
    usable = [part for part in series if part.values]
    zeros = [(part.measurement, part.category) for part in series if part.zero]
    if not usable and not zeros:
        raise ModelError(
            "no call path has a usable measurement: every value is missing, negative or not finite; "
            "look at the profiles or choose another metric"
        )
    shared: dict[tuple[Category, frozenset[tuple[float, ...]]], list[_Series]] = {}
    for part in usable:
        shared.setdefault((part.category, frozenset(part.values)), []).append(part)
    return [_group(category, numeric, parts) for (category, _), parts in shared.items()], zeros


def _check_coordinates(points: Iterable[Point], numeric: tuple[str, ...]) -> None:
    for point in points:
        for name in numeric:
            value = point.number(name)
            if not np.isfinite(value) or value < 0:
                raise ModelError(
                    f"{point}: {name} is {value}, but the normal form needs parameters >= 0; "
                    "shift or rescale the parameter, or declare it categorical"
                )


def _series_of(item: Measurement, numeric: tuple[str, ...], categorical: list[str]) -> list[_Series]:
    """Split one measurement by category, and drop what cannot be used, with a note."""
    split: dict[Category, dict[Point, tuple[float, ...]]] = {}
    for point, values in item.values.items():
        category = tuple((name, _text(point[name])) for name in categorical)
        split.setdefault(category, {})[point] = values
    series = []
    for category, by_point in split.items():
        kept: dict[tuple[float, ...], tuple[float, ...]] = {}
        total = zero = bad = 0
        for point, values in by_point.items():
            where = tuple(point.number(name) for name in numeric)
            good = tuple(float(v) for v in values if np.isfinite(v) and v > 0)
            total += len(values)
            zero += sum(1 for v in values if v == 0)
            if good:
                kept[where] = kept.get(where, ()) + good
        bad = total - zero - sum(len(values) for values in kept.values())
        notes = []
        if zero and kept:
            notes.append(
                f"{zero} of {total} values are zero and were left out: relative errors have no meaning there"
            )
        if bad:
            notes.append(f"{bad} of {total} values are negative or not finite and were left out")
        series.append(_Series(item, category, kept, zero > 0 and not kept and not bad, tuple(notes)))
    return series


def _text(value: Value) -> str:
    return value if isinstance(value, str) else format_value(value)


def _group(category: Category, numeric: tuple[str, ...], parts: list[_Series]) -> Group:
    points = sorted(parts[0].values)
    coordinates = np.array(points, dtype=float).reshape(len(points), len(numeric))
    varies = [bool(np.any(coordinates[:, k] != coordinates[0, k])) for k in range(len(numeric))]
    fixed = tuple((numeric[k], float(coordinates[0, k])) for k in range(len(numeric)) if not varies[k])
    repetitions = max(len(part.values[point]) for part in parts for point in points)
    values = np.full((len(parts), len(points), repetitions), np.nan)
    for row, part in enumerate(parts):
        for column, point in enumerate(points):
            values[row, column, : len(part.values[point])] = part.values[point]
    left_out = tuple(
        f"{name} was measured at {format_value(value)} only and is not part of the model"
        for name, value in fixed
    )
    return Group(
        parameters=tuple(name for name, v in zip(numeric, varies, strict=True) if v),
        fixed=fixed,
        category=category,
        points=coordinates[:, varies],
        values=values,
        labels=tuple((part.measurement.callpath, part.measurement.metric) for part in parts),
        notes=tuple(part.notes + left_out for part in parts),
    )
