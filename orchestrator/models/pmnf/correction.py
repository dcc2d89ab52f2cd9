"""A smooth correction for what no hypothesis explains: the exponential of a quadratic in the logarithms.

Real codes are not in the normal form. Where repetitions prove that the best hypothesis is off by more than
the noise, the truth is taken to be ``hypothesis * exp(q)``: q is a quadratic polynomial of the logarithms of
the parameters with small random coefficients (a Gaussian process with a polynomial kernel; Kennedy &
O'Hagan 2001, Bayesian calibration of computer models, sec. 2). So the hypothesis is not bent by a misfit
that is smooth, and the prediction continues the trend of the residuals for a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.models.base import Floats, Integers
from orchestrator.models.symbolic import number_text

# Share of the lack of fit that is not smooth, as variance relative to that of one coefficient of q.
# Chosen by hand; not derived.
ROUGH = 0.25
# Size of the linear part of q relative to the rest: growth is for the hypothesis to explain.
# Chosen by hand; not derived.
LINEAR = 0.3
# Growth of the rough part beyond the fitted range, per squared half range. Chosen by hand; not derived.
BEYOND = 8.0
# Half ranges from the middle beyond which a correction stays what it is: its powers would take over far out.
# Chosen by hand; not derived.
_FAR = 3.0


# Exponents below this are left out of the text: they change the value by less within the fitted range,
# and numbers are shown with four digits.
_LEAST_EXPONENT = 5e-4


@dataclass(frozen=True, slots=True)
class Features:
    """Monomials of standardised logarithms, up to degree two, without the constant."""

    # middle, half: middle and half width of the fitted range of every parameter, on logarithms, shape
    # (parameters,); a half width of 0 leaves the parameter out.
    middle: Floats
    half: Floats
    pairs: Integers  # parameters of every monomial, shape (features, 2); -1 for a linear one

    @classmethod
    def of(cls, points: Floats) -> Features:
        """Choose monomials for points of shape (points, parameters)."""
        parameters = points.shape[1]
        positive = points.min(axis=0) > 0
        logs = np.log(np.where(positive, points, 1.0))
        low, high = logs.min(axis=0), logs.max(axis=0)
        half = (high - low) / 2
        bends = [len(np.unique(points[:, k])) > 2 for k in range(parameters)]
        inside = [k for k in range(parameters) if half[k] > 0]
        pairs = [(k, -1) for k in inside]
        pairs += [(k, j) for k in inside for j in inside if k < j or (k == j and bends[k])]
        return cls((low + high) / 2, half, np.array(pairs, dtype=np.intp).reshape(-1, 2))

    def standardised(self, x: Floats) -> Floats:
        """Map the fitted range of every parameter to -1..1, on logarithms."""
        logs = np.log(np.maximum(x, 1e-300))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.half > 0, (logs - self.middle) / self.half, 0.0)

    def __call__(self, x: Floats) -> Floats:
        """Evaluate at coordinates (n, parameters): (n, features)."""
        u = np.column_stack([np.clip(self.standardised(x), -_FAR, _FAR), np.ones(len(x))])
        scale = np.where(self.pairs[:, 1] < 0, LINEAR, 1.0)
        values: Floats = scale * u[:, self.pairs[:, 0]] * u[:, self.pairs[:, 1]]
        return values

    def outside(self, x: Floats) -> Floats:
        """Squared distance from the fitted box, in half ranges: (n,)."""
        beyond = np.maximum(np.abs(self.standardised(x)) - 1, 0)
        total: Floats = np.sum(beyond**2, axis=1)
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """The fitted correction of every member of a posterior."""

    features: Features  # its monomials
    coefficients: Floats  # shape (members, features)
    # How they change with the coefficients of the terms, shape (members, features, terms + 1).
    coupling: Floats
    covariance: Floats  # of the coefficients for given terms, shape (members, features, features)
    smooth: Floats  # prior standard deviation of the coefficients, shape (members,)

    def first(self) -> Correction:
        """Return the correction of the most probable member alone."""
        return Correction(
            features=self.features,
            coefficients=self.coefficients[:1],
            coupling=self.coupling[:1],
            covariance=self.covariance[:1],
            smooth=self.smooth[:1],
        )


def factors_text(correction: Correction, parameters: Sequence[str]) -> list[str]:
    """Return the factors of the first member's correction as text: powers whose exponents change slowly."""
    features, coefficients = correction.features, correction.coefficients[0]
    scaled = {
        name: f"{name}/{number_text(float(np.exp(m)))}"
        for name, m in zip(parameters, features.middle, strict=True)
    }
    exponents: dict[str, list[tuple[float, str]]] = {}
    for (k, j), a in zip(features.pairs, coefficients, strict=True):
        if abs(a) < _LEAST_EXPONENT:
            continue
        first = parameters[k]
        if j < 0:
            exponents.setdefault(first, []).append((LINEAR * a / features.half[k], ""))
        else:
            bend = a * np.log(2) / (features.half[k] * features.half[j])
            exponents.setdefault(first, []).append((bend, f"log2({scaled[parameters[j]]})"))
    factors = []
    for name, parts in exponents.items():
        sums = " + ".join(" * ".join(filter(None, [number_text(float(v)), f])) for v, f in parts)
        factors.append(f"({scaled[name]})**({sums.replace('+ -', '- ')})")
    return factors
