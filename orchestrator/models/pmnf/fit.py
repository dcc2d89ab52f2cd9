"""Fit many hypotheses at once and weigh them: Gauss-Newton on logarithms, then marginal likelihood.

A value is lognormal around its hypothesis (see `weighting`). Sums over points are taken in `kernels`; after
them the small axis comes first (terms, candidates), so that operations run over long contiguous rows.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaln, log_ndtr

from orchestrator.models.base import Floats, Integers
from orchestrator.models.noise import GUESS_WEIGHT, LEAST_NOISE
from orchestrator.models.pmnf.candidates import NEGATIVE, Candidates
from orchestrator.models.pmnf.division import division, with_cost, with_serial_part
from orchestrator.models.pmnf.hypotheses import FALLS, stacked, terms_used
from orchestrator.models.pmnf.kernels import Data, coefficients, residuals
from orchestrator.models.pmnf.truncation import truncated
from orchestrator.models.pmnf.weighting import Weighting

# Prior probability that the truth is not among the hypotheses, and the largest lack of fit considered, as a
# relative standard deviation. Chosen by hand; not derived.
MISFIT = 0.5
LARGEST_MISFIT = 0.5
# Relative lack of fit beyond which more becomes less probable, in proportion. Chosen by hand; not derived.
_USUAL_MISFIT = 0.1
# Hypotheses fitted at a time: what they need stays in the cache. Chosen by hand; not derived.
_TOGETHER = 4096
# Share of the measured values below which a term is rounding. Chosen by hand; not derived.
_INVISIBLE = 1e-6
# Standard deviations of the noise up to which a constant is rounding, and the share from which it never is.
# Chosen by hand; not derived.
_SEEN, _VISIBLE = 10.0, 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Fits:
    """Fitted candidates, one per entry of `Candidates`."""

    coefficients: Floats  # constant first, shape (candidates, terms + 1)
    # Of the coefficients for a unit of residual variance, shape (candidates, terms + 1, terms + 1).
    covariance: Floats
    # Log marginal likelihood times prior; -inf where refused. Shape (candidates,).
    score: Floats
    variance: Floats  # posterior mean of the relative variance of a value of weight 1, shape (candidates,)
    rss: Floats  # weighted sum of squares of the residuals of the logarithms, shape (candidates,)

    def take(self, index: NDArray[np.intp]) -> Self:
        """Select candidates."""
        return type(self)(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    @classmethod
    def concatenate(cls, parts: list[Self]) -> Self:
        """Join lists."""
        return cls(**{f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls)})


def columns(terms: NDArray[np.int16], tables: tuple[Floats, ...]) -> Floats:
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
    weighting: Weighting,
    log_prior: Floats,
    growth: tuple[Integers, ...],
    *,
    free: bool = False,
    misfit: float = MISFIT,
) -> Fits:
    """Fit every candidate to its call path.

    Parameters
    ----------
    candidates
        What to fit; unused terms come last.
    tables
        Block values per parameter, shape (blocks, points).
    log_value
        Log location of the measured values, shape (call paths, points).
    weighting
        Distribution of the values of every call path.
    log_prior
        Log prior of every candidate.
    growth
        How the blocks of each parameter grow, see `hypotheses.growth_of`.
    free
        Accept only hypotheses with a negative constant (at a cost) instead of only those without.
    misfit
        Prior probability that the truth is not among the hypotheses.
    """
    count, terms = candidates.terms.shape[:2]
    result = Fits(
        coefficients=np.zeros((count, terms + 1)),
        covariance=np.zeros((count, terms + 1, terms + 1)),
        score=np.full(count, -np.inf),
        variance=np.ones(count),
        rss=np.full(count, np.inf),
    )
    used = terms_used(candidates.terms)
    data = _data(tables, log_value, weighting)
    for size in range(terms + 1):
        alike = np.flatnonzero(used == size)
        for begin in range(0, len(alike), _TOGETHER):
            some = alike[begin : begin + _TOGETHER]
            row = candidates.row[some]
            # Hypotheses that cannot be fitted overflow somewhere; they end with an infinite score.
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                mine = np.ascontiguousarray(candidates.terms[some, :size])
                part = _fit_same_size(data, row, mine, growth, free)
                score, variance = _evidence(part, weighting, row, log_value.shape[1], misfit)
            result.score[some] = np.where(np.isfinite(score), score + log_prior[some], -np.inf)
            result.variance[some] = variance
            result.rss[some] = part.rss
            result.coefficients[some, : size + 1] = part.c.T
            result.covariance[some, : size + 1, : size + 1] = part.inverse.transpose(2, 0, 1)
    return result


def _data(tables: tuple[Floats, ...], log_value: Floats, weighting: Weighting) -> Data:
    """Return what the compiled loops need of a group of call paths."""
    shift = log_value.mean(axis=1)
    target = log_value - shift[:, None]
    features, root = weighting.correction()
    begin, table = stacked(tables)
    return Data(
        begin=begin,
        table=table,
        shift=shift,
        target=target,
        share=np.exp(-target),
        weights=np.ascontiguousarray(weighting.weights),
        features=np.ascontiguousarray(features.T),
        root=root,
        variance=weighting.variance,
        freedom=weighting.freedom,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Fits of candidates with the same number of terms, in the shapes of `kernels.Coefficients`.

    ``c`` (t, l), ``inverse`` (t, t, l), the others (l,); ``coefficient_prior`` is a logarithm.
    """

    c: Floats
    inverse: Floats
    log_det: Floats
    rss: Floats
    coefficient_prior: Floats
    valid: NDArray[np.bool_]


