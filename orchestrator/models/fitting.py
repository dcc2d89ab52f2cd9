"""Fit many hypotheses at once and weigh them: Gauss-Newton on logarithms, then marginal likelihood.

A value is lognormal around its hypothesis, with relative variance ``tau² + sigma²/n``: lack of fit, and
noise of n repetitions. Coefficients are not negative. Arrays put the small axis first (terms, candidates,
points), so that every operation runs over long contiguous rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc, gammaln, log_ndtr

from orchestrator.models.hypotheses import Floats
from orchestrator.models.screening import Candidates

# Prior probability that the truth is not among the hypotheses, and the largest lack of fit considered.
_MISFIT = 0.5
_LARGEST_MISFIT = 0.5
_STEPS = 2


@dataclass(frozen=True, slots=True)
class Fits:
    """Fitted candidates.

    Attributes
    ----------
    coefficients
        Constant first, shape (candidates, terms + 1).
    covariance
        Of the coefficients for a unit of residual variance, shape (candidates, terms + 1, terms + 1).
    score
        Log marginal likelihood times prior; -inf where refused. Shape (candidates,).
    variance
        Posterior mean of the relative variance of a value of mean precision, shape (candidates,).
    """

    coefficients: Floats
    covariance: Floats
    score: Floats
    variance: Floats


def columns(terms: np.ndarray, tables: tuple[Floats, ...]) -> Floats:
    """Evaluate the terms of every candidate: shape (terms, candidates, points)."""
    result = np.ones((terms.shape[1], len(terms), tables[0].shape[1]))
    for k, table in enumerate(tables):
        for t in range(terms.shape[1]):
            result[t] *= table[terms[:, t, k]]
    return result


def fit(
    candidates: Candidates,
    tables: tuple[Floats, ...],
    log_value: Floats,
    weights: Floats,
    prior_variance: Floats,
    prior_freedom: Floats,
    log_prior: Floats,
) -> Fits:
    """Fit every candidate to its call path.

    Parameters
    ----------
    candidates
        What to fit.
    tables
        Block values per parameter, shape (blocks, points).
    log_value
        Log location of the measured values, shape (call paths, points).
    weights
        Precision of the locations with mean 1 per call path, same shape.
    prior_variance, prior_freedom
        What repetitions say about the relative variance of a location of weight 1, shape (call paths,).
    log_prior
        Log prior of every candidate.
    """
    count, terms = len(candidates.row), candidates.terms.shape[1]
    coefficients = np.zeros((count, terms + 1))
    covariance = np.zeros((count, terms + 1, terms + 1))
    score = np.full(count, -np.inf)
    variance = np.ones(count)
    used = np.count_nonzero(candidates.terms.any(axis=2), axis=1)
    order = np.argsort(~candidates.terms.any(axis=2), axis=1, kind="stable")
    packed = np.take_along_axis(candidates.terms, order[:, :, None], axis=1)
    for size in range(terms + 1):
        some = np.flatnonzero(used == size)
        if not len(some):
            continue
        z = np.concatenate(
            [np.ones((1, len(some), log_value.shape[1])), columns(packed[some][:, :size], tables)]
        )
        row = candidates.row[some]
        # Unit of a coefficient: the mean share of its term. The prior is uniform over shares.
        scale = np.mean(z * np.exp(log_value[row].mean(axis=1)[:, None] - log_value[row]), axis=2)
        part = _fit_same_size(z / scale[:, :, None], log_value[row], weights[row])
        total = _evidence(part, prior_variance[row], prior_freedom[row], log_value.shape[1])
        score[some] = total[0] + log_prior[some]
        variance[some] = total[1]
        place = np.concatenate([np.zeros((len(some), 1), dtype=np.intp), order[some][:, :size] + 1], axis=1)
        values = (part.c / scale).T * np.exp(part.shift)[:, None]
        block = np.zeros((len(some), terms + 1))
        np.put_along_axis(block, place, values, axis=1)
        coefficients[some] = block
        spread = part.inverse / (scale[:, None] * scale[None]) * np.exp(2 * part.shift)
        for i in range(size + 1):
            for j in range(size + 1):
                covariance[some, place[:, i], place[:, j]] = spread[i, j]
    return Fits(coefficients, covariance, score, variance)


@dataclass(frozen=True, slots=True)
class _Part:
    c: Floats
    inverse: Floats
    log_det: Floats
    rss: Floats
    log_share: Floats
    log_orthant: Floats
    shift: Floats
    valid: np.ndarray


def _fit_same_size(z: Floats, log_value: Floats, weights: Floats) -> _Part:
    shift = log_value.mean(axis=1)
    target = log_value - shift[:, None]
    inverse_y = np.exp(-target)
    jacobian = z * inverse_y
    c, inverse, log_det = _normal(jacobian, weights, np.ones_like(target))
    rss = np.sum(weights * (1 - np.einsum("tln,tl->ln", jacobian, c)) ** 2, axis=1)
    sigma2 = np.maximum(rss / max(z.shape[2] - len(z), 1), 1e-300)
    deviation = c / np.sqrt(np.maximum(np.einsum("ttl->tl", inverse), 1e-300) * sigma2)
    size = len(z)
    dropped = (c[0] < 0) & (size > 1)
    if np.any(dropped):
        alone, _, _ = _normal(jacobian[1:, dropped], weights[dropped], np.ones_like(target[dropped]))
        c[1:, dropped] = alone
        c[0, dropped] = 0.0
    keep = np.ones((size, len(target)))
    keep[0, dropped] = 0.0
    for _ in range(_STEPS):
        value = np.maximum(np.einsum("tln,tl->ln", z, c), 1e-300)
        jacobian = z / value * keep[:, :, None]
        error = target - np.log(value)
        step, inverse, _ = _normal(jacobian, weights, error, 1 - keep)
        inverse = inverse * keep * keep[:, None]
        c = np.maximum(c + step * keep, 0.1 * c)
    value = np.maximum(np.einsum("tln,tl->ln", z, c), 1e-300)
    rss = np.sum(weights * (target - np.log(value)) ** 2, axis=1)
    valid = np.all(c[1:] > 0, axis=0) & np.all(np.isfinite(c), axis=0) & (c.sum(axis=0) > 0)
    log_share = -size * np.log(np.maximum(c.sum(axis=0), 1e-300)) + gammaln(size)
    log_orthant = log_ndtr(np.clip(deviation, -1e3, None)).sum(axis=0) if size > 1 else np.zeros(len(target))
    z0 = np.clip(deviation[0], -1e3, 0)
    log_orthant = log_orthant + np.where(dropped, z0**2 / 2, 0.0)
    return _Part(c, inverse, log_det, rss, log_share, log_orthant, shift, valid)


def _normal(
    jacobian: Floats, weights: Floats, target: Floats, ridge: Floats | None = None
) -> tuple[Floats, Floats, Floats]:
    """Solve weighted normal equations; return solution (t, l), inverse (t, t, l) and log determinant (l,)."""
    size = len(jacobian)
    weighted = jacobian * weights
    gram = np.empty((size, size, jacobian.shape[1]))
    for i in range(size):
        for j in range(i + 1):
            gram[i, j] = gram[j, i] = np.einsum("ln,ln->l", weighted[i], jacobian[j])
    if ridge is not None:
        for i in range(size):
            gram[i, i] += ridge[i]
    right = np.einsum("tln,ln->tl", weighted, target)
    diagonal = np.sqrt(np.maximum(np.einsum("ttl->tl", gram), 1e-300))
    scaled = gram / (diagonal[:, None] * diagonal[None])
    inverse, log_det = _invert(scaled)
    inverse = inverse / (diagonal[:, None] * diagonal[None])
    return np.einsum("stl,tl->sl", inverse, right), inverse, log_det + 2 * np.log(diagonal).sum(axis=0)


def _invert(gram: Floats) -> tuple[Floats, Floats]:
    """Invert symmetric matrices stored as (t, t, l), and their log determinants (Gauss-Jordan)."""
    size = len(gram)
    work = gram.copy()
    log_det = np.zeros(gram.shape[2])
    for k in range(size):
        pivot = np.maximum(work[k, k], 1e-13)
        log_det += np.log(pivot)
        row = work[k] / pivot
        column = work[:, k].copy()
        work -= column[:, None] * row[None]
        work[k] = row
        work[:, k] = -column / pivot
        work[k, k] = 1 / pivot
    return work, log_det


def _evidence(part: _Part, variance: Floats, freedom: Floats, points: int) -> tuple[Floats, Floats]:
    """Log marginal likelihood, and the posterior mean of the variance.

    The variance is either what the repetitions say (scaled inverse chi², conjugate), or larger for lack of
    fit: log-uniform up to the largest misfit considered. Both integrals are closed forms.
    """
    size = len(part.c)
    left = max(points - size, 0)
    half = left / 2
    quadratic = np.maximum(part.rss, 1e-300)
    common = -half * np.log(2 * np.pi) - part.log_det / 2 + part.log_share + part.log_orthant
    nu = freedom
    scale = nu * variance
    noise = (
        gammaln(nu / 2 + half)
        - gammaln(nu / 2)
        + nu / 2 * np.log(scale / 2)
        - (nu / 2 + half) * np.log((scale + quadratic) / 2)
    )
    width = np.log(np.maximum(_LARGEST_MISFIT**2 / variance, 2.0))
    ratio = quadratic / (2 * variance)
    if half > 0:
        misfit = _log_lower_gamma(half, ratio) - half * np.log(quadratic / 2) - np.log(width)
        odds = np.exp(np.clip(misfit - noise, -700, 700)) * _MISFIT / (1 - _MISFIT)
        share = odds / (1 + odds)
        mean_noise = (scale + quadratic) / np.maximum(nu + left - 2, 1)
        mean_misfit = np.maximum(quadratic / max(left - 2, 1), variance)
    else:
        misfit, share = np.full_like(noise, -np.inf), np.zeros_like(noise)
        mean_noise = mean_misfit = scale / np.maximum(nu - 2, 1)
    score = common + np.logaddexp(noise + np.log(1 - _MISFIT), misfit + np.log(_MISFIT))
    return np.where(part.valid, score, -np.inf), mean_noise * (1 - share) + mean_misfit * share


def _log_lower_gamma(shape: float, x: Floats) -> Floats:
    """Logarithm of the lower incomplete gamma function, also where it underflows."""
    with np.errstate(divide="ignore"):
        direct = np.log(gammainc(shape, x)) + gammaln(shape)
    series = shape * np.log(x) - x - np.log(shape) + np.log1p(x / (shape + 1))
    return np.where(np.isfinite(direct), direct, series)
