"""Samples of functions that are known, for the tests of tensors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.regression.samples import Axis, Samples


def unit_axes(number: int) -> tuple[Axis, ...]:
    """Return numeric axes from 0 to 1."""
    return tuple(Axis(name=f"x{k}") for k in range(number))


def drawn(
    function: Callable[[Floats], Floats], axes: int, number: int, seed: int = 0, noise: float = 0.0
) -> Samples:
    """Return samples of a function of coordinates (n, axes) at random points of the unit cube."""
    rng = np.random.default_rng(seed)
    x = rng.random((number, axes))
    y = function(x) + noise * rng.standard_normal(number)
    return Samples(axes=unit_axes(axes), x=x, y=y, runs=np.ones(number))


def waves(x: Floats) -> Floats:
    """Return a function of rank 2 in three coordinates."""
    first = np.sin(3 * x[:, 0]) * np.cos(4 * x[:, 1]) * (1 + x[:, 2])
    return np.asarray(first + np.cos(5 * x[:, 0]) * x[:, 1] * np.exp(-x[:, 2]), np.float64)
