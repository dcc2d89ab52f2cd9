"""Measurements as arrays: call paths that were measured at the same points are fitted together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from orchestrator.errors import ModelError
from orchestrator.models.base import Category, Floats, Integers, Key, Label, label_of
from orchestrator.models.unseen import tied
from orchestrator.models.unvaried import Unvaried
from orchestrator.types import Measurement, Measurements, Point, Value, format_value
from orchestrator.units import count

Fitted = TypeVar("Fitted")

# Ticks of a coarse clock (or samples of a profiler) of which the middle value at a point has at most so many
# where a repetition that has none is one as well. Chosen by hand; not derived.
_FEW_TICKS = 5.0

# Nothing that is measured is smaller or larger; a variable that was never set mostly is: 6.9e-310, 1e+302.
_LEAST, _MOST = 1e-100, 1e100


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Call paths (and metrics) with the same measured points, in one category."""

    # Numeric parameters with at least two values among the points; they may appear in a model.
    parameters: tuple[str, ...]
    category: Category  # the value of every categorical parameter
    # Coordinates of the measured points in the order of ``parameters``, shape (points, parameters).
    points: Floats
    # Measured values, shape (call paths, points, repetitions), padded with NaN; see `groups` for which.
    values: Floats
    labels: tuple[Label, ...]  # of every row of ``values``
    notes: tuple[tuple[str, ...], ...]  # remarks per row of ``values``
    # A number for what repetitions may share, in the shape of ``values``; None where nothing is known.
    origins: Integers | None = None
    # All numeric parameters of the measurements, each with its value if it has only one among the points.
    fixed: tuple[tuple[str, float | None], ...] = ()

    @property
    def unvaried(self) -> Unvaried:
        """Numeric parameters that have one value, and do not appear in a model."""
        left_out = ((name, value) for name, value in self.fixed if name not in self.parameters)
        return Unvaried(tuple((name, value) for name, value in left_out if value is not None))

    def coordinates(self, names: Sequence[str]) -> Floats:
        """Return the values of numeric parameters at the points, (points, names), also of those with one."""
        varied, alone = dict(zip(self.parameters, self.points.T, strict=True)), dict(self.fixed)
        columns = [varied[n] if n in varied else np.full(len(self.points), alone[n]) for n in names]
        return np.stack(columns, axis=1) if columns else np.empty((len(self.points), 0))

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Select call paths."""
        return replace(
            self,
            values=self.values[rows],
            labels=tuple(self.labels[row] for row in rows),
            notes=tuple(self.notes[row] for row in rows),
            origins=None if self.origins is None else self.origins[rows],
        )

    def at_points(self, index: NDArray[np.intp]) -> Self:
        """Select points."""
        return replace(
            self,
            points=self.points[index],
            values=self.values[:, index],
            origins=None if self.origins is None else self.origins[:, index],
        )


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the points of one category lie.

    ``rows`` are their rows among the values, ``repeated`` those that repeat the coordinates before them.
    """

    category: Category
    coordinates: Floats
    rows: Integers
    repeated: Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class _Series:
    """Usable values of one call path in one category; ``coordinates`` are sorted and unique.

    ``origins`` has the shape of ``values``, or is None.
    """

    label: Label
    category: Category
    coordinates: Floats
    values: Floats
    notes: tuple[str, ...]
    origins: Integers | None = None


