"""What a model knows about its own uncertainty: how sure predictions are, and how they vary together.

A strategy asks which measurement at x would say most about the evaluation point P₊. That depends on the
covariance of ``log f(x)`` and ``log f(P₊)`` over everything that the measurements leave possible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from orchestrator.models.base import Floats, Model
from orchestrator.types import Point

# Of quantiles of mixtures: halvings of the range, steps of Newton's method, and how close its last one leads
# as a share of the range; and from how many members at points on that is quicker than bisection alone.
_HALVINGS, _STEPS, _SURE, _MANY = 24, 12, 1e-12, 500
_ROOT = float(np.sqrt(2 * np.pi))
_QUARTILES = 0.25, 0.75


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

    def with_causes(self, deviations: Floats) -> Self:
        """Return it with further causes of doubt, each of which moves all points together.

        ``deviations`` are what a cause moves the logarithm by, one standard deviation, shape (causes, n).
        """
        added = np.broadcast_to(deviations, (len(self.weights), *deviations.shape))
        return replace(self, factor=np.concatenate([self.factor, added], axis=1))

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

        Members are the same at all points: what is asked in two calls varies together, too. At points of
        another category than the model's it may be anything, NaN included: whoever asks looks at
        `orchestrator.models.base.holds_at`.
        """
        ...


class ModelWithBelief(Model, Belief, Protocol):
    """A model that has the ability."""


def has_belief(model: Model) -> TypeGuard[ModelWithBelief]:
    """Return whether a model can say how its predictions at different points vary together."""
    return isinstance(model, Belief)


@runtime_checkable
class HasAnswer(Protocol):
    """The ability to say which formula is the answer, though there are other explanations."""

    @property
    def answer(self) -> object | None:
        """The formula as a model of its own; None where other explanations are as probable."""
        ...


def of_answer(model: ModelWithBelief, points: Sequence[Point]) -> LogBelief:
    """Return the belief that runs are chosen by: that of the formula alone, where it is the answer.

    No runs are spent on telling it from other explanations.
    """
    answer = model.answer if isinstance(model, HasAnswer) else None
    return (answer if isinstance(answer, Belief) else model).belief(points)


def mixture_quantile(weights: Floats, mean: Floats, spread: Floats, q: float) -> Floats:
    """Return a quantile of mixtures of normal distributions, to a grid of `_HALVINGS` halvings.

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
    if mean.size < _MANY:
        return _bisected(low, high, lambda middle: weights @ ndtr((middle - mean) / spread) < q)
    root, is_sure = _root(weights, mean, spread, q, _SURE * (high - low))
    result = _bisected(low, high, lambda middle: middle < root)
    if not is_sure.all():
        rest = ~is_sure
        some, wide = mean[:, rest], spread[:, rest]
        result[rest] = _bisected(
            low[rest], high[rest], lambda middle: weights @ ndtr((middle - some) / wide) < q
        )
    return result


def in_middle(logs: Floats, weights: Floats, mean: Floats, spread: Floats) -> NDArray[np.bool_]:
    """Return where logarithms, shape (n,), lie between the quartiles of mixtures as of `mixture_quantile`.

    A probable formula that lies there is the prediction instead of the median.
    """
    low, high = (mixture_quantile(weights, mean, spread, q) for q in _QUARTILES)
    return np.asarray((low <= logs) & (logs <= high))


def _bisected(low: Floats, high: Floats, is_below: Callable[[Floats], NDArray[np.bool_]]) -> Floats:
    """Return the lower end after `_HALVINGS` halvings."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = is_below(middle)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low


def _root(
    weights: Floats, mean: Floats, spread: Floats, q: float, close: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return quantiles by Newton's method, and where they are that close: bisection is slow, but never fails.

    It is much closer than the grid of the bisection is fine, so both lead to the same point of the grid.
    """
    each = mean + ndtri(q) * spread  # the quantile of a mixture lies between those of its members
    begin, end = each.min(axis=0) - close, each.max(axis=0) + close
    x = np.clip(weights @ each, begin, end)
    slopes = weights[:, None] / (spread * _ROOT)
    is_sure = np.zeros(len(x), dtype=bool)
    with np.errstate(all="ignore"):  # where nothing is known, and between members that lie far apart
        for _ in range(_STEPS):
            away = (x - mean) / spread
            share = weights @ ndtr(away)
            density = np.einsum("kn,kn->n", slopes, np.exp(-away * away / 2))
            begin, end = np.where(share < q, x, begin), np.where(share < q, end, x)
            following = x - (share - q) / density
            inside = (begin <= following) & (following <= end)
            following = np.where(inside, following, (begin + end) / 2)
            is_sure, x = inside & (np.abs(following - x) <= close), following
            if is_sure.all():
                break
    return np.asarray(x, np.float64), is_sure
