"""Coefficients of a prior from measured times, and how well it explains them.

De Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, section III-C: the
prior is a skeleton whose coefficients are found by regression on times, here non-negative and on relative
residuals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from orchestrator.models.hypotheses import Floats, Integers
from orchestrator.models.noise import LEAST_NOISE, robust_weights
from orchestrator.models.swc_disturbed import LOW, Clean, logs, quantile, step, undisturbed

# A counted term takes at least this share of the time where it is largest: it was executed.
_LEAST_SHARE = 1e-3
# A basic block takes at least this share of the mean time per block of its function.
_LEAST_BLOCK = 0.05
_STEPS = 12
# By how much variances are enlarged, because the noise is estimated as well; uncertainty of the scale, as a
# share of the noise; and lack of fit with one run per point, likewise.
_UNSURE = 2.0
_LEVEL = 0.3
_PART = 0.5
# Residuals below this share of their scale count alike in the regression to medians.
_SHARP = 0.1
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Times:
    """Located times of one call path.

    Attributes
    ----------
    log_value
        Logarithm of the location per point, shape (n,).
    count
        Effective repetitions per point, shape (n,).
    sigma, freedom
        Relative noise of one repetition, and the degrees of freedom behind it.
    smooth
        Covariance of a smooth lack of fit between points, shape (n, n), in units of the variance of a
        location; zero where there is none.
    runs, point
        Logarithm of every run (or of every location, where an aggregate was asked for) and the number of its
        point, shape (m,).
    """

    log_value: Floats
    count: Floats
    sigma: float
    freedom: float
    smooth: Floats
    runs: Floats
    point: Integers

    @property
    def variance(self) -> float:
        """Expected relative variance of a location."""
        return self.sigma**2 / float(self.count.mean())


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted linear hypothesis.

    Attributes
    ----------
    coefficients, covariance
        Of the columns, shapes (columns,) and (columns, columns).
    central
        Coefficients by robust regression on locations: what evidence is judged by.
    residuals
        Of the logarithms of locations, shape (n,).
    weights
        Relative weights of the points, mean at most 1: small for outliers, shape (n,).
    lack
        Relative standard deviation of the residuals beyond the noise.
    """

    coefficients: Floats
    covariance: Floats
    central: Floats
    residuals: Floats
    weights: Floats
    lack: float


def fit(design: Floats, counted: Floats, floored: Floats, times: Times) -> Fit:
    """Find non-negative coefficients by regression on the relative residuals of undisturbed runs.

    Disturbances slow runs down and never speed them up. A low regression quantile (Koenker and Bassett 1978)
    hardly follows them and tells where the other runs are; then runs are weighed by how probably they are
    undisturbed: see `swc_disturbed`. Every counted term keeps a small least share of the time, because it was
    executed: noise must not shift the whole time to other terms and so change the growth of the model.

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
    scale = np.maximum(relative.mean(axis=0), _TINY)
    relative = relative / scale
    floor = _floor(relative, counted * scale, floored)
    low = _regression(relative, floor, times.sigma, LOW)
    place = quantile(logs(relative, low))
    start = _regression(relative, floor, times.sigma, place)
    clean = undisturbed(relative, floor, start, place) or _all(relative, start)
    shares = clean.shares
    # Evidence compares with hypotheses that were fitted to the locations.
    located = design * np.exp(-times.log_value)[:, None] / scale
    central = _regression(located, floor, float(np.sqrt(times.variance)), None)
    expected = times.log_value - np.log(np.maximum(design @ (central / scale), _TINY))
    spread = max(_scale(expected, len(scale)), np.sqrt(times.variance), LEAST_NOISE)
    covariance, lack = _uncertainty(relative, clean, times.point)
    return Fit(
        coefficients=shares / scale,
        covariance=covariance / scale[:, None] / scale,
        central=central / scale,
        residuals=times.log_value - np.log(np.maximum(design @ (shares / scale), _TINY)),
        weights=times.count / times.count.mean() * robust_weights(expected / spread),
        lack=lack,
    )


def _all(relative: Floats, shares: Floats) -> Clean:
    """Take every run for undisturbed."""
    residuals = logs(relative, shares)
    return Clean(shares, _scale(residuals, len(shares)), np.ones(len(residuals)))


def _uncertainty(relative: Floats, clean: Clean, point: Integers) -> tuple[Floats, float]:
    """Return the covariance of the shares and the relative lack of fit.

    Where points have several runs, the scatter of the points beyond the noise of their runs is lack of fit;
    otherwise part of the noise may be. The scale has an uncertainty of its own: which runs are undisturbed.
    """
    value = np.maximum(relative @ clean.shares, _TINY)
    residuals, columns = -np.log(value), len(clean.shares)
    left = max(float(clean.weights.sum()) - columns, 1.0)
    variance = max(clean.noise, LEAST_NOISE) ** 2 * (left + columns) / left
    weight = np.bincount(point, clean.weights)
    runs = len(residuals) / np.count_nonzero(np.bincount(point))
    here = weight > 0.5
    if runs < 2 or not np.any(here):
        lack, common = _PART * clean.noise, 0.0
    else:
        mean = np.bincount(point, clean.weights * residuals)[here] / weight[here]
        scatter = _scale(mean - _median(mean), columns)
        lack = float(np.sqrt(max(scatter**2 - float(np.mean(variance / weight[here])), 0.0)))
        common = float(np.mean(weight[here])) * lack**2  # of all runs at a point
    slope = relative / value[:, None]
    gram = (slope.T * clean.weights) @ slope / (_UNSURE * variance + common) + 12 * np.eye(columns)
    level = _LEVEL * clean.noise
    return np.linalg.inv(gram) + level**2 * np.outer(clean.shares, clean.shares), lack


def _regression(relative: Floats, floor: Floats, sigma: float, quantile: float | None) -> Floats:
    """Shares of the columns by Gauss-Newton steps on logarithms.

    With a quantile by iteratively reweighted least squares; otherwise the robust mean.
    """
    weights = np.ones(len(relative))
    residuals, shares = np.zeros(len(relative)), floor
    for _ in range(_STEPS):
        shares = step(relative, floor, weights, residuals)
        residuals = logs(relative, shares)
        spread = max(_scale(residuals, len(floor)), sigma, LEAST_NOISE)
        if quantile is None:
            weights = robust_weights(residuals / spread)
        else:
            side = np.where(residuals > 0, quantile, 1 - quantile)
            weights = side / np.maximum(np.abs(residuals) / spread, _SHARP)
    return shares


def _scale(residuals: Floats, columns: int) -> float:
    left = max(len(residuals) - columns, 1)
    return 1.4826 * _median(np.abs(residuals)) * float(np.sqrt(len(residuals) / left))


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
