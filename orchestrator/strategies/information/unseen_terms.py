"""Growth that the measurements cannot exclude: terms too small to be seen where it was measured.

A model's belief holds what explains the measurements. A term that takes a thousandth of the time at the cheap
points may still take most of it at P₊, and a run far out may cost a multiple of what is expected. How large
such a term can be follows from the noise at the measured points; that it is there at all is a small prior.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Self

import numpy as np

from orchestrator.models.base import Floats, coordinates
from orchestrator.models.belief import ModelWithBelief, of_answer
from orchestrator.types import Point

# Probability that there is one more term. Chosen by hand; not derived.
_PRIOR = 0.03
# Powers of a parameter like which such terms grow: the whole exponents of the normal form (de Morais et al.,
# Denoising Application Performance Models with Noise-Resilient Priors, eq. 2a).
_EXPONENTS = (1.0, 2.0, 3.0)
_LARGEST = 50.0  # logarithm of the largest ratio of a term to the time: keeps exponentials finite
_TINY = 1e-300  # keeps logarithms of zero finite
_AT_ONCE = 2_000_000  # terms times points: ten parameters have thousands of terms


@dataclass(frozen=True, slots=True)
class Unseen:
    """What the possible terms could do at some points."""

    deviation: Floats  # by how much each term would raise the logarithm of the time, shape (terms, points)
    root: float  # square root of the prior of each term
    growth: Floats  # expected relative increase of the time, shape (points,)


@dataclass(frozen=True, slots=True)
class UnseenTerms:
    """Possible terms of one model, each as large as the noise at the measured points allows."""

    parameters: tuple[str, ...]  # numeric parameters that terms may have
    exponents: Floats  # of every term, shape (parameters, terms); without terms where nothing was measured
    log_size: Floats  # logarithm of the coefficient of every term, shape (terms,)

    @classmethod
    def of(cls, model: ModelWithBelief, done: Mapping[Point, int]) -> Self:
        """Return the terms that ``done`` runs per point cannot exclude.

        A term z has a coefficient of one standard deviation of what it would be fitted with alone,
        ``σ / √Σ r (z/f)²`` over the measured points with r runs and predicted times f. Points at which a
        parameter is not positive say nothing of terms.
        """
        parameters = tuple(model.parameters)
        nothing = cls(parameters, np.zeros((len(parameters), 0)), np.zeros(0))
        points = [point for point, runs in done.items() if runs > 0]
        x = coordinates(points, parameters)
        positive = np.all(x > 0, axis=1)
        x, points = x[positive], [points[k] for k in np.flatnonzero(positive)]
        if not parameters or not points:
            return nothing
        belief = of_answer(model, points)
        log_time, usable = belief.centre, np.isfinite(belief.centre)
        if not usable.any():
            return nothing
        runs = np.array([done[point] for point in points], float)[usable]
        exponents = np.array(list(_terms(len(parameters)))).T
        largest, seen = _seen(np.log(x[usable]), exponents, log_time[usable], runs)
        return cls(parameters, exponents, np.log(belief.noise / np.sqrt(seen) + _TINY) - largest)

    def at(self, points: Sequence[Point], log_time: Floats) -> Unseen:
        """Return what the terms could do at points, given the logarithm of the predicted time there."""
        if not len(self.log_size):
            return Unseen(np.zeros((0, len(points))), 0.0, np.zeros(len(points)))
        x = coordinates(points, self.parameters)
        ratio = np.log(np.maximum(x, _TINY)) @ self.exponents - log_time[:, None]
        ratio = np.exp(np.minimum(ratio + self.log_size, _LARGEST)).T
        prior = _PRIOR / len(ratio)
        growth = prior * ratio.sum(axis=0)
        return Unseen(np.log1p(ratio), float(np.sqrt(prior)), np.where(np.isnan(growth), 0.0, growth))


def _seen(log_x: Floats, exponents: Floats, log_time: Floats, runs: Floats) -> tuple[Floats, Floats]:
    """Return Σ r (z/f)² of every term z, some points at a time: (a, b) with the sum b exp(2 a)."""
    largest = np.full(exponents.shape[1], -np.inf)
    total = np.zeros(exponents.shape[1])
    step = max(1, _AT_ONCE // exponents.shape[1])
    for start in range(0, len(log_x), step):
        part = slice(start, start + step)
        share = log_x[part] @ exponents - log_time[part, None]
        larger = np.maximum(largest, share.max(axis=0))
        total *= np.exp(2 * (largest - larger))
        total += runs[part] @ np.exp(2 * (share - larger))
        largest = larger
    return largest, total


def _terms(parameters: int) -> Iterator[Floats]:
    """Yield the exponents of terms: of one parameter, products of two, and even products of more."""
    for size in range(1, parameters + 1):
        powers = product(_EXPONENTS, repeat=size) if size < 3 else ((e,) * size for e in _EXPONENTS)
        for exponents in powers:
            for some in combinations(range(parameters), size):
                term = np.zeros(parameters)
                term[list(some)] = exponents
                yield term
