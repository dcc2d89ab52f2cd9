"""Noise of repeated measurements: a location per point, and a pooled relative noise level.

Noise of run times is multiplicative, so everything happens on logarithms. Repetitions are few, so the
variance is pooled over the points of a call path and shrunk towards the variance of all call paths of the
campaign (moderated variance: Smyth 2004, Linear models and empirical Bayes methods, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import polygamma
from scipy.stats import binom

from orchestrator.models.hypotheses import Floats, Integers

AGGREGATES = ("auto", "none", "mean", "median", "min")
# Relative noise that is assumed where nothing was repeated, and how many observations that guess is worth.
GUESSED_NOISE = 0.03
GUESS_WEIGHT = 1.0
# Noise of counters and simulations may be exactly zero; below this, differences are rounding.
LEAST_NOISE = 1e-7
# Deviations beyond this many standard deviations lose weight, with the square of the distance.
_TOLERATED = 2.5
# Variance that an aggregate must save before ``auto`` prefers it to the robust mean.
_SAVING = 0.75


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
        Degrees of freedom behind ``sigma``, shape (call paths,); `GUESS_WEIGHT` where it is a guess.
    aggregate
        How repetitions were aggregated: none (each counts, robustly), mean, median or min.
    """

    log_value: Floats
    count: Floats
    sigma: Floats
    freedom: Floats
    aggregate: str

    def rows(self, index: NDArray[np.intp]) -> Self:
        """Select call paths."""
        return type(self)(
            self.log_value[index], self.count[index], self.sigma[index], self.freedom[index], self.aggregate
        )

    def put(self, index: NDArray[np.intp], part: Located) -> Self:
        """Replace the locations of some call paths."""
        log_value, count = self.log_value.copy(), self.count.copy()
        log_value[index], count[index] = part.log_value, part.count
        return replace(self, log_value=log_value, count=count)


def locate(values: Floats, aggregate: str = "auto") -> Located:
    """Estimate a location per point and the noise per call path.

    Parameters
    ----------
    values
        Positive values, shape (call paths, points, repetitions), NaN where there is none.
    aggregate
        One of `AGGREGATES`. ``none`` uses every repetition with robust weights; ``auto`` takes the
        aggregate with the least variance, judged by the distribution of all deviations from the medians, and
        shifts it to the scale of the median.
    """
    logs = np.log(values)
    counts = np.sum(np.isfinite(logs), axis=2)
    centre = np.nanmedian(logs, axis=2)
    sigma, freedom = _pooled(logs, centre, counts)
    if aggregate == "auto":
        aggregate, shift, gain = _choose(logs, centre, counts, sigma)
    else:
        shift, gain = np.zeros_like(centre), np.ones_like(centre)
    if aggregate == "none":
        reference = _lower_of_two(logs, centre, counts, sigma)
        location, count = _weigh(logs, reference, sigma)
        return Located(location, count, sigma, freedom, aggregate)
    if aggregate == "mean":
        location = np.log(np.nanmean(values, axis=2))
    else:
        location = np.nanmin(logs, axis=2) if aggregate == "min" else centre
    return Located(location + shift, counts * gain, sigma, freedom, aggregate)


def relocate(values: Floats, located: Located, expected: Floats, spread: Floats) -> Located:
    """Weigh values again, knowing what a model expects: tells which of two values is the outlier.

    Parameters
    ----------
    values
        As in `locate`.
    located
        The first estimate. Aggregates other than ``none`` keep their locations and lose weight as a whole.
    expected
        Logarithm of the values that a model predicts, shape (call paths, points).
    spread
        Relative deviation of values from the model, shape (call paths,).
    """
    spread = np.maximum(spread, located.sigma)
    if located.aggregate == "none":
        location, count = _weigh(np.log(values), expected, spread)
    else:
        scaled = (located.log_value - expected) / spread[:, None]
        location = located.log_value
        count = located.count * robust_weights(scaled)
    return replace(located, log_value=location, count=count)


def _pooled(logs: Floats, centre: Floats, counts: Integers) -> tuple[Floats, Floats]:
    """Return the moderated noise per call path, and its degrees of freedom."""
    inflate = np.sqrt(counts / np.maximum(counts - 1, 1))[:, :, None]
    deviation = np.where(counts[:, :, None] > 1, np.abs(logs - centre[:, :, None]) * inflate, np.nan)
    own = np.sum(np.where(counts > 1, counts - 1, 0), axis=1).astype(float)
    some = own > 0
    if not np.any(some):
        return np.full(len(logs), GUESSED_NOISE), np.full(len(logs), GUESS_WEIGHT)
    flat = deviation.reshape(len(logs), -1)[some]
    squares = np.zeros(len(logs))
    # A few slow runs must not make all the others look noisy. Half of the deviations can be exactly
    # zero (three equal values of five): then the mean over all decides.
    bound = 4 * 1.4826 * np.nanmedian(flat, axis=1)
    clipped = np.where((flat > bound[:, None]) & (bound[:, None] > 0), np.nan, flat)
    squares[some] = np.nanmean(clipped**2, axis=1)
    return _moderate(np.maximum(squares, LEAST_NOISE**2), own)


