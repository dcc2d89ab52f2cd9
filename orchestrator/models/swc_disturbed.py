"""Which runs were disturbed: a mixture around a prior with unknown coefficients.

Disturbances slow runs down and never speed them up. Undisturbed runs scatter normally around the model;
disturbed ones lie anywhere between it and the slowest run; what lies far below is an outlier. Where more than
half of the runs are disturbed, no quantile is safe to start from, and small sets of runs are tried instead
(Rousseeuw and Leroy, Robust regression and outlier detection, 1987, section 5.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, islice
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from orchestrator.models.hypotheses import Floats
from orchestrator.models.noise import LEAST_NOISE

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
