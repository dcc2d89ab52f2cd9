"""Coefficients of a prior from measured times, and how well it explains them.

De Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, section III-C: the
prior is a skeleton whose coefficients are found by regression on times, here non-negative and on relative
residuals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls
from scipy.special import gammainc, gammaln

from orchestrator.models.hypotheses import Floats, Integers
from orchestrator.models.noise import GUESS_WEIGHT, LEAST_NOISE, robust_weights

# A counted term takes at least this share of the time where it is largest: it was executed.
_LEAST_SHARE = 1e-3
# A basic block takes at least this share of the mean time per block of its function.
_LEAST_BLOCK = 0.05
_STEPS = 12
# The quantile of runs that is fitted where many are disturbed, and the reach of normal residuals.
_LOW = 0.25
_NORMAL_REACH = 1.39  # (0.75 - 0.25 quantile) / (0.25 - 0.05 quantile)
# How far beside the quantile the density of residuals is estimated, and by how much its variance is enlarged.
_BESIDE = 0.15
_UNSURE = 2.0
# Uncertainty of the scale, as a share of the distance of those quantiles; lack of fit with one run per point.
_LEVEL = 0.15
_PART = 0.5
# Residuals below this share of their scale count alike in the regression to medians.
_SHARP = 0.1
# The largest lack of fit considered, and its prior probability; as in `orchestrator.models.fitting`.
_LARGEST_MISFIT = 0.5
_MISFIT = 0.5
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
    """Find non-negative coefficients by quantile regression on the relative residuals of all runs.

    Disturbances slow runs down and never speed them up, so a low quantile hardly follows them (Koenker and
    Bassett 1978, Regression quantiles). Which one, the residuals tell: see `_quantile`. Every counted term
    keeps a small least share of the time, because it was executed: noise must not shift the whole time to
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
    scale = np.maximum(relative.mean(axis=0), _TINY)
    relative = relative / scale
    floor = _floor(relative, counted * scale, floored)
    low = _regression(relative, floor, times.sigma, _LOW)
    quantile = _quantile(-np.log(np.maximum(relative @ low, _TINY)))
    shares = _regression(relative, floor, times.sigma, quantile)
    # Evidence compares with hypotheses that were fitted to the locations.
    located = design * np.exp(-times.log_value)[:, None] / scale
    central = _regression(located, floor, float(np.sqrt(times.variance)), None)
    expected = times.log_value - np.log(np.maximum(design @ (central / scale), _TINY))
    spread = max(_scale(expected, len(scale)), np.sqrt(times.variance), LEAST_NOISE)
    covariance, lack = _uncertainty(relative, shares, quantile, times.point)
    return Fit(
        coefficients=shares / scale,
        covariance=covariance / scale[:, None] / scale,
        central=central / scale,
        residuals=times.log_value - np.log(np.maximum(design @ (shares / scale), _TINY)),
        weights=times.count / times.count.mean() * robust_weights(expected / spread),
        lack=lack,
    )


def _quantile(residuals: Floats) -> float:
    """Return the quantile to fit: the median for residuals like normal ones, the first quartile for others.

    When half of the runs are disturbed, the first quartile of all is the median of the others. Told by how
    far the middle half of the residuals reaches, compared with those below it; `residuals` are those of a
    fit to the first quartile.
    """
    least, first, third = np.quantile(residuals, [0.05, _LOW, 1 - _LOW])
    reach = max(float(third - first), _TINY)
    return _LOW + (0.5 - _LOW) * min(1.0, _NORMAL_REACH * float(first - least) / reach)


