"""Categories with too few points for a form of their own: they have one that another category has.

The level is their own. What share of the time each term takes is uncertain: in other categories, that of the
term differs as well. So shares are normally distributed around those of the other categories, as much as
these differ (a random effect), and the points, if there are several, say more (Bayesian linear regression).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.pmnf.candidates import Candidates
from orchestrator.models.pmnf.fit import Fits, columns
from orchestrator.models.pmnf.solution import EXCESS
from orchestrator.models.pmnf.weighting import Weighting

# Standard deviation between categories of the logarithm of a term over the others, before any is seen, which
# counts as one more category; and the largest one of a share, relative to its mean. By hand; not derived.
_SPREAD, _MOST = 1.0, 1.5
# Relative standard deviation of the level: anything.
_LEVEL = 10.0
# Least share of a term, relative to the others' mean: shares are positive. Chosen by hand; not derived.
_LEAST = 0.05
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Others:
    """What other categories know."""

    fits: Sequence[Fits]  # of each category, with one entry per candidate
    probability: Floats  # of every candidate in each category, shape (candidates, categories)
    prior: Floats  # of every candidate for a category that has none of their forms, shape (candidates,)


def borrowed(
    candidates: Candidates,
    tables: tuple[Floats, ...],
    log_value: Floats,
    weighting: Weighting,
    others: Others,
) -> tuple[NDArray[np.intp], Fits]:
    """Fit forms of other categories to few points.

    Parameters
    ----------
    candidates
        The forms.
    tables
        Block values per parameter at the points of this category, shape (blocks, points).
    log_value
        Log locations, shape (call paths, points).
    weighting
        Their distribution.
    others
        What is known of the forms elsewhere.

    Returns
    -------
    Which of the candidates are possible here, and their fits with the posterior as score.
    """
    total = others.probability.mean(axis=1) + others.prior
    index = np.flatnonzero((others.probability.sum(axis=1) > 0) & np.isfinite(np.log(total)))
    terms, row = candidates.terms[index], candidates.row[index]
    z = np.concatenate([np.ones((1, len(terms), log_value.shape[1])), columns(terms, tables)])
    used = np.concatenate([np.ones((len(terms), 1), dtype=bool), terms.any(axis=2)], axis=1)
    middle = np.where(used, z.mean(axis=2).T, 1.0)
    mean, spread = _shares(others, index, middle)
    used &= mean > 0
    level = np.exp(log_value.mean(axis=1))[row]
    design = np.where(used[:, :, None], z.swapaxes(0, 1) / middle[:, :, None], 0.0)
    design *= (level[:, None] / np.exp(log_value[row]))[:, None]
    weights = weighting.weights[row] / weighting.variance[row, None]
    share, covariance, score = _regression(design, weights, mean, np.where(used, spread, 1.0))
    unit = np.where(used, level[:, None] / middle, 0.0)
    value = np.einsum("kt,tkn->kn", share * unit, z)
    residual = log_value[row] - np.log(np.maximum(value, _TINY))
    rss = np.einsum("kn,kn->k", weighting.weights[row], residual**2)
    variance = _with_misfit(rss, weighting.variance[row], log_value.shape[1])
    return index, Fits(
        coefficients=share * unit,
        covariance=covariance * (unit[:, :, None] * unit[:, None] / variance[:, None, None]),
        score=score + np.log(total[index]),
        variance=variance,
        rss=rss,
    )


def _with_misfit(rss: Floats, expected: Floats, points: int) -> Floats:
    """Return the variance of values around forms, of which only the level follows the points.

    It is more than ``expected`` of the noise where the points contradict the form.
    """
    found = rss / max(points - 1, 1)
    return np.where(found > EXCESS * expected, found, expected)


def _shares(others: Others, index: NDArray[np.intp], middle: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of the shares of terms among categories that have the form.

    Parameters
    ----------
    others, index
        What is known, and of which candidates.
    middle
        Mean of every term over the points at which shares are wanted, shape (candidates, terms + 1).
    """
    sizes = np.stack([fit.coefficients[index] * middle for fit in others.fits])
    sums = np.maximum(sizes.sum(axis=2, keepdims=True), _TINY)
    shares = sizes / sums
    variance = np.stack(
        [
            np.einsum("ktt->kt", fit.covariance[index]) * fit.variance[index, None] * (middle / total) ** 2
            for fit, total in zip(others.fits, sums, strict=True)
        ]
    )
    weights = others.probability[index].T
    weights = (weights / weights.sum(axis=0))[:, :, None]
    mean = (weights * shares).sum(axis=0)
    count = 1 / (weights**2).sum(axis=0)
    between = (weights * (shares - mean) ** 2).sum(axis=0)
    spread = (_SPREAD * mean * (1 - mean)) ** 2 / count + between
    # Rounding may make a variance negative.
    spread += (weights * np.clip(variance, 0.0, 1.0)).sum(axis=0) / count
    return mean, np.clip(spread, _TINY, (_MOST * mean) ** 2)


def _regression(
    design: Floats, weights: Floats, mean: Floats, spread: Floats
) -> tuple[Floats, Floats, Floats]:
    """Posterior mean and covariance of shares, and the log evidence up to a constant.

    Parameters
    ----------
    design
        Terms relative to the measured values, shape (candidates, terms, points).
    weights
        Inverse variances of the values, shape (candidates, points).
    mean, spread
        Prior of the shares up to their level, shape (candidates, terms).
    """
    whole = np.einsum("kt,ktn->kn", mean, design)
    level = (weights * whole).sum(axis=1) / np.maximum((weights * whole**2).sum(axis=1), _TINY)
    prior = level[:, None] * mean
    covariance = _LEVEL**2 * prior[:, :, None] * prior[:, None]
    covariance += (level[:, None] ** 2 * spread)[:, :, None] * np.eye(design.shape[1])
    weighted = design * weights[:, None]
    precision = np.linalg.inv(covariance) + weighted @ design.swapaxes(1, 2)
    residual = 1 - np.einsum("kt,ktn->kn", prior, design)
    right = np.einsum("ktn,kn->kt", weighted, residual)
    posterior = np.linalg.inv(precision)
    change = np.einsum("ktu,ku->kt", posterior, right)
    misfit = (weights * residual**2).sum(axis=1) - (right * change).sum(axis=1)
    size = np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(precision)[1]
    share: Floats = np.maximum(prior + change, _LEAST * prior)
    score: Floats = -(misfit + size) / 2
    return share, np.asarray(posterior), score
