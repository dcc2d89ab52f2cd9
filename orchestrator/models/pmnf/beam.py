"""Best-first search for hypotheses, one block at a time, for all call paths together.

Each round takes the most promising hypotheses that were not expanded yet and tries every change of one
parameter in one term (every block, none included; existing terms and a new one), and of two parameters of
a term together among similar blocks: exponents of factors trade off against each other along narrow
ridges that single steps cannot follow.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats, Integers
from orchestrator.models.pmnf.candidates import PENALTY, Candidates, Searched
from orchestrator.models.pmnf.hypotheses import (
    begins,
    blocks_used,
    canonical,
    first_occurrences,
    places,
    terms_used,
    widened,
)
from orchestrator.models.pmnf.sweep import Problem, lower, problems, sweep

# Hypotheses further behind the best one (natural logarithm) are kept, but not expanded. Chosen by
# hand; not derived.
_NEARBY = 3.0
# A call path of which a round finds less than this share of the posterior mass is done. Chosen by
# hand; not derived.
_GROWTH = 0.02
# (Hypothesis, block) pairs in flight: keeps the arrays within the cache. Chosen by hand; not derived.
_CHUNK = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How far to search."""

    rounds: int = 12  # rounds of expansions
    first: int = 4  # hypotheses expanded per call path in the first round, when none is good yet
    # The same in later rounds. Where few measurements leave many hypotheses about as probable, fewer miss
    # some of them, and intervals are too narrow.
    beam: int = 16
    paired: int = 4  # how many of these try changes of two factors of a term together
    # Whether the best also tries to move a parameter into another term while that term adapts.
    joined: bool = False
    products: bool = False  # whether the best also tries every product of two blocks in place of each term


@dataclass(frozen=True, slots=True)
class Pool:
    """Hypotheses of many call paths."""

    row: Integers  # call path, shape (states,)
    terms: NDArray[np.int16]  # block numbers, shape (states, terms, parameters); used terms come first
    rss: Floats  # weighted residual sum of squares, and the cost of negative coefficients; shape (states,)
    expanded: NDArray[np.bool_]  # whether the neighbours are in the pool already, shape (states,)

    def take(self, index: NDArray[np.intp] | NDArray[np.bool_]) -> Pool:
        """Select states."""
        return Pool(self.row[index], self.terms[index], self.rss[index], self.expanded[index])


