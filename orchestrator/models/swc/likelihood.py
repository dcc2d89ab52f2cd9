"""Marginal likelihood of a linear hypothesis: how well a prior explains located times."""

from __future__ import annotations

import numpy as np
from scipy.special import gammainc, gammaln

from orchestrator.models.base import Floats
from orchestrator.models.noise import GUESS_WEIGHT, LEAST_NOISE
from orchestrator.models.pmnf.fit import LARGEST_MISFIT, MISFIT
from orchestrator.models.swc.disturbances import TINY
from orchestrator.models.swc.times import Times

_LEAST_POINT_WEIGHT = 1e-6  # keeps the covariance of a point that is a total outlier finite


def log_marginal_likelihood(design: Floats, coefficients: Floats, times: Times, weights: Floats) -> float:
    """Return the log marginal likelihood of a linear hypothesis with given best coefficients.

    By Laplace's approximation. The prior of the coefficients is uniform over the shares of the terms in the
    time. The variance is that of the noise (scaled inverse chi²) or larger (log-uniform). This is the
    likelihood of `orchestrator.models.pmnf.fit` for any columns, but for what is usual of lack of fit there.

    Parameters
    ----------
    design
        Columns at the measured points, shape (n, columns).
    coefficients
        Shape (columns,); columns with coefficient 0 count as absent.
    times
        The measured times.
    weights
        Relative weights of the points, shape (n,).
    """
    used = coefficients != 0
    design, coefficients = design[:, used], coefficients[used]
    value = np.maximum(design @ coefficients, TINY)
    residuals = times.log_value - np.log(value)
    precision = np.linalg.inv(np.diag(1 / np.maximum(weights, _LEAST_POINT_WEIGHT)) + times.smooth)
    relative = design * np.exp(-times.log_value)[:, None]
    relative = relative / np.maximum(np.abs(relative).mean(axis=0), TINY)
    size, left = len(coefficients), max(len(residuals) - len(coefficients), 0)
    rss = max(float(residuals @ precision @ residuals), TINY)
    expected, freedom = max(times.variance, LEAST_NOISE**2), times.freedom
    scale = freedom * expected
    variance = (scale + rss) / (freedom + left)
    gram = relative.T @ precision @ relative + 12 * variance * np.eye(size)
    half = left / 2
    noise = (
        gammaln(freedom / 2 + half)
        - gammaln(freedom / 2)
        + freedom / 2 * np.log(scale / 2)
        - (freedom / 2 + half) * np.log((scale + rss) / 2)
    )
    common = gammaln(size) - half * np.log(2 * np.pi) - np.linalg.slogdet(gram)[1] / 2
    if left == 0:
        return float(common + noise)
    least = LEAST_NOISE**2 if freedom <= GUESS_WEIGHT else expected
    width = np.log(max(LARGEST_MISFIT**2 / least, 2.0))
    x = rss / (2 * least)
    lower = np.log(max(float(gammainc(half, x)), TINY)) + gammaln(half)
    if x < 1e-3:
        lower = half * np.log(x) - np.log(half)
    misfit = lower - half * np.log(rss / 2) - np.log(width)
    return float(common + np.logaddexp(noise + np.log(1 - MISFIT), misfit + np.log(MISFIT)))
