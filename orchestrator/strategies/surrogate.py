"""The Gaussian process behind `gpr`, `hybrid` and `bayesian` (Ritter et al., section III-B).

Matérn kernel with ν = 1.5 plus white kernel (equations 5 and 6). Everything is normalised, so that a
ranking depends neither on the unit of time nor on that of a parameter: parameters lie in [0, 1] over the
search space, on a logarithmic scale where all values are positive; targets have mean 0 and variance 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.types import Parameter, Point

# Length scales tried between the bounds 1e-5 and 1e5 of the paper: one per power of ten.
_LENGTH_SCALES = 11
# Smallest normalised noise variance: keeps the kernel matrix positive definite. Chosen by hand; not derived.
_JITTER = 1e-8
# Most points of a process: time grows with their cube, memory with their square. Chosen by hand; not derived.
_MOST_POINTS = 3000


def encode(parameters: Sequence[Parameter], points: Sequence[Point]) -> Floats:
    """Return coordinates in [0, 1], one row per point; a categorical parameter has a column per value.

    Two categories are as far from each other as the two ends of a numeric parameter.
    """
    columns: list[Floats] = []
    for parameter in parameters:
        values = [point[parameter.name] for point in points]
        if parameter.categorical:
            columns += [
                np.array([v == category for v in values]) / np.sqrt(2.0) for category in parameter.values
            ]
        else:
            columns.append(_unit(np.array(values, float), np.array(parameter.values, float)))
    return np.stack(columns, axis=1)


def _unit(values: Floats, known: Floats) -> Floats:
    if known.min() > 0 and values.min() > 0:
        values, known = np.log(values), np.log(known)
    span = known.max() - known.min()
    return np.asarray((values - known.min()) / (span if span > 0 else 1.0), np.float64)


def _likeliest(loss: Callable[..., float], initial: Floats, bounds: Floats) -> tuple[Floats, float]:
    """Return the logarithm of the length scale of the largest likelihood, and its loss.

    The likelihood may have a second maximum at a length scale that explains all as noise, which a gradient
    from one start can end in: look at one length scale per decade first, then refine the best.
    """
    from scipy.optimize import minimize_scalar

    low, high = map(float, bounds[0])
    grid = np.linspace(low, high, _LENGTH_SCALES)
    losses = [loss(np.array([theta]), eval_gradient=False) for theta in grid]
    best = int(np.argmin(losses))
    around = (grid[max(best - 1, 0)], grid[min(best + 1, _LENGTH_SCALES - 1)])
    refined = minimize_scalar(
        lambda theta: loss(np.array([theta]), eval_gradient=False), bounds=around, options={"xatol": 0.05}
    )
    if refined.fun < losses[best]:
        return np.array([refined.x]), refined.fun
    return grid[[best]], losses[best]


@dataclass(frozen=True, slots=True)
class Surrogate:
    """A fitted Gaussian process; without one (``process`` None) mean 0 and a constant covariance."""

    process: Any = None
    center: float = 0.0
    scale: float = 1.0

    def predict(self, coordinates: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation at `encode`d points, in the unit of the targets.

        The deviation is that of the function (the Matérn part), without the noise of a measurement.
        """
        if self.process is None:
            return np.full(len(coordinates), self.center), np.full(len(coordinates), self.scale)
        mean, deviation = self.process.predict(coordinates, return_std=True)
        return self.center + self.scale * mean, self.scale * deviation


def fit(
    parameters: tuple[Parameter, ...], points: Sequence[Point], targets: Floats, noise: Floats
) -> Surrogate:
    """Fit a Gaussian process to the points; of more than 3000, as tables of samples have, to 3000 drawn ones.

    Parameters
    ----------
    parameters
        Those of the search space; they give the normalisation.
    points, targets
        Different points and one target each. The same points give the same process, however many there are.
    noise
        Variance of each target. The white kernel over r repetitions of a point is n/r for their mean, so
        one row per point says the same as one row per run.

    Returns
    -------
    Surrogate
        With fewer than three points, or where the kernel matrix is not positive definite, one with a constant
        covariance: every point is then equally uncertain, and only cost and repetitions rank them.
    """
    if len(points) < 3:
        return Surrogate()
    # Imported here: it takes two seconds, and strategies that only rate by cost fit no process.
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern

    if len(points) > _MOST_POINTS:
        kept = np.sort(np.random.default_rng(len(points)).permutation(len(points))[:_MOST_POINTS])
        points, targets, noise = [points[k] for k in kept], targets[kept], noise[kept]
    center = float(np.mean(targets))
    scale = float(np.std(targets))
    scale = scale if scale > 0 else float(np.sqrt(np.max(noise))) or 1.0
    kernel = Matern(length_scale=1.0, length_scale_bounds=(1e-5, 1e5), nu=1.5)
    alpha = np.maximum(noise / scale**2, _JITTER)
    process = GaussianProcessRegressor(kernel=kernel, alpha=alpha, optimizer=_likeliest)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a length scale at its bound is an answer
            process.fit(encode(parameters, points), (targets - center) / scale)
    except np.linalg.LinAlgError:
        return Surrogate()
    return Surrogate(process, center, scale)