def search(
    searched: Searched,
    first: tuple[Candidates, Floats],
    *,
    keep: int,
    wide: bool = False,
    extent: Extent = Extent(),
) -> tuple[Candidates, Floats]:
    """Find good hypotheses, starting from some.

    Guaranteed: no change of one parameter (its block, its term, leaving it out) improves any of the best
    hypotheses that were expanded. Not guaranteed: the global optimum, as in `exhaustive.screen`.

    Parameters
    ----------
    searched
        Values over any number of parameters.
    first
        Starting hypotheses (ordered by call path), and their residual sums of squares.
    keep
        Most candidates per call path.
    wide
        Allow a parameter in several terms, one term more than there are parameters, and a negative
        constant; all at a cost.
    extent
        How hard to search.

    Returns
    -------
    The hypotheses, and their residual sums of squares.
    """
    parameters = len(searched.tables)
    slots = parameters + 1 if wide else parameters
    candidates, rss = first
    terms = widened(candidates.terms, max(slots, candidates.terms.shape[1]))
    size = max(1, _CHUNK // (searched.log_value.shape[1] * extent.beam))
    parts, sums = [], []
    for begin, problem in problems(searched, wide=wide, together=size):
        inside = np.flatnonzero((candidates.row >= begin) & (candidates.row < begin + size))
        pool = Pool(
            candidates.row[inside] - begin, terms[inside], rss[inside], np.zeros(len(inside), dtype=bool)
        )
        growing = np.ones(len(problem.variance), dtype=bool)
        best, mass = np.full((2, len(growing)), np.inf)
        for number in range(extent.rounds):
            # What is coarse may still become the best; later only what is nearly as good as the best.
            width, reach = (extent.first, np.inf) if number == 0 else (extent.beam, _NEARBY)
            front = _front(problem, pool, width, reach)
            front = front[growing[pool.row[front]]]
            if not len(front):
                break
            pool = _expand(problem, pool, front, extent, keep)
            before = best, mass
            best, mass = _best(pool, pool.rss, len(growing)), _mass(problem, pool)
            growing = (best < (1 - _GROWTH) * before[0]) | (mass > before[1] + _GROWTH)
        pool = _trim(problem, pool, keep, problem.reach)
        parts.append(Candidates(pool.row + begin, pool.terms))
        sums.append(pool.rss)
    return Candidates.concatenate(parts), np.concatenate(sums)


def _front(problem: Problem, pool: Pool, beam: int, reach: float) -> NDArray[np.intp]:
    energy = _energy(problem, pool)
    best = _best(pool, energy, len(problem.variance))
    near = np.flatnonzero(~pool.expanded & (energy <= best[pool.row] + reach))
    front = near[np.lexsort((energy[near], pool.row[near]))]
    return front[places(pool.row[front]) < beam]


def _expand(problem: Problem, pool: Pool, front: NDArray[np.intp], extent: Extent, keep: int) -> Pool:
    """Add the neighbours of the states in front to the pool."""
    pool.expanded[front] = True
    states = pool.take(front)
    parts, best = [pool], _best(pool, pool.rss, len(problem.variance))
    for slot, swept, near, moved in _moves(problem, states, extent):
        if not len(moved.row):
            continue
        rss = sweep(problem, moved.row, moved.terms, slot, swept, near)
        lower(best, moved.row, rss.reshape(len(rss), -1))
        parts.append(_near(problem, moved, slot, swept, near, rss, best))
    return _trim(problem, _join(parts), keep, 1.5 * problem.reach)


Move = tuple[int, tuple[int, ...], tuple[bool, ...], Pool]


def _moves(problem: Problem, states: Pool, extent: Extent) -> Iterator[Move]:
    """Yield (term, swept parameters, whether each only among near blocks, the states it applies to)."""
    slots, parameters = states.terms.shape[1:]
    used = terms_used(states.terms)
    leading = places(states.row)
    for slot in range(slots):
        for k in range(parameters):
            moved = states.take(used >= slot)
            yield slot, (k,), (False,), moved if problem.wide else _alone(moved, slot, k)
        for k, j in itertools.permutations(range(parameters), 2):
            has_k, has_j = (states.terms[:, slot, i] > 0 for i in (k, j))
            if k < j:
                yield slot, (k, j), (True, True), states.take(has_k & has_j & (leading < extent.paired))
            if k < j and problem.wide:
                yield slot, (k, j), (False, False), states.take((used == slot) & (leading < 1))
            if k < j and extent.products and not problem.wide:
                moved = states.take((used >= slot) & (leading < 1))
                yield slot, (k, j), (False, False), _alone(_alone(moved, slot, k), slot, j)
            if extent.joined and not problem.wide:
                moved = states.take(has_k & ~has_j & (leading < 1))
                yield slot, (k, j), (True, False), _alone(moved, slot, j)


def _alone(states: Pool, slot: int, k: int) -> Pool:
    """Take parameter k out of all other terms."""
    states.terms[:, :slot, k] = 0
    states.terms[:, slot + 1 :, k] = 0
    return states


def _near(
    problem: Problem,
    pool: Pool,
    slot: int,
    swept: tuple[int, ...],
    near: tuple[bool, ...],
    rss: Floats,
    best: Floats,
) -> Pool:
    """Keep the neighbours whose residual is within reach of the best one known."""
    scale = 2 * problem.noise(best, pool.terms.shape[1])[pool.row]
    fewer = pool.terms.shape[2] - blocks_used(pool.terms).sum(axis=1)
    limit = best[pool.row] + scale * (problem.reach + PENALTY * np.maximum(fewer, 0))
    if len(swept) == 1:
        chosen = rss <= limit[:, None]
        chosen[:, 0] |= rss[:, 0] <= limit + scale * PENALTY
    else:
        chosen = rss <= limit[:, None, None]
    state, *blocks = np.nonzero(chosen)
    found = pool.take(state)
    for k, block, close in zip(swept, blocks, near, strict=True):
        if close:
            block = problem.factors[k].near[pool.terms[state, slot, k], block]
        elif len(swept) == 2:
            block = block + 1
        found.terms[:, slot, k] = block
    found.rss[:] = rss[(state, *blocks)]
    found.expanded[:] = False
    return found


def _best(pool: Pool, values: Floats, rows: int) -> Floats:
    """Return the least value of the states of every call path."""
    best = np.full(rows, np.inf)
    np.minimum.at(best, pool.row, values)
    return best


def _energy(problem: Problem, pool: Pool) -> Floats:
    """Negative log posterior up to a constant: misfit in units of the noise, and a cost per block."""
    best = _best(pool, pool.rss, len(problem.variance))
    scale = problem.noise(best, pool.terms.shape[1])
    energy: Floats = pool.rss / (2 * scale[pool.row]) + PENALTY * blocks_used(pool.terms).sum(axis=1)
    return energy


def _mass(problem: Problem, pool: Pool) -> Floats:
    """Logarithm of the posterior mass found so far, per call path of a trimmed pool, up to a constant."""
    mass = np.full(len(problem.variance), -np.inf)
    begin = np.flatnonzero(begins(pool.row))
    mass[pool.row[begin]] = np.logaddexp.reduceat(-_energy(problem, pool), begin)
    return mass


def _join(parts: list[Pool]) -> Pool:
    """Concatenate, with every hypothesis once: as it is in the first part that has it."""
    pool = Pool(
        np.concatenate([p.row for p in parts]),
        np.concatenate([p.terms for p in parts]),
        np.concatenate([p.rss for p in parts]),
        np.concatenate([p.expanded for p in parts]),
    )
    terms, code = canonical(pool.terms)
    kept = first_occurrences(pool.row, code)
    return Pool(pool.row[kept], terms[kept], pool.rss[kept], pool.expanded[kept])


def _trim(problem: Problem, pool: Pool, keep: int, reach: float) -> Pool:
    energy = _energy(problem, pool)
    best = _best(pool, energy, len(problem.variance))
    near = np.flatnonzero(energy <= best[pool.row] + reach)
    order = near[np.lexsort((energy[near], pool.row[near]))]
    return pool.take(order[places(pool.row[order]) < keep])
