"""A fitted performance model: the winning hypothesis, and the posterior over all that remain possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from orchestrator.models.base import Floats, Prediction, is_of
from orchestrator.models.pmnf.correction import LINEAR
from orchestrator.models.pmnf.posterior import Posterior
from orchestrator.types import Point, format_value

#
# # FOLDED orchestrator.models.pmnf.model: How models grow: comparison of leading behaviour, and the exponent deviation.
#
# Growth is read from terms as models list them (``{"coefficient", "factors"}``), so any model that has terms
# can be compared, also one that a user wrote down as a theoretical expectation.
#


Term = Mapping[str, Any]
Growth = tuple[float, float]


def growth(terms: Sequence[Term], parameter: str) -> Growth:
    """Leading behaviour in one parameter, all others fixed: ``(exponent, log exponent)``.

    That of the fastest growing term with a coefficient other than zero; (0, 0) for a constant. Decreasing
    terms lead only where there is nothing else.

    Parameters
    ----------
    terms
        Terms as in `orchestrator.models.base.Model.terms`.
    parameter
        Name of the parameter.
    """
    leading = [_growth_of(term, parameter) for term in terms if term["coefficient"] != 0]
    return max(leading, default=(0.0, 0.0))


def _growth_of(term: Term, parameter: str) -> Growth:
    for factor in term["factors"]:
        if factor["parameter"] == parameter:
            return float(factor["exponent"]), float(factor["log_exponent"])
    return 0.0, 0.0


def compare(first: Sequence[Term], second: Sequence[Term], parameter: str) -> int:
    """Return 1 where the first model grows faster in a parameter, -1 where the second does, else 0."""
    a, b = growth(first, parameter), growth(second, parameter)
    return (a > b) - (a < b)


def exponent_deviation(first: Sequence[Term], second: Sequence[Term], parameter: str) -> float:
    """Difference of the leading exponents, ``|n1 - n2|``; logarithms and constants have exponent 0.

    De Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, eq. (4).
    """
    return abs(growth(first, parameter)[0] - growth(second, parameter)[0])


#
# # FOLDED orchestrator.models.pmnf.model: Models as readable text that is a Python expression as well.


# Parts of a correction that change the value by less within the fitted range are not worth reading.
_LEAST = 5e-4


def number(value: float) -> str:
    """Four significant digits: ``2.1e-4``, ``0.3``, ``1780``."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.4g}")
    if 1e-3 <= abs(rounded) < 1e6:
        return np.format_float_positional(rounded, trim="-")
    mantissa, exponent = f"{rounded:.3e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def term_text(term: Mapping[str, Any]) -> str:
    """One term: ``2.1e-4 * p**0.5 * log2(p)``."""
    factors = [
        factor
        for f in term["factors"]
        for factor in (
            power_text(f["parameter"], f["exponent"]),
            power_text(f"log2({f['parameter']})", f["log_exponent"]),
        )
        if factor
    ]
    return " * ".join([number(term["coefficient"]), *factors])


def power_text(base: str, exponent: float) -> str:
    """A power, with thirds and the like as fractions; empty for exponent 0."""
    if exponent == 0:
        return ""
    if exponent == 1:
        return base
    fraction = Fraction(exponent).limit_denominator(12)
    if fraction.denominator in (1, 2, 4, 5, 8, 10) or abs(float(fraction) - exponent) > 1e-9:
        plain = format_value(exponent)
        return f"{base}**{plain}" if exponent > 0 else f"{base}**({plain})"
    return f"{base}**({fraction})"


