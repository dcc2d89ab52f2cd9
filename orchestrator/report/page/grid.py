"""The stops of the sliders, and the grid of points at which every model is asked."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orchestrator.models.scaling import corners
from orchestrator.report.page.encoding import tidy
from orchestrator.report.page.subject import Subject
from orchestrator.types import Point, Value

# A parameter is shown on a logarithmic scale if its values span at least this factor.
_LOGARITHMIC = 8.0
# Most stops of one slider, and so many that it moves smoothly; multiples of the largest measured value at
# which it has stops without P₊.
_MOST_STOPS, _WANTED_STOPS = 24, 14
_BEYOND = (2, 4)
_LOOKED_AT = 60  # values of a parameter among which stops are chosen
_DIGITS = 3  # of stops between the values that are given


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One parameter: its slider's stops."""

    # name, is_categorical: of the parameter.
    name: str
    is_categorical: bool
    stops: tuple[Value, ...]  # ascending; categories in order of their first measurement
    measured: tuple[Value, ...]  # all measured values
    default: Value  # the value at P₊, or of the fastest configuration, or else the largest measured one
    counts_processes: bool  # whether it counts processes

    @property
    def is_logarithmic(self) -> bool:
        """Whether a logarithmic scale suits the stops."""
        numbers = [] if self.is_categorical else [float(value) for value in self.stops]
        return bool(numbers) and min(numbers) > 0 and max(numbers) >= _LOGARITHMIC * min(numbers)

    def document(self) -> dict[str, Any]:
        """Return it as the page reads it."""
        return {
            "name": self.name,
            "kind": "category" if self.is_categorical else "number",
            "stops": list(self.stops),
            "measured": list(self.measured),
            "default": self.default,
            "processes": self.counts_processes,
            "logarithmic": self.is_logarithmic,
        }


@dataclass(frozen=True, slots=True)
class Grid:
    """The product of the stops of all parameters, in row-major order."""

    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of stops."""
        return tuple(len(axis.stops) for axis in self.axes)

    @property
    def size(self) -> int:
        """Number of points."""
        return math.prod(self.shape)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(axis.name for axis in self.axes)

    def points(self, most: int | None = None) -> list[Point]:
        """Return all points, or the first ones: a dozen parameters have more than a memory holds."""
        values = itertools.islice(itertools.product(*(axis.stops for axis in self.axes)), most)
        return [Point(tuple(zip(self.names, item, strict=True))) for item in values]

    @property
    def default(self) -> Point:
        """The point at which the sliders stand first."""
        return Point(tuple((axis.name, axis.default) for axis in self.axes))

    def thinned(self, most: int) -> Grid:
        """Return a grid of at most so many points.

        Stops are left out one by one, of the parameter that has most of them, where they are closest
        together. The default always stays, and the smallest and the largest stop as long as possible.
        """
        axes = list(self.axes)
        for keeps_ends in (True, False):
            while math.prod(len(axis.stops) for axis in axes) > most:
                shorter = [(k, _without_one(axis, keeps_ends)) for k, axis in enumerate(axes)]
                possible = [(k, axis) for k, axis in shorter if axis is not None]
                if not possible:
                    break
                k, axis = max(possible, key=lambda pair: (len(pair[1].stops), -pair[0]))
                axes[k] = axis
        return Grid(tuple(axes))


def grid_of(subject: Subject) -> Grid:
    """Return the grid of all stops that are worth having: measured values, those of the space, and P₊."""
    known = subject.known
    named = subject.point or subject.fastest
    start = named or next(corners(known))
    processes = () if subject.study is None else subject.study.processes.names
    axes = []
    for name in known.parameters:
        measured, default = known.values_of(name), start[name]
        if known.is_categorical(name):
            stops = tuple(dict.fromkeys(map(tidy, [*measured, *subject.values.get(name, ()), default])))
        else:
            measured = tuple(sorted(measured, key=float))
            stops = _stops(measured, subject.values.get(name, ()), default, named is None)
        axis = Axis(
            name=name,
            is_categorical=known.is_categorical(name),
            stops=stops,
            measured=tuple(map(tidy, measured)),
            default=tidy(default),
            counts_processes=name in processes,
        )
        if not axis.is_categorical:
            [axis] = Grid((axis,)).thinned(_MOST_STOPS).axes
        axes.append(_filled(axis))
    return Grid(tuple(axes))


def _stops(
    measured: Sequence[Value], others: Iterable[Value], default: Value, goes_beyond: bool
) -> tuple[Value, ...]:
    """Return the stops of a numeric parameter, ascending."""
    largest = float(measured[-1])
    beyond = [factor * largest for factor in _BEYOND] if goes_beyond and len(measured) > 1 else []
    some = (*beyond, *_some(list(others)), default, *_some(measured))
    found = {float(value): tidy(value) for value in some}
    return tuple(found[key] for key in sorted(found))


def _some(values: Sequence[Value]) -> list[Value]:
    """Return some of very many values, evenly chosen, both ends included."""
    if len(values) <= _LOOKED_AT:
        return list(values)
    return [values[k] for k in np.linspace(0, len(values) - 1, _LOOKED_AT).round().astype(int)]


def _filled(axis: Axis) -> Axis:
    """Return a numeric axis with stops in its widest gaps, so that it has enough of them."""
    whole = not axis.is_categorical and all(float(value).is_integer() for value in axis.stops)
    closed: set[Value] = set()  # below which nothing fits
    while not axis.is_categorical and 1 < len(axis.stops) < _WANTED_STOPS:
        scale = _scale(axis)
        gaps = [(scale[k + 1] - scale[k], k) for k in range(len(scale) - 1) if axis.stops[k] not in closed]
        if not gaps:
            return axis
        k = max(gaps)[1]
        below, above = float(axis.stops[k]), float(axis.stops[k + 1])
        # Parts, as the product and the sum of numbers near the largest one are infinite.
        middle = math.sqrt(below) * math.sqrt(above) if axis.is_logarithmic else below / 2 + above / 2
        middle = float(round(middle)) if whole else float(f"{middle:.{_DIGITS}g}")
        if below < middle < above:
            axis = replace(axis, stops=(*axis.stops[: k + 1], tidy(middle), *axis.stops[k + 1 :]))
        else:
            closed.add(axis.stops[k])
    return axis


def _without_one(axis: Axis, keeps_ends: bool) -> Axis | None:
    """Leave out the stop whose neighbours are closest together, measured ones last; None if none can go."""
    count = len(axis.stops)
    places = [k for k in range(count) if axis.stops[k] != axis.default]
    if keeps_ends:
        places = [k for k in places if 0 < k < count - 1 and not axis.is_categorical]
    if not places:
        return None
    gone = places[-1]
    if not axis.is_categorical:
        scale, measured = _scale(axis), set(axis.measured)

        def rank(k: int) -> tuple[bool, float]:
            return axis.stops[k] in measured, scale[min(k + 1, count - 1)] - scale[max(k - 1, 0)]

        gone = min(places, key=rank)
    return replace(axis, stops=axis.stops[:gone] + axis.stops[gone + 1 :])


def _scale(axis: Axis) -> list[float]:
    numbers = np.array([float(value) for value in axis.stops])
    return [float(x) for x in (np.log(numbers) if axis.is_logarithmic else numbers)]
