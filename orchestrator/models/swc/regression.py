"""Coefficients of a prior, by regression on measured times.

De Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, section III-C: the
prior is a skeleton whose coefficients are found by regression on times. Here the coefficients are not
negative, and residuals are relative.

Constants are chosen by hand unless stated otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from orchestrator.models.base import Floats, Integers
from orchestrator.models.noise import LEAST_NOISE, MAD_TO_SIGMA, robust_weights
from orchestrator.models.swc.disturbances import (
    LOW,
    TINY,
    Undisturbed,
    fit_undisturbed,
    gauss_newton_step,
    log_residuals,
    start_quantile,
)
from orchestrator.models.swc.times import Times

# Least share of the time that a counted term takes where the term is largest: its code was executed.
_LEAST_SHARE = 1e-3
# Least time of a basic block, as a share of the mean time per block of its function.
_LEAST_BLOCK = 0.05
_VARIANCE_FACTOR = 2.0  # enlarges variances, because the noise is estimated as well
_SCALE_UNCERTAINTY = 0.3  # common error of all coefficients, as a share of the noise
_SINGLE_RUN_MISFIT = 0.5  # lack of fit with one run per point, as a share of the noise
_LEAST_RESIDUAL = 0.1  # smaller residuals, in units of their scale, weigh alike in the quantile regression
_UNDISTURBED = 0.5  # undisturbed runs, as the sum of their probabilities, from which on a point has one
_STEPS = 12  # of Gauss and Newton
_SHARE_PRECISION = 12.0  # derived: one over the variance of a share that is uniform between 0 and 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A fitted linear hypothesis."""

    # coefficients, covariance: of the columns, shapes (columns,) and (columns, columns).
    coefficients: Floats
    covariance: Floats
    # Coefficients by robust regression on locations. The marginal likelihood is taken at these.
    central: Floats
    residuals: Floats  # of the logarithms of locations, shape (n,)
    weights: Floats  # relative weights of the points, mean at most 1: small for outliers, shape (n,)
    lack: float  # relative standard deviation of the residuals beyond the noise
    confirmed: NDArray[np.bool_]  # points with an undisturbed run, shape (n,)
    # Logarithm of how much the fastest run of every point is above the fit, shape (n,).
    excess: Floats
    disturbed: float  # share of the runs that were disturbed


def fit(design: Floats, counted: Floats, floored: Floats, times: Times) -> Fit:
    """Find non-negative coefficients by regression on the relative residuals of undisturbed runs.

    Disturbances slow runs down and never speed them up. A low regression quantile (Koenker and Bassett 1978)
    hardly follows disturbed runs and shows where the other runs are. Then runs are weighed by the probability
    that they are undisturbed, see `orchestrator.models.swc.disturbances`. Every counted term keeps a small
    least share of the time, because its code was executed. Otherwise noise could shift the whole time to
    other terms and so change the growth of the model.

    Parameters
    ----------
    design
        Columns at the measured points, shape (n, columns).
    counted
        Basic blocks that a unit of each column stands for, 0 where unknown, shape (columns,).
    floored
        Which columns keep a least share of the time, shape (columns,).
    times
        The measured times.
    """
    relative = design[times.point] * np.exp(-times.runs)[:, None]
    scale = np.maximum(relative.mean(axis=0), TINY)
    relative = relative / scale
    floor = _floor(relative, counted * scale, floored)
    low = _regression(relative, floor, times.sigma, LOW)
    place = start_quantile(log_residuals(relative, low))
    start = _regression(relative, floor, times.sigma, place)
    clean = fit_undisturbed(relative, floor, start, place) or _all(relative, start)
    shares = clean.shares
    # The marginal likelihood is compared with that of hypotheses that were fitted to the locations.
    located = design * np.exp(-times.log_value)[:, None] / scale
    central = _regression(located, floor, float(np.sqrt(times.variance)), None)
    expected = times.log_value - np.log(np.maximum(design @ (central / scale), TINY))
    spread = max(_scale(expected, len(scale)), np.sqrt(times.variance), LEAST_NOISE)
    undisturbed = np.asarray(np.bincount(times.point, clean.weights, len(design)), np.float64)
    covariance, lack = _uncertainty(relative, clean, times.point, undisturbed)
    above = np.full(len(design), np.inf)
    np.minimum.at(above, times.point, log_residuals(relative, shares))
    return Fit(
        coefficients=shares / scale,
        covariance=covariance / scale[:, None] / scale,
        central=central / scale,
        residuals=times.log_value - np.log(np.maximum(design @ (shares / scale), TINY)),
        weights=times.count / times.count.mean() * robust_weights(expected / spread),
        lack=lack,
        confirmed=undisturbed > _UNDISTURBED,
        excess=above,
        disturbed=1 - float(clean.weights.mean()),
    )


