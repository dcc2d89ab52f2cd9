"""Intervals of any level: where the true mean lies, and where the mean of further runs would lie.

A model gives one predictive distribution per point, a mixture of normal distributions of the logarithm. Every
interval is a central one of it, so intervals of different levels agree with each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

import numpy as np
from scipy.special import ndtri

from orchestrator.errors import CampaignError
from orchestrator.models.base import Floats, Model, Prediction, unit_of
from orchestrator.models.belief import LogBelief, mixture_quantile
from orchestrator.types import Point

LEVEL = 90.0  # percent: of ``low`` and ``high`` in every prediction
HALF_WIDTH = float(ndtri(0.5 + LEVEL / 200))  # standard deviations, of a normal distribution


@dataclass(frozen=True, slots=True)
class Interval:
    """Ends at n points of the interval at a ``level`` in percent, of a ``kind``: ``mean`` or ``measured``."""

    level: float
    kind: str
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictive:
    """What a model says at n points: a value, and how probable other values are.

    Attributes
    ----------
    value
        The prediction, shape (n,); NaN where the model says nothing.
    weights
        Probabilities of the members of the mixture, shape (members,).
    mean, spread
        Mean and standard deviation of the logarithm of the true mean, for every member, shape (members, n).
    noise
        Relative standard deviation of a single repetition, with all that disturbs it.
    shared
        The part of it that repetitions of one origin (a job; or a node in one round) have in common.
    """

    value: Floats
    weights: Floats
    mean: Floats
    spread: Floats
    noise: float
    shared: float = 0.0

    @classmethod
    def certain(cls, value: Floats, noise: float) -> Self:
        """Return the distribution of known values of shape (n,)."""
        with np.errstate(divide="ignore"):
            logs = np.log(value)[None]
        return cls(value=value, weights=np.ones(1), mean=logs, spread=np.zeros_like(logs), noise=noise)

    @classmethod
    def of_belief(cls, value: Floats, belief: LogBelief, shared: float = 0.0) -> Self:
        """Return the distribution at every point alone of a belief, around values of shape (n,)."""
        spread = np.sqrt(np.einsum("kqn,kqn->kn", belief.factor, belief.factor) + belief.rough**2)
        return cls(
            value=value,
            weights=belief.weights,
            mean=belief.mean,
            spread=spread,
            noise=belief.noise,
            shared=shared,
        )

    def prediction(self, unit: str) -> Prediction:
        """Return the values with the interval of the mean at `LEVEL`."""
        return Prediction(self.value, *self.of_mean(LEVEL), unit)

    def of_mean(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of the central interval of the true mean at a level in percent, shape (n,) each.

        The value is always inside.
        """
        low, high = self._central(level, self.spread)
        return np.minimum(low, self.value), np.maximum(high, self.value)

    def of_measured(self, level: float, runs: int = 1) -> tuple[Floats, Floats]:
        """Return the ends of the central interval of the mean of further runs, shape (n,) each.

        Its variance is that of the true mean plus ``shared² + (noise² - shared²) / runs``: the runs are made
        together, so what they share does not average out. The interval of the mean is always inside.
        """
        shared = min(self.shared, self.noise) ** 2
        added = shared + (self.noise**2 - shared) / runs
        low, high = self._central(level, np.sqrt(self.spread**2 + added))
        inner_low, inner_high = self.of_mean(level)
        return np.minimum(low, inner_low), np.maximum(high, inner_high)

    def intervals(self, levels: Iterable[float], runs: int = 1) -> tuple[Interval, ...]:
        """Return those of the mean and of so many further runs at every level."""
        return tuple(
            Interval(level, kind, *ends)
            for level in levels
            for kind, ends in (("mean", self.of_mean(level)), ("measured", self.of_measured(level, runs)))
        )

    def _central(self, level: float, spread: Floats) -> tuple[Floats, Floats]:
        tail = (1 - level / 100) / 2
        with np.errstate(all="ignore"):  # far out, and at zero, there may be no number
            low, high = (
                np.exp(mixture_quantile(self.weights, self.mean, spread, q)) for q in (tail, 1 - tail)
            )
        # An end that is no number says nothing: anything from zero on is possible.
        return np.where(np.isnan(low), 0.0, low), np.where(np.isnan(high), np.inf, high)


@runtime_checkable
class HasPredictive(Protocol):
    """The ability to give the predictive distribution, and so intervals of any level."""

    def predictive(self, points: Sequence[Point]) -> Predictive:
        """Return the distribution at points, of which `Model.predict` gives the interval at `LEVEL`."""
        ...


class _Distributed(HasPredictive, Protocol):
    """A model that has a predictive distribution of a metric."""

    @property
    def metric(self) -> str: ...


class FromPredictive:
    """Base of models whose predictions are those of their predictive distribution."""

    __slots__ = ()

    def predict(self: _Distributed, points: Sequence[Point]) -> Prediction:
        """Predict the true value with a 90 % interval; NaN where the model says nothing."""
        return self.predictive(points).prediction(unit_of(self.metric))


def predictive(model: Model, points: Sequence[Point]) -> Predictive:
    """Return the predictive distribution of a model at points.

    Of a model that only predicts, it is the lognormal distribution with the interval that it gives.
    """
    if isinstance(model, HasPredictive):
        return model.predictive(points)
    found = model.predict(points)
    middle, spread = lognormal(found.low, found.high)
    return Predictive(
        value=found.value, weights=np.ones(1), mean=middle[None], spread=spread[None], noise=model.noise
    )


def lognormal(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of the logarithm, shape (n,) each, by the ends at `LEVEL`."""
    with np.errstate(all="ignore"):  # where an end says nothing
        a, b = np.log(low), np.log(high)
        return (a + b) / 2, (b - a) / (2 * HALF_WIDTH)


def checked_levels(levels: Iterable[float]) -> tuple[float, ...]:
    """Return levels of intervals in percent, in the order given and each once.

    Raises
    ------
    CampaignError
        For a level that is no percentage from 1 to less than 100, and without any level.
    """
    remedy = "give percentages from 1 to below 100, such as 90"
    try:
        if isinstance(levels, str):  # its letters are no levels
            raise TypeError
        found = tuple(dict.fromkeys(float(level) for level in levels))
    except (TypeError, ValueError):
        raise CampaignError(f"{levels!r} are no levels of intervals: {remedy}, in a list") from None
    if not found:
        raise CampaignError(f"no level of an interval: {remedy}")
    for level in found:
        if not 1 <= level < 100:  # NaN, too
            raise CampaignError(f"{level:g} is no level of an interval: {remedy}")
    return found