def _moderate(variance: Floats, freedom: Floats) -> tuple[Floats, Floats]:
    """Shrink variances towards their common scale (Smyth 2004, section 6.2)."""
    some = freedom > 0
    if np.count_nonzero(some) < 3:
        pooled = variance[some].mean()
        return np.sqrt(np.where(some, variance, pooled)), np.where(some, freedom, GUESS_WEIGHT)
    half = freedom[some] / 2
    logs = np.log(variance[some]) - polygamma(0, half) + np.log(half)
    excess = float(np.var(logs, ddof=1) - np.mean(polygamma(1, half)))
    prior_freedom = min(2 * _inverse_trigamma(excess), 100.0) if excess > 1e-3 else 100.0
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


_IDENTICAL = 1e-12  # variance in units of the noise: repetitions agree, every aggregate is the same


def _choose(logs: Floats, centre: Floats, counts: Integers, sigma: Floats) -> tuple[str, Floats, Floats]:
    """Choose the aggregate of least variance.

    Returns
    -------
    Its name, what to add to bring it to the scale of the median, and its advantage in variance over the
    mean as a factor on the number of repetitions, both of shape (call paths, points).
    """
    nothing = np.zeros_like(centre), np.ones_like(centre)
    repeated = counts >= 3
    if np.count_nonzero(repeated) < 10:
        return "none", *nothing
    scaled = (logs - centre[:, :, None]) / sigma[:, None, None]
    pooled = np.sort(scaled[repeated][np.isfinite(scaled[repeated])])
    # Deviations from one's own median are too small by about this factor.
    typical = int(np.quantile(counts[repeated], 0.5, method="lower"))  # a number that occurs
    pooled *= np.sqrt(typical / (typical - 1))
    mean_log, _ = _robust_variance(pooled)
    if mean_log < _IDENTICAL:
        return "none", *nothing
    sizes = np.unique(counts)
    low = {int(n): _order_statistic(pooled, int(n), 0.0) for n in sizes}
    mid = {int(n): _order_statistic(pooled, int(n), 0.5) for n in sizes}
    ratio_low = low[typical][1] * typical / mean_log
    ratio_mid = mid[typical][1] * typical / mean_log
    if min(ratio_low, ratio_mid) > _SAVING:
        return "none", *nothing
    name, table = ("min", low) if ratio_low < ratio_mid else ("median", mid)
    shift, gain = (np.zeros(int(sizes.max()) + 1) for _ in range(2))
    for n in sizes:
        shift[n] = mid[int(n)][0] - table[int(n)][0]
        gain[n] = mean_log / (table[int(n)][1] * n)
    return name, shift[counts] * sigma[:, None], gain[counts]


def _robust_variance(sample: Floats) -> tuple[float, float]:
    """Variance, for one repetition, of the robustly weighted mean: sandwich estimate on a pooled sample."""
    weights = robust_weights(sample)
    centre = float(np.sum(weights * sample) / np.sum(weights))
    influence = weights * (sample - centre)
    slope = float(np.mean(weights * np.where(weights < 1, -1.0, 1.0)))
    return float(np.mean(influence**2)) / max(slope, 0.1) ** 2, centre


def _order_statistic(sample: Floats, n: int, q: float) -> tuple[float, float]:
    """Mean and variance of the minimum (q = 0) or median (q = 0.5) of n draws from a sorted sample."""
    cumulative = np.arange(1, len(sample) + 1) / len(sample)
    if q == 0.0:
        probability = np.diff(1 - (1 - cumulative) ** n, prepend=0.0)
        return _moments(sample, probability)
    # The median of an even number lies between two order statistics; the lower one stands for it.
    rank = (n + 1) // 2
    probability = np.diff(binom.sf(rank - 1, n, cumulative), prepend=0.0)
    return _moments(sample, probability)


def _moments(sample: Floats, probability: Floats) -> tuple[float, float]:
    mean = float(np.sum(sample * probability))
    return mean, max(float(np.sum((sample - mean) ** 2 * probability)), 1e-12)


def _lower_of_two(logs: Floats, centre: Floats, counts: Integers, sigma: Floats) -> Floats:
    """Where two repetitions disagree beyond the noise, believe the faster: disturbances slow down."""
    if not np.any(counts == 2):
        return centre
    lowest = np.nanmin(logs, axis=2)
    apart = np.nanmax(logs, axis=2) - lowest
    return np.where((counts == 2) & (apart > 6 * sigma[:, None]), lowest, centre)


def robust_weights(scaled: Floats) -> Floats:
    """Weights of values by their deviation in standard deviations: 1 where tolerable, then falling fast."""
    weights: Floats = np.minimum((_TOLERATED / np.maximum(np.abs(scaled), _TOLERATED)) ** 2, 1.0)
    return weights


def _weigh(logs: Floats, reference: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """Average repetitions with robust weights around a reference; return also the sum of weights."""
    scaled = (logs - reference[:, :, None]) / spread[:, None, None]
    finite = np.isfinite(logs)
    weights = np.where(finite, robust_weights(scaled), 0.0)
    total = weights.sum(axis=2)
    return np.sum(weights * np.where(finite, logs, 0.0), axis=2) / total, total
