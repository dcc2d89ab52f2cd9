"""What is known of one number, such as the logarithm of a ratio: a mixture of Student's t distributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import stdtr

from orchestrator.models.base import Floats

_NEGLIGIBLE = 1e-4  # members that together have less weight are left out
_EXACT = 1e-5  # error of a quantile, in the largest standard deviation of a member
_ROUNDING = 1e-10  # a standard deviation below which it makes no difference
_FAR = 10.0  # standard deviations within which a quantile is sought at first


@dataclass(frozen=True, slots=True)
class Mixture:
    """Weights, places, scales (0: exactly there) and degrees of freedom of the members, shape (members,)."""

    weight: Floats
    mean: Floats
    scale: Floats
    freedom: Floats

    @classmethod
    def zero(cls) -> Self:
        """Return what is certainly 0: the logarithm of the ratio of what did not change, and its growth."""
        return cls(np.ones(1), np.zeros(1), np.zeros(1), np.ones(1))

    @classmethod
    def normal(cls, mean: float, scale: float) -> Self:
        """Return a normal distribution."""
        return cls(np.ones(1), np.array([mean]), np.array([scale]), np.array([1e6]))

    @classmethod
    def joined(cls, parts: Sequence[tuple[float, Mixture]]) -> Self:
        """Return the mixture of mixtures, each with its weight; weights are made to sum to 1."""
        weight = np.concatenate([share * part.weight for share, part in parts])
        columns = (
            np.concatenate([getattr(part, name) for _, part in parts])
            for name in ("mean", "scale", "freedom")
        )
        order = np.argsort(weight)
        kept = order[np.cumsum(weight[order]) > _NEGLIGIBLE * weight.sum()]
        return cls(weight[kept] / weight[kept].sum(), *(column[kept] for column in columns))

    def below(self, value: float) -> float:
        """Return the probability of less than a value."""
        exact = self.scale == 0
        with np.errstate(over="ignore"):
            scaled = (value - self.mean) / np.where(exact, 1.0, self.scale)
        share = np.where(exact, self.mean < value, stdtr(self.freedom, scaled))
        return min(max(float(self.weight @ share), 0.0), 1.0)

    def above(self, value: float) -> float:
        """Return the probability of more than a value."""
        mirrored = Mixture(self.weight, -self.mean, self.scale, self.freedom)
        return mirrored.below(-value)

    def quantile(self, share: float) -> float:
        """Return the value below which there is a share of the probability."""
        spread = float(self.scale.max())
        low, high = float(self.mean.min()), float(self.mean.max())
        if spread == 0 and low == high:
            return low
        step = first = _FAR * max(spread, _EXACT)
        while self.below(low) > share:
            low, step = low - step, 2 * step
        step = first
        while self.below(high) < share:
            high, step = high + step, 2 * step
        if not low < high:
            return low
        tolerance = _EXACT * max(spread, _ROUNDING)
        found: float = brentq(lambda value: self.below(value) - share, low, high, xtol=tolerance)
        return found
