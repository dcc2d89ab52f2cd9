"""Which terms of an exact sum no measured value checks, and what is predicted where only these decide.

With all other parameters fixed, a sum is a function of one parameter: a few blocks with coefficients. As many
blocks as there are values go through all of them, whatever was measured, and further values of the other
parameters check nothing of that. At the measured values the sum is right nevertheless. Elsewhere any other
function through them is as good.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from orchestrator.models.base import Floats, Integers, Model
from orchestrator.models.belief import LogBelief, has_belief, in_middle
from orchestrator.models.intervals import Predictive, predictive
from orchestrator.models.pmnf.block_sets import COSTS, DENOMINATORS, TERM
from orchestrator.models.pmnf.hypotheses import Exponents, block_values
from orchestrator.models.pmnf.peeling import Term
from orchestrator.models.pmnf.posterior import Posterior
from orchestrator.types import Point

# Two values check these alone: most counts do not depend on a parameter, or are proportional to it.
_USUAL: frozenset[Exponents] = frozenset({(0.0, 0.0), (1.0, 0.0)})
# From so much on (natural logarithm of a probability), terms count as checked.
_ENOUGH = 10.0
# Share of unchecked terms up to which the others say more than any other model, which may be too sure of
# itself. Chosen by hand; not derived.
_SMALL = 0.1
# Probability from which a sum gives the value where nothing checks it.
_LIKELY = 0.5
# How close numbers are to fractions, and largest whole numbers.
_NEAR, _LARGEST = 1e-6, 1e15


def gains(points: Floats, terms: Sequence[Term], coefficients: Floats) -> Floats:
    """Return the evidence for the terms of a sum as functions of each parameter, (terms, parameters).

    Infinite where measured values check them. Elsewhere the natural logarithm of how much more probable they
    are than any function that goes through the same values: coefficients that are shorter than these are no
    chance.

    Parameters
    ----------
    points
        Where it was fitted, shape (points, parameters).
    terms, coefficients
        Its products, the constant as a product without blocks.
    """
    result = np.full((len(terms), points.shape[1]), np.inf)
    for k, column in enumerate(points.T):
        levels = np.unique(column)
        functions = defaultdict(list)
        for number, term in enumerate(terms):
            functions[term[:k] + term[k + 1 :]].append(number)
        for members in functions.values():
            blocks = [terms[number][k] for number in members]
            result[members, k] = _gain(levels, blocks, coefficients[members])
    return result


def _gain(levels: Floats, blocks: Sequence[Exponents], coefficients: Floats) -> float:
    """Return the evidence for a function of one parameter against any curve through its values."""
    if len(blocks) < len(levels) and (len(levels) > 2 or blocks[0] in _USUAL):
        return math.inf
    values = coefficients @ block_values(levels, np.array(blocks))
    structure = sum(COSTS.get(block, math.inf) + TERM for block in blocks)
    price = _price(coefficients) + structure
    return _price(values) - price if math.isfinite(price) else -math.inf


def _price(numbers: Floats) -> float:
    """Return the price of numbers as multiples of one fraction, infinite where they are none."""
    costs = [math.inf]
    for denominator in DENOMINATORS:
        above = np.abs(numbers) * denominator
        whole = np.rint(above)
        if np.all(np.abs(above - whole) <= _NEAR * np.maximum(1.0, _NEAR * above)) and whole.max() < _LARGEST:
            unit = max(int(np.gcd.reduce(whole.astype(np.int64))), 1)
            costs.append(float(np.log1p(whole / unit).sum()) + math.log1p(unit) + 2 * math.log(denominator))
    return min(costs)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Beyond:
    """What an exact sum leaves to another model."""

    levels: tuple[Floats, ...]  # measured values of every parameter
    gains: Floats  # as from `gains`, of the terms of the most probable sum in the order of its coefficients
    model: Model  # predicts beside the sum where nothing checks that: less exactly, but with its doubt

    @property
    def unchecked(self) -> NDArray[np.bool_]:
        """Which terms only go through the measured values, and of which parameter."""
        return np.asarray(self.gains < _ENOUGH)

    @property
    def probability(self) -> float:
        """That of the sum where nothing checks it, beside any other function."""
        return float(expit(self.gains.min()))

    @property
    def parameters(self) -> Integers:
        """Parameters in which not all terms are checked."""
        return np.flatnonzero(self.unchecked.any(axis=0))

    def share(self, sums: Posterior, x: Floats) -> Floats:
        """Return the share of the value that unchecked terms have at coordinates (n, parameters), shape (n,).

        0 at measured values, and infinite where the sum is not positive, as every count is.
        """
        elsewhere = np.array(
            [~np.isin(column, known) for column, known in zip(x.T, self.levels, strict=True)]
        )
        sizes = np.abs(sums.design(x)[0] * sums.coefficients[0][:, None])
        share = (sizes * (self.unchecked @ elsewhere)).sum(axis=0) / sums.best(x)
        return np.where(sums.is_positive(x)[0], share, np.inf)

    def predictive(self, own: Predictive, sums: Posterior, x: Floats, points: Sequence[Point]) -> Predictive:
        """Return what is said at points and their coordinates, of which the sums themselves say ``own``."""
        is_positive = sums.is_positive(x)
        mean, spread = (np.where(is_positive, part, part[:1]) for part in (own.mean, own.spread))
        share = self.share(sums, x)
        if not share.any():
            return replace(own, mean=mean, spread=spread)
        other = predictive(self.model, points)
        away = share > _SMALL
        both = _Beside.of(own.weights, other.weights, self.probability)
        is_other = both.is_other(away, np.isinf(share))
        doubt = np.hypot(spread, np.where(away, 0.0, share))
        return replace(
            own,
            value=np.where(~away | self._is_likely(mean[0], share, other), own.value, other.value),
            weights=both.weights,
            mean=np.where(is_other, other.mean[both.second], mean[both.first]),
            spread=np.where(is_other, other.spread[both.second], doubt[both.first]),
        )

    def _is_likely(self, logs: Floats, share: Floats, other: Predictive) -> NDArray[np.bool_]:
        """Return where the sum, which is the short expression, is probable or what the model also says."""
        with np.errstate(all="ignore"):  # far out, there may be no number
            agrees = in_middle(logs, other.weights, other.mean, other.spread)
        return np.asarray(np.isfinite(share) & (agrees | (self.probability >= _LIKELY)))

    def expected(self, own: Floats, sums: Posterior, x: Floats, points: Sequence[Point]) -> Floats:
        """Return the mean over all that is possible, of which the sums themselves say ``own``."""
        share = self.share(sums, x)
        if not share.any():
            return own
        probability = np.where(np.isinf(share), 0.0, self.probability)
        both = probability * own + (1 - probability) * self.model.expected(points)
        return np.where(share > _SMALL, both, own)

    def belief(self, own: LogBelief, sums: Posterior, x: Floats, points: Sequence[Point]) -> LogBelief:
        """Return how predictions vary together, of which the sums themselves say ``own``.

        Members are the same wherever the points are, so that they vary together with others.
        """
        is_positive, share = sums.is_positive(x), self.share(sums, x)
        mean, rough = (np.where(is_positive, part, part[:1]) for part in (own.mean, own.rough))
        factor = np.where(is_positive[:, None], own.factor, own.factor[:1])
        if not has_belief(self.model):
            return replace(own, mean=mean, rough=rough, factor=factor)
        away, other = share > _SMALL, self.model.belief(points)
        both = _Beside.of(own.weights, other.weights, self.probability)
        is_other = both.is_other(away, np.isinf(share))
        doubt = np.hypot(rough, np.where(away, 0.0, share))
        factors = (
            np.where(is_other[:, None], 0.0, factor[both.first]),
            np.where(is_other[:, None], other.factor[both.second], 0.0),
        )
        return replace(
            own,
            weights=both.weights,
            mean=np.where(is_other, other.mean[both.second], mean[both.first]),
            factor=np.concatenate(factors, axis=1),
            rough=np.where(is_other, other.rough[both.second], doubt[both.first]),
        )


@dataclass(frozen=True, slots=True)
class _Beside:
    """Members of one mixture that at some points are those of sums, and at others also those of a model."""

    # first, second: which member of the sums and of the model each is.
    first: Integers
    second: Integers
    weights: Floats  # their probabilities
    is_sum: NDArray[np.bool_]  # which of them are sums also where nothing checks these

    @classmethod
    def of(cls, first: Floats, second: Floats, probability: float) -> Self:
        """Join members with these probabilities, which each keep, and the probability of the sums."""
        ends = [np.cumsum(weights) / weights.sum() for weights in (first, second)]
        edges = np.unique(np.concatenate([[0.0], *ends]))
        middle, weights = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
        places = [np.minimum(np.searchsorted(end, middle), len(end) - 1) for end in ends]
        return cls(
            first=np.tile(places[0], 2),
            second=np.tile(places[1], 2),
            weights=np.concatenate([probability * weights, (1 - probability) * weights]),
            is_sum=np.repeat([True, False], len(weights)),
        )

    def is_other(self, away: NDArray[np.bool_], never: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which members are those of the model, at points with such marks: (members, n)."""
        return np.asarray(away & (never | ~self.is_sum[:, None]))