def groups(measurements: Measurements) -> tuple[list[Group], list[Key]]:
    """Arrange measurements into groups that share points, one per category and set of points.

    Families work with logarithms or relative errors: zeros, negative values and numbers that nothing can
    measure are left out with a note. Series whose every value is zero are returned apart.

    Parameters
    ----------
    measurements
        What was measured.

    Returns
    -------
    The groups, and (call path, metric, category) of the series whose every value is zero.

    Raises
    ------
    ModelError
        When a parameter has a value that is not finite, or when no usable value remains.
    """
    shared: dict[tuple[Category, bytes], list[_Series]] = {}
    zeros: list[Key] = []
    numbers: dict[str, int] = {}
    origins, last = None, None
    for item, layouts, values in _rows(measurements):
        label = label_of(item)
        # Call paths that were measured in the same runs share the object.
        known = last is not None and item.origins is last[0] and layouts is last[1]
        if not known or (origins is not None and origins.shape != values.shape):
            origins, last = _origins(item, values, numbers), (item.origins, layouts)
        for layout in layouts:
            here = None if origins is None else origins[layout.rows]
            series, zero = _clean(label, layout, values[layout.rows], here)
            if zero:
                zeros.append((*label, layout.category))
            elif len(series.coordinates):
                key = (series.category, series.coordinates.tobytes())
                shared.setdefault(key, []).append(series)
    if not shared and not zeros:
        raise ModelError(
            "no call path has a usable measurement: every value is missing, negative or not finite; "
            "look at the profiles or choose another metric"
        )
    return [_group(measurements, parts) for parts in shared.values()], zeros


def _rows(measurements: Measurements) -> Iterator[tuple[Measurement, list[_Layout], Floats]]:
    """Yield every measurement with its layouts; call paths mostly share one, which is computed once."""
    numeric = tuple(name for name in measurements.parameters if not measurements.is_categorical(name))
    categorical = tuple(name for name in measurements.parameters if name not in numeric)
    known: list[_Layout] = []
    last: tuple[Point, ...] | None = None
    for item in measurements.items:
        keys = tuple(item.values)
        if keys != last:
            known, last = _layouts(keys, numeric, categorical), keys
        yield item, known, _padded(item.values)


def _coordinates(points: Sequence[Point], names: tuple[str, ...]) -> list[tuple[Value, ...]]:
    """Return the values of some parameters at every point; points mostly name parameters in one order."""
    order: tuple[str, ...] = ()
    index: list[int] = []
    found: list[tuple[Value, ...]] = []
    for point in points:
        there, values = zip(*point.items, strict=True) if point.items else ((), ())
        if there != order or not found:
            order, index = there, [there.index(name) for name in names]
        found.append(tuple([values[k] for k in index]))
    return found


def _layouts(
    keys: tuple[Point, ...], numeric: tuple[str, ...], categorical: tuple[str, ...]
) -> list[_Layout]:
    everywhere = np.array(_coordinates(keys, numeric), dtype=float).reshape(len(keys), len(numeric))
    _check_finite(everywhere, keys, numeric)
    rows: dict[tuple[Value, ...], list[int]] = {}
    for k, values in enumerate(_coordinates(keys, categorical)):
        rows.setdefault(values, []).append(k)
    layouts = []
    for values, found in rows.items():
        index = np.array(found, dtype=np.intp)
        coordinates = everywhere[index]
        order = np.lexsort(coordinates.T[::-1]) if numeric else np.arange(len(index))
        coordinates = coordinates[order]
        repeated = np.flatnonzero(np.all(coordinates[1:] == coordinates[:-1], axis=1)) + 1
        category = tuple(zip(categorical, map(format_value, values), strict=True))
        layouts.append(_Layout(category, coordinates, index[order], repeated))
    return layouts


def _check_finite(coordinates: Floats, points: Sequence[Point], names: tuple[str, ...]) -> None:
    bad = np.argwhere(~np.isfinite(coordinates))
    if len(bad):
        point, name = points[bad[0, 0]], names[bad[0, 1]]
        raise ModelError(
            f"{point}: {name} is {format_value(point[name])}, but a model needs finite parameters; "
            "leave the point out, or make the parameter categorical"
        )


def _padded(values: Mapping[Point, tuple[float, ...]]) -> Floats:
    """Values as (points, repetitions), padded with NaN."""
    lists = list(values.values())
    lengths = set(map(len, lists))
    longest = max(lengths, default=0)
    if len(lengths) <= 1:
        flat = np.fromiter(chain.from_iterable(lists), float, len(lists) * longest)
        return flat.reshape(len(lists), longest)
    return np.array([(*v, *(np.nan,) * (longest - len(v))) for v in lists], dtype=float)


