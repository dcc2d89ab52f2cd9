"""Hypotheses as formulas that curves are weighed against: what they are and how probable beforehand.

They have a posterior of their own, but not how well their coefficients are known: beside curves these are
fitted again (`orchestrator.models.curves.evidence.Formulas` is what curves ask for).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from orchestrator.models.base import Floats, Integers
from orchestrator.models.pmnf.posterior import Posterior

# Exponent above which a formula becomes improbable: the largest of the normal form as published. Natural
# logarithm of how much less probable it is for every one that an exponent is larger: only the last values of
# a parameter support it, and anything else may begin there.
_STEEPEST, _STEEP = 3.0, 5.0
# The same for every e-fold by which a term grows by more than this from the second largest to the largest
# measured value of a parameter: only that value supports it. Chosen by hand; not derived.
_LAST_STEP, _STEP_PRICE = 12.0, 3.0
# The same for every one by which a term grows faster than a parameter that shows in it at two values only,
# because another factor of the term is zero at the others: with one ratio any steepness fits. Chosen by hand;
# not derived. And the least value at which the slope of a logarithm is taken.
_STEEP_RATIO, _SLOPES_FROM = 12.0, 1.5
# Natural logarithm of how much more probable a constant, and a constant and one of these, as exponents of a
# parameter and of its logarithm, are where there is one: latency and bandwidth, serial and parallel parts.
_COMMON, _MORE = ((-1, 0), (1, 0), (2, 0), (3, 0), (0, 1)), 2.0


@dataclass(frozen=True, slots=True)
class NormalForms:
    """Hypotheses of a posterior as formulas around which there may be curves."""

    posterior: Posterior

    @classmethod
    def of(cls, posterior: Posterior) -> Self:
        """Take all members, the most probable first, without their correction: the curves do its work."""
        order = np.argsort(-posterior.weights, kind="stable")
        return cls(_part(posterior, np.concatenate([[0], order[order != 0]])))

    @classmethod
    def most_probable(cls, posteriors: Sequence[Posterior]) -> Self:
        """Take the most probable hypothesis of every posterior."""
        return cls(_joined([_part(item, slice(1)) for item in posteriors]))

    @property
    def weights(self) -> Floats:
        """Their probabilities among all hypotheses, shape (formulas,)."""
        return self.posterior.weights

    @property
    def factors(self) -> Integers:
        """How many powers and logarithms each has, shape (formulas,)."""
        used = (self.posterior.coefficients[:, 1:] != 0)[:, :, None, None]
        return np.asarray(((self.posterior.exponents != 0) & used).sum(axis=(1, 2, 3)), np.intp)

    def log_prior(self, points: Floats) -> Floats:
        """Return how much more probable their exponents are than others, natural logarithm, (formulas,).

        Before anything is known but where it was measured, shape (points, parameters).
        """
        exponents, used = self.posterior.exponents, self.posterior.coefficients[:, 1:] != 0
        beyond = np.maximum(exponents[..., 0] - _STEEPEST, 0) * used[:, :, None]
        late = np.maximum(_last_step(exponents, points) - np.log(_LAST_STEP), 0) * used[:, :, None]
        found = -_STEEP * beyond.sum(axis=(1, 2)) - _STEP_PRICE * late.sum(axis=(1, 2))
        found -= _STEEP_RATIO * _from_one_ratio(exponents * used[:, :, None, None], points)
        if exponents.shape[2] == 1:
            known = (exponents[:, :, 0, None] == _COMMON).all(axis=-1).any(axis=-1)
            found[(used <= known).all(axis=1) & (used.sum(axis=1) <= 1)] += _MORE
        return np.asarray(found, np.float64)

    @property
    def learned(self) -> Floats:
        """Share of each that comes from other campaigns in which such formulas fitted, shape (formulas,)."""
        return np.zeros(len(self.weights)) if self.posterior.learned is None else self.posterior.learned

    @property
    def coefficients(self) -> Floats:
        """Constant first, shape (formulas, coefficients)."""
        return self.posterior.coefficients

    def at(self, x: Floats) -> tuple[Floats, Floats]:
        """Return logarithms (formulas, n), and their slopes by coefficients (formulas, coefficients, n)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.posterior.log_slopes(x)

    def rows(self, index: Integers) -> Self:
        """Select formulas."""
        return type(self)(_part(self.posterior, index))

    def followed_by(self, others: Sequence[Self]) -> Self:
        """Return these formulas, then those of each of the others."""
        return type(self)(_joined([self.posterior, *(other.posterior for other in others)]))


