"""What may begin beyond the measured range and shows nowhere in it, and what tied parameters do apart.

Formulas that explain single runs are off by more beyond them than their coefficients say: without repetitions
nobody can tell what they miss from noise. With repetitions, a formula that leaves no more than their noise
has no such doubt.

Parameters that were only varied together (weak scaling with one problem per process) show what they do
together. What each of them does is the guess of whoever chose among the models that agree there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.blas import decomposed

# How much of the logarithm a formula misses per doubling, as a standard deviation: as much as points scatter
# around it, and at least so much, or so many times the scatter if that is less. Chosen by hand; not derived.
_LEAST, _TIMES = 0.01, 10.0
# Standard deviation of an exponent that no measurement shows: models expect it to be like those that were
# measured, but `n / p` and `n**3 / p` are constant, or nearly, where p grows with n. Deviation of the
# logarithms from a line up to which parameters are tied to it, as a share of how much they vary, and points
# beyond the parameters that must show it. Chosen by hand; not derived.
_EXPONENT, _TIED, _SPARE = 1.5, 0.01, 2


def per_doubling(scatter: Floats) -> Floats:
    """Return the standard deviation of what formulas miss per doubling, by the scatter around them."""
    return np.maximum(scatter, np.minimum(_LEAST, _TIMES * scatter))


def doublings(points: Floats, x: Floats) -> Floats:
    """Return how far coordinates (n, parameters) are from the range of measured points, shape (n,).

    The distance in a space of logarithms; a parameter that is not positive everywhere does not count.
    """
    low, high = points.min(axis=0), points.max(axis=0)
    counts = (low > 0) & (x > 0)
    beyond = np.where(counts, np.maximum(x / high, low / np.where(counts, x, 1.0)), 1.0)
    return np.asarray(np.linalg.norm(np.log2(np.maximum(beyond, 1.0)), axis=1), np.float64)


def ties(points: Floats) -> Floats:
    """Return the directions in logarithms along which points (points, parameters) do not differ.

    Returns
    -------
    Unit vectors, shape (directions, parameters); none where parameters are not all positive and varied, or
    where there are too few points to say.
    """
    count, size = points.shape
    if count < size + _SPARE or np.any(points <= 0) or not np.ptp(points, axis=0).all():
        return np.empty((0, size))
    logs = np.log(points)
    spread = logs.std(axis=0)
    _, lengths, found = decomposed((logs - logs.mean(axis=0)) / spread)
    directions = found[lengths <= _TIED * np.sqrt(count)] / spread
    return np.asarray(directions / np.linalg.norm(directions, axis=1, keepdims=True), np.float64)


def tied(points: Floats) -> list[int]:
    """Return which parameters of points (points, parameters) were only varied together."""
    found = ties(points)
    if not len(found):
        return []
    moved = np.abs(found) * np.log(points).std(axis=0)
    return [int(k) for k in np.flatnonzero((moved > _TIED * moved.max()).any(axis=0))]


def apart(points: Floats, directions: Floats, x: Floats) -> Floats:
    """Return the standard deviation of the logarithm that tied parameters leave at coordinates, (n,).

    ``directions`` are the `ties` of the points.
    """
    if not len(directions):
        return np.zeros(len(x))
    with np.errstate(divide="ignore", invalid="ignore"):  # at zero nothing is known
        away = (np.log(x) - np.log(points).mean(axis=0)) @ directions.T
    return np.asarray(_EXPONENT * np.linalg.norm(np.nan_to_num(away), axis=1), np.float64)


class Allowance(Protocol):
    """What intervals of a model allow for beyond the doubt about its coefficients."""

    def causes(self, x: Floats) -> Floats:
        """Return what each independent cause moves the logarithm by at coordinates (n, parameters).

        One standard deviation of the cause, shape (causes, n).
        """


@dataclass(frozen=True, slots=True, eq=False)
class Unseen:
    """What one formula may miss beyond and beside the points it was fitted to, (points, parameters)."""

    points: Floats
    ties: Floats
    per_doubling: float

    @classmethod
    def of(cls, points: Floats, directions: Floats, scatter: float) -> Self:
        """Return it for a relative scatter of the points, with these `ties`, around the formula."""
        return cls(points, directions, float(per_doubling(np.array(scatter))))

    def causes(self, x: Floats) -> Floats:
        """Return what it moves the logarithm by at coordinates (n, parameters): one cause, shape (1, n)."""
        missed = self.per_doubling * doublings(self.points, x)
        return np.hypot(missed, apart(self.points, self.ties, x))[None]
