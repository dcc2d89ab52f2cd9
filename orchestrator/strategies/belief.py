"""What the models believe of the logarithm of the time, as a Gaussian: covariances between any points.

A covariance is kept as a factor: one row per point, so that ``row @ row'`` is the covariance of two
points. Learning from a run shortens the rows; nothing of the size points x points is ever built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.model import PmnfModel
from orchestrator.types import Point, format_value

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Belief:
    """The belief of one call path.

    Attributes
    ----------
    model
        A model with a posterior over hypotheses.
    share
        Weight of the call path; see `relevance`.
    """

    model: PmnfModel
    share: float

    @property
    def noise(self) -> float:
        """Relative variance of a single run."""
        return max(self.model.noise, 1e-6) ** 2

    @property
    def misfit(self) -> float:
        """Relative variance of the truth around the hypotheses, the same for all runs at a point."""
        posterior = self.model.posterior
        return float(posterior.weights @ posterior.misfit**2)

    def factor(self, points: Sequence[Point]) -> Floats:
        """Return the factor of the covariance of the log time: (points, dimensions).

        Hypotheses disagree (one dimension per hypothesis), and each is uncertain of its coefficients (as many
        dimensions as it has): the total covariance of a mixture. Rows are zero at points of other categories.
        """
        posterior = self.model.posterior
        x = np.array([[point.number(name) for name in self.model.parameters] for point in points])
        design = posterior.design(x.reshape(len(points), len(self.model.parameters)))
        value = np.maximum(np.einsum("ktn,kt->kn", design, posterior.coefficients), 1e-300)
        root = np.sqrt(posterior.weights)
        logs = np.log(value)
        between = root[:, None] * (logs - posterior.weights @ logs)
        scale, axes = np.linalg.eigh(posterior.covariance)
        axes = axes * np.sqrt(np.maximum(scale, 0.0))[:, None, :]
        within = np.einsum("ktn,kts->ksn", design / value[:, None], axes) * root[:, None, None]
        rows = np.concatenate([between, within.reshape(-1, len(points))]).T
        here = [
            all(format_value(point[name]) == text for name, text in self.model.category) for point in points
        ]
        return np.asarray(rows * np.array(here)[:, None], np.float64)


def run_noise(noise: float, misfit: float, runs: NDArray[np.intp]) -> Floats:
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

    ``Cov(log f(x), log f(P₊))**2 / (Var(log f(x)) + noise)``, summed over targets P₊.
    """
    covariance = factor @ targets.T
    variance = np.einsum("nd,nd->n", factor, factor)
    return np.asarray((covariance**2).sum(axis=1) / (variance + noise), np.float64)
