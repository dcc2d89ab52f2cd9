"""300 seeded functions of one, two and three parameters with noise, for the comparison with Extra-P.

Only uniform numbers are drawn, whose stream is the same in all versions of NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

import numpy as np

from orchestrator.models.pmnf.hypotheses import PAPER, partitions

Item = TypeVar("Item")
Coordinate = tuple[float, ...]

COUNT = 300
SEED = 2026
_SERIES = (
    (32, 64, 128, 256, 512),
    (2, 4, 6, 8, 10),
    (1000, 2000, 3000, 4000, 5000),
    (8, 27, 64, 125, 216, 343),
    (10, 20, 30, 40, 50),
    (0.5, 1, 2, 4, 8),
    (1, 2, 4, 8, 16, 32, 64),
)
_NOISE = (0.0, 0.02, 0.05, 0.1, 0.2)


@dataclass(frozen=True)
class Case:
    """Points in ascending order, and the repetitions at each."""

    points: tuple[Coordinate, ...]
    values: tuple[tuple[float, ...], ...]


def cases() -> Iterator[Case]:
    """Yield the functions, a third of them with one, two and three parameters each."""
    for index in range(COUNT):
        yield _case(1 + 3 * index // COUNT, np.random.default_rng([SEED, index]))


def _case(parameters: int, rng: np.random.Generator) -> Case:
    series = [_one(_SERIES, rng) for _ in range(parameters)]
    points = _layout(series, rng)
    middle = tuple(math.sqrt(values[0] * values[-1]) for values in series)
    groups = _one(list(partitions(tuple(range(parameters)))), rng)
    blocks = [_one(PAPER, rng) if rng.random() > 0.15 else (0.0, 0.0) for _ in range(parameters)]
    shares = [0.02 + rng.random() for _ in range(1 + len(groups))]
    size = 10 ** (4 * rng.random() - 2)
    noise, repetitions = _one(_NOISE, rng), 1 + int(5 * rng.random())

    def time(point: Coordinate) -> float:
        terms = (
            share * math.prod(_block(point[k], *blocks[k]) / _block(middle[k], *blocks[k]) for k in group)
            for share, group in zip(shares[1:], groups, strict=True)
        )
        return size * (shares[0] + sum(terms))

    values = tuple(
        tuple(time(point) * (1 + noise * (2 * rng.random() - 1)) for _ in range(repetitions))
        for point in points
    )
    return Case(points, values)


def _one(items: Sequence[Item], rng: np.random.Generator) -> Item:
    return items[int(len(items) * rng.random())]


def _block(x: float, power: float, logarithm: float) -> float:
    return math.pow(x, power) * math.pow(math.log2(max(x, 1.5)), logarithm)


def _layout(series: Sequence[Sequence[float]], rng: np.random.Generator) -> tuple[Coordinate, ...]:
    """Return a full grid, a grid with holes, or lines through the lowest point and a few points more."""
    grid = list(product(*series))
    kind = rng.random()
    if len(series) == 1 or kind < 0.4:
        return tuple(grid)
    if kind < 0.6:
        return tuple(point for point in grid if rng.random() < 0.8 or _on_a_line(point, series))
    more = {_one(grid, rng) for _ in range(1 + int(3 * rng.random()))}
    return tuple(point for point in grid if point in more or _on_a_line(point, series))


def _on_a_line(point: Coordinate, series: Sequence[Sequence[float]]) -> bool:
    return sum(x != values[0] for x, values in zip(point, series, strict=True)) <= 1
