"""Small tuning spaces for the tests of learners."""

from __future__ import annotations

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.regression.samples import Axis, Samples

LOW, HIGH = np.log(32.0), np.log(4096.0)


def kernel_time(x: Floats) -> Floats:
    """Logarithms of times: the product of the sizes, slower where one is small, and a factor of a solver."""
    small = np.exp(-(x[:, :2].min(axis=1) - LOW))
    return np.asarray(x[:, 0] + x[:, 1] - 12 + np.log1p(3 * small) + 0.5 * (x[:, 2] == 1), np.float64)


def space(count: int, seed: int = 2026, axes: int = 3) -> Samples:
    """Return samples of `kernel_time` with two sizes and a category; further axes have no influence."""
    rng = np.random.default_rng(seed)
    x = np.column_stack(
        [
            np.log(np.round(np.exp(rng.uniform(LOW, HIGH, (count, 2))))),
            rng.integers(0, 3, count).astype(float),
            rng.uniform(0, 1, (count, max(axes - 3, 0))),
        ]
    )
    sizes = [Axis(name=name, logarithmic=True, low=LOW, high=HIGH) for name in "mn"]
    solver = Axis(name="solver", levels=("a", "b", "c"), low=0.0, high=2.0)
    idle = [Axis(name=f"idle{k}") for k in range(axes - 3)]
    return Samples(axes=(*sizes, solver, *idle), x=x, y=kernel_time(x), runs=np.ones(count))
