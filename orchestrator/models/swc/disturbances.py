"""Which runs were disturbed: a mixture of undisturbed and disturbed runs around a prior.

Disturbances slow runs down and never speed them up. Undisturbed runs scatter normally around the model.
Disturbed runs lie anywhere between the model and the slowest run. Runs far below the model are outliers.
Where more than half of the runs are disturbed, no quantile is a safe start, and small sets of runs are tried
instead (Rousseeuw and Leroy, Robust regression and outlier detection, 1987, section 5.1).

Constants without a derivation are chosen by hand. The tests of `tests/models/swc/test_regression.py` and the
noise study (docs/evaluation/noise.md) show how well the whole works, not each constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, islice
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from orchestrator.models.base import Floats
from orchestrator.models.noise import LEAST_NOISE

# --- The quantile of the runs that is fitted first.
LOW = 0.25  # where half of the runs are disturbed, the first quartile of all is the median of the others
# Derived: distances between quantiles of a normal distribution, in standard deviations or as a ratio.
_LOWER_REACH = 1.28  # from the 0.1 to the 0.5 quantile: the 0.05 to 0.25 quantile if half are disturbed
_NORMAL_REACH = 1.39  # from 0.25 to 0.75, divided by from 0.05 to 0.25
_ALMOST_MEDIAN = 0.49  # from this quantile on, residuals look like those of undisturbed runs
# Relative noise of the lowest runs above which disturbances cannot be told apart from noise. By hand.
_BROAD = 0.2

# --- Expectation maximisation. By hand.
_OUTLIER_DISTANCE = 3.0  # a run this many standard deviations below the model is an outlier
_NOISE_WEIGHT = 4.0  # the noise of the start counts like this many runs
_EM_STEPS = 12
_LEAST_DISTURBED = 0.02  # share of disturbed runs to start from where residuals look normal
_LEAST_UNDISTURBED = 0.1  # a fit that explains a smaller share of the runs explains nothing

# --- Further starts: coefficients that just enough runs determine. By hand, limited by run time.
_SOLUTIONS = 10_000  # sets of runs times runs
_LEAST_SETS = 50
_COLUMN_CHOICES = 31  # choices of columns that a set determines: all 2**5 - 1 of five columns
_FOLLOWED = 5  # starts that are followed up, the best first
_BEHIND = 10.0  # a start may be behind the best fit by this much (log posterior)
_BETTER = 2.0  # another start must be better by this much (log posterior) to replace the first
_CLEARLY_BETTER = 10.0  # the same where no start so far is credible
_SINGULAR = 1e-9  # least determinant of columns whose mean is 1

# --- The score of coefficients: noise and shares of disturbed runs that are expected. By hand.
_NOISES = (0.005, 0.01, 0.02, 0.04, 0.08)
_TYPICAL_NOISE = 0.02
_DISTURBED_SHARES = (0.1, 0.5, 0.8)
_BROAD_NOISES = (0.16, 0.32, 0.64, 1.28)
_OUTLIER_DENSITY = 1e-5  # of a run far below the model
_LEAST_WIDTH = 0.1  # of the range of disturbed runs (natural logarithm)

TINY = 1e-300  # keeps logarithms and divisions finite


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """A fit to the undisturbed runs."""

    shares: Floats  # coefficients, in units of the scaled columns, shape (columns,)
    noise: float  # relative noise of undisturbed runs
    weights: Floats  # probability that a run is undisturbed, shape (m,)


def start_quantile(residuals: Floats) -> float:
    """Return the quantile to fit: the median for residuals like normal ones, the first quartile for others.

    When half of the runs are disturbed, the first quartile of all is the median of the others. The middle
    half of the residuals then reaches further than in a normal distribution, compared with the residuals
    below it. Where even the lowest runs scatter widely, disturbances cannot be told apart from noise, and the
    median is fitted.

    Parameters
    ----------
    residuals
        Of the logarithms of runs, from a fit to the first quartile, shape (m,).
    """
    least, first, third = np.quantile(residuals, [0.05, LOW, 1 - LOW])
    if first - least > _BROAD * _LOWER_REACH:
        return 0.5
    reach = max(float(third - first), TINY)
    return LOW + (0.5 - LOW) * min(1.0, _NORMAL_REACH * float(first - least) / reach)


def fit_undisturbed(relative: Floats, floor: Floats, shares: Floats, place: float) -> Undisturbed | None:
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
        See `start_quantile`.

    Returns
    -------
    None where even the lowest runs scatter so widely that no run can be called disturbed.
    """
    residuals = log_residuals(relative, shares)
    least, first = np.quantile(residuals, [0.05, LOW])
    noise = max(float(first - least) / _LOWER_REACH, LEAST_NOISE)
    best: Undisturbed | None = None
    if noise <= _BROAD:
        best = _mixture(relative, floor, shares, noise, max(1 - 2 * place, _LEAST_DISTURBED))
        if place > _ALMOST_MEDIAN and _credible(best):
            return best
        score = _merit(relative, best) + _BETTER
    if best is None or not _credible(best):
        # Either the runs scatter widely, or so few are undisturbed that these look like outliers.
        best, score = (
            None,
            _score(residuals[None], len(floor), (_LEAST_DISTURBED,), _BROAD_NOISES)[0][0] + _CLEARLY_BETTER,
        )
    for start, width in _starts(relative, floor, score - _BEHIND):
        found = _mixture(relative, floor, start, width, 0.5)
        value = _merit(relative, found)
        if value > score and _credible(found):
            best, score = found, value
    return best


