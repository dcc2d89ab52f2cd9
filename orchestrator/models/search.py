"""Best-first search for hypotheses, one block at a time, for all call paths together.

Each round takes the most promising hypotheses that were not expanded yet and tries every change of one
parameter in one term (every block, none included; existing terms and a new one), and of two parameters of
a term together among similar blocks: exponents of factors trade off against each other along narrow
ridges that single steps cannot follow.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.hypotheses import Floats, Integers
from orchestrator.models.screening import NEGATIVE, PENALTY, REACH, Candidates, canonical

_ROUNDS = 4
_BEAM = 8
_PAIRED = 3
_POOL = 200
_NEAR = 16
_CHUNK = 60_000


@dataclass(frozen=True, slots=True)
class Factor:
    """Blocks of one parameter: at the points, and at its distinct values.

    Attributes
    ----------
    table
        Shape (blocks, points).
    level
        The same at the distinct values, shape (blocks, values).
    indicator
        Which point has which value, shape (points, values).
    near
        The blocks most similar to each block, shape (blocks, near).
    """

    table: Floats
    level: Floats
    indicator: Floats
    near: Integers


@dataclass(frozen=True, slots=True)
class Problem:
    """What the search needs to know of the call paths of a chunk.

    ``scale`` and ``root`` are the square roots of the weights, relative to the value and plain, shape
    (call paths, points); ``variance`` is the relative variance of a value of weight 1; ``wide`` allows a
    parameter in several terms and a negative constant.
    """

    factors: tuple[Factor, ...]
    scale: Floats
    root: Floats
    variance: Floats
    wide: bool

    def noise(self, best: Floats, terms: int) -> Floats:
        """Scale of squared residuals, given the best sum: the noise, or the lack of fit if larger."""
        result: Floats = np.maximum(self.variance, best / max(self.root.shape[1] - terms - 1, 1))
        return result


@dataclass(frozen=True, slots=True)
class Pool:
    """Hypotheses of many call paths.

    Attributes
    ----------
    row
        Call path, shape (states,).
    terms
        Block numbers, shape (states, terms, parameters); used terms come first.
    rss
        Weighted residual sum of squares, and the price of negative coefficients; shape (states,).
    expanded
        Whether the neighbours are in the pool already, shape (states,).
    """

    row: Integers
    terms: NDArray[np.int16]
    rss: Floats
    expanded: NDArray[np.bool_]

    def take(self, index: NDArray[np.intp] | NDArray[np.bool_]) -> Pool:
        """Select states."""
        return Pool(self.row[index], self.terms[index], self.rss[index], self.expanded[index])


def factors(tables: tuple[Floats, ...]) -> tuple[Factor, ...]:
    """Prepare block tables, each of shape (blocks, points), for sweeps."""
    result = []
    for table in tables:
        level, inverse = np.unique(table, axis=1, return_inverse=True)
        result.append(Factor(table, level, np.eye(level.shape[1])[inverse.ravel()], _neighbours(level)))
    return tuple(result)


def _neighbours(level: Floats) -> Integers:
    low, high = level.min(axis=1, keepdims=True), level.max(axis=1, keepdims=True)
    curves = (level - low) / np.where(high > low, high - low, 1.0)
    distance = np.abs(curves[:, None] - curves[None]).max(axis=2)
    distance[:, 0] = np.inf
    return np.argsort(distance, axis=1)[:, : max(min(_NEAR, len(level) - 1), 1)]


def search(
    tables: tuple[Floats, ...],
    log_value: Floats,
    precision: Floats,
    variance: Floats,
    first: tuple[Candidates, Floats],
    *,
    keep: int,
    wide: bool = False,
    rounds: int = _ROUNDS,
    beam: int = _BEAM,
) -> Candidates:
    """Find good hypotheses, starting from some.

    Guaranteed: no change of one parameter (its block, its term, leaving it out) improves any of the best
    hypotheses that were expanded. Not guaranteed: the global optimum, as in `screening.screen`.

    Parameters
    ----------
    tables, log_value, precision, variance, keep
        As in `screening.screen`.
    first
        Starting hypotheses (ordered by call path), and their residual sums of squares.
    wide
        Allow a parameter in several terms, one term more than there are parameters, and a negative
        constant; all at a price.
    rounds, beam
        Number of rounds, and hypotheses expanded per call path and round.
    """
    prepared = factors(tables)
    slots = len(tables) + 1 if wide else len(tables)
    candidates, rss = first
    terms = np.pad(candidates.terms, ((0, 0), (0, max(slots - candidates.terms.shape[1], 0)), (0, 0)))
    size = max(1, _CHUNK // (log_value.shape[1] * beam))
    root = np.sqrt(precision)
    scale = root * np.exp(-(log_value - log_value.mean(axis=1, keepdims=True)))
    parts = []
    for begin in range(0, len(log_value), size):
        chunk = slice(begin, begin + size)
        problem = Problem(prepared, scale[chunk], root[chunk], variance[chunk], wide)
        inside = np.flatnonzero((candidates.row >= begin) & (candidates.row < begin + size))
        pool = Pool(
            candidates.row[inside] - begin, terms[inside], rss[inside], np.zeros(len(inside), dtype=bool)
        )
        for _ in range(rounds):
            front = _front(problem, pool, beam)
            if not len(front):
                break
            pool = _expand(problem, pool, front)
        pool = _trim(problem, pool, keep)
        parts.append(Candidates(pool.row + begin, pool.terms))
    return Candidates.join(parts)


def _front(problem: Problem, pool: Pool, beam: int) -> NDArray[np.intp]:
    order = np.lexsort((_energy(problem, pool), pool.expanded, pool.row))
    front = order[_position(pool.row[order]) < beam]
    return front[~pool.expanded[front]]


def _expand(problem: Problem, pool: Pool, front: NDArray[np.intp]) -> Pool:
    """Add the neighbours of the states in front to the pool."""
    pool.expanded[front] = True
    states = pool.take(front)
    parts = [pool]
    for slot, swept, near, moved in _moves(problem, states):
        rss = _sweep(problem, moved, slot, swept, near)
        parts.append(_near(problem, moved, slot, swept, near, rss, _best(parts, len(problem.variance))))
    return _trim(problem, _join(parts), _POOL)


def _moves(problem: Problem, states: Pool) -> Iterator[tuple[int, tuple[int, ...], bool, Pool]]:
    """Yield (term, swept parameters, whether only among near blocks, the states it applies to)."""
    slots, parameters = states.terms.shape[1:]
    used = np.count_nonzero(states.terms.any(axis=2), axis=1)
    leading = _position(states.row)
    for slot in range(slots):
        possible = used >= slot
        for k in range(parameters):
            moved = states.take(possible)
            if not problem.wide:
                moved.terms[:, :slot, k] = 0
                moved.terms[:, slot + 1 :, k] = 0
            if len(moved.row):
                yield slot, (k,), False, moved
        for k, j in itertools.combinations(range(parameters), 2):
            both = (states.terms[:, slot][:, [k, j]] > 0).all(axis=1)
            moved = states.take(both & (leading < _PAIRED))
            if len(moved.row):
                yield slot, (k, j), True, moved
            moved = states.take((used == slot) & (leading < 1))
            if problem.wide and len(moved.row):
                yield slot, (k, j), False, moved


def _sweep(problem: Problem, pool: Pool, slot: int, swept: tuple[int, ...], near: bool) -> Floats:
    """Residual sum of squares of every state with the blocks of the swept parameters replaced.

    The swept column is made orthogonal to the other terms, the constant last, so that the solution
    without the constant (taken where the constant would be negative) comes for free.

    Returns
    -------
    Array of shape (states, blocks) or (states, blocks, blocks); infinite where refused.
    """
    scale, root = problem.scale[pool.row], problem.root[pool.row]
    slots = pool.terms.shape[1]
    columns = np.broadcast_to(scale, (slots, *scale.shape)).copy()
    for t in range(slots):
        for k, factor in enumerate(problem.factors):
            if t != slot or k not in swept:
                some = pool.terms[:, t, k] > 0
                columns[t, some] *= factor.table[pool.terms[some, t, k]]
    used = np.asarray(pool.terms.any(axis=2))
    others = [(columns[t], used[:, t]) for t in range(slots) if t != slot and used[:, t].any()]
    basis, residual = _orthonormal(others, scale, root)
    project, shape = _projector(problem, pool, slot, swept, near)
    rss = _solve(project, columns[slot], basis, residual, problem, pool.row).reshape(len(root), *shape)
    if len(swept) == 1:
        rest = np.delete(pool.terms[:, slot], swept[0], axis=1).any(axis=1)
        gone = np.einsum("sn,sn->s", residual, residual)
        gone -= np.maximum(np.einsum("sn,sn->s", basis[-1], residual), 0) ** 2
        rss[~rest, 0] = np.maximum(gone, 0.0)[~rest]
    return rss


def _projector(
    problem: Problem, pool: Pool, slot: int, swept: tuple[int, ...], near: bool
) -> tuple[Callable[..., Floats], tuple[int, ...]]:
    """Weighted sums over points of a column times every swept block, by way of the distinct values."""
    chosen = [problem.factors[k] for k in swept]
    if len(chosen) == 1:
        factor = chosen[0]

        def single(values: Floats, squared: bool = False) -> Floats:
            product: Floats = (values @ factor.indicator) @ (factor.level**2 if squared else factor.level).T
            return product

        return single, (len(factor.level),)
    a, b = chosen
    left: Floats = a.level[1:][None]
    right: Floats = b.level[1:][None]
    if near:
        left = a.level[a.near[pool.terms[:, slot, swept[0]]]]
        right = b.level[b.near[pool.terms[:, slot, swept[1]]]]
    right = right.swapaxes(1, 2)
    cells = (a.indicator[:, :, None] * b.indicator[:, None, :]).reshape(a.indicator.shape[0], -1)

    def double(values: Floats, squared: bool = False) -> Floats:
        grid = (values @ cells).reshape(len(values), left.shape[2], right.shape[1])
        product: Floats = left**2 @ grid @ right**2 if squared else left @ grid @ right
        return product.reshape(len(values), -1)

    return double, (left.shape[1], right.shape[2])


def _solve(
    project: Callable[..., Floats],
    base: Floats,
    basis: list[Floats],
    residual: Floats,
    problem: Problem,
    row: Integers,
) -> Floats:
    raw = project(base * base, squared=True)
    zz = raw.copy()
    for q in basis[:-1]:
        zz -= project(base * q) ** 2
    ze = project(base * residual)
    cz = project(base * basis[-1])
    cy = np.einsum("sn,sn->s", basis[-1], residual)[:, None]
    ee = np.einsum("sn,sn->s", residual, residual)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        free_zz, free_ze = zz - cz**2, ze - cz * cy
        slope = np.where(free_zz > 1e-12 * raw, free_ze / free_zz, 0.0)
        free = ee - cy**2 - slope * free_ze
        bound = np.where((ze > 0) & (zz > 1e-12 * raw), ee - ze**2 / zz, np.inf)
        negative = cy < cz * slope
        rss = np.where(slope > 0, np.where(negative, bound, free), np.inf)
        if problem.wide:
            best = np.full(len(problem.variance), np.inf)
            np.minimum.at(best, row, free.min(axis=1))
            price = 2 * NEGATIVE * problem.noise(best, len(basis))[row][:, None]
            rss = np.where((slope > 0) & negative, np.minimum(rss, free + price), rss)
    result: Floats = np.maximum(rss, 0.0)
    return result


def _orthonormal(
    columns: list[tuple[Floats, NDArray[np.bool_]]], constant: Floats, root: Floats
) -> tuple[list[Floats], Floats]:
    """Gram-Schmidt over the points; the constant comes last and stays in the residual."""
    basis: list[Floats] = []
    residual = root.copy()
    for column, wanted in [*columns, (constant, np.ones(len(root), dtype=bool))]:
        q = column.copy()
        for b in basis:
            q -= np.einsum("sn,sn->s", b, q)[:, None] * b
        norm = np.sqrt(np.einsum("sn,sn->s", q, q))
        size = np.sqrt(np.einsum("sn,sn->s", column, column))
        q *= np.where(wanted & (norm > 1e-7 * size), 1 / np.maximum(norm, 1e-300), 0.0)[:, None]
        basis.append(q)
    for b in basis[:-1]:
        residual -= np.einsum("sn,sn->s", b, residual)[:, None] * b
    return basis, residual


def _near(
    problem: Problem,
    pool: Pool,
    slot: int,
    swept: tuple[int, ...],
    near: bool,
    rss: Floats,
    best: Floats,
) -> Pool:
    """Keep the neighbours whose residual is within reach of the best one known."""
    np.minimum.at(best, pool.row, rss.reshape(len(rss), -1).min(axis=1))
    scale = 2 * problem.noise(best, pool.terms.shape[1])[pool.row]
    fewer = pool.terms.shape[2] - np.count_nonzero(pool.terms, axis=(1, 2))
    limit = best[pool.row] + scale * (REACH + PENALTY * np.maximum(fewer, 0))
    if len(swept) == 1:
        chosen = rss <= limit[:, None]
        chosen[:, 0] |= rss[:, 0] <= limit + scale * PENALTY
    else:
        chosen = rss <= limit[:, None, None]
    state, *blocks = np.nonzero(chosen)
    found = pool.take(state)
    for k, block in zip(swept, blocks, strict=True):
        if near:
            block = problem.factors[k].near[pool.terms[state, slot, k], block]
        elif len(swept) == 2:
            block = block + 1
        found.terms[:, slot, k] = block
    found.rss[:] = rss[(state, *blocks)]
    found.expanded[:] = False
    return found


def _best(parts: list[Pool], rows: int) -> Floats:
    best = np.full(rows, np.inf)
    for part in parts:
        np.minimum.at(best, part.row, part.rss)
    return best


def _energy(problem: Problem, pool: Pool) -> Floats:
    """Negative log posterior up to a constant: misfit in units of the noise, and a price per block."""
    best = _best([pool], len(problem.variance))
    scale = problem.noise(best, pool.terms.shape[1])
    energy: Floats = pool.rss / (2 * scale[pool.row]) + PENALTY * np.count_nonzero(pool.terms, axis=(1, 2))
    return energy


def _position(row: Integers) -> Integers:
    """Position of every entry within its run of equal rows."""
    if not len(row):
        return row
    begin = np.r_[True, row[1:] != row[:-1]]
    return np.arange(len(row)) - np.maximum.accumulate(np.where(begin, np.arange(len(row)), 0))


def _join(parts: list[Pool]) -> Pool:
    """Concatenate, with every hypothesis once (an expanded one before its duplicates)."""
    pool = Pool(
        np.concatenate([p.row for p in parts]),
        np.concatenate([p.terms for p in parts]),
        np.concatenate([p.rss for p in parts]),
        np.concatenate([p.expanded for p in parts]),
    )
    terms, code = canonical(pool.terms)
    order = np.lexsort((~pool.expanded, *code.T, pool.row))
    changed = (code[order][1:] != code[order][:-1]).any(axis=1) | (
        pool.row[order][1:] != pool.row[order][:-1]
    )
    kept = order[np.r_[True, changed]]
    return Pool(pool.row[kept], terms[kept], pool.rss[kept], pool.expanded[kept])


def _trim(problem: Problem, pool: Pool, keep: int) -> Pool:
    energy = _energy(problem, pool)
    best = np.full(len(problem.variance), np.inf)
    np.minimum.at(best, pool.row, energy)
    near = np.flatnonzero(energy <= best[pool.row] + 1.5 * REACH)
    order = near[np.lexsort((energy[near], pool.row[near]))]
    return pool.take(order[_position(pool.row[order]) < keep])