def _origins(item: Measurement, values: Floats, numbers: dict[str, int]) -> Integers | None:
    """Return the origins of repetitions as numbers, shape as of ``values``; negative ones share nothing."""
    if not item.origins:
        return None
    found = unshared(values.shape)
    for row, (point, known) in enumerate(item.values.items()):
        for k, name in enumerate(item.origins.get(point, ())[: len(known)]):
            if name:
                found[row, k] = numbers.setdefault(name, len(numbers))
    return found


def unshared(shape: tuple[int, ...]) -> Integers:
    """Return the origins of repetitions of which nothing is known: no two share one."""
    return np.arange(-1, -math.prod(shape) - 1, -1, dtype=np.intp).reshape(shape)


def _clean(label: Label, layout: _Layout, values: Floats, origins: Integers | None) -> tuple[_Series, bool]:
    """Drop what cannot be used, with a note; return also whether nothing but zeros was measured."""
    coordinates, values, origins = _by_point(layout, values, origins)
    series = _Series(
        label=label,
        category=layout.category,
        coordinates=coordinates,
        values=values,
        notes=(),
        origins=origins,
    )
    if values.size and values.min() >= _LEAST and values.max() <= _MOST:  # also false where one is NaN
        return series, False
    return _only(_with_half_ticks(series)), _is_zero(series.values)


def _by_point(
    layout: _Layout, values: Floats, origins: Integers | None
) -> tuple[Floats, Floats, Integers | None]:
    """Return coordinates, values and origins with one row per point."""
    if not len(layout.repeated):
        return layout.coordinates, values, origins
    coordinates, merged = _merge(layout.coordinates, values, layout.repeated)
    if origins is not None:
        origins = _merge(layout.coordinates, origins, layout.repeated)[1].astype(np.intp)
    return coordinates, merged, origins


def _with_half_ticks(series: _Series) -> _Series:
    """Let half a tick stand for zeros that are less than one, with a note."""
    tick, below = _below_a_tick(series.values)
    if not below.any():
        return series
    note = (
        f"values are multiples of {format_value(tick)}: {count(int(below.sum()), 'zero')} beside others "
        "of their point count as half of it"
    )
    return replace(series, values=np.where(below, tick / 2, series.values), notes=(*series.notes, note))


def _counted(number: int) -> str:
    return f"{count(number, 'value')} {'is' if number == 1 else 'are'}"


def _left_out(number: int) -> str:
    return f"{'was' if number == 1 else 'were'} left out"


def _only(series: _Series) -> _Series:
    """Leave out all values that are no measurements, and points without any other, with notes on how many."""
    values, notes = series.values, list(series.notes)
    with np.errstate(invalid="ignore"):
        good = (values >= _LEAST) & (values <= _MOST)
        unset = ~good & (values > 0) & np.isfinite(values)
    zero = int(np.count_nonzero(values == 0))
    bad = int(np.count_nonzero(~good & ~unset & ~np.isnan(values))) - zero
    if zero:
        notes.append(f"{_counted(zero)} zero and {_left_out(zero)}: a relative error has no meaning there")
    if bad:
        notes.append(f"{_counted(bad)} negative or infinite and {_left_out(bad)}")
    if number := int(np.count_nonzero(unset)):
        notes.append(
            f"{_counted(number)} below {_LEAST:g} or above {_MOST:g} and {_left_out(number)}: such numbers "
            "are printed for a variable that the program never set"
        )
    some = good.any(axis=1)
    return replace(
        series,
        coordinates=series.coordinates[some],
        values=np.where(good, values, np.nan)[some],
        notes=tuple(notes),
        origins=None if series.origins is None else series.origins[some],
    )


def _is_zero(values: Floats) -> bool:
    """Return whether nothing but zeros was measured."""
    return bool((values == 0).any() and np.all((values == 0) | np.isnan(values)))


