"""Artificial noise (de Morais et al., Denoising Application Performance Models with Noise-Resilient Priors,
section V-A6): what makes runs slower, in five patterns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Share of the measurements that are disturbed: the paper says "randomly selected" and no number.
SELECTED = 0.5

Shape = tuple[int, ...]


def _truncated_normal(rng: np.random.Generator, shape: Shape) -> Floats:
    """Standard normal between 0 and 1, by rejection: a third of the draws is kept."""
    values = rng.normal(size=shape)
    while np.any(wrong := (values < 0) | (values > 1)):
        values[wrong] = rng.normal(size=int(np.count_nonzero(wrong)))
    return values


PATTERNS: dict[str, Callable[[np.random.Generator, Shape], Floats]] = {
    "uniform": lambda rng, shape: rng.uniform(0.0, 1.0, shape),
    "normal": _truncated_normal,
    "poisson": lambda rng, shape: rng.poisson(1000.0, shape) / 1000.0,
    "exponential": lambda rng, shape: rng.exponential(1000.0, shape) / 1000.0,
    "none": lambda rng, shape: np.zeros(shape),
}
"""Pattern -> η of a shape; clipped to [0, 1] by `factors`."""


def factors(
    pattern: str, percent: float, shape: Shape, rng: np.random.Generator, selected: float = SELECTED
) -> Floats:
    """Return factors from 1 to 1 + percent/100, to multiply times with.

    Parameters
    ----------
    pattern
        One of `PATTERNS`.
    percent
        Noise intensity.
    shape
        Of the result.
    rng
        Source of randomness.
    selected
        Share of the values that are disturbed.
    """
    noise = np.clip(PATTERNS[pattern](rng, shape), 0.0, 1.0)
    chosen = rng.random(shape) < selected
    return np.asarray(1.0 + percent / 100.0 * np.where(chosen, noise, 0.0), np.float64)
