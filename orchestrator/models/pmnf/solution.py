"""Hypotheses of all call paths of a group with what they are weighed by, and what is asked of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtri

from orchestrator.models.base import Floats, Integers
from orchestrator.models.noise import Located
from orchestrator.models.pmnf.candidates import Candidates, Searched, log_prior
from orchestrator.models.pmnf.fit import Fits, columns
from orchestrator.models.pmnf.hypotheses import places, widened
from orchestrator.models.pmnf.neighbours import Expected
from orchestrator.models.pmnf.weighting import Weighting

# A call path is examined for lack of fit where the residuals exceed the expected variance by this factor, and
# by so many standard deviations of their sum of squares; where the noise was estimated, chance does that with
# this probability at most. Chosen by hand; not derived.
EXCESS = 1.5
_CHANCE = 4.0
_ERROR = 1e-4
# Best hypotheses of a call path from which lack of fit and overheads are explored. Chosen by hand; not
# derived.
_EXAMINED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What all call paths of a group share."""

    tables: tuple[Floats, ...]  # block values per parameter at the points, shape (blocks, points)
    growth: tuple[Integers, ...]  # how the blocks of each parameter grow, see `hypotheses.growth_of`
    features: Floats  # monomials of the smooth correction at the points, shape (points, features)
    keep: int  # most hypotheses per call path to fit
    wide: bool  # search beyond one term per parameter, and negative coefficients, where there is lack of fit
    # What other campaigns make probable, by call path; empty where there are none.
    expected: tuple[Expected | None, ...] = ()

    def rows(self, index: NDArray[np.intp]) -> Self:
        """Select call paths."""
        if not self.expected:
            return self
        return replace(self, expected=tuple(self.expected[row] for row in index))

    def log_prior(self, candidates: Candidates) -> Floats:
        """Return the log prior of hypotheses."""
        result = log_prior(candidates, self.growth)
        for expected, mine in self.informed(candidates):
            result[mine], _ = expected.mixed(result[mine], candidates.terms[mine])
        return result

    def informed(self, candidates: Candidates) -> Iterator[tuple[Expected, NDArray[np.intp]]]:
        """Yield what is expected of call paths with some candidates, and which these are."""
        order = np.argsort(candidates.row, kind="stable")
        begin = np.searchsorted(candidates.row[order], np.arange(len(self.expected) + 1))
        for row, expected in enumerate(self.expected):
            if expected is not None and begin[row] < begin[row + 1]:
                yield expected, order[begin[row] : begin[row + 1]]

    def with_expected(self, candidates: Candidates) -> Candidates:
        """Add the forms that are expected, where the search did not find them."""
        parts = [
            Candidates(np.full(len(terms), row, dtype=np.intp), terms)
            for row, terms in ((k, item.terms()) for k, item in enumerate(self.expected) if item is not None)
        ]
        return Candidates.join([candidates, *parts]) if parts else candidates


@dataclass(frozen=True, slots=True)
class Solution:
    """Weighed hypotheses of all call paths, ordered by call path and score."""

    candidates: Candidates
    fits: Fits
    located: Located
    weighting: Weighting

    def first(self) -> NDArray[np.intp]:
        """Index of the best hypothesis of every call path."""
        rows = len(self.located.sigma)
        return np.searchsorted(self.candidates.row, np.arange(rows)).astype(np.intp)

    def leading(self) -> NDArray[np.intp]:
        """Indices of the best hypotheses of every call path, from which further ones are explored."""
        return np.flatnonzero((places(self.candidates.row) < _EXAMINED) & np.isfinite(self.fits.score))

    def searched(self, task: Task) -> Searched:
        """Return the values as further searches see them, with the noise that was found."""
        return Searched(task.tables, self.located.log_value, self.weighting.weights, self.weighting.variance)

    def rows(self, index: NDArray[np.intp]) -> Self:
        """Select call paths, in ascending order, and number them from 0."""
        inside, chosen = self.candidates.rows(index)
        return type(self)(
            chosen,
            self.fits.take(inside),
            self.located.rows(index),
            self.weighting.rows(index),
        )

    def put(self, index: NDArray[np.intp], part: Solution) -> Self:
        """Replace what is known of some call paths."""
        stays = np.flatnonzero(~np.isin(self.candidates.row, index))
        old = self.candidates.take(stays), self.fits.take(stays)
        new = Candidates(index[part.candidates.row], part.candidates.terms), part.fits
        return type(self)(
            *joined([old, new]),
            self.located.put(index, part.located),
            self.weighting.put(index, part.weighting),
        )


def best_residuals(task: Task, solution: Solution) -> Floats:
    """Log values minus the best hypothesis, shape (call paths, points)."""
    first = solution.first()
    z = columns(solution.candidates.terms[first], task.tables)
    c = solution.fits.coefficients[first]
    value = c[:, :1] + np.einsum("tcn,ct->cn", z, c[:, 1:])
    residuals: Floats = solution.located.log_value - np.log(np.maximum(value, 1e-300))
    return residuals


def poorly_fitted(solution: Solution, parameters: int) -> NDArray[np.bool_]:
    """Return for which call paths no hypothesis fits within the noise: beyond chance, and by much."""
    first, expected = solution.first(), solution.weighting.variance
    freedom = max(solution.located.log_value.shape[1] - parameters - 1, 1)
    chance = freedom + _CHANCE * np.sqrt(2 * freedom)
    rss = solution.fits.rss[first]
    poor = (solution.fits.variance[first] > EXCESS * expected) & (rss > chance * expected)
    # Noise estimated from few repetitions may be far too small: the quotient has Fisher's distribution.
    some = np.flatnonzero(poor & ~solution.located.is_guess)
    # Its inverse survival function is that of scipy.stats.f, which would take a second to import.
    sure = freedom * fdtri(freedom, np.maximum(solution.located.freedom[some], 1.0), 1.0 - _ERROR)
    poor[some] = rss[some] > sure * expected[some]
    return np.asarray(poor)


def joined(pairs: Sequence[tuple[Candidates, Fits]]) -> tuple[Candidates, Fits]:
    """Concatenate hypotheses with any numbers of terms, ordered by call path and score."""
    width = max(candidates.terms.shape[1] for candidates, _ in pairs)
    return ordered(*concatenated([_padded(*pair, width) for pair in pairs]))


def ordered(candidates: Candidates, fits: Fits) -> tuple[Candidates, Fits]:
    """Sort hypotheses by call path and score, the best first."""
    order = np.lexsort((-fits.score, candidates.row))
    return candidates.take(order), fits.take(order)


def _padded(candidates: Candidates, fits: Fits, width: int) -> tuple[Candidates, Fits]:
    more = width - candidates.terms.shape[1]
    return Candidates(candidates.row, widened(candidates.terms, width)), replace(
        fits,
        coefficients=np.pad(fits.coefficients, ((0, 0), (0, more))),
        covariance=np.pad(fits.covariance, ((0, 0), (0, more), (0, more))),
    )


def concatenated(pairs: list[tuple[Candidates, Fits]]) -> tuple[Candidates, Fits]:
    """Concatenate hypotheses with one number of terms."""
    return Candidates.concatenate([c for c, _ in pairs]), Fits.concatenate([f for _, f in pairs])


def log_sums(row: Integers, score: Floats, rows: int) -> Floats:
    """Return logarithms of sums of exponentials, by call path: shape (rows,)."""
    total = np.full(rows, -np.inf)
    np.logaddexp.at(total, row, score)
    return total
