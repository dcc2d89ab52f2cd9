"""What the models believe of the logarithm of the time, as a Gaussian: covariances between any points.

A covariance is kept as a factor: one row per point, so that ``row @ row'`` is the covariance of two
points. Learning from a run shortens the rows; nothing of the size points x points is ever built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats, holds_at
from orchestrator.models.belief import ModelWithBelief, of_answer
from orchestrator.strategies.information.unseen_terms import UnseenTerms
from orchestrator.types import Point

# Smallest relative noise: counters repeat exactly, but no run is worth infinitely much. Chosen by hand.
_LEAST_NOISE = 1e-6
# Deviation of the logarithm beyond which a hypothesis is wrong, however far off it is: one extreme hypothesis
# must not attract all runs. Chosen by hand; not derived.
_WRONG = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a model believes at n points."""

    factor: Floats  # factor of the covariance of the log time of the hypotheses, shape (n, dimensions)
    # By how much runs may cost more than expected, relative, because of growth not seen yet, shape (n,).
    growth: Floats
    # Relative variance of the truth around the hypotheses, independent between points and the same for all
    # runs at one, shape (n,); only where there is evidence for it.
    misfit: Floats
    # Relative variance of the truth around the hypotheses, whether there is evidence for it or not: what no
    # run at another point lowers, shape (n,).
    rough: Floats
    noise: float  # relative variance of a single run


def known(model: ModelWithBelief, points: Sequence[Point], hidden: UnseenTerms) -> Known:
    """Return what a model believes at points.

    The members of its belief disagree (one dimension per member), each is uncertain of itself (as many
    dimensions as its factor has), and terms may exist of which nothing was seen yet: the covariance of the
    mixture. At points of other categories everything is zero.
    """
    mixture = of_answer(model, points)
    root = np.sqrt(mixture.weights)
    between = root[:, None] * np.clip(mixture.mean - mixture.centre, -_WRONG, _WRONG)
    within = root[:, None, None] * mixture.factor
    unseen = hidden.at(points, mixture.centre)
    parts = [between, within.reshape(-1, len(points)), np.minimum(unseen.deviation, _WRONG) * unseen.root]
    rows = np.concatenate(parts).T
    here = np.array([holds_at(model, point) for point in points], dtype=bool)
    rough = np.where(here, mixture.weights @ mixture.rough**2, 0.0)
    return Known(
        factor=np.where(here[:, None], rows, 0.0),
        growth=unseen.growth,
        misfit=rough * mixture.rough_is_measured,
        rough=rough,
        noise=max(mixture.noise, _LEAST_NOISE) ** 2,
    )


def run_noise(noise: float, misfit: Floats, runs: NDArray[np.intp]) -> Floats:
    """Return the variance with which one more run shows the hypotheses' time, for points with ``runs`` runs.

    r runs show it with variance ``misfit + noise / r``, because the misfit of a point does not average out;
    the next run adds the difference of the precisions. Without misfit this is ``noise`` for every run.
    """
    after = 1.0 / (misfit + noise / (runs + 1))
    before = np.where(runs > 0, 1.0 / (misfit + noise / np.maximum(runs, 1)), 0.0)
    return np.asarray(1.0 / np.maximum(after - before, 1e-300), np.float64)


def learn(factor: Floats, row: int, noise: float) -> Floats:
    """Return the factor after a run at the point of ``row``, showing its value with variance ``noise``."""
    direction = factor[row]
    length = float(direction @ direction)
    if length == 0:
        return factor
    shrink = (1.0 - np.sqrt(noise / (length + noise))) / length
    return np.asarray(factor - shrink * np.outer(factor @ direction, direction), np.float64)


def gain(factor: Floats, targets: Floats, noise: Floats) -> Floats:
    """Return how much a run at each point lowers the sum of the variances at the targets.

    ``Cov(log f(x), log f(P₊))**2 / (Var(log f(x)) + noise)``, summed over targets P₊; 0 where a model has no
    finite answer.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        covariance = factor @ targets.T
        variance = np.einsum("nd,nd->n", factor, factor)
        gains = (covariance**2).sum(axis=1) / (variance + noise)
    return np.asarray(np.where(np.isfinite(gains), gains, 0.0), np.float64)


def deviation(factor: Floats) -> Floats:
    """Return the standard deviation of the logarithm of the time at each point."""
    return np.asarray(np.sqrt(np.einsum("nd,nd->n", factor, factor)), np.float64)
