"""Noise of repeated measurements: a robust location per point, and a pooled relative noise level.

Noise of run times is multiplicative, so everything happens on logarithms. Repetitions are few, so the
variance is pooled over the points of a call path and shrunk towards the variance of all call paths of the
campaign (moderated variance: Smyth 2004, Linear models and empirical Bayes methods, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import polygamma

from orchestrator.models.hypotheses import Floats

# Relative noise that is assumed where nothing was repeated, and how many observations that guess is worth.
GUESSED_NOISE = 0.03
GUESS_WEIGHT = 1.0
# Noise of counters and simulations may be exactly zero; below this, differences are rounding.
LEAST_NOISE = 1e-7
# Degrees of freedom of the Student t distribution that bounds the influence of outliers.
TAIL = 4.0


@dataclass(frozen=True, slots=True)
class Located:
    """Where the values of every (call path, point) lie, and how well that is known.

    Attributes
    ----------
    log_value
        Logarithm of the location, shape (call paths, points).
    count
        Effective number of repetitions behind it, same shape.
    sigma
        Relative noise of a single repetition, shape (call paths,).
    freedom
        Degrees of freedom behind ``sigma``, shape (call paths,).
    """

    log_value: Floats
    count: Floats
    sigma: Floats
    freedom: Floats


def locate(values: Floats) -> Located:
    """Estimate location per point and noise per call path.

    Parameters
    ----------
    values
        Positive values, shape (call paths, points, repetitions), NaN where there is none.
    """
    logs = np.log(values)
    counts = np.sum(np.isfinite(logs), axis=2)
    centre = np.nanmedian(logs, axis=2)
    sigma, freedom = _pooled(logs, centre, counts)
    return _weigh(logs, _lower_of_two(logs, centre, counts, sigma), sigma, freedom)


def relocate(values: Floats, expected: Floats, located: Located, spread: Floats) -> Located:
    """Estimate locations again, knowing what a model expects: tells which of two values is the outlier.

    Parameters
    ----------
    values
        As in `locate`.
    expected
        Logarithm of the values that a model predicts, shape (call paths, points).
    located
        The first estimate; its noise is kept.
    spread
        Relative deviation of repetitions from the model, shape (call paths,).
    """
    logs = np.log(values)
    return _weigh(logs, expected, np.maximum(spread, located.sigma), located.freedom, located.sigma)


def _pooled(logs: Floats, centre: Floats, counts: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Return the moderated noise per call path, and its degrees of freedom."""
    inflate = np.sqrt(counts / np.maximum(counts - 1, 1))[:, :, None]
    deviation = np.where(counts[:, :, None] > 1, np.abs(logs - centre[:, :, None]) * inflate, np.nan)
    own = np.sum(np.where(counts > 1, counts - 1, 0), axis=1).astype(float)
    if not np.any(own):
        return np.full(len(logs), GUESSED_NOISE), np.full(len(logs), GUESS_WEIGHT)
    flat = deviation.reshape(len(logs), -1)
    squares = np.zeros(len(logs))
    some = own > 0
    # Winsorised: a few slow runs must not make all the others look noisy.
    bound = 4 * 1.4826 * np.nanmedian(flat[some], axis=1)
    typical = np.nanmedian(bound)
    bound = np.where(bound > 0, bound, typical)
    clipped = np.where(flat[some] > bound[:, None], np.nan, flat[some])
    squares[some] = np.nanmean(clipped**2, axis=1)
    return _moderate(np.maximum(squares, LEAST_NOISE**2), own)


def _moderate(variance: Floats, freedom: Floats) -> tuple[Floats, Floats]:
    """Shrink variances towards their common scale (Smyth 2004, eqs. 2 and 3 of section 6.2)."""
    some = freedom > 0
    if np.count_nonzero(some) < 3:
        pooled = variance[some].mean()
        total = np.where(some, freedom, 1.0)
        return np.sqrt(np.where(some, variance, pooled)), total
    half = freedom[some] / 2
    logs = np.log(variance[some]) - polygamma(0, half) + np.log(half)
    excess = float(np.var(logs, ddof=1) - np.mean(polygamma(1, half)))
    prior_freedom = 2 * _inverse_trigamma(excess) if excess > 1e-3 else 100.0
    prior_freedom = min(prior_freedom, 100.0)
    prior = float(np.exp(np.mean(logs) + polygamma(0, prior_freedom / 2) - np.log(prior_freedom / 2)))
    moderated = (prior_freedom * prior + freedom * np.where(some, variance, 0.0)) / (prior_freedom + freedom)
    return np.sqrt(np.maximum(moderated, LEAST_NOISE**2)), prior_freedom + freedom


def _inverse_trigamma(value: float) -> float:
    """Solve trigamma(x) = value by Newton's method on 1/trigamma (Smyth 2004, appendix)."""
    x = 0.5 + 1 / value
    for _ in range(20):
        trigamma = float(polygamma(1, x))
        x += trigamma * (1 - trigamma / value) / float(polygamma(2, x))
    return x


def _lower_of_two(logs: Floats, centre: Floats, counts: NDArray[np.intp], sigma: Floats) -> Floats:
    """Where two repetitions disagree beyond the noise, believe the faster: disturbances slow down."""
    lowest = np.nanmin(logs, axis=2)
    apart = np.nanmax(logs, axis=2) - lowest
    return np.where((counts == 2) & (apart > 6 * sigma[:, None]), lowest, centre)


def _weigh(
    logs: Floats, reference: Floats, spread: Floats, freedom: Floats, sigma: Floats | None = None
) -> Located:
    """Average repetitions with Student t weights around a reference."""
    scaled = (logs - reference[:, :, None]) / spread[:, None, None]
    weights = np.where(np.isfinite(logs), (TAIL + 1) / (TAIL + scaled**2), 0.0)
    weights = np.minimum(weights, 1.0)
    total = weights.sum(axis=2)
    location = np.nansum(weights * np.where(np.isfinite(logs), logs, 0.0), axis=2) / total
    return Located(location, total, spread if sigma is None else sigma, freedom)
