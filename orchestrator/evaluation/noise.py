"""Synthetic noise (Ritter et al., section IV-A): not exclusively normal, and bounded by ±n percent."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_COMPONENTS: tuple[Callable[[np.random.Generator, int], Floats], ...] = (
    lambda rng, size: rng.normal(0.0, 1 / 3, size),
    lambda rng, size: rng.uniform(-1.0, 1.0, size),
    lambda rng, size: (rng.exponential(1.0, size) - 1.0) / 3,
    lambda rng, size: (rng.poisson(4.0, size) - 4.0 + rng.uniform(-0.5, 0.5, size)) / 6,
)


def mixed(percent: float, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Return factors within 1 ± percent/100, to multiply noise-free values with.

    Each value has noise of one component, drawn with equal probability: Gaussian, uniform, exponential or
    Poisson (spread within its steps: no two runs take exactly the same time). All are centred (mean factor 1)
    and scaled so that the bound clips less than 2 % of any of them; the latter two are skewed towards slow
    runs.
    """
    size = int(np.prod(shape))
    draws = np.stack([component(rng, size) for component in _COMPONENTS])
    chosen = draws[rng.integers(len(_COMPONENTS), size=size), np.arange(size)]
    return np.asarray(1.0 + percent / 100.0 * np.clip(chosen, -1.0, 1.0), np.float64).reshape(shape)


def slowed(percent: float, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Return factors that slow ``percent`` of all values down, 2 to 5 times: a neighbour, a bad node."""
    return np.where(rng.random(shape) < percent / 100.0, rng.uniform(2.0, 5.0, shape), 1.0)
