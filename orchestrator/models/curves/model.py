"""A Gaussian process in the logarithms as a model: many possible curves, each with its own uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orchestrator.models.base import Category, Floats, Prediction, coordinates, document, inside, unit_of
from orchestrator.models.belief import LogBelief
from orchestrator.models.curves.regression import Curves
from orchestrator.models.intervals import Predictive
from orchestrator.models.symbolic import sum_text
from orchestrator.types import Point

# Members of the belief that strategies ask for: each has a covariance of its own.
_MEMBERS = 16
_STEP = 1e-3  # of a logarithm, to find the slope at a point
_LARGEST = 700.0  # largest logarithm that is not infinite as a number, with a margin


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CurveModel:
    """Curves through the measurements, with their uncertainty.

    Attributes
    ----------
    callpath, metric
        What is modelled.
    parameters
        Numeric parameters in the model's coordinates.
    category
        Value of each categorical parameter for which the model holds.
    smape
        On the fitted locations, 0..200 %.
    noise
        Relative standard deviation of a single repetition.
    notes
        What a reader must know.
    corner
        Largest measured value of every parameter.
    curves
        The posterior; None where every value is zero.
    shared_noise
        Part of ``noise`` that repetitions of one origin have in common.
    """

    callpath: str
    metric: str
    parameters: tuple[str, ...]
    category: Category
    smape: float
    noise: float
    notes: tuple[str, ...]
    corner: tuple[float, ...] = ()
    curves: Curves | None = None
    shared_noise: float = 0.0

    @property
    def terms(self) -> list[dict[str, Any]]:
        """One term: the power law that touches the curve at the largest measured values."""
        if self.curves is None:
            return [{"coefficient": 0.0, "factors": []}]
        corner = np.array(self.corner)
        positive = np.flatnonzero(corner > 0)
        steps = np.tile(corner, (len(positive) + 1, 1))
        steps[np.arange(len(positive)) + 1, positive] *= np.exp(-_STEP)
        values = self._log_value(steps)
        slopes = np.round((values[0] - values[1:]) / _STEP, 3)
        coefficient = float(np.exp(values[0] - slopes @ np.log(corner[positive])))
        factors = [
            {"parameter": self.parameters[k], "exponent": float(slope), "log_exponent": 0.0}
            for k, slope in zip(positive, slopes, strict=True)
            if slope
        ]
        return [{"coefficient": coefficient, "factors": factors}]

    @property
    def normal_form(self) -> str:
        """The power law at the largest measured values."""
        return sum_text(self.terms)

    @property
    def expression(self) -> str:
        """The same: a curve has no short formula."""
        return self.normal_form

    def predict(self, points: Sequence[Point]) -> Prediction:
        """Predict the true value with a 90 % interval; NaN at points of another category."""
        return self.predictive(points).prediction(unit_of(self.metric))

    def predictive(self, points: Sequence[Point]) -> Predictive:
        """Return the mixture over all curves at each point; NaN at points of another category."""
        if self.curves is None:
            return Predictive.certain(self._inside(points, np.zeros(len(points))), self.noise)
        mean, spread = self.curves.moments(coordinates(points, self.parameters))
        return Predictive(
            value=self._inside(points, np.exp(np.minimum(self.curves.weights @ mean, _LARGEST))),
            weights=self.curves.weights,
            mean=mean,
            spread=spread,
            noise=self.noise,
            shared=self.shared_noise,
        )

    def value(self, points: Sequence[Point]) -> Floats:
        """Return the geometric mean over all curves; NaN at points of another category."""
        return self._inside(points, np.exp(self._log_value(coordinates(points, self.parameters))))

    def expected(self, points: Sequence[Point]) -> Floats:
        """Return the mean over all curves; NaN at points of another category."""
        if self.curves is None:
            return self._inside(points, np.zeros(len(points)))
        mean, spread = self.curves.moments(coordinates(points, self.parameters))
        logs = np.minimum(mean + np.minimum(spread, 1.0) ** 2 / 2, _LARGEST)
        return self._inside(points, self.curves.weights @ np.exp(logs))

    def belief(self, points: Sequence[Point]) -> LogBelief:
        """Return the most probable sizes of the components as members, each a Gaussian over curves."""
        x = coordinates(points, self.parameters)
        if self.curves is None:
            curves, mean, factor = np.ones(1), np.full((1, len(x)), -_LARGEST), np.zeros((1, 0, len(x)))
        else:
            first = self.curves.first(_MEMBERS)
            curves, (mean, factor) = first.weights, first.factors(x)
        return LogBelief(
            weights=curves, mean=mean, factor=factor, rough=np.zeros_like(mean), noise=self.noise
        )

    def document(self) -> dict[str, Any]:
        """Return the model as a JSON-ready object."""
        return document(self)

    def _log_value(self, x: Floats) -> Floats:
        if self.curves is None:
            return np.full(len(x), -np.inf)
        return np.minimum(self.curves.log_value(x), _LARGEST)

    def _inside(self, points: Sequence[Point], values: Floats) -> Floats:
        return inside(points, self.category, values)
