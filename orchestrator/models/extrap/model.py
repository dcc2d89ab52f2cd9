"""A function that Extra-P's procedure found, with an interval that Extra-P does not have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import stdtrit

from orchestrator.models.base import Category, Floats, coordinates, document, inside
from orchestrator.models.belief import LogBelief
from orchestrator.models.extrap.search import Form
from orchestrator.models.intervals import LEVEL, FromPredictive, Predictive
from orchestrator.models.symbolic import sum_text
from orchestrator.types import Point

_MOST_SPREAD = 100.0  # of a logarithm: wider intervals are no better, and their ends are not finite


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ExtrapModel(FromPredictive):
    """A function of Extra-P's procedure."""

    STANDS_ALONE: ClassVar[bool] = True
    """Extra-P models every call path by itself: `orchestrator.models.sums` replaces none of its models."""

    callpath: str
    metric: str
    parameters: tuple[str, ...]  # numeric parameters that vary among the measured points
    category: Category  # value of each categorical parameter for which the model holds
    # On the fitted values, 0..200 %. Of one parameter, Extra-P shows the cross-validated one instead.
    smape: float
    noise: float  # relative standard deviation of a single repetition
    notes: tuple[str, ...]
    form: Form  # the function
    # Of the covariance of the coefficients, ``factor.T @ factor``, widened as Student's t distribution is
    # wider than the normal one at `LEVEL`; shape (coefficients, coefficients).
    factor: Floats
    least: float  # least prediction: the function may be zero or negative where nothing was measured
    shared_noise: float = 0.0  # part of ``noise`` that repetitions of one origin have in common

    @property
    def terms(self) -> list[dict[str, Any]]:
        """JSON-ready terms, the constant first; those with a coefficient of zero are left out."""
        factors: list[list[dict[str, Any]]] = [[], *(self._factors(term) for term in self.form.terms)]
        return [
            {"coefficient": float(coefficient), "factors": blocks}
            for coefficient, blocks in zip(self.form.coefficients, factors, strict=True)
            if coefficient != 0
        ]

    def _factors(self, term: tuple[int, ...]) -> list[dict[str, Any]]:
        return [
            {
                "parameter": self.parameters[axis],
                "exponent": self.form.blocks[axis][0],
                "log_exponent": self.form.blocks[axis][1],
            }
            for axis in term
        ]

    @property
    def normal_form(self) -> str:
        """The function as text that Python can evaluate."""
        return sum_text(self.terms)

    @property
    def expression(self) -> str:
        """The same."""
        return self.normal_form

    def predictive(self, points: Sequence[Point]) -> Predictive:
        """Return a lognormal distribution around the function; NaN at points of another category."""
        return Predictive.of_belief(self.value(points), self.belief(points), self.shared_noise)

    def value(self, points: Sequence[Point]) -> Floats:
        """Return the value of the function, at least `least`; NaN at points of another category."""
        return inside(points, self.category, self._positive(points))

    def expected(self, points: Sequence[Point]) -> Floats:
        """Return the same: no other function is considered."""
        return self.value(points)

    def belief(self, points: Sequence[Point]) -> LogBelief:
        """Return one explanation, with a Gaussian over its coefficients."""
        positive = self._positive(points)
        with np.errstate(over="ignore", invalid="ignore"):
            factor = self.factor @ self.form.design(coordinates(points, self.parameters)).T / positive
            spread = np.sqrt((factor**2).sum(axis=0))
            factor = np.nan_to_num(factor * np.minimum(1.0, _MOST_SPREAD / np.maximum(spread, _MOST_SPREAD)))
        logs = np.log(positive)[None]
        return LogBelief(
            weights=np.ones(1),
            mean=logs,
            factor=factor[None],
            rough=np.zeros_like(logs),
            noise=self.noise,
        )

    def document(self) -> dict[str, Any]:
        """Return the model as a JSON-ready object."""
        return document(self)

    def _positive(self, points: Sequence[Point]) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.maximum(self.form.at(coordinates(points, self.parameters)), self.least)


def covariance_factor(form: Form, points: Floats, deviation: Floats, freedom: int) -> Floats:
    """Return what `ExtrapModel.factor` is: of least squares with values of known deviations.

    Parameters
    ----------
    form
        The function, taken to be the true one.
    points
        Fitted points, shape (n, parameters).
    deviation
        Standard deviation of the value at every point, shape (n,).
    freedom
        Degrees of freedom behind the deviations.
    """
    spread = np.linalg.pinv(form.design(points)) * deviation
    tail = 0.5 + LEVEL / 200
    wider = stdtrit(max(freedom, 1), tail) / stdtrit(np.inf, tail)
    # The triangular factor of a thin matrix: as few rows as there are coefficients.
    factor = np.linalg.qr(spread.T).R
    return np.asarray(wider * factor, np.float64)