def correction_text(parameters: tuple[str, ...], posterior: Posterior) -> list[str]:
    """Factors of the smooth correction: powers whose exponents change with the logarithm."""
    if posterior.correction is None:
        return []
    features, coefficients = posterior.correction.features, posterior.correction.coefficients[0]
    scaled = {
        name: f"{name}/{number(float(np.exp(m)))}"
        for name, m in zip(parameters, features.middle, strict=True)
    }
    exponents: dict[str, list[tuple[float, str]]] = {}
    for (k, j), a in zip(features.pairs, coefficients, strict=True):
        if abs(a) < _LEAST:
            continue
        first = parameters[k]
        if j < 0:
            exponents.setdefault(first, []).append((LINEAR * a / features.half[k], ""))
        else:
            bend = a * np.log(2) / (features.half[k] * features.half[j])
            exponents.setdefault(first, []).append((bend, f"log2({scaled[parameters[j]]})"))
    factors = []
    for name, parts in exponents.items():
        sums = " + ".join(" * ".join(filter(None, [number(float(v)), f])) for v, f in parts)
        factors.append(f"({scaled[name]})**({sums.replace('+ -', '- ')})")
    return factors


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
    """

    callpath: str
    metric: str
    parameters: tuple[str, ...]
    category: tuple[tuple[str, str], ...]
    smape: float
    noise: float
    notes: tuple[str, ...]
    posterior: Posterior

    @property
    def terms(self) -> list[dict[str, object]]:
        """JSON-ready terms of the winning hypothesis; a constant has no factors."""
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
        """The prediction as text that Python can evaluate: terms, times the correction if there is one."""
        factors = correction_text(self.parameters, self.posterior)
        if not factors:
            return self.normal_form
        main = f"({self.normal_form})" if len(self.terms) > 1 else self.normal_form
        return " * ".join([main, *factors])

    @property
    def normal_form(self) -> str:
        """The terms alone, without the correction."""
        return " + ".join(term_text(term) for term in self.terms).replace("+ -", "- ")

    def predict(self, points: Sequence[Point]) -> Prediction:
        """Predict the true value with a 90 % interval; NaN at points of another category."""
        return Prediction(*(self._inside(points, part) for part in self.quantiles(self.coordinates(points))))

    def value(self, points: Sequence[Point]) -> Floats:
        """Return the value of the expression; NaN at points of another category."""
        return self._inside(points, self.posterior.best(self.coordinates(points)))

    def expected(self, points: Sequence[Point]) -> Floats:
        """Return the mean over hypotheses and coefficients; NaN at points of another category."""
        return self._inside(points, self.posterior.expected(self.coordinates(points)))

    def _inside(self, points: Sequence[Point], values: Floats) -> Floats:
        if not self.category:
            return values
        here = [is_of(point, self.category) for point in points]
        return np.where(np.array(here, dtype=bool), values, np.nan)

    def coordinates(self, points: Sequence[Point]) -> Floats:
        """Values of the model's parameters, shape (points, parameters)."""
        x = np.array([[p.number(name) for name in self.parameters] for p in points], dtype=float)
        return x.reshape(len(points), len(self.parameters))

    def quantiles(self, x: Floats, level: float = 0.9) -> tuple[Floats, Floats, Floats]:
        """Value of the expression and ends of the central interval at coordinates (n, parameters)."""
        with np.errstate(all="ignore"):  # far out, and at zero, there may be no number
            mean, spread = self.posterior.log_moments(x)
            tail = (1 - level) / 2
            low, high = (self.posterior.mixture_quantile(mean, spread, q) for q in (tail, 1 - tail))
            if not np.any(self.posterior.coefficients):
                return (zero := np.zeros(len(x))), zero, zero
            value = np.exp(mean[0])
            return value, np.minimum(np.exp(low), value), np.maximum(np.exp(high), value)

    def log_moments(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the log prediction of every member: (members, n) each."""
        return self.posterior.log_moments(x)


#
# # FOLDED orchestrator.models.pmnf.model: The posterior of many models as one object: how sure predictions are, and how they vary together.
#
# A strategy asks which measurement at x would tell most about the evaluation point P₊: that depends on the
# covariance of ``log f(x)`` and ``log f(P₊)`` over hypotheses and coefficients.
#


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Log predictions of one model at n points, as a mixture of Gaussians (one per hypothesis).

    Attributes
    ----------
    weights
        Probabilities of the members, shape (members,).
    mean
        Log prediction per member, shape (members, n).
    factor
        Within member k the covariance of points i and j is ``factor[k, :, i] @ factor[k, :, j]``, shape
        (members, q, n).
    rough
        Standard deviation of what is independent between points (rough lack of fit), shape (members, n).
    noise
        Relative standard deviation of one repetition.
    """

    weights: Floats
    mean: Floats
    factor: Floats
    rough: Floats
    noise: float

    @property
    def centre(self) -> Floats:
        """Posterior mean of the log prediction, shape (n,)."""
        result: Floats = self.weights @ self.mean
        return result

    @property
    def variance(self) -> Floats:
        """Posterior variance of the log prediction: between and within members, shape (n,)."""
        within = np.einsum("k,kqn,kqn->n", self.weights, self.factor, self.factor)
        rough = self.weights @ self.rough**2
        result: Floats = self.weights @ (self.mean - self.centre) ** 2 + within + rough
        return result

    def covariance(self, target: int) -> Floats:
        """Posterior covariance of every point with one of them, shape (n,).

        The rough lack of fit of one point tells nothing about another: it counts at ``target`` only.
        """
        deviation = self.mean - self.centre
        between = (self.weights * deviation[:, target]) @ deviation
        within = np.einsum("k,kqn,kq->n", self.weights, self.factor, self.factor[:, :, target])
        result: Floats = between + within
        result[target] += self.weights @ self.rough[:, target] ** 2
        return result


def ensemble(models: Sequence[PmnfModel], points: Sequence[Point]) -> tuple[Ensemble, ...]:
    """Evaluate the posterior of every model at the same points.

    Parameters
    ----------
    models
        Models with a posterior, such as the PMNF modeler fits.
    points
        Candidates and evaluation points; their order is that of the last axis of the results.
    """
    result = []
    for model in models:
        mean, factor, rough = model.posterior.log_factors(model.coordinates(points))
        result.append(Ensemble(model.posterior.weights, mean, factor, rough, model.noise))
    return tuple(result)
