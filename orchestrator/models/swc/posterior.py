"""The prior as one more hypothesis in the posterior of the normal form: good times overrule a wrong prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.noise import MAD_TO_SIGMA
from orchestrator.models.pmnf.correction import Correction
from orchestrator.models.pmnf.hypotheses import PAPER, structures
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.pmnf.posterior import Posterior
from orchestrator.models.swc.columns import Column
from orchestrator.models.swc.likelihood import log_marginal_likelihood
from orchestrator.models.swc.regression import Fit
from orchestrator.models.swc.times import TimedPoints, Times

Names = tuple[str, ...]

# Constants are chosen by hand unless stated otherwise.
_LEAST_PROBABILITY = 1e-9  # less probable members change no prediction, and there may be many of them
_LARGEST_LOG_ODDS = 700.0  # beyond, exp() overflows
_OUTLIER_SCALE = 2.5  # residuals beyond this many standard deviations weigh less
# Degrees of freedom of the noise, at most, where a smooth lack of fit is granted: a large value would fix
# the variance at that of the noise.
_MOST_FREEDOM = 4.0
_LEAST_STRENGTH = 1e-6  # of that lack of fit
_TINY = 1e-12  # keeps divisions finite


def member(columns: Sequence[Column], fitted: Fit, parameters: Names) -> Posterior:
    """Return a posterior with the fitted prior as its only member."""
    place = {name: k for k, name in enumerate(parameters)}
    terms: dict[tuple[tuple[str, tuple[float, float]], ...], Floats] = {(): np.zeros(len(columns))}
    for c, column in enumerate(columns):
        for monomial in column.monomials:
            terms.setdefault(monomial.factors, np.zeros(len(columns)))[c] += monomial.coefficient
    mixing = np.stack(list(terms.values()))
    exponents = np.zeros((1, max(len(terms) - 1, 1), len(parameters), 2))
    for t, factors in enumerate(list(terms)[1:]):
        for name, pair in factors:
            exponents[0, t, place[name]] = pair
    if len(terms) == 1:
        mixing = np.concatenate([mixing, np.zeros((1, len(columns)))])
    return Posterior(
        weights=np.ones(1),
        exponents=exponents,
        coefficients=(mixing @ fitted.coefficients)[None],
        covariance=(mixing @ fitted.covariance @ mixing.T)[None],
        misfit=np.array([fitted.lack]),
    )


def joined(
    model: PmnfModel, own: Posterior, timed: TimedPoints, fitted: Fit, design: Floats, trust: float
) -> tuple[PmnfModel, float]:
    """Add the prior's hypothesis to the posterior of a model fitted to times alone.

    Parameters
    ----------
    model
        Fitted to times alone.
    own, fitted, design
        The prior: as a posterior over ``timed.parameters``, its fit, and its columns at the points.
    timed
        The located times.
    trust
        Probability, before looking at times, that the prior has the right form.

    Returns
    -------
    The model with both, the more probable hypothesis first, and the probability of the prior.
    """
    other = widened(model.posterior, model.parameters, timed.parameters)
    times = timed.times
    if other.correction is not None:
        times = _with_misfit(times, other.correction, timed.x)
    best = other.first()
    weights = _agreed(fitted, times.log_value - best.log_mean(timed.x)[0], times)
    gain = log_marginal_likelihood(design, fitted.central, times, weights)
    gain -= log_marginal_likelihood(best.design(timed.x)[0].T, best.coefficients[0], times, weights)
    gain -= _log_prior(best.exponents[0]) - float(np.log(other.weights[0]))
    odds = np.log(trust) - np.log1p(-trust) + gain
    probability = float(1 / (1 + np.exp(-np.clip(odds, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS))))
    posterior = _mixed(own, other, probability)
    return replace(model, parameters=timed.parameters, posterior=posterior, beyond=None), probability


def _agreed(fitted: Fit, residuals: Floats, times: Times) -> Floats:
    """Return the weights of the points. Only an outlier to both hypotheses gets a small weight."""
    base = times.count / times.count.mean()
    spread = max(MAD_TO_SIGMA * float(np.median(np.abs(residuals))), np.sqrt(times.variance), _TINY)
    limit = _OUTLIER_SCALE * spread
    robust = np.minimum((limit / np.maximum(np.abs(residuals), limit)) ** 2, 1.0)
    result: Floats = np.maximum(fitted.weights, base * robust)
    return result


def _log_prior(exponents: Floats) -> float:
    """Log prior of one hypothesis of the normal form: its blocks, and the way they are combined."""
    present = int(np.count_nonzero(exponents.any(axis=2)))
    return -present * float(np.log(len(PAPER))) - float(np.log(structures(exponents.shape[1])))


def widened(posterior: Posterior, old: Names, new: Names) -> Posterior:
    """Return a posterior over more parameters, on which it does not depend."""
    members, terms = posterior.exponents.shape[:2]
    exponents = np.zeros((members, terms, len(new), 2))
    for k, name in enumerate(old):
        exponents[:, :, new.index(name)] = posterior.exponents[:, :, k]
    correction = posterior.correction
    if correction is not None:
        features = correction.features
        order = np.array([new.index(name) for name in old], dtype=np.intp)
        middle, half = np.zeros(len(new)), np.zeros(len(new))
        middle[order], half[order] = features.middle, features.half
        pairs = np.where(features.pairs < 0, -1, order[np.maximum(features.pairs, 0)])
        correction = replace(correction, features=replace(features, middle=middle, half=half, pairs=pairs))
    return replace(posterior, exponents=exponents, correction=correction)


def _with_misfit(times: Times, correction: Correction, x: Floats) -> Times:
    """Allow the prior the smooth lack of fit that was found around the other hypotheses.

    Its strength follows from the covariance of their correction, ``(I/smooth² + FᵀF/v)⁻¹``.
    """
    features = correction.features(x)
    smooth = float(correction.smooth[0])
    inner = np.linalg.inv(correction.covariance[0] / smooth**2) - np.eye(features.shape[1])
    strength = max(float(np.trace(inner)) / max(float(np.sum(features**2)), _TINY), _LEAST_STRENGTH)
    limited = replace(times, freedom=min(times.freedom, _MOST_FREEDOM))
    return limited.with_smooth_misfit(features, strength)


def _uncorrected(correction: Correction, terms: int) -> Correction:
    """Return the correction of the prior: zero, because counts determine how it extrapolates."""
    size = len(correction.features.pairs)
    return Correction(
        features=correction.features,
        coefficients=np.zeros((1, size)),
        coupling=np.zeros((1, size, terms)),
        covariance=np.zeros((1, size, size)),
        smooth=np.zeros(1),
    )


def _mixed(own: Posterior, other: Posterior, probability: float) -> Posterior:
    """Join two posteriors over the same parameters, the best hypothesis first, without improbable members.

    A later member may weigh more than the best hypothesis where it represents many hypotheses.
    """
    if 1 - probability < _LEAST_PROBABILITY:
        return own
    terms = max(own.exponents.shape[1], other.exponents.shape[1])
    first, second = _padded(own, terms), _padded(other, terms)
    weights = np.concatenate([probability * own.weights, (1 - probability) * other.weights])
    order = np.argsort(-weights, kind="stable")
    best = 0 if weights[0] >= weights[len(own.weights)] else len(own.weights)
    order = np.r_[best, order[(order != best) & (weights[order] > _LEAST_PROBABILITY)]]
    correction = None
    if (known := other.correction) is not None:
        none = _uncorrected(known, terms + 1)
        correction = Correction(
            features=known.features,
            coefficients=np.concatenate([none.coefficients, known.coefficients])[order],
            coupling=np.concatenate([none.coupling, _wide(known.coupling, terms + 1)])[order],
            covariance=np.concatenate([none.covariance, known.covariance])[order],
            smooth=np.concatenate([none.smooth, known.smooth])[order],
        )
    return Posterior(
        weights=weights[order],
        exponents=np.concatenate([first.exponents, second.exponents])[order],
        coefficients=np.concatenate([first.coefficients, second.coefficients])[order],
        covariance=np.concatenate([first.covariance, second.covariance])[order],
        misfit=np.concatenate([first.misfit, second.misfit])[order],
        correction=correction,
    )


def _padded(posterior: Posterior, terms: int) -> Posterior:
    more = terms - posterior.exponents.shape[1]
    return replace(
        posterior,
        exponents=np.pad(posterior.exponents, ((0, 0), (0, more), (0, 0), (0, 0))),
        coefficients=np.pad(posterior.coefficients, ((0, 0), (0, more))),
        covariance=np.pad(posterior.covariance, ((0, 0), (0, more), (0, more))),
    )


def _wide(coupling: Floats, terms: int) -> Floats:
    return np.pad(coupling, ((0, 0), (0, 0), (0, terms - coupling.shape[2])))
