"""When the modeler's loops must be compiled first: who is told, and how they are compiled beforehand.

Machine code is kept on disk, so this happens once per installation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

from orchestrator.types import Measurement, Measurements, Point

_tell: list[Callable[[], None]] = []


def when_compiling(tell: Callable[[], None]) -> None:
    """Have a function called once, before the first loop is compiled that is not on disk yet."""
    _tell.append(tell)


def begins() -> None:
    """Tell that a loop is about to be compiled."""
    while _tell:
        _tell.pop()()


def compile_now() -> None:
    """Compile the loops that models of one and of two parameters need, and keep them on disk."""
    from orchestrator.models.selection import modeler

    for names in (("p",), ("p", "n")):
        times = [Measurement(path, "time", _times(names)) for path in ("main", "main->f")]
        counts = [Measurement("main", "visits", _counts(names))]
        modeler()(Measurements(names, (*times, *counts)))


def _grid(names: Sequence[str]) -> list[tuple[Point, float]]:
    """Return points with five values of every parameter, and the product of these."""
    found = product((2, 4, 8, 16, 32), repeat=len(names))
    return [(Point.of(dict(zip(names, values, strict=True))), math.prod(values)) for values in found]


def _times(names: Sequence[str]) -> dict[Point, tuple[float, ...]]:
    """Return two times at each point, with some noise."""
    return {
        point: tuple((1 + size) * (1 + 0.01 * math.sin(97 * repetition + number)) for repetition in range(2))
        for number, (point, size) in enumerate(_grid(names))
    }


def _counts(names: Sequence[str]) -> dict[Point, tuple[float, ...]]:
    """Return an exact count at each point: a sum of several terms."""
    return {point: (3 * size - 2 * size**0.5 + 7,) for point, size in _grid(names)}