def _fit_same_size(
    data: Data, row: Integers, terms: NDArray[np.int16], growth: tuple[Integers, ...], free: bool
) -> _Part:
    """Least squares relative to the measured value, then a Gauss-Newton step on the logarithm.

    A coefficient is measured by the mean share of its term in the measured values: the prior is
    uniform over shares, hence the same in any unit.
    """
    size = terms.shape[1] + 1
    fitted = coefficients(row, terms, data, free)
    c, inverse, noise = fitted.c, fitted.inverse, fitted.noise
    deviation, constant_row = fitted.deviation, fitted.constant_row
    dropped = (deviation[0] < 0) & (size > 1) & (not free)
    coefficient_prior = np.full(len(row), float(gammaln(size)))
    if size > 1 and not free:
        c, inverse = truncated(c, inverse, constant_row, constant_row[0], deviation[0], noise, dropped)
        if any((kinds == FALLS).any() for kinds in growth):
            shares = division(terms, growth)
            c, inverse, cost = with_cost(shares, c, inverse, noise)
            c, inverse, serial = with_serial_part(shares, c, inverse, constant_row, deviation[0], noise)
            coefficient_prior += cost + serial
    # A constant of which nothing can be seen is none, and so is a term.
    unseen = np.clip(_SEEN * np.sqrt(data.variance[row]), _INVISIBLE, _VISIBLE)
    c[0] = np.where((np.abs(c[0]) < unseen) & (size > 1), 0.0, c[0])
    rss, positive = residuals(row, terms, data, c / fitted.scale)
    valid = np.all(np.isfinite(c), axis=0) & positive
    if free:
        valid &= (c[0] < 0) & ~_vanishing(terms, growth)
        coefficient_prior -= NEGATIVE
    valid &= np.all(c[1:] > _INVISIBLE, axis=0)
    if size > 1 and not free:
        # Share of the Gaussian posterior where no coefficient is negative.
        coefficient_prior += log_ndtr(np.clip(deviation, -1e3, None)).sum(axis=0)
        coefficient_prior += np.where(dropped, np.clip(deviation[0], -1e3, 0) ** 2 / 2, 0.0)
    unit = np.exp(data.shift[row]) / fitted.scale
    return _Part(
        c=c * unit,
        inverse=inverse * unit * unit[:, None],
        log_det=fitted.log_det,
        rss=rss,
        coefficient_prior=coefficient_prior,
        valid=valid,
    )


def _vanishing(terms: NDArray[np.int16], growth: tuple[Integers, ...]) -> NDArray[np.bool_]:
    """Return where all terms fall in the same parameter: the constant alone remains where that is large."""
    falls = [(kinds[terms[:, :, k]] == FALLS).all(axis=1) for k, kinds in enumerate(growth)]
    return np.asarray(np.any(falls, axis=0), np.bool_)


def _evidence(
    part: _Part, weighting: Weighting, row: Integers, points: int, wrong: float
) -> tuple[Floats, Floats]:
    """Log marginal likelihood, and the posterior mean of the variance.

    The variance is either about what was expected (scaled inverse chi², conjugate), or larger for lack
    of fit: log-uniform up to the largest misfit considered. Both integrals are closed forms. Beyond the usual
    misfit a larger one counts less, by its most probable size: codes are seldom off by half.
    """
    # What is the same for all hypotheses of a call path is evaluated once for each; `path` gives it to them.
    span, path = slice(row.min(), row.max() + 1), row - row.min()
    expected, freedom = weighting.variance[span], weighting.freedom[span]
    log_scale = weighting.log_scale[span]
    left = max(points - len(part.c), 0)
    half, scale = left / 2, freedom * expected
    known = gammaln(freedom / 2 + half) - gammaln(freedom / 2) + freedom / 2 * np.log(scale / 2)
    sum_of_squares = scale[path] + part.rss
    noise = known[path] - (freedom / 2 + half)[path] * np.log(sum_of_squares / 2)
    mean_noise = sum_of_squares / np.maximum(freedom + left - 2, 1)[path]
    common = (log_scale - half * np.log(2 * np.pi))[path] - part.log_det / 2 + part.coefficient_prior
    if left == 0:
        return np.where(part.valid, common + noise, -np.inf), mean_noise
    # Where nothing was repeated, the noise may be anything, also much smaller than guessed.
    least = np.where(freedom <= GUESS_WEIGHT, LEAST_NOISE**2, expected)
    width = np.log(np.maximum(LARGEST_MISFIT**2 / least, 2.0))
    misfit = _log_lower_gamma(half, part.rss / (2 * least)[path]) - half * np.log(part.rss / 2)
    noise += np.log(1 - wrong)
    misfit += np.log(wrong) - np.log(width)[path]
    misfit -= np.maximum(np.log(part.rss / (left * _USUAL_MISFIT**2)) / 2, 0.0)
    share = 1 / (1 + np.exp(np.clip(noise - misfit, -700, 700)))
    mean_misfit = np.maximum(part.rss / max(left - 2, 1), least[path])
    score = common + np.logaddexp(noise, misfit)
    return np.where(part.valid, score, -np.inf), mean_noise * (1 - share) + mean_misfit * share


def _log_lower_gamma(shape: float, x: Floats) -> Floats:
    """Logarithm of the lower incomplete gamma function, also where it underflows."""
    with np.errstate(divide="ignore"):
        direct = np.log(gammainc(shape, x)) + gammaln(shape)
    series = shape * np.log(x) - x - np.log(shape) + np.log1p(x / (shape + 1))
    return np.where(np.isfinite(direct), direct, series)