def _credible(undisturbed: Undisturbed) -> bool:
    """Return whether a fit takes enough runs for undisturbed to explain anything."""
    return bool(
        undisturbed.weights.sum()
        > max(len(undisturbed.shares) + 1, _LEAST_UNDISTURBED * len(undisturbed.weights))
    )


def log_residuals(relative: Floats, shares: Floats) -> Floats:
    """Return the residuals of the logarithms of runs, shape (m,); ``relative`` as for `fit_undisturbed`."""
    result: Floats = -np.log(np.maximum(relative @ shares, TINY))
    return result


def gauss_newton_step(relative: Floats, floor: Floats, weights: Floats, residuals: Floats) -> Floats:
    """Return shares after a Gauss-Newton step on logarithms from these residuals, none below its floor."""
    root = np.sqrt(weights)
    matrix = relative * (root / np.exp(-residuals))[:, None]
    result: Floats = floor + nnls(matrix, root * (1 + residuals) - matrix @ floor)[0]
    return result


def _merit(relative: Floats, undisturbed: Undisturbed) -> float:
    score, _ = _score(log_residuals(relative, undisturbed.shares)[None], len(undisturbed.shares))
    return float(score[0])


def _mixture(relative: Floats, floor: Floats, shares: Floats, start: float, disturbed: float) -> Undisturbed:
    """Fit by expectation maximisation (Dempster, Laird and Rubin 1977).

    The noise stays near that of the start, so that the normal part does not grow over the others. Runs far
    below are outliers, with the weights of Huber (1964).
    """
    residuals, noise = log_residuals(relative, shares), start
    weights = np.ones(len(residuals))
    for _ in range(_EM_STEPS):
        edge = -_OUTLIER_DISTANCE * noise
        width = max(float(residuals.max()), noise) - edge
        log_odds = np.log(disturbed / width) - np.log((1 - disturbed) / (noise * np.sqrt(2 * np.pi)))
        odds = np.exp(np.minimum(log_odds + (residuals / noise) ** 2 / 2, 50.0))
        weights = np.where(residuals > edge, 1 / (1 + odds), edge / np.minimum(residuals, edge))
        disturbed = float((np.sum(1 - weights) + 0.5) / (len(weights) + 1))
        shares = gauss_newton_step(relative, floor, weights, residuals)
        residuals = log_residuals(relative, shares)
        variance = (weights @ residuals**2 + _NOISE_WEIGHT * start**2) / (weights.sum() + _NOISE_WEIGHT)
        noise = max(float(np.sqrt(variance)), start / 2)
    return Undisturbed(shares, noise, weights)


def _starts(relative: Floats, floor: Floats, least: float) -> list[tuple[Floats, float]]:
    """Return the most probable of the coefficients that a few runs determine, and the noise around them.

    ``least`` is the least score of a start. Any column may be left at its least share: that is where a
    non-negative fit often ends.
    """
    runs, columns = relative.shape
    sets = max(_SOLUTIONS // runs, _LEAST_SETS)
    choices = (c for size in range(min(columns, runs), 0, -1) for c in combinations(range(columns), size))
    chosen = sorted(islice(choices, _COLUMN_CHOICES), key=len)
    shares = np.concatenate([_elemental(relative, floor, c, sets // len(chosen)) for c in chosen])
    if not len(shares):
        return []
    score, noise = _score(log_residuals(relative, shares.T).T, columns, (0.5,))
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
    """Return sets of ``size`` runs: all sets, or ``most`` of them, drawn uniformly."""
    if comb(runs, size) <= most:
        return np.array(list(combinations(range(runs), size)), dtype=np.intp)
    rng = np.random.default_rng(0)  # the same seed always: a model must not depend on chance
    return np.argsort(rng.random((most, runs)), axis=1)[:, :size]


def _score(
    residuals: Floats,
    columns: int,
    disturbed: tuple[float, ...] = _DISTURBED_SHARES,
    noises: tuple[float, ...] = _NOISES,
) -> tuple[Floats, Floats]:
    """Return the log posterior of coefficients with residuals (sets, m), and the best noise: (sets,) each.

    Shares are uniform a priori, so a coefficient gains nothing by fitting one run exactly.
    """
    best, noise = np.full(len(residuals), -np.inf), np.full(len(residuals), _TYPICAL_NOISE)
    width = np.maximum(residuals.max(axis=1, keepdims=True), _LEAST_WIDTH)
    for sigma in noises:
        peak = sigma * np.sqrt(2 * np.pi)
        near = np.exp(-((residuals / sigma) ** 2) / 2) / peak
        slow = np.where(
            residuals > -_OUTLIER_DISTANCE * sigma, 1 / (width + _OUTLIER_DISTANCE * sigma), _OUTLIER_DENSITY
        )
        for share in disturbed:
            value = np.log((1 - share) * near + share * slow).sum(axis=1)
            value += columns * np.log(peak) - np.log(sigma / _TYPICAL_NOISE) ** 2 / 2
            better = value > best
            best, noise = np.where(better, value, best), np.where(better, sigma, noise)
    return best, noise
