"""How parameters may change terms of a formula that lack them, as far as no measured point shows it.

Along lines of points one parameter is varied where the others are small. A formula that adds up what each
line shows does not know how a parameter changes what another one adds: that shows where both are large. So
every term may have one more power of each parameter that is not in it. How far its exponent is known follows
from the points, beside the coefficients: well from a grid, hardly from lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from orchestrator.models.base import Floats, Integers
from orchestrator.models.pmnf.posterior import Posterior

# Probability that such a power is there, and the standard deviation of its exponent if it is. Chosen by hand;
# not derived.
_THERE, _EXPONENT = 0.5, 1.0
_TINY = 1e-9  # keeps coefficients that the points do not tell apart from dividing by zero
# Standard deviation of the logarithm from which a power is worth a note. Chosen by hand; not derived.
_NOTED = 0.05


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Interplay:
    """Powers that terms of a formula may have besides, and how far they are known.

    ``formula`` has one member. Power j belongs to term ``term[j]`` and parameter ``parameter[j]``, each of
    shape (powers,). ``adjusted`` says how the coefficients follow the exponents, shape (terms + 1, powers);
    ``root`` is a factor of the covariance of these, shape (powers, powers).
    """

    formula: Posterior
    term: Integers
    parameter: Integers
    adjusted: Floats
    root: Floats

    @classmethod
    def of(cls, formula: Posterior, points: Floats, log_value: Floats, deviation: Floats) -> Self | None:
        """Return it for the most probable member of a posterior; None where no term lacks a parameter.

        The exponents are determined by least squares in the logarithm, beside the coefficients. What is left
        of them afterwards counts by the probability that a power is there at all (Savage-Dickey ratio).

        Parameters
        ----------
        formula
            Fitted to the points.
        points
            Coordinates, shape (points, parameters).
        log_value, deviation
            Logarithm of what was measured there, and its standard deviation, shape (points,).
        """
        formula = formula.first()
        used = formula.coefficients[0, 1:] != 0
        lacks = (formula.exponents[0] == 0).all(axis=2) & used[:, None]
        varied = (points > 0).all(axis=0) & (np.ptp(points, axis=0) > 0)
        term, parameter = np.nonzero(lacks & varied)
        if not len(term):
            return None
        slopes, powers = _slopes(formula, term, parameter, points)
        weights = deviation**-2
        known = (slopes * weights) @ slopes.T
        known += _TINY * np.diag(np.maximum(known.diagonal(), 1.0))
        adjusted: Floats = np.linalg.solve(known, (slopes * weights) @ powers.T).astype(np.float64)
        own = powers - adjusted.T @ slopes
        information = (own * weights) @ own.T + np.eye(len(term)) / _EXPONENT**2
        root = np.linalg.inv(np.linalg.cholesky(information)).T
        best = root @ root.T @ own @ (weights * (log_value - formula.log_mean(points)[0]))
        variance = np.sum(root**2, axis=1)
        odds_of_none = (
            (1 - _THERE) / _THERE * _EXPONENT / np.sqrt(variance) * np.exp(-(best**2) / variance / 2)
        )
        there = 1 / (1 + odds_of_none)
        return cls(
            formula=formula,
            term=term,
            parameter=parameter,
            adjusted=adjusted,
            root=np.sqrt(there)[:, None] * root,
        )

    def causes(self, x: Floats) -> Floats:
        """Return what each independent cause moves the logarithm by at coordinates (n, parameters).

        Shape (powers, n).
        """
        return np.asarray(self.root.T @ self._own(x), np.float64)

    def noted(self, corner: Floats) -> tuple[int, int] | None:
        """Return the term and the parameter of the power that is least known at a point (parameters,).

        None where all are known well.
        """
        spread = np.linalg.norm(self.root, axis=1) * np.abs(self._own(corner[None])[:, 0])
        worst = int(np.argmax(spread))
        return (int(self.term[worst]), int(self.parameter[worst])) if spread[worst] > _NOTED else None

    def _own(self, x: Floats) -> Floats:
        """Return slopes by the exponents, the coefficients following, shape (powers, n)."""
        slopes, powers = _slopes(self.formula, self.term, self.parameter, x)
        return powers - self.adjusted.T @ slopes


def _slopes(formula: Posterior, term: Integers, parameter: Integers, x: Floats) -> tuple[Floats, Floats]:
    """Return slopes of the logarithm by coefficients, (terms + 1, n), and by exponents, (powers, n)."""
    slopes = formula.log_slopes(x)[1][0]
    shares = slopes * formula.coefficients[0][:, None]
    with np.errstate(divide="ignore"):  # at zero nothing is known
        logs = np.nan_to_num(np.log(x.T[parameter]), neginf=0.0)
    return slopes, shares[1:][term] * logs
