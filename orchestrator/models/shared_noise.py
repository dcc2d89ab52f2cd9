"""Noise that repetitions share: made in one job, or on one node in one round, they deviate together.

A random effect per origin beside the noise of each repetition (one-way classification within each point).
Its size is estimated by the method of moments over all points, from how much more repetitions of different
origins differ than those of one (Searle, Casella, McCulloch 1992, Variance components, section 3.6). Call
paths of one program share what a job or a node does to them, so they share the ratio of the two variances;
they never count as further evidence for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from orchestrator.models.base import Floats, Integers

# Probability, without any shared noise, of a ratio from which it is believed; deviations beyond so many
# standard deviations are moved to that distance; least degrees of freedom of the shared noise. By hand.
_CHANCE = 0.01
_CLIPPED = 5.0
_LEAST_FREEDOM = 2.0


@dataclass(frozen=True, slots=True)
class SharedNoise:
    """What repetitions of one origin share."""

    origins: Integers  # a number per origin, shape (call paths, points, repetitions)
    ratio: float  # variance of the shared noise, relative to that of a repetition within its origin

    def rows(self, index: NDArray[np.intp]) -> Self:
        """Select call paths."""
        return replace(self, origins=self.origins[index])

    def at_points(self, index: NDArray[np.intp] | slice) -> Self:
        """Select points."""
        return replace(self, origins=self.origins[:, index])

    def discounted(self, weights: Floats) -> Floats:
        """Return weights of repetitions for their mean, where those of one origin do not average out.

        ``weights`` are those that they would have by themselves. The sum of the result times ``1 + ratio`` is
        the number of repetitions of different origins that say as much.
        """
        result: Floats = weights / (1 + self.ratio * _of_origin(weights, self.origins))
        return result

    def count(self, weights: Floats) -> Floats:
        """Return how many repetitions of different origins say as much, shape (call paths, points)."""
        result: Floats = (1 + self.ratio) * self.discounted(weights).sum(axis=2)
        return result


@dataclass(frozen=True, slots=True)
class Estimate:
    """The shared noise, the total noise relative to the deviations within points, and its freedom."""

    ratio: float
    total: float
    freedom: float


def estimate(logs: Floats, centre: Floats, sigma: Floats, origins: Integers) -> Estimate | None:
    """Return the shared noise, or None where the repetitions show none, or cannot show it.

    Parameters
    ----------
    logs
        Logarithms of the values, shape (call paths, points, repetitions), NaN where there is none.
    centre, sigma
        Median per point, and relative deviation of repetitions within points, per call path.
    origins
        As of `SharedNoise`.
    """
    finite = np.isfinite(logs)
    counted = finite.astype(float)
    number = counted.sum(axis=2)
    same = np.where(finite, _of_origin(counted, origins), 1.0)
    distinct = (counted / same).sum(axis=2)
    between = np.maximum(distinct - 1, 0).sum(axis=1)
    within = (number - distinct).sum(axis=1)
    if not (between.mean() >= 1 and within.mean() >= 1):
        return None
    bound = _CLIPPED * sigma[:, None, None]
    deviation = np.where(finite, np.clip(logs - centre[:, :, None], -bound, bound), 0.0)
    own = _of_origin(deviation, origins) / same
    mean = deviation.sum(axis=2) / np.maximum(number, 1)
    scale = sigma**2
    inside = float(((counted * (deviation - own) ** 2).sum(axis=(1, 2)) / scale).sum() / within.sum())
    across = float(((counted * (own - mean[:, :, None]) ** 2).sum(axis=(1, 2)) / scale).sum() / between.sum())
    # How many repetitions a shared deviation stands for, on average (Searle et al., section 3.6).
    spread = number - (counted * same).sum(axis=2) / np.maximum(number, 1)
    size = float(spread.sum() / between.sum())
    if not (inside > 0 and fdtrc(between.mean(), within.mean(), across / inside) < _CHANCE):
        return None
    ratio = (across / inside - 1) / size
    freedom = satterthwaite((across / size, between.mean()), ((1 - 1 / size) * inside, within.mean()))
    part = float(spread.sum() / np.maximum(number - 1, 0).sum())
    return Estimate(ratio, float(np.sqrt((1 + ratio) / (1 + ratio * part))), max(freedom, _LEAST_FREEDOM))


def satterthwaite(*parts: tuple[float, float]) -> float:
    """Return the degrees of freedom of a sum of estimated variances, each with its own."""
    total = sum(variance for variance, _ in parts)
    return float(total**2 / sum(variance**2 / freedom for variance, freedom in parts))


def _of_origin(values: Floats, origins: Integers) -> Floats:
    """Return for each repetition the sum of a value over all repetitions of its origin at its point."""
    total = np.zeros_like(values)
    for k in range(values.shape[2]):
        total += np.where(origins == origins[:, :, k : k + 1], values[:, :, k : k + 1], 0.0)
    return total
