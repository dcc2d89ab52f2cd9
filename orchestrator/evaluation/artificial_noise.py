"""Artificial noise: factors to multiply times with.

`mixed` is the noise of Ritter et al., section IV-A: not exclusively normal, and bounded by ±n percent.
`slowed` are single slow runs. `factors` are the five patterns of de Morais et al., Denoising Application
Performance Models with Noise-Resilient Priors, section V-A6, which only make runs slower.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from orchestrator.models.base import Floats

Shape = tuple[int, ...]

_COMPONENTS: tuple[Callable[[np.random.Generator, int], Floats], ...] = (
    lambda rng, size: rng.normal(0.0, 1 / 3, size),
    lambda rng, size: rng.uniform(-1.0, 1.0, size),
    lambda rng, size: (rng.exponential(1.0, size) - 1.0) / 3,
    lambda rng, size: (rng.poisson(4.0, size) - 4.0 + rng.uniform(-0.5, 0.5, size)) / 6,
)


def mixed(percent: float, shape: Shape, rng: np.random.Generator) -> Floats:
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


def slowed(percent: float, shape: Shape, rng: np.random.Generator) -> Floats:
    """Return factors that slow ``percent`` of all values down, 2 to 5 times, like a busy or faulty node."""
    return np.where(rng.random(shape) < percent / 100.0, rng.uniform(2.0, 5.0, shape), 1.0)


# Share of the measurements that are disturbed: the paper says "randomly selected" and no number.
SELECTED = 0.5


def _truncated_normal(rng: np.random.Generator, shape: Shape) -> Floats:
    """Draw from a standard normal between 0 and 1, by rejection: a third of the draws is kept."""
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