def _below_a_tick(values: Floats) -> tuple[float, NDArray[np.bool_]]:
    """Return the tick that all values are multiples of, and which are zero because they are less than it.

    Where other repetitions of the point have a few ticks, to leave out those that have none would say that
    all have some. Half of a tick stands for them, as for what is below any limit of detection (Hornung and
    Reed 1990, Estimation of average concentration in the presence of nondetectable values).

    Parameters
    ----------
    values
        Shape (points, repetitions), NaN where there is none.
    """
    none = np.zeros(values.shape, dtype=np.bool_)
    known = values[np.isfinite(values) & (values > 0)]
    mixed = (values > 0).any(axis=1) & (values == 0).any(axis=1)
    if not mixed.any() or not len(known):
        return 0.0, none
    tick = float(known.min())
    if not np.allclose(known / tick, np.rint(known / tick), rtol=1e-6, atol=0.0):
        return 0.0, none
    for row in np.flatnonzero(mixed):
        here = values[row][values[row] > 0]
        none[row] = (values[row] == 0) & (np.median(here) <= _FEW_TICKS * tick)
    return tick, none


def _merge(
    coordinates: Floats, values: Floats | Integers, repeated: NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """Join points with equal coordinates: their values are repetitions of one point."""
    fresh = np.ones(len(coordinates), dtype=bool)
    fresh[repeated] = False
    index = np.cumsum(fresh) - 1
    first = np.flatnonzero(fresh)
    place = np.arange(len(coordinates)) - first[index]  # among those of one point
    merged = np.full((len(first), int(place.max()) + 1, values.shape[1]), np.nan)
    merged[index, place] = values
    return coordinates[first], merged.reshape(len(first), -1)


def _group(measurements: Measurements, parts: list[_Series]) -> Group:
    category, coordinates = parts[0].category, parts[0].coordinates
    numeric = [name for name in measurements.parameters if name not in dict(category)]
    varies = [bool(np.any(column != column[0])) for column in coordinates.T]
    fixed = tuple(
        f"{name} has the one value {format_value(float(column[0]))} and is not part of the model: "
        "what it does at other values is unknown"
        for name, column, v in zip(numeric, coordinates.T, varies, strict=True)
        if not v
    )
    together = [name for name, v in zip(numeric, varies, strict=True) if v]
    together = [together[k] for k in tied(coordinates[:, varies])]
    if together:
        names = f"{', '.join(together[:-1])} and {together[-1]}"
        what = "were only varied together: measure"
        if len(together) > 2:  # points = nx * ny
            what = "follow from each other: leave out the one that does in the program, or measure"
        fixed += (f"{names} {what} other combinations to know what each does",)
    width = max(part.values.shape[1] for part in parts)
    values = np.full((len(parts), len(coordinates), width), np.nan)
    for k, part in enumerate(parts):
        values[k, :, : part.values.shape[1]] = part.values
    return Group(
        parameters=tuple(name for name, v in zip(numeric, varies, strict=True) if v),
        category=category,
        points=coordinates[:, varies],
        values=values,
        labels=tuple(part.label for part in parts),
        notes=tuple(part.notes + fixed for part in parts),
        origins=_joined_origins(parts, values.shape),
        fixed=tuple(
            (name, None if v else float(column[0]))
            for name, column, v in zip(numeric, coordinates.T, varies, strict=True)
        ),
    )


def _joined_origins(parts: list[_Series], shape: tuple[int, ...]) -> Integers | None:
    if all(part.origins is None for part in parts):
        return None
    joined = np.full(shape, -1, dtype=np.intp)
    for k, part in enumerate(parts):
        if part.origins is None:  # every repetition by itself
            joined[k] = unshared(shape[1:])
        else:
            joined[k, :, : part.origins.shape[1]] = part.origins
    return joined


def lines_along(points: Floats, k: int) -> list[Integers]:
    """Return the rows of points (points, parameters) of every line along a parameter, all others equal."""
    _, which = np.unique(np.delete(points, k, axis=1), axis=0, return_inverse=True)
    return [np.flatnonzero(which.ravel() == line) for line in range(which.max() + 1)]


def in_order(measurements: Measurements, models: Mapping[Key, Fitted]) -> tuple[Fitted, ...]:
    """Return models, by call path, metric and category, in the order of the measurements."""
    order = {label_of(item): k for k, item in enumerate(measurements.items)}
    return tuple(models[key] for key in sorted(models, key=lambda key: (order[key[:2]], key[2])))
