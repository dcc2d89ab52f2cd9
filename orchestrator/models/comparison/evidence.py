"""How well one hypothesis about the ratio explains the pairs, and what it then is: a Bayesian regression.

The differences of logarithms are ``d = X θ + e``. The variance of ``e`` is what the repetitions show, times a
factor φ around 1 with their degrees of freedom, plus φ τ² for what differs from point to point beyond that: a
run's job or node, or details of the code. (Random effects of a meta-regression, where pairs are the studies;
τ has a half-Cauchy prior, see Gelman 2006, Prior distributions for variance parameters in hierarchical
models.) Given τ everything is a Student's t distribution, so that little data count as little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from orchestrator.models.base import Floats
from orchestrator.models.comparison.pairs import Pairs

# Scale of τ beforehand, relative to the noise of a pair, and the least largest value that is considered. Then
# the number of values. Chosen by hand; not derived.
_SCATTER = 0.5
_MOST_SCATTER = 32.0
_VALUES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A hypothesis given the pairs: a member for every typical size of its coefficients and every τ."""

    log_marginal: Floats  # logarithm of the probability of the differences, with the priors, shape (members,)
    mean: Floats  # of the coefficients, shape (members, coefficients)
    covariance: Floats  # of the coefficients, shape (members, coefficients, coefficients)
    freedom: float  # degrees of freedom of their t distribution
    # Variance of what differs from point to point beyond the repetitions, φ τ², shape (members,).
    scatter: Floats


def scatters(pairs: Pairs) -> tuple[Floats, Floats]:
    """Return values of τ² and the logarithms of their prior probabilities, shape (values of τ,) each.

    A single pair cannot show what differs from point to point: there the repetitions alone count.
    """
    if len(pairs.difference) < 2:
        return np.zeros(1), np.zeros(1)
    noise = float(np.sqrt(np.median(pairs.variance)))
    most = max(_MOST_SCATTER, 4 * float(np.std(pairs.difference)) / noise)
    edges = np.concatenate(([0.0], np.geomspace(0.1, 2 * most, _VALUES)))
    values = np.concatenate(([0.0], np.sqrt(edges[1:-1] * edges[2:])))
    mass = np.diff(np.arctan(edges / _SCATTER))
    return (values * noise) ** 2, np.log(mass / mass.sum())


def evidence(
    pairs: Pairs, scatter: tuple[Floats, Floats], design: Floats, scales: Sequence[float]
) -> Evidence:
    """Weigh a hypothesis.

    Parameters
    ----------
    pairs
        What was measured.
    scatter
        From `scatters`.
    design
        X, shape (pairs, coefficients); no coefficients where the ratio is 1 everywhere.
    scales
        Standard deviations of the coefficients beforehand, each as probable as the others.
    """
    square, prior = scatter
    d, freedom = pairs.difference, pairs.freedom
    number, count = design.shape
    sizes = np.asarray(scales, dtype=float)[:, None]  # axes: scales, values of τ
    precision = 1 / (pairs.variance + square[:, None])
    weighted = precision[:, :, None] * design
    information = design.T @ weighted + np.eye(count) / sizes[:, :, None, None] ** 2
    projected = d @ weighted
    inverse = np.linalg.inv(information)
    mean = np.einsum("srij,rj->sri", inverse, projected)
    # As a sum of squares: the difference of two large numbers would lose all digits where noise is tiny.
    residual = d - mean @ design.T
    squares = (precision * residual**2).sum(axis=-1) + (mean**2).sum(axis=-1) / sizes**2
    determinant = (
        -np.log(precision).sum(axis=-1) + np.linalg.slogdet(information)[1] + 2 * count * np.log(sizes)
    )
    log_marginal = (
        gammaln((freedom + number) / 2)
        - gammaln(freedom / 2)
        - number / 2 * np.log(freedom * np.pi)
        - determinant / 2
        - (freedom + number) / 2 * np.log1p(squares / freedom)
        + prior
        - np.log(len(sizes))
    )
    factor = (freedom + squares) / (freedom + number)
    members = log_marginal.size
    return Evidence(
        log_marginal=log_marginal.ravel(),
        mean=mean.reshape(members, count),
        covariance=(factor[:, :, None, None] * inverse).reshape(members, count, count),
        freedom=freedom + number,
        scatter=(factor * square).ravel(),
    )