def _all(relative: Floats, shares: Floats) -> Undisturbed:
    """Take every run for undisturbed."""
    residuals = log_residuals(relative, shares)
    return Undisturbed(shares, _scale(residuals, len(shares)), np.ones(len(residuals)))


def _uncertainty(
    relative: Floats, clean: Undisturbed, point: Integers, weight: Floats
) -> tuple[Floats, float]:
    """Return the covariance of the shares and the relative lack of fit.

    Where points have several runs, the scatter of the points beyond the noise of their runs is lack of fit;
    otherwise part of the noise may be. The scale has an uncertainty of its own: which runs are undisturbed.
    ``weight`` is how many of each point are, as the sum of their probabilities.
    """
    value = np.maximum(relative @ clean.shares, TINY)
    residuals, columns = -np.log(value), len(clean.shares)
    left = max(float(clean.weights.sum()) - columns, 1.0)
    variance = max(clean.noise, LEAST_NOISE) ** 2 * (left + columns) / left
    runs = len(residuals) / np.count_nonzero(np.bincount(point))
    here = weight > _UNDISTURBED
    if runs < 2 or not np.any(here):
        lack, common = _SINGLE_RUN_MISFIT * clean.noise, 0.0
    else:
        mean = np.bincount(point, clean.weights * residuals)[here] / weight[here]
        scatter = _scale(mean - _median(mean), columns)
        lack = float(np.sqrt(max(scatter**2 - float(np.mean(variance / weight[here])), 0.0)))
        common = float(np.mean(weight[here])) * lack**2  # of all runs at a point
    slope = relative / value[:, None]
    gram = (slope.T * clean.weights) @ slope / (
        _VARIANCE_FACTOR * variance + common
    ) + _SHARE_PRECISION * np.eye(columns)
    level = _SCALE_UNCERTAINTY * clean.noise
    return np.linalg.inv(gram) + level**2 * np.outer(clean.shares, clean.shares), lack


def _regression(relative: Floats, floor: Floats, sigma: float, quantile: float | None) -> Floats:
    """Shares of the columns by Gauss-Newton steps on logarithms.

    With a quantile by iteratively reweighted least squares; otherwise the robust mean.
    """
    weights = np.ones(len(relative))
    residuals, shares = np.zeros(len(relative)), floor
    for _ in range(_STEPS):
        shares = gauss_newton_step(relative, floor, weights, residuals)
        residuals = log_residuals(relative, shares)
        spread = max(_scale(residuals, len(floor)), sigma, LEAST_NOISE)
        if quantile is None:
            weights = robust_weights(residuals / spread)
        else:
            side = np.where(residuals > 0, quantile, 1 - quantile)
            weights = side / np.maximum(np.abs(residuals) / spread, _LEAST_RESIDUAL)
    return shares


def _scale(residuals: Floats, columns: int) -> float:
    left = max(len(residuals) - columns, 1)
    return MAD_TO_SIGMA * _median(np.abs(residuals)) * float(np.sqrt(len(residuals) / left))


def _median(values: Floats) -> float:
    """Return the median; for a few values ten times as fast as numpy's."""
    middle = len(values) // 2
    ordered = np.sort(values)
    return float(ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2)


def _floor(relative: Floats, counted: Floats, floored: Floats) -> Floats:
    """Least share of every column; ``counted`` are basic blocks per unit of share."""
    floor = np.where(floored, _LEAST_SHARE / np.maximum(relative.max(axis=0), 1.0), 0.0)
    if np.count_nonzero(counted) > 1:
        together = np.column_stack([relative @ counted, relative[:, counted == 0]])
        per_block = nnls(together, np.ones(len(relative)))[0][0]
        floor = np.maximum(floor, _LEAST_BLOCK * per_block * counted)
    return floor
