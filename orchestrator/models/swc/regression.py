"""Which runs were disturbed: a mixture around a prior with unknown coefficients.

Disturbances slow runs down and never speed them up. Undisturbed runs scatter normally around the model;
disturbed ones lie anywhere between it and the slowest run; what lies far below is an outlier. Where more than
half of the runs are disturbed, no quantile is safe to start from, and small sets of runs are tried instead
(Rousseeuw and Leroy, Robust regression and outlier detection, 1987, section 5.1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, islice
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.special import gammainc, gammaln

from orchestrator.models.base import Floats, Integers
from orchestrator.models.noise import GUESS_WEIGHT, LEAST_NOISE, robust_weights

# The quantile of runs that is fitted where many are disturbed, and the reach of normal residuals.
LOW = 0.25
_LOWER_REACH = 1.28  # (0.5 - 0.1 quantile): what the first quartile of all is to the undisturbed half
_NORMAL_REACH = 1.39  # (0.75 - 0.25 quantile) / (0.25 - 0.05 quantile)
_BROAD = 0.2  # noise of the lowest runs from which on nothing is taken for a disturbance
# Runs further below the model, in units of the noise, are outliers; what the first noise is worth in runs.
_FAR = 3.0
_KEPT = 4.0
_STEPS = 12
# Sets of runs that are tried, times runs; how many of them are followed up, and how far behind they may be.
_TRIED = 10_000
_CHOICES = 31  # of the columns that a set determines: all there are of up to five columns
_FOLLOWED = 5
_BEHIND = 10.0
# The noise that is expected of runs, and shares of disturbed ones.
_NOISES = (0.005, 0.01, 0.02, 0.04, 0.08)
_TYPICAL = 0.02
_DISTURBED = (0.1, 0.5, 0.8)
_BROAD_NOISES = (0.16, 0.32, 0.64, 1.28)
# Density of outliers below; how much better (natural logarithm) another start must be, and where everything
# scatters widely.
_OUTLIER = 1e-5
_BETTER = 2.0
_CLEARLY = 10.0
# From this quantile on runs look like undisturbed ones.
_NORMAL = 0.49
_TINY = 1e-300
_LEAST_CLEAN = 0.1  # share of undisturbed runs
_SINGULAR = 1e-9  # determinant of columns of about 1


@dataclass(frozen=True, slots=True)
class Clean:
    """Shares fitted to undisturbed runs, their relative noise, and how probably each run is one: (m,)."""

    shares: Floats
    noise: float
    weights: Floats


def quantile(residuals: Floats) -> float:
    """Return the quantile to fit: the median for residuals like normal ones, the first quartile for others.

    When half of the runs are disturbed, the first quartile of all is the median of the others. Told by how
    far the middle half of the residuals reaches, compared with those below it; `residuals` are those of a
    fit to the first quartile. Where even the lowest runs scatter widely, disturbances cannot be told from the
    rest, and the median it is.
    """
    least, first, third = np.quantile(residuals, [0.05, LOW, 1 - LOW])
    if first - least > _BROAD * _LOWER_REACH:
        return 0.5
    reach = max(float(third - first), _TINY)
    return LOW + (0.5 - LOW) * min(1.0, _NORMAL_REACH * float(first - least) / reach)


def undisturbed(relative: Floats, floor: Floats, shares: Floats, place: float) -> Clean | None:
    """Fit the mixture, from the best of several starts.

    Parameters
    ----------
    relative
        Columns of the prior in units of each run, scaled to mean 1, shape (m, columns).
    floor
        Least share of every column, shape (columns,).
    shares
        The first start, fitted to the quantile ``place`` of the runs.
    place
        See `quantile`.

    Returns
    -------
    None where even the lowest runs scatter so widely that nothing can be taken for a disturbance.
    """
    residuals = logs(relative, shares)
    least, first = np.quantile(residuals, [0.05, LOW])
    noise = max(float(first - least) / _LOWER_REACH, LEAST_NOISE)
    best: Clean | None = None
    if noise <= _BROAD:
        best = _mixture(relative, floor, shares, noise, max(1 - 2 * place, 0.02))
        if place > _NORMAL and _credible(best):
            return best
        score = _merit(relative, best) + _BETTER
    if best is None or not _credible(best):
        # Either they scatter widely, or so few are undisturbed that these look like outliers.
        best, score = None, _score(residuals[None], len(floor), (0.02,), _BROAD_NOISES)[0][0] + _CLEARLY
    for start, width in _starts(relative, floor, score - _BEHIND):
        found = _mixture(relative, floor, start, width, 0.5)
        value = _merit(relative, found)
        if value > score and _credible(found):
            best, score = found, value
    return best


def _credible(found: Clean) -> bool:
    """Tell whether a fit takes enough runs for undisturbed to explain anything."""
    return bool(found.weights.sum() > max(len(found.shares) + 1, _LEAST_CLEAN * len(found.weights)))


def logs(relative: Floats, shares: Floats) -> Floats:
    """Residuals of the logarithms of runs, shape (m,); columns are in units of each run, (m, columns)."""
    result: Floats = -np.log(np.maximum(relative @ shares, _TINY))
    return result


def step(relative: Floats, floor: Floats, weights: Floats, residuals: Floats) -> Floats:
    """Shares after a Gauss-Newton step on logarithms from these residuals, none below its least."""
    root = np.sqrt(weights)
    matrix = relative * (root / np.exp(-residuals))[:, None]
    result: Floats = floor + nnls(matrix, root * (1 + residuals) - matrix @ floor)[0]
    return result


def _merit(relative: Floats, found: Clean) -> float:
    score, _ = _score(logs(relative, found.shares)[None], len(found.shares))
    return float(score[0])


def _mixture(relative: Floats, floor: Floats, shares: Floats, start: float, disturbed: float) -> Clean:
    """Fit by expectation maximisation (Dempster, Laird and Rubin 1977).

    The noise stays near that of the start, so that the normal part does not grow over the others. Runs far
    below are outliers, with the weights of Huber (1964).
    """
    residuals, noise = logs(relative, shares), start
    weights = np.ones(len(residuals))
    for _ in range(_STEPS):
        edge = -_FAR * noise
        width = max(float(residuals.max()), noise) - edge
        log_odds = np.log(disturbed / width) - np.log((1 - disturbed) / (noise * np.sqrt(2 * np.pi)))
        odds = np.exp(np.minimum(log_odds + (residuals / noise) ** 2 / 2, 50.0))
        weights = np.where(residuals > edge, 1 / (1 + odds), edge / np.minimum(residuals, edge))
        disturbed = float((np.sum(1 - weights) + 0.5) / (len(weights) + 1))
        shares = step(relative, floor, weights, residuals)
        residuals = logs(relative, shares)
        variance = (weights @ residuals**2 + _KEPT * start**2) / (weights.sum() + _KEPT)
        noise = max(float(np.sqrt(variance)), start / 2)
    return Clean(shares, noise, weights)


def _starts(relative: Floats, floor: Floats, least: float) -> list[tuple[Floats, float]]:
    """Return the most probable of the coefficients that a few runs determine, and the noise around them.

    ``least`` is the least score of a start. Any column may be left at its least share: that is where a
    non-negative fit often ends.
    """
    runs, columns = relative.shape
    sets = max(_TRIED // runs, 50)
    choices = (c for size in range(min(columns, runs), 0, -1) for c in combinations(range(columns), size))
    chosen = sorted(islice(choices, _CHOICES), key=len)
    shares = np.concatenate([_elemental(relative, floor, c, sets // len(chosen)) for c in chosen])
    if not len(shares):
        return []
    score, noise = _score(logs(relative, shares.T).T, columns, (0.5,))
    order = np.argsort(-score, kind="stable")[:_FOLLOWED]
    return [(shares[k], float(noise[k])) for k in order if score[k] > least]


def _elemental(relative: Floats, floor: Floats, columns: tuple[int, ...], most: int) -> Floats:
    """Solve for some columns with as many runs, the others being at their least: (solutions, all columns)."""
    sets = _sets(len(relative), len(columns), most)
    matrices = relative[sets][:, :, columns]
    others = np.delete(np.arange(relative.shape[1]), columns)
    target = 1 - relative[sets][:, :, others] @ floor[others]
    solvable = np.abs(np.linalg.det(matrices)) > _SINGULAR
    shares = np.repeat(floor[None], np.count_nonzero(solvable), axis=0)
    shares[:, columns] = np.linalg.solve(matrices[solvable], target[solvable][..., None])[..., 0]
    result: Floats = shares[np.all(shares >= floor, axis=1)]
    return result


def _sets(runs: int, size: int, most: int) -> NDArray[np.intp]:
    """Return sets of runs: all of them, or as many as are affordable, drawn evenly."""
    if comb(runs, size) <= most:
        return np.array(list(combinations(range(runs), size)), dtype=np.intp)
    rng = np.random.default_rng(0)  # the same for everyone: a model must not depend on chance
    return np.argsort(rng.random((most, runs)), axis=1)[:, :size]


def _score(
    residuals: Floats,
    columns: int,
    disturbed: tuple[float, ...] = _DISTURBED,
    noises: tuple[float, ...] = _NOISES,
) -> tuple[Floats, Floats]:
    """Log posterior of coefficients with these residuals (sets, m), and the best noise: (sets,) each.

    Shares are uniform a priori: what a coefficient gains by fitting a run exactly, it loses again.
    """
    best, noise = np.full(len(residuals), -np.inf), np.full(len(residuals), _TYPICAL)
    width = np.maximum(residuals.max(axis=1, keepdims=True), 0.1)
    for sigma in noises:
        peak = sigma * np.sqrt(2 * np.pi)
        near = np.exp(-((residuals / sigma) ** 2) / 2) / peak
        slow = np.where(residuals > -_FAR * sigma, 1 / (width + _FAR * sigma), _OUTLIER)
        for share in disturbed:
            value = np.log((1 - share) * near + share * slow).sum(axis=1)
            value += columns * np.log(peak) - np.log(sigma / _TYPICAL) ** 2 / 2
            better = value > best
            best, noise = np.where(better, value, best), np.where(better, sigma, noise)
    return best, noise


#
# # FOLDED orchestrator.models.swc.regression: Coefficients of a prior from measured times, and how well it explains them.
#
# De Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, section III-C: the
# prior is a skeleton whose coefficients are found by regression on times, here non-negative and on relative
# residuals.
#


# A counted term takes at least this share of the time where it is largest: it was executed.
_LEAST_SHARE = 1e-3
# A basic block takes at least this share of the mean time per block of its function.
_LEAST_BLOCK = 0.05
# By how much variances are enlarged, because the noise is estimated as well; uncertainty of the scale, as a
# share of the noise; and lack of fit with one run per point, likewise.
_UNSURE = 2.0
_LEVEL = 0.3
_PART = 0.5
# Residuals below this share of their scale count alike in the regression to medians.
_SHARP = 0.1


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


#
# # FOLDED orchestrator.models.swc.regression: How well a prior's hypothesis explains times: its marginal likelihood.


# The largest lack of fit considered, and its prior probability; as in `orchestrator.models.pmnf.fit`.
_LARGEST_MISFIT = 0.5
_MISFIT = 0.5


def log_evidence(design: Floats, coefficients: Floats, times: Times, weights: Floats) -> float:
    """Log marginal likelihood of a linear hypothesis with given best coefficients (Laplace's approximation).

    The prior of the coefficients is uniform over the shares of the terms in the time; the variance is that
    of the noise (scaled inverse chi²) or larger (log-uniform). As `orchestrator.models.pmnf.fit` does it, but
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
