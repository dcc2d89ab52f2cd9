"""Bayesian regression on the features, for many sizes of the components at once.

For given sizes the process is a linear model with independent normal coefficients (Rasmussen and Williams,
Gaussian processes for machine learning, section 2.1), so evidence and posterior have closed forms. Sizes are
not chosen: every draw of the prior counts with its evidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from orchestrator.models.base import Floats, Integers
from orchestrator.models.curves.features import Features
from orchestrator.models.curves.prior import draws

_TOGETHER = 4_000_000  # numbers in the matrices that are factorised at once
# Draws less probable than the best one by this factor (natural logarithm) are left out.
_NEGLIGIBLE = 6.0
_MOST = 64  # draws that a model keeps


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """What the posteriors of call paths measured at the same points have in common.

    Attributes
    ----------
    features
        Functions of the parameters.
    points, count
        What was measured: coordinates, shape (points, parameters), and repetitions, shape (points,).
    gram
        Their weighted products over the measured points, shape (features, features).
    sizes, noise
        Draws of the prior: see `prior.draws`.
    """

    features: Features
    points: Floats
    count: Floats
    gram: Floats
    sizes: Floats
    noise: Floats

    def roots(self, which: Integers) -> Iterator[tuple[Integers, Floats, Floats]]:
        """Yield (draws, their scale per feature, Cholesky factor of the scaled posterior precision)."""
        size = len(self.gram)
        step = max(1, _TOGETHER // size**2)
        for begin in range(0, len(which), step):
            part = which[begin : begin + step]
            scale = self.sizes[part][:, self.features.component]
            precision = (
                self.gram * (scale[:, :, None] * scale[:, None, :]) / self.noise[part, None, None] ** 2
            )
            precision[:, np.arange(size), np.arange(size)] += 1.0
            yield part, scale, np.asarray(np.linalg.cholesky(precision), np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """The posterior of one call path: draws with weights, each with normal coefficients.

    Attributes
    ----------
    design
        Shared with other call paths.
    draws
        Which draws of the prior, shape (members,).
    weights
        Their probabilities, shape (members,).
    coefficients
        Mean coefficients, shape (members, features).
    measured
        Logarithm of the location of the values, shape (points,).
    centre
        Mean of ``measured``: the curves are around it.
    evidence
        Log probability of the measured values, over all draws.
    """

    design: Design
    draws: Integers
    weights: Floats
    coefficients: Floats
    measured: Floats
    centre: float
    evidence: float

    def first(self, members: int) -> Curves:
        """Return the most probable members alone."""
        weights = self.weights[:members]
        return replace(
            self,
            draws=self.draws[:members],
            weights=weights / weights.sum(),
            coefficients=self.coefficients[:members],
        )

    def log_value(self, x: Floats) -> Floats:
        """Return the mean log value over all members, shape (n,)."""
        result: Floats = self.centre + self.design.features(x) @ (self.weights @ self.coefficients)
        return result

    def moments(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the log value of every member, (members, n) each."""
        mean, factor = self.factors(x)
        return mean, np.sqrt(np.einsum("kqn,kqn->kn", factor, factor))

    def factors(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean (members, n) and factor (members, features, n) of the covariance between points."""
        values = self.design.features(x)
        parts = [
            np.linalg.solve(root, scale[:, :, None] * values.T)
            for _, scale, root in self.design.roots(self.draws)
        ]
        return self.centre + self.coefficients @ values.T, np.concatenate(parts)


def fit(points: Floats, log_value: Floats, count: Floats) -> list[Curves]:
    """Fit curves to call paths that were measured at the same points.

    Parameters
    ----------
    points
        Coordinates, shape (points, parameters).
    log_value
        Logarithm of the location of the values, shape (call paths, points).
    count
        Effective number of repetitions behind each, shape (points,).
    """
    features = Features.of(points)
    values = features(points)
    sizes, noise = draws(points.shape[1])
    design = Design(
        features=features,
        points=points,
        count=count,
        gram=(values.T * count) @ values,
        sizes=sizes,
        noise=noise,
    )
    centre = log_value.mean(axis=1)
    z = log_value - centre[:, None]
    moments, total = (values.T * count) @ z.T, (z**2) @ count
    evidence, coefficients = np.empty((len(noise), len(z))), []
    for part, scale, root in design.roots(np.arange(len(noise))):
        half = np.linalg.solve(root, scale[:, :, None] * moments) / noise[part, None, None] ** 2
        explained = np.einsum("kqp,kqp->kp", half, half)
        determinant = np.log(np.einsum("kqq->kq", root)).sum(axis=1)
        spread = constant_part(count, noise[part])
        evidence[part] = (explained - total / noise[part, None] ** 2) / 2 + (spread - determinant)[:, None]
        coefficients.append(scale[:, :, None] * np.linalg.solve(root.swapaxes(1, 2), half))
    found = np.concatenate(coefficients)
    return [_curves(design, evidence[:, k], found[:, :, k], log_value[k]) for k in range(len(z))]


def constant_part(count: Floats, noise: Floats) -> Floats:
    """Return the logarithm of the normal densities of points at their means, for every noise: (draws,)."""
    result: Floats = 0.5 * np.log(count).sum() - len(count) * np.log(noise * np.sqrt(2 * np.pi))
    return result


def evidence_of_residuals(residuals: Floats, count: Floats, coefficients: int, noise: Floats) -> float:
    """Return the log probability of measured values around a curve that has fitted coefficients.

    The noise is as unknown as it is for the process. Every coefficient costs ``log(points) / 2`` (Schwarz,
    Estimating the dimension of a model, 1978).

    Parameters
    ----------
    residuals
        Logarithm of measured over fitted values, shape (points,).
    count
        Effective number of repetitions behind each, shape (points,).
    coefficients
        How many were fitted.
    noise
        Draws of the relative noise of one run, shape (draws,).
    """
    each = constant_part(count, noise) - (residuals**2 @ count) / (2 * noise**2)
    return float(logsumexp(each) - np.log(len(noise)) - coefficients / 2 * np.log(len(residuals)))


def _curves(design: Design, evidence: Floats, coefficients: Floats, measured: Floats) -> Curves:
    order = np.argsort(-evidence, kind="stable")[:_MOST]
    order = order[evidence[order] > evidence[order[0]] - _NEGLIGIBLE]
    odds = np.exp(evidence[order] - evidence[order[0]])
    return Curves(
        design=design,
        draws=order.astype(np.intp),
        weights=odds / odds.sum(),
        coefficients=coefficients[order],
        measured=measured,
        centre=float(measured.mean()),
        evidence=float(logsumexp(evidence) - np.log(len(evidence))),
    )
