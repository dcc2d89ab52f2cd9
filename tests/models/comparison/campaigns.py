"""Pairs of measurements with a known difference."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from orchestrator.models.comparison.pairs import Aligned, aligned
from orchestrator.types import Measurement, Measurements, Point

Factor = Callable[[float, float], float]


def measured(
    rng: np.random.Generator,
    *,
    noise: float = 0.05,
    factor: Factor = lambda p, n: 1.0,
    processes: Sequence[int] = (4, 8, 16, 32, 64),
    sizes: Sequence[int] = (10, 20, 30, 40),
    callpaths: int = 1,
    runs: int = 2,
) -> Measurements:
    """Return times ``1 + n sqrt(p) / 100``, times a factor, with lognormal noise."""
    items = []
    for number in range(callpaths):
        values = {}
        for p in processes:
            for n in sizes:
                time = (1 + 0.01 * n * p**0.5) * factor(p, n)
                values[Point.of(p=p, n=n)] = tuple(time * np.exp(noise * rng.standard_normal(runs)))
        items.append(Measurement(f"main->f{number}", "time", values))
    return Measurements(("p", "n"), tuple(items))


def both(
    seed: int, factor: Factor = lambda p, n: 1.0, noise: float = 0.05, callpaths: int = 1, runs: int = 2
) -> Aligned:
    """Return A, and B that is slower by a factor."""
    rng = np.random.default_rng(seed)
    a = measured(rng, noise=noise, callpaths=callpaths, runs=runs)
    return aligned(a, measured(rng, noise=noise, factor=factor, callpaths=callpaths, runs=runs))
