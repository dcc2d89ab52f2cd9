"""The posterior of many models as one object: how sure predictions are, and how they vary together.

A strategy asks which measurement at x would tell most about the evaluation point P₊: that depends on the
covariance of ``log f(x)`` and ``log f(P₊)`` over hypotheses and coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.models.hypotheses import Floats
from orchestrator.models.model import PmnfModel
from orchestrator.types import Point


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