def _part(posterior: Posterior, index: Integers | slice) -> Posterior:
    """Return some hypotheses: what they are, but not how well that is known."""
    weights = posterior.weights[index]
    return Posterior(
        weights=weights,
        exponents=posterior.exponents[index],
        coefficients=posterior.coefficients[index],
        covariance=np.empty((len(weights), 0, 0)),
        misfit=np.empty(0),
        learned=np.zeros(len(weights)) if posterior.learned is None else posterior.learned[index],
    )


def _joined(parts: Sequence[Posterior]) -> Posterior:
    """Return the hypotheses of several posteriors, those of one after those of another."""
    terms = max(item.exponents.shape[1] for item in parts)
    number = sum(len(item.weights) for item in parts)
    exponents = np.zeros((number, terms, *parts[0].exponents.shape[2:]))
    coefficients = np.zeros((number, terms + 1))
    begin = 0
    for item in parts:
        here, used = slice(begin, begin + len(item.weights)), item.exponents.shape[1]
        exponents[here, :used], coefficients[here, : used + 1] = item.exponents, item.coefficients
        begin += len(item.weights)
    return Posterior(
        weights=np.concatenate([item.weights for item in parts]),
        exponents=exponents,
        coefficients=coefficients,
        covariance=np.empty((number, 0, 0)),
        misfit=np.empty(0),
        learned=np.concatenate([item.learned for item in parts if item.learned is not None]),
    )


def _last_step(exponents: Floats, points: Floats) -> Floats:
    """Logarithm of the growth of factors from the second largest to the largest value of their parameter.

    Parameters
    ----------
    exponents
        Of powers and of logarithms, shape (formulas, terms, parameters, 2).
    points
        Shape (points, parameters).

    Returns
    -------
    Shape (formulas, terms, parameters); 0 for parameters whose values there are not above 1.
    """
    steps = np.zeros((points.shape[1], 2))
    for k, column in enumerate(points.T):
        last = np.unique(column)[-2:]
        if len(last) == 2 and last[0] > 1:
            steps[k] = np.diff(np.log(last))[0], np.diff(np.log(np.log(last)))[0]
    return np.asarray((exponents * steps).sum(axis=-1), np.float64)


def _from_one_ratio(exponents: Floats, points: Floats) -> Floats:
    """Return how much steeper than proportional terms are that one ratio determines, shape (formulas,).

    A term with ``log2(p)`` is zero along the line of another parameter n on which p is 1. What it does with n
    is known at other points only, and if these have two values of n, by one ratio. `exponents` and `points`
    are as in `_last_step`.
    """
    zero = (exponents[:, :, None, :, 1] > 0) & (points == 1)  # (formulas, terms, points, parameters)
    result = np.zeros(len(exponents))
    if not zero.any():
        return result
    for k, column in enumerate(points.T):
        shows = ~np.delete(zero, k, axis=-1).any(axis=-1)
        values, place = np.unique(column, return_inverse=True)
        at = np.stack([shows[..., place == v].any(axis=-1) for v in range(len(values))], axis=-1)
        last = values[len(values) - 1 - at[..., ::-1].argmax(axis=-1)]
        slope = exponents[..., k, 0] + exponents[..., k, 1] / np.log(np.maximum(last, _SLOPES_FROM))
        few = (at.sum(axis=-1) <= 2) & ~at.all(axis=-1)
        result += (np.maximum(slope - 1, 0) * few).sum(axis=1)
    return result
