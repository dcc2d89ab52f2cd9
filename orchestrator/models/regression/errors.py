"""How wrong predictions are: from what was left out, inside the measured range and beyond it.

Inside, an interval is made of residuals of samples that were left out, around the predictions of the fits
that had left them out (CV+: Barber, Candès, Ramdas and Tibshirani 2021, Predictive inference with the
jackknife+, section 3). Beyond, it grows with the square root of the distance from the range, as the sum of
independent steps does, from the errors at the largest measured values when these were left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import ndtri, stdtrit

from orchestrator.models.base import Floats
from orchestrator.models.intervals import HALF_WIDTH, LEVEL

# Ends of the shares of residuals that are summed up as one atom each: finer towards the tails.
_SHARES = np.array([0, 0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.975, 0.99, 1.0])
# A residual is no better known than this, so that an interval has a width where all residuals are zero.
_LEAST = 1e-6
# What noise may explain of the square of a residual at most: what remains is the error of the model.
_MOST_NOISE = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class Errors:
    """Distribution of log measured over predicted values, as a mixture of normal distributions."""

    weights: Floats  # of the atoms, shape (atoms,); they sum to 1
    # centres, spreads: mean and standard deviation of each, shape (atoms,).
    centres: Floats
    spreads: Floats

    @classmethod
    def of(cls, residuals: Floats, noise: float) -> Self:
        """Return the distribution of the errors of the mean behind residuals that contain noise.

        Parameters
        ----------
        residuals
            Of samples that were left out, shape (n,).
        noise
            Root mean square of the relative noise of their values.
        """
        known = residuals[np.isfinite(residuals)]
        if not len(known):
            known = np.zeros(1)
        edges = np.sort(_without_noise(known, _SHARES, noise))
        return cls(
            weights=np.diff(_SHARES),
            centres=_without_noise(known, (_SHARES[1:] + _SHARES[:-1]) / 2, noise),
            spreads=np.maximum(np.diff(edges) / np.sqrt(12), _LEAST),
        )

    @property
    def spread(self) -> float:
        """Standard deviation of the whole."""
        mean = self.weights @ self.centres
        return float(np.sqrt(self.weights @ (self.spreads**2 + (self.centres - mean) ** 2)))


def _without_noise(residuals: Floats, shares: Floats, noise: float) -> Floats:
    """Return quantiles of what is left of residuals when normal noise is taken away, shape (shares,).

    Squares of the quantiles of normal distributions add up. Large errors, which noise does not explain, keep
    their size.
    """
    n, middle = len(residuals), float(np.median(residuals))
    quantiles = np.quantile(residuals, shares) - middle
    explained = noise * ndtri(np.clip(shares, 0.5 / n, 1 - 0.5 / n))
    left = np.maximum(quantiles**2 - explained**2, (1 - _MOST_NOISE) * quantiles**2)
    return np.asarray((middle + np.sign(quantiles) * np.sqrt(left)) * (1 + 2 / n), np.float64)


@dataclass(frozen=True, slots=True)
class Growth:
    """What errors grow by beyond the range of an axis: a standard deviation of ``spread`` at ``reach``."""

    spread: float
    reach: float

    @classmethod
    def of(cls, distances: Floats, residuals: Floats, inside: float) -> Growth:
        """Return the growth with which intervals hold what was left out.

        Parameters
        ----------
        distances
            How far beyond the range each left-out sample was, shape (n,). All count as if they were as far as
            the farthest: errors of near ones have little to do with the distance.
        residuals
            Logarithms of measured over predicted values there, shape (n,).
        inside
            Standard deviation of errors inside the range, which these are added to. Where none was seen to be
            larger, the variance doubles over the distance that was left out: farther out nobody looked.
        """
        usable = np.isfinite(residuals) & (distances > 0)
        if not usable.any():
            return UNKNOWN
        excess = np.maximum((residuals[usable] / HALF_WIDTH) ** 2 - inside**2, 0)
        seen = float(np.quantile(np.sqrt(excess), LEVEL / 100))
        # Of one or two the largest is no quantile: Student's distribution has the ratio.
        few = float(stdtrit(usable.sum(), (1 + LEVEL / 100) / 2) / HALF_WIDTH)
        return cls(spread=few * max(seen, inside, _LEAST), reach=float(distances.max()))

    def at(self, distances: Floats) -> Floats:
        """Return the standard deviation at distances, in the shape of these."""
        return self.spread * np.sqrt(distances / self.reach)

    def times(self, factor: float) -> Self:
        """Return a larger one."""
        return replace(self, spread=factor * self.spread)


UNKNOWN = Growth(1.0, 1.0)
"""What is assumed where nobody could see any."""
