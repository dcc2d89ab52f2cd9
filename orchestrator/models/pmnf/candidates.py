"""Hypotheses worth a closer look, and the prior that ranks them before they are fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats, Integers
from orchestrator.models.pmnf.hypotheses import FALLS, blocks_chosen, canonical, first_occurrences, widened

# What a block costs in the ranking of hypotheses: the logarithm of the number of blocks in the set `PAPER`,
# 59.
PENALTY = 4.0
# What one more term with the same parameter costs, on top. Chosen by hand; not derived.
REPEATED = 2.5
# What a negative coefficient costs. Chosen by hand; not derived.
NEGATIVE = 2.5
# How far behind the best one, in units of log posterior, a hypothesis may be and still be fitted, with few
# and with many points: one that is 3000 and 400 times less probable. From how many points on these are many.
# Chosen on the functions of docs/experiments.md; not derived.
_FEW_REACH, _MANY_REACH, _MANY_POINTS = 8.0, 6.0, 20


@dataclass(frozen=True, slots=True)
class Searched:
    """Values for which hypotheses are searched."""

    # Block values per parameter, each of shape (blocks, points); block 0 is constant.
    tables: tuple[Floats, ...]
    # log_value, precision: logarithm of the location and its weight (effective repetitions), shape (call
    # paths, points).
    log_value: Floats
    precision: Floats
    variance: Floats  # relative variance of a value of weight 1, shape (call paths,)

    def rows(self, index: Integers) -> Searched:
        """Select call paths."""
        return Searched(self.tables, self.log_value[index], self.precision[index], self.variance[index])


@dataclass(frozen=True, slots=True)
class Candidates:
    """Hypotheses worth a closer look, as one flat list over call paths."""

    row: Integers  # call path of every candidate, shape (candidates,)
    # Block numbers, shape (candidates, terms, parameters); a term of zeros is unused.
    terms: NDArray[np.int16]

    def take(self, index: NDArray[np.intp]) -> Candidates:
        """Select candidates."""
        return Candidates(self.row[index], self.terms[index])

    def rows(self, index: Integers) -> tuple[NDArray[np.intp], Candidates]:
        """Select call paths, in ascending order, and number them from 0; also return where they were."""
        inside = np.flatnonzero(np.isin(self.row, index))
        row = np.searchsorted(index, self.row[inside]).astype(np.intp)
        return inside, Candidates(row, self.terms[inside])

    @staticmethod
    def concatenate(parts: Sequence[Candidates]) -> Candidates:
        """Put lists one after another whose hypotheses may have different numbers of terms."""
        width = max(part.terms.shape[1] for part in parts)
        terms = [widened(part.terms, width) for part in parts]
        return Candidates(np.concatenate([part.row for part in parts]), np.concatenate(terms))

    @staticmethod
    def join(parts: list[Candidates]) -> Candidates:
        """Concatenate lists whose hypotheses may have different numbers of terms, without duplicates."""
        found = Candidates.concatenate(parts)
        terms, code = canonical(found.terms)
        first = first_occurrences(found.row, code)
        first = first[np.argsort(found.row[first], kind="stable")]
        return Candidates(found.row[first], terms[first])


def by_callpath(parts: Sequence[tuple[Candidates, Floats]]) -> tuple[Candidates, Floats]:
    """Join lists of hypotheses with their residual sums of squares, ordered by call path."""
    candidates = Candidates.concatenate([part for part, _ in parts])
    order = np.argsort(candidates.row, kind="stable")
    return candidates.take(order), np.concatenate([sums for _, sums in parts])[order]


def lowest(values: Floats, most: int, limit: Floats | None = None) -> tuple[Integers, Integers]:
    """Return where the lowest values of every row are, so many at most; row and column of each.

    Those above the limit of their row are left out, and without limits those that are not finite.
    """
    most = min(most, values.shape[1])
    best = np.argpartition(values, most - 1, axis=1)[:, :most]
    found = np.take_along_axis(values, best, axis=1)
    row, place = np.nonzero(np.isfinite(found) if limit is None else found <= limit[:, None])
    return row, best[row, place]


def reach_with(points: int) -> float:
    """Return how much less probable than the best one a hypothesis may be, in log, and still be fitted.

    The search ranks by squares at a known noise. What few points leave open is ranked less well by that than
    by the fit, and there a hypothesis far behind may still be the true one.
    """
    return _MANY_REACH if points >= _MANY_POINTS else _FEW_REACH


def log_prior(candidates: Candidates, growth: tuple[Integers, ...]) -> Floats:
    """Return the log prior of hypotheses; those of one way to combine parameters sum to about 1.

    Every set of parameters and way to combine them is equally probable, and so is each choice of blocks
    for it; a parameter that appears in a second term pays for its block once more, unless both share it.
    A second term costs more on top, except that it is the rule for one to fall and one to grow: work that is
    divided, and what dividing it costs.
    """
    again = np.zeros(len(candidates.terms), dtype=np.intp)
    for k, kinds in enumerate(growth):
        chosen = kinds[candidates.terms[:, :, k]]
        for alike in (chosen == FALLS, chosen > 0):
            again += np.maximum(np.count_nonzero(alike, axis=1) - 1, 0)
    sizes = np.log([max(len(kinds) - 1, 1) for kinds in growth])
    prior: Floats = -blocks_chosen(candidates.terms) @ sizes - REPEATED * again
    return prior
