"""What may explain the measurements of a call path: curves, as a product or a sum of parts, and formulas.

Formulas may be exact, or multiplied by small curves.

Every explanation counts with its probability (Bayesian model averaging: Hoeting et al., Statistical Science,
1999).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Self

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats, Integers
from orchestrator.models.curves.additive import Additive
from orchestrator.models.curves.design import Process
from orchestrator.models.curves.evidence import Formulas
from orchestrator.models.curves.prior import TAIL_RISE, TAIL_SHARE, in_tail
from orchestrator.models.curves.regimes import Regimes
from orchestrator.models.unseen import apart, doublings

# Probability from which a formula is the answer.
LIKELY = 0.5
# Share of the largest probability below which nothing stands for others.
_NEGLIGIBLE = 1e-6
# Numbers in the factors of covariances that are looked at together: of many points some at a time.
_TOGETHER = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanations:
    """Possible explanations of one call path, as a mixture of Gaussian processes around formulas or not."""

    process: Process  # shared with other call paths
    # Those that an explanation has, and the most probable one, which is the first; None where there are none.
    formulas: Formulas | None
    # Power laws with a change, which count as further formulas; None where there are none.
    regimes: Regimes | None
    formula: Integers  # which one an explanation has; -1 for curves alone, shape (members,)
    additive: tuple[Additive, ...]  # curves that add up
    added: Integers  # which of those an explanation has; -1 for none, shape (members,)
    draws: Integers  # which draw of the process, shape (members,)
    weights: Floats  # their probabilities, shape (members,)
    # Standard deviation of the truth around each that is independent between points, shape (members,).
    rough: Floats
    # Standard deviation of what each may miss per doubling beyond the measured range, shape (members,).
    unseen: Floats
    # Whether there are curves, or points scatter around the formula twice as much as repetitions say, shape
    # (members,).
    inexact: NDArray[np.bool_]
    centre: float  # mean of the logarithms of the measured values: curves are around it
    # Logarithms of the measured values over those of the formula if it is likely, else of the mean curve,
    # shape (points,).
    left_over: Floats
    # Projected logarithms of measured over predicted values of every formula; the last one is for curves,
    # around the centre. Shape (formulas + 1, rank).
    residuals: Floats
    slopes: Floats  # projected slopes by coefficients, shape (formulas, coefficients, rank)
    # By which slopes were divided, shape (formulas, coefficients); 0 for a coefficient that is not there.
    scale: Floats
    # shift, root: mean change of the scaled coefficients of a member, and factor of their covariance, shapes
    # (members, coefficients) and (members, coefficients, coefficients).
    shift: Floats
    root: Floats
    share: float  # probability that a formula is part of the explanation, not counting regimes
    odds: Floats  # probability of each of the regimes, shape (laws,)

    def sum_of_parts(self, parameters: Sequence[str]) -> tuple[str, float] | None:
        """Return which parameters most probably add up, and how probable it is; None where nothing may."""
        found: dict[str, float] = {}
        for k, additive in enumerate(self.additive):
            text = additive.structure.text(parameters)
            found[text] = found.get(text, 0.0) + float(self.weights[self.added == k].sum())
        return max(found.items(), key=itemgetter(1), default=None)

    @property
    def dimensions(self) -> int:
        """Number of unknown coefficients of a member."""
        return len(self.process.design.features.component) + int(self.slopes.shape[1])

    def fewer(self, members: int) -> Self:
        """Return so many members that stand for all, which these are if there are not more."""
        if members >= len(self.weights):
            return self
        picked, weights = standing_for_all(self.weights, members)
        of_members = ("formula", "added", "draws", "rough", "unseen", "inexact", "shift", "root")
        chosen = {name: getattr(self, name)[picked] for name in of_members}
        return replace(self, weights=weights, **chosen)

    def formula_at(self, x: Floats) -> Floats:
        """Logarithm of the most probable formula alone, shape (n,)."""
        assert self.formulas is not None
        result: Floats = self.formulas.at(x)[0][0]
        return result

    def mean(self, x: Floats) -> Floats:
        """Mean logarithm of the truth of every member, shape (members, n)."""
        return self.moments(x)[0]

    def moments(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the mean logarithm of the truth of every member, and a factor of its covariance.

        Returns
        -------
        Shape (members, n), and between points (members, dimensions, n).
        """
        design, draws = self.process.design, self.process.draws
        phi, (base, slopes) = design.features(x), self._formulas_at(x)
        # Slopes of sums may span more or fewer directions than the features themselves.
        size = max(sum(item.basis.shape) for item in (design, *(sums.design for sums in self.additive)))
        mean = np.empty((len(self.draws), len(phi)))
        factor = np.zeros((len(self.draws), size + self.slopes.shape[1], len(phi)))
        for number, additive in enumerate(self.additive):
            rows = np.flatnonzero(self.added == number)
            # Not kept as those of the shared process are: each call path would have matrices of its own.
            mean[rows], own = additive.moments(phi, draws.rows(self.draws[rows]))
            factor[rows, : own.shape[1]] = own
        others = np.flatnonzero(self.added < 0)
        used, which = np.unique(self.draws[others], return_inverse=True)
        for number, (draw, gain) in enumerate(zip(used, self.process.gains(used), strict=True)):
            rows, moved = others[which == number], phi @ gain
            if draws.sizes[draw].any():
                own = design.factor(phi, gain[None], draws.rows(used[number : number + 1]))
                factor[rows, : own.shape[1]] = own
            for k in rows:
                form = self.formula[k]
                mean[k] = base[form] + moved @ self.residuals[form]
                if form >= 0:
                    change = slopes[form] - self.slopes[form] @ moved.T
                    mean[k] += self.shift[k] @ change
                    factor[k, size:] = self.root[k] @ change
        return mean, factor

    def mixture(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return what is possible at every point alone: a mixture of normal distributions of the logarithm.

        Members that are not a formula within the noise are there twice, the second time with heavy tails.

        Returns
        -------
        Weights (members,), means and standard deviations (members, n).
        """
        design = self.process.design
        beyond = np.outer(self.unseen, doublings(design.points, x))
        missed = np.hypot(beyond, apart(design.points, design.ties, x))
        step = max(1, _TOGETHER // (len(self.draws) * self.dimensions))
        parts = [self._marginals(x[begin : begin + step]) for begin in range(0, max(len(x), 1), step)]
        mean, variance = (np.concatenate(found, axis=1) for found in zip(*parts, strict=True))
        spread = np.sqrt(variance + self.rough[:, None] ** 2 + missed**2)
        inexact = self.inexact
        kept = self.weights * np.where(inexact, 1 - TAIL_SHARE, 1.0)
        return (
            np.concatenate([kept, self.weights[inexact] * TAIL_SHARE]),
            np.concatenate([mean, mean[inexact]]),
            np.concatenate([spread, in_tail(spread[inexact])]),
        )

    def risen(self, x: Floats) -> Floats:
        """Return by how much the means of `mixture` are higher with what may begin beyond the range.

        No measurement shows it, so it is no part of a prediction, but of what is possible around one.

        Returns
        -------
        Shape (members of the mixture, n).
        """
        rise = TAIL_RISE * doublings(self.process.design.points, x)
        return np.outer(np.repeat([0.0, 1.0], [len(self.inexact), self.inexact.sum()]), rise)

    def _marginals(self, x: Floats) -> tuple[Floats, Floats]:
        """Return means and variances of the logarithm of the truth, for every member, (members, n)."""
        mean, factor = self.moments(x)
        return mean, np.einsum("kqn,kqn->kn", factor, factor)

    def _formulas_at(self, x: Floats) -> tuple[Floats, Floats]:
        """Logarithms, the centre last, and scaled slopes."""
        centre = np.full((1, len(x)), self.centre)
        if self.formulas is None:
            return centre, np.empty((0, 0, len(x)))
        known = [self.formulas.at(x)] + ([] if self.regimes is None else [self.regimes.at(x)])
        slopes, begin = np.zeros((*self.scale.shape, len(x))), 0
        for value, part in known:
            slopes[begin : begin + len(value), : part.shape[1]] = part
            begin += len(value)
        return np.concatenate([*(value for value, _ in known), centre]), slopes * self.scale[:, :, None]


def standing_for_all(weights: Floats, members: int, group: Integers | None = None) -> tuple[Integers, Floats]:
    """Return members that stand for equal shares of the probability, and their weights.

    Systematic sampling (Kitagawa, Monte Carlo filter and smoother, 1996, without the random start): the tails
    are kept, which the most probable members alone would cut off. Members come by probability, so that their
    order before does not matter; one ``group``, shape (weights,), after the other, so that each has members
    for its share.
    """
    some = np.flatnonzero(weights > _NEGLIGIBLE * weights.max())
    keys = (-weights[some],) if group is None else (-weights[some], group[some])
    order = some[np.lexsort(keys)]
    total = np.cumsum(weights[order])
    count = np.bincount(np.searchsorted(total, (np.arange(members) + 0.5) / members * total[-1]))
    picked = np.flatnonzero(count)
    return order[picked], count[picked] / members
