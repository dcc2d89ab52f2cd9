"""What a model knows about its own uncertainty: how sure predictions are, and how they vary together.

A strategy asks which measurement at x would say most about the evaluation point P₊. That depends on the
covariance of ``log f(x)`` and ``log f(P₊)`` over everything that the measurements leave possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np
from scipy.special import ndtr, ndtri

from orchestrator.models.base import Floats, Model
from orchestrator.types import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBelief:
    """Log predictions of one model at n points, as a mixture of Gaussians.

    A member of the mixture is one explanation of the measurements: a hypothesis, or one refit.

    Attributes
    ----------
    weights
        Probabilities of the members, shape (members,).
    mean
        Log prediction per member, shape (members, n).
    factor
        Within member k the covariance of points i and j is ``factor[k, :, i] @ factor[k, :, j]``, shape
        (members, q, n); q may be 0.
    rough
        Standard deviation of what is independent between points (rough lack of fit), shape (members, n).
    rough_is_measured
        Whether the measurements show the rough lack of fit. If not, ``rough`` only allows for what could not
        be seen, and a run is not discounted for it.
    noise
        Relative standard deviation of one repetition.
    """

    weights: Floats
    mean: Floats
    factor: Floats
    rough: Floats
    rough_is_measured: bool = False
    noise: float

    @property
    def centre(self) -> Floats:
        """Mean of the log prediction, shape (n,)."""
        result: Floats = self.weights @ self.mean
        return result

    @property
    def variance(self) -> Floats:
        """Variance of the log prediction: between and within members, shape (n,)."""
        within = np.einsum("k,kqn,kqn->n", self.weights, self.factor, self.factor)
        rough = self.weights @ self.rough**2
        result: Floats = self.weights @ (self.mean - self.centre) ** 2 + within + rough
        return result

    def covariance(self, target: int) -> Floats:
        """Covariance of every point with one of them, shape (n,).

        The rough lack of fit of one point says nothing about another: it counts at ``target`` only.
        """
        deviation = self.mean - self.centre
        between = (self.weights * deviation[:, target]) @ deviation
        within = np.einsum("k,kqn,kq->n", self.weights, self.factor, self.factor[:, :, target])
        result: Floats = between + within
        result[target] += self.weights @ self.rough[:, target] ** 2
        return result


@runtime_checkable
class Belief(Protocol):
    """The ability to say how the logarithms of predictions at different points vary together."""

    def belief(self, points: Sequence[Point]) -> LogBelief:
        """Return the belief at points; their order is that of the last axis of the result.

        At points of another category than the model's it may be anything, NaN included: whoever asks looks
        at `orchestrator.models.base.holds_at`.
        """
        ...


class ModelWithBelief(Model, Belief, Protocol):
    """A model that has the ability."""


def has_belief(model: Model) -> TypeGuard[ModelWithBelief]:
    """Return whether a model can say how its predictions at different points vary together."""
    return isinstance(model, Belief)


def mixture_quantile(weights: Floats, mean: Floats, spread: Floats, q: float) -> Floats:
    """Return a quantile of mixtures of normal distributions, by bisection.

    Parameters
    ----------
    weights
        Probabilities of the members, shape (members,).
    mean, spread
        Of every member, shape (members, n).
    q
        Share below the quantile, greater than 0 and less than 1.
    """
    spread = np.maximum(spread, 1e-12)
    if len(weights) == 1:
        return np.asarray(mean[0] + spread[0] * ndtri(q), np.float64)
    low: Floats = (mean - 6 * spread).min(axis=0)
    high: Floats = (mean + 6 * spread).max(axis=0)
    for _ in range(24):
        middle = (low + high) / 2
        below = np.asarray(weights @ ndtr((middle - mean) / spread)) < q
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low
