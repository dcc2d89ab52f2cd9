"""What noise hides where work is divided: a serial part, and what the division costs.

Times that fall with the processes end in what does not: a constant, or a term that grows. Among few
processes both may be far below the noise. Nothing is known of their size then, not even its order of
magnitude, so it is log-uniform beforehand, in shares of the measured times (Jeffreys' prior of a scale).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from orchestrator.models.base import Floats, Integers
from orchestrator.models.pmnf.hypotheses import FALLS, IN_PROPORTION
from orchestrator.models.pmnf.truncation import excess, moved, truncated

# Smallest share of the measured times that is looked for. Chosen by hand; not derived.
LEAST_SHARE = 1e-3
_RANGE = -float(np.log(LEAST_SHARE))
# Standard deviations by which a cost may be negative; with more, there is none. Chosen by hand; not derived.
_UNLIKELY = 3.0
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Division:
    """What divides work in some hypotheses."""

    # The term, from 1, in which a parameter grows that falls in another one; 0 without such a term. Shape
    # (hypotheses,).
    cost: Integers
    mild: NDArray[np.bool_]  # whether it grows at most in proportion, shape (hypotheses,)
    # Whether every other term falls, so that the constant is what cannot be divided, shape (hypotheses,).
    serial: NDArray[np.bool_]


def division(terms: NDArray[np.int16], growth: tuple[Integers, ...]) -> Division:
    """Find what divides work in hypotheses.

    Parameters
    ----------
    terms
        Block numbers, all terms used, shape (hypotheses, terms, parameters).
    growth
        How the blocks of each parameter grow, see `hypotheses.growth_of`.
    """
    count, size, parameters = terms.shape
    kinds = np.stack([growth[k][terms[:, :, k]] for k in range(parameters)], axis=2)
    falls = kinds == FALLS
    grows = (kinds > 0) & falls.any(axis=1, keepdims=True)
    costs = grows.any(axis=2)
    which = costs.argmax(axis=1)
    mine = np.arange(count), which
    slow = ~grows[mine] | (kinds[mine] == IN_PROPORTION)
    return Division(
        cost=np.where(costs.any(axis=1), which + 1, 0),
        mild=np.asarray(slow.all(axis=1)),
        serial=(falls.any(axis=2) | (np.arange(size) == which[:, None]) & costs).all(axis=1),
    )


def with_cost(shares: Division, c: Floats, inverse: Floats, noise: Floats) -> tuple[Floats, Floats, Floats]:
    """Let what division costs be as small as it may be, without being negative.

    Parameters
    ----------
    shares
        What divides work in the hypotheses.
    c, inverse
        Coefficients in shares of the measured times (t, l) and inverse normal matrices (t, t, l).
    noise
        Residual variance, shape (l,).

    Returns
    -------
    The same, and the logarithm of the prior of sizes relative to a uniform one, shape (l,). Only costs that
    grow at most in proportion are log-uniform: each process talks to every other one at most.
    """
    c, inverse, log_prior = c.copy(), inverse.copy(), np.zeros(c.shape[1])
    some = np.flatnonzero(shares.cost)
    if not len(some):
        return c, inverse, log_prior
    t = shares.cost[some]
    column, own = inverse[:, t, some], np.maximum(inverse[t, t, some], _TINY)
    deviation = c[t, some] / np.sqrt(np.maximum(own * noise[some], _TINY))
    c[:, some], inverse[:, :, some] = truncated(
        c[:, some], inverse[:, :, some], column, own, deviation, noise[some]
    )
    # Residuals are those of the mean, the evidence is that of the mode.
    mode = excess(deviation)[1] ** 2 / 2
    log_prior[some] = np.where(deviation > -_UNLIKELY, mode, -np.inf)
    log_prior[some] += np.where(shares.mild[some], _visible(c[t, some]), 0.0)
    return c, inverse, log_prior


def with_serial_part(
    shares: Division, c: Floats, inverse: Floats, constant_row: Floats, deviation: Floats, noise: Floats
) -> tuple[Floats, Floats, Floats]:
    """Let the constant be far smaller than what can be seen, where it is all that cannot be divided.

    Parameters
    ----------
    shares, c, inverse, noise
        As for `with_cost`; of the constant the mean, given that it is not negative.
    constant_row
        Row of the constant in the inverse normal matrix with the constant, shape (t, l).
    deviation
        The unrestricted constant in units of its standard deviation, shape (l,).

    Returns
    -------
    As from `with_cost`.
    """
    width, (z, _) = np.sqrt(np.maximum(constant_row[0] * noise, _TINY)), excess(deviation)
    # A cost that was moved may have taken more than there was.
    mean, variance = np.maximum(c[0], 0.0), inverse[0, 0] * noise
    seen, unseen = _visible(mean), _hidden(width, z)
    both = np.logaddexp(seen, unseen)
    share = np.where(shares.serial, np.exp(seen - both), 1.0)
    # Mean and variance of a mixture with 0.
    expected = share * mean
    spread = share * variance + share * (1 - share) * mean**2
    change = (spread - variance) / np.maximum(noise, _TINY)
    found = moved(c, inverse, constant_row / constant_row[0], expected - c[0], change)
    return *found, np.where(shares.serial, both, 0.0)


def _visible(share: Floats) -> Floats:
    """Log density of a size that is log-uniform at a share of the measured times, relative to uniform."""
    return np.asarray(-np.log(_RANGE * np.maximum(share, LEAST_SHARE)))


def _hidden(width: Floats, deviation: Floats) -> Floats:
    """Log evidence of sizes far below what can be seen, relative to a uniform prior of shares.

    Parameters
    ----------
    width
        Standard deviation of the estimated share.
    deviation
        The estimate in such standard deviations, which may be negative.
    """
    magnitudes = np.log(np.clip(width, LEAST_SHARE, 1.0) / LEAST_SHARE)
    with np.errstate(divide="ignore"):
        below = np.log(magnitudes / _RANGE)
    at_zero = -(deviation**2) / 2 - np.log(width * np.sqrt(2 * np.pi)) - log_ndtr(deviation)
    return np.asarray(below + at_zero)
