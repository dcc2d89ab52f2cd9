"""What may begin beyond the measured range and shows nowhere in it.

Formulas that explain single runs are off by more beyond them than their coefficients say: without repetitions
nobody can tell what they miss from noise. With repetitions, a formula that leaves no more than their noise is
taken at its word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from orchestrator.models.base import Floats

# How much of the logarithm a formula misses per doubling, as a standard deviation: at most so much, and at
# most so many times the scatter around it. Chosen by hand; not derived.
_MOST, _TIMES = 0.01, 10.0


def per_doubling(scatter: Floats) -> Floats:
    """Return the standard deviation of what formulas miss per doubling, by the scatter around them."""
    return np.minimum(_MOST, _TIMES * scatter)


def doublings(points: Floats, x: Floats) -> Floats:
    """Return how far coordinates (n, parameters) are from the range of measured points, shape (n,).

    The distance in a space of logarithms; a parameter that is not positive everywhere does not count.
    """
    low, high = points.min(axis=0), points.max(axis=0)
    counts = (low > 0) & (x > 0)
    beyond = np.where(counts, np.maximum(x / high, low / np.where(counts, x, 1.0)), 1.0)
    return np.asarray(np.linalg.norm(np.log2(np.maximum(beyond, 1.0)), axis=1), np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Unseen:
    """What one formula may miss beyond the points it was fitted to, shape (points, parameters)."""

    points: Floats
    per_doubling: float

    @classmethod
    def of(cls, points: Floats, scatter: float) -> Self:
        """Return it for a relative scatter of the points around the formula."""
        return cls(points, float(per_doubling(np.array(scatter))))

    def at(self, x: Floats) -> Floats:
        """Return the standard deviation of the logarithm at coordinates (n, parameters), shape (n,)."""
        return self.per_doubling * doublings(self.points, x)