def _uncertainty(relative: Floats, shares: Floats, quantile: float, point: Integers) -> tuple[Floats, float]:
    """Return the covariance of the shares and the relative lack of fit.

    A regression quantile varies like a sample quantile, with ``q (1 - q) / f²`` for the density f of the
    residuals there (Koenker and Bassett 1978, theorem 4.2), which is estimated from close quantiles and twice
    as large here, because f is estimated as well. The scale has an uncertainty of its own: which quantile the
    undisturbed runs are. Where points have several runs, the scatter of their quantiles beyond that is lack
    of fit; else part of the scatter may be.
    """
    value = np.maximum(relative @ shares, _TINY)
    residuals, columns = -np.log(value), len(shares)
    inside = max(quantile - _BESIDE, 0.02), min(quantile + _BESIDE, 0.98)
    low, high = np.quantile(residuals, inside)
    variance = quantile * (1 - quantile) * float((high - low) / (inside[1] - inside[0])) ** 2
    variance = max(variance * len(residuals) / max(len(residuals) - columns, 1), LEAST_NOISE**2)
    runs = len(residuals) / len(np.unique(point))
    if runs < 2:
        lack = _PART * float(np.sqrt(variance))
        common = 0.0
    else:
        here = _per_point(residuals, point, quantile)
        scatter = _scale(here - _median(here), columns)
        lack = float(np.sqrt(max(scatter**2 - variance / runs, 0.0)))
        common = runs * lack**2  # of all runs at a point
    slope = relative / value[:, None]
    gram = slope.T @ slope / (_UNSURE * variance + common) + 12 * np.eye(columns)
    level = _LEVEL * float(high - low)
    return np.linalg.inv(gram) + level**2 * np.outer(shares, shares), lack


def _regression(relative: Floats, floor: Floats, sigma: float, quantile: float | None) -> Floats:
    """Shares of the columns by Gauss-Newton steps on logarithms.

    With a quantile by iteratively reweighted least squares; otherwise the robust mean.
    """
    weights = value = np.ones(len(relative))
    residuals, shares = np.zeros(len(relative)), floor
    for _ in range(_STEPS):
        root = np.sqrt(weights)
        matrix = relative * (root / value)[:, None]
        shares = floor + nnls(matrix, root * (1 + residuals) - matrix @ floor)[0]
        value = np.maximum(relative @ shares, _TINY)
        residuals = -np.log(value)
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


def _per_point(residuals: Floats, point: Integers, quantile: float) -> Floats:
    """Return a quantile of the residuals of every point, interpolated like numpy's."""
    order = np.lexsort((residuals, point))
    begin = np.flatnonzero(np.r_[True, np.diff(point[order]) != 0])
    counts = np.diff(np.r_[begin, len(order)])
    place = quantile * (counts - 1)
    below = np.floor(place).astype(np.intp)
    first = residuals[order[begin + below]]
    second = residuals[order[begin + np.minimum(below + 1, counts - 1)]]
    result: Floats = first + (place - below) * (second - first)
    return result


def _floor(relative: Floats, counted: Floats, floored: Floats) -> Floats:
    """Least share of every column; ``counted`` are basic blocks per unit of share."""
    floor = np.where(floored, _LEAST_SHARE / np.maximum(relative.max(axis=0), 1.0), 0.0)
    if np.count_nonzero(counted) > 1:
        together = np.column_stack([relative @ counted, relative[:, counted == 0]])
        per_block = nnls(together, np.ones(len(relative)))[0][0]
        floor = np.maximum(floor, _LEAST_BLOCK * per_block * counted)
    return floor


def log_evidence(design: Floats, coefficients: Floats, times: Times, weights: Floats) -> float:
    """Log marginal likelihood of a linear hypothesis with given best coefficients (Laplace's approximation).

    The prior of the coefficients is uniform over the shares of the terms in the time; the variance is that
    of the noise (scaled inverse chi²) or larger (log-uniform). As `orchestrator.models.fitting` does it, but
    for any columns.

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
    value = np.maximum(design @ coefficients, _TINY)
    residuals = times.log_value - np.log(value)
    precision = np.linalg.inv(np.diag(1 / np.maximum(weights, 1e-6)) + times.smooth)
    relative = design * np.exp(-times.log_value)[:, None]
    relative = relative / np.maximum(np.abs(relative).mean(axis=0), _TINY)
    size, left = len(coefficients), max(len(residuals) - len(coefficients), 0)
    rss = max(float(residuals @ precision @ residuals), _TINY)
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
    width = np.log(max(_LARGEST_MISFIT**2 / least, 2.0))
    x = rss / (2 * least)
    lower = np.log(max(float(gammainc(half, x)), _TINY)) + gammaln(half)
    if x < 1e-3:
        lower = half * np.log(x) - np.log(half)
    misfit = lower - half * np.log(rss / 2) - np.log(width)
    return float(common + np.logaddexp(noise + np.log(1 - _MISFIT), misfit + np.log(_MISFIT)))


def smoothed(times: Times, features: Floats, strength: float) -> Times:
    """Add a smooth lack of fit: ``features`` (n, k) with coefficients of variance ``strength``."""
    return replace(times, smooth=strength * features @ features.T)
