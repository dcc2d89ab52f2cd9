"""A fitted performance model: the winning hypothesis, and the posterior over all that remain possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import ndtr

from orchestrator.models.base import Prediction
from orchestrator.models.hypotheses import Floats, block_values
from orchestrator.types import Point, format_value


@dataclass(frozen=True, slots=True)
class Posterior:
    """The hypotheses that remain possible, most probable first.

    Attributes
    ----------
    weights
        Probabilities, shape (members,).
    exponents
        Pairs (i, j) per member, term and parameter, shape (members, terms, parameters, 2).
    coefficients
        Constant first, shape (members, terms + 1).
    covariance
        Of the coefficients, shape (members, terms + 1, terms + 1).
    misfit
        Relative standard deviation of the truth around each member, shape (members,).
    """

    weights: Floats
    exponents: Floats
    coefficients: Floats
    covariance: Floats
    misfit: Floats

    def design(self, x: Floats) -> Floats:
        """Evaluate the terms (constant first) at coordinates (n, parameters): (members, terms + 1, n)."""
        members, terms, parameters, _ = self.exponents.shape
        result = np.ones((members, terms + 1, len(x)))
        for k in range(parameters):
            unique, inverse = np.unique(self.exponents[:, :, k].reshape(-1, 2), axis=0, return_inverse=True)
            result[:, 1:] *= block_values(x[:, k], unique)[inverse.reshape(members, terms)]
        return result


@dataclass(frozen=True, slots=True, eq=False)
class PmnfModel:
    """A model in performance model normal form, with its uncertainty.

    Attributes
    ----------
    callpath, metric
        What is modelled.
    parameters
        Numeric parameters in the model's coordinates.
    category
        Value of each categorical parameter for which the model holds.
    smape
        Of the expression, on the fitted locations, 0..200 %.
    noise
        Relative standard deviation of a single repetition.
    notes
        What a reader must know.
    posterior
        Hypotheses with weights; the first is the expression.
    fitted_low, fitted_high
        Bounds of the fitted points per parameter: beyond them a prediction is an extrapolation.
    """

    callpath: str
    metric: str
    parameters: tuple[str, ...]
    category: tuple[tuple[str, str], ...]
    smape: float
    noise: float
    notes: tuple[str, ...]
    posterior: Posterior
    fitted_low: tuple[float, ...] = ()
    fitted_high: tuple[float, ...] = ()

    @property
    def terms(self) -> list[dict[str, object]]:
        """JSON-ready terms of the expression; a constant has no factors."""
        result: list[dict[str, object]] = []
        coefficients, exponents = self.posterior.coefficients[0], self.posterior.exponents[0]
        for k, coefficient in enumerate(coefficients):
            if coefficient == 0 and (k > 0 or np.any(coefficients)):
                continue
            factors = [
                {"parameter": name, "exponent": float(i), "log_exponent": float(j)}
                for name, (i, j) in zip(self.parameters, exponents[k - 1] if k else (), strict=False)
                if i or j
            ]
            result.append({"coefficient": float(coefficient), "factors": factors})
        return result

    @property
    def expression(self) -> str:
        """The winning hypothesis as text that Python can evaluate."""
        return " + ".join(_term_text(term) for term in self.terms).replace("+ -", "- ")

    def predict(self, points: Sequence[Point]) -> Prediction:
        """Predict the true value with a 90 % interval; NaN at points of another category."""
        x = np.array([[p.number(name) for name in self.parameters] for p in points], dtype=float)
        x = x.reshape(len(points), len(self.parameters))
        value, low, high = self.quantiles(x)
        if self.category:
            other = np.array([any(_text(p[n]) != v for n, v in self.category) for p in points])
            value, low, high = (np.where(other, np.nan, a) for a in (value, low, high))
        return Prediction(value, low, high)

    def quantiles(self, x: Floats, level: float = 0.9) -> tuple[Floats, Floats, Floats]:
        """Return expression values, and the ends of the central interval at coordinates (n, parameters)."""
        mean, spread = self.log_moments(x)
        weights = self.posterior.weights
        value = np.exp(mean[0])
        tail = (1 - level) / 2
        low, high = (_mixture_quantile(weights, mean, spread, q) for q in (tail, 1 - tail))
        return value, np.minimum(np.exp(low), value), np.maximum(np.exp(high), value)

    def log_moments(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the log prediction of every member: (members, n) each."""
        design = self.posterior.design(x)
        value = np.einsum("ktn,kt->kn", design, self.posterior.coefficients)
        value = np.maximum(value, 1e-300)
        jacobian = design / value[:, None]
        within = np.einsum("ktn,kts,ksn->kn", jacobian, self.posterior.covariance, jacobian)
        return np.log(value), np.sqrt(np.maximum(within, 0) + self.posterior.misfit[:, None] ** 2)


def _mixture_quantile(weights: Floats, mean: Floats, spread: Floats, q: float) -> Floats:
    """Quantile of a mixture of normal distributions per column, by bisection."""
    spread = np.maximum(spread, 1e-12)
    low: Floats = (mean - 6 * spread).min(axis=0)
    high: Floats = (mean + 6 * spread).max(axis=0)
    for _ in range(24):
        middle = (low + high) / 2
        below = np.asarray(weights @ ndtr((middle - mean) / spread)) < q
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low


def _text(value: Any) -> str:
    return value if isinstance(value, str) else format_value(value)


def _term_text(term: Mapping[str, Any]) -> str:
    factors = [
        text
        for f in term["factors"]
        for text in (
            _power_text(f["parameter"], f["exponent"]),
            _power_text(f"log2({f['parameter']})", f["log_exponent"]),
        )
        if text
    ]
    return " * ".join([f"{term['coefficient']:.4g}".replace("e-0", "e-").replace("e+0", "e"), *factors])


def _power_text(base: str, exponent: float) -> str:
    if exponent == 0:
        return ""
    if exponent == 1:
        return base
    fraction = Fraction(exponent).limit_denominator(12)
    if fraction.denominator in (1, 2, 4, 5, 8, 10) or abs(float(fraction) - exponent) > 1e-9:
        text = format_value(exponent)
        return f"{base}**{text}" if exponent > 0 else f"{base}**({text})"
    return f"{base}**({fraction})"
