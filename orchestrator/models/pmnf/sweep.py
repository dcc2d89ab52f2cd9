"""Try every block of one or two parameters of a term, for many hypotheses of many call paths at once.

A parameter has few distinct values, so sums over points are first taken per value and then combined with
all blocks: this is what makes a sweep cheap.
In the compiled loops blocks run along rows (``b``), so that operations on them use all lanes of the
processor. ``m`` columns stay: the other terms, and the constant, which comes last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats, Integers
from orchestrator.models.machine_code import compiled
from orchestrator.models.pmnf.candidates import NEGATIVE, Searched, reach_with
from orchestrator.models.pmnf.exhaustive import least
from orchestrator.models.pmnf.hypotheses import stacked
from orchestrator.models.pmnf.kernels import invert

# A predictor whose part independent of the others is below this fraction counts as collinear: rounding.
_COLLINEAR = 1e-12
# Blocks that count as similar to one, and are tried together with those of another parameter.
# Chosen by hand; not derived.
_NEAR = 16


@compiled
def swept_residuals(
    row: Integers,
    terms: NDArray[np.int16],
    slot: int,
    swept: tuple[int, int],
    near: tuple[Integers, Integers],
    levels: tuple[Floats, Floats],
    cells: Integers,
    begin: Integers,
    table: Floats,
    scale: Floats,
    root: Floats,
) -> tuple[Floats, Floats]:
    """Residual sums of squares of states with every choice of blocks for one or two parameters of a term.

    Parameters
    ----------
    row, terms
        Call path of every state, and its block numbers (states, terms, parameters).
    slot, swept
        Term and parameters whose blocks are replaced; the first is -1 where there is one only.
    near
        For each of them the blocks to try in place of each block, shape (blocks, tried), or (1, tried) where
        they are always the same.
    levels
        For each of them its blocks at its distinct values, shape (blocks, values); a single 1 for none.
    cells
        Which distinct value of each every point has, shape (2, points).
    begin, table
        Block values of all parameters one after another, shape (blocks, points), and where each begins.
    scale, root
        Square roots of the weights, relative to the value and plain, shape (call paths, points).

    Returns
    -------
    Residual sums without negative coefficients, shape (states, tried * tried); infinite where the column is
    collinear with what stays. And those with a negative constant where it would be, infinite elsewhere.
    """
    states, points, width = len(row), scale.shape[1], terms.shape[1] + 1
    outer, inner = near[0].shape[1], near[1].shape[1]
    shape = levels[0].shape[1], levels[1].shape[1]
    result, negative = np.empty((states, outer * inner)), np.empty((states, outer * inner))
    rest, base = np.empty((width, points)), np.empty(points)
    gram, inverse = np.empty((width, width)), np.empty((width, width))
    right, c = np.empty(width), np.empty(width)
    # Sums of the column squared, with the target, and with what stays, per combination of distinct values.
    grid = np.empty((width + 2, shape[0], shape[1]))
    above, across = np.empty((2, shape[0], outer)), np.empty((2, shape[1], inner))
    sums, mixed = np.empty((width + 2, inner)), np.empty((width, inner))
    for state in range(states):
        r, term, m = row[state], terms[state, slot], 0
        # --- The m columns that stay: the other terms, and the constant as the last one.
        for t in range(width - 1):
            if t != slot and _blocks(terms[state, t]):
                _column(terms[state, t], swept, False, begin, table, scale[r], rest[m])
                m += 1
        rest[m] = scale[r]
        m += 1
        total = _without_column(rest[:m], root[r], gram[:m, :m], inverse[:m, :m], right[:m], c[:m])
        # --- The term without the swept parameters, summed over points with the same values of these.
        _column(term, swept, True, begin, table, scale[r], base)
        _sum_up(base, root[r], rest[:m], cells, grid)
        # --- Every block of the outer parameter, with all of the inner at once.
        for axis, target in enumerate((above, across)):
            which = term[swept[axis]] if swept[axis] >= 0 and len(near[axis]) > 1 else 0
            _levels(levels[axis], near[axis][which], target)
        for b in range(outer):
            _combine(grid[: m + 2], above[:, :, b], across, sums[: m + 2])
            part = slice(b * inner, (b + 1) * inner)
            _solve(
                sums[: m + 2],
                (inverse[:m, :m], right[:m], c[:m]),
                total,
                mixed[:m],
                result[state, part],
                negative[state, part],
            )
        # --- Block 0 of a term that has no other block: the state without the term.
        if swept[0] < 0 and _blocks(term) == (term[swept[1]] != 0):
            result[state, 0] = _without_term(inverse[:m, :m], c[:m], total)
            negative[state, 0] = np.inf
    return result, negative


@compiled
def lower(best: Floats, row: Integers, residuals: Floats) -> None:
    """Lower the best residual of every call path to the least of its states, shape (states, blocks)."""
    for state in range(len(row)):
        best[row[state]] = min(least(residuals[state]), best[row[state]])


@compiled
def _blocks(term: NDArray[np.int16]) -> int:
    """Count the parameters that a term has."""
    count = 0
    for k in range(len(term)):
        if term[k]:
            count += 1
    return count


@compiled
def _column(
    term: NDArray[np.int16],
    swept: tuple[int, int],
    without: bool,
    begin: Integers,
    table: Floats,
    scale: Floats,
    column: Floats,
) -> None:
    """Write a term, weighted, maybe without the swept parameters, shape (points,)."""
    for n in range(len(column)):
        column[n] = scale[n]
    for k in range(len(term)):
        if term[k] and not (without and (k == swept[0] or k == swept[1])):
            block = table[begin[k] + term[k]]
            for n in range(len(column)):
                column[n] *= block[n]


@compiled
def _without_column(
    rest: Floats, root: Floats, gram: Floats, inverse: Floats, right: Floats, c: Floats
) -> float:
    """Solve for the columns that stay, shape (m, points); return the residual sum of squares."""
    for i in range(len(rest)):
        for j in range(i + 1):
            gram[i, j] = gram[j, i] = _dot(rest[i], rest[j])
        right[i] = _dot(rest[i], root)
    invert(gram, 0, inverse, c)  # c is free until it is written below
    total = _dot(root, root)
    for i in range(len(rest)):
        c[i] = _dot(inverse[i], right)
        total -= c[i] * right[i]
    return total


@compiled
def _dot(a: Floats, b: Floats) -> float:
    total = 0.0
    for n in range(len(a)):
        total += a[n] * b[n]
    return total


@compiled
def _sum_up(base: Floats, root: Floats, rest: Floats, cells: Integers, grid: Floats) -> None:
    """Write sums over the points with the same values of the swept parameters."""
    grid[:] = 0.0
    for n in range(len(base)):
        i, j = cells[0, n], cells[1, n]
        grid[0, i, j] += base[n] * base[n]
        grid[1, i, j] += base[n] * root[n]
        for t in range(len(rest)):
            grid[2 + t, i, j] += base[n] * rest[t, n]


@compiled
def _levels(levels: Floats, blocks: Integers, result: Floats) -> None:
    """Write some blocks at the distinct values, and their squares: shape (2, values, blocks)."""
    for b in range(len(blocks)):
        for v in range(levels.shape[1]):
            result[0, v, b] = levels[blocks[b], v]
            result[1, v, b] = levels[blocks[b], v] * levels[blocks[b], v]


@compiled
def _combine(grid: Floats, above: Floats, across: Floats, sums: Floats) -> None:
    """Write sums over all points with one block of the outer parameter and every one of the inner."""
    sums[:] = 0.0
    for k in range(len(grid)):
        power = 1 if k == 0 else 0
        for j in range(grid.shape[2]):
            factor = 0.0
            for i in range(grid.shape[1]):
                factor += above[power, i] * grid[k, i, j]
            level = across[power, j]
            for b in range(sums.shape[1]):
                sums[k, b] += factor * level[b]


@compiled
def _solve(
    sums: Floats,
    rest: tuple[Floats, Floats, Floats],
    total: float,
    mixed: Floats,
    result: Floats,
    negative: Floats,
) -> None:
    """Write residual sums of squares with the swept column, and without the constant where it is negative.

    ``sums`` are the products of the swept column with itself, the target, and what stays; ``rest`` the
    inverse normal matrix of that, its right side and coefficients, ``total`` its residual sum of squares.
    """
    inverse, right, c = rest
    m = len(mixed)
    mixed[:] = 0.0
    for t in range(m):
        for u in range(m):
            for b in range(len(result)):
                mixed[t, b] += inverse[t, u] * sums[2 + u, b]
    last, edge = inverse[m - 1, m - 1], c[m - 1]
    for b in range(len(result)):
        left, new = sums[0, b], sums[1, b]
        for t in range(m):
            left -= sums[2 + t, b] * mixed[t, b]
            new -= right[t] * mixed[t, b]
        if left <= _COLLINEAR * sums[0, b]:
            left = np.inf
        slope, lever = new / left, mixed[m - 1, b] / left
        free = total - slope * new
        constant = edge - slope * mixed[m - 1, b]
        # What leaving out the constant changes (the textbook update of least squares).
        ratio = constant / (last + mixed[m - 1, b] * lever)
        bound = free + constant * ratio
        refused, closed = slope <= 0, slope + lever * ratio <= 0
        for t in range(m - 1):
            value = c[t] - slope * mixed[t, b]
            refused |= value < 0
            closed |= value - (inverse[t, m - 1] + mixed[t, b] * lever) * ratio < 0
        free = np.inf if refused else max(free, 0.0)
        bound = np.inf if closed or left == np.inf else max(bound, 0.0)
        result[b] = bound if constant < 0 else free
        negative[b] = free if constant < 0 else np.inf


@compiled
def _without_term(inverse: Floats, c: Floats, total: float) -> float:
    """Residual sum of squares without the swept term; infinite where a coefficient is negative."""
    last = len(c) - 1
    if c[last] >= 0:
        for t in range(last):
            if c[t] < 0:
                return np.inf
        return max(total, 0.0)
    ratio = c[last] / inverse[last, last]
    for t in range(last):
        if c[t] - inverse[t, last] * ratio < 0:
            return np.inf
    return max(total + c[last] * ratio, 0.0) if last else np.inf


@dataclass(frozen=True, slots=True)
class Factor:
    """Blocks of one parameter: at the points, and at its distinct values."""

    table: Floats  # shape (blocks, points)
    level: Floats  # the same at the distinct values, shape (blocks, values)
    place: Integers  # which of the values every point has, shape (points,)
    near: Integers  # the blocks most similar to each block, shape (blocks, near)


def factors(tables: tuple[Floats, ...]) -> tuple[Factor, ...]:
    """Prepare block tables, each of shape (blocks, points), for sweeps."""
    result = []
    for table in tables:
        level, inverse = np.unique(table, axis=1, return_inverse=True)
        level = np.ascontiguousarray(level)
        result.append(Factor(table, level, inverse.ravel().astype(np.intp), _neighbours(level)))
    return tuple(result)


def _neighbours(level: Floats) -> Integers:
    low, high = level.min(axis=1, keepdims=True), level.max(axis=1, keepdims=True)
    curves = (level - low) / np.where(high > low, high - low, 1.0)
    distance = np.abs(curves[:, None] - curves[None]).max(axis=2)
    distance[:, 0] = np.inf
    nearest = np.argsort(distance, axis=1)[:, : max(min(_NEAR, len(level) - 1), 1)]
    return np.ascontiguousarray(nearest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What the search needs to know of the call paths of a chunk.

    ``table`` has the blocks of all parameters at the points, each from ``begin`` on. ``scale`` and ``root``
    are the square roots of the weights, relative to the value and plain, shape (call paths, points);
    ``variance`` is the relative variance of a value of weight 1; ``wide`` allows a parameter in several terms
    and a negative constant.
    """

    factors: tuple[Factor, ...]
    begin: Integers
    table: Floats
    scale: Floats
    root: Floats
    variance: Floats
    wide: bool

    @property
    def reach(self) -> float:
        """How far behind the best one hypotheses are kept."""
        return reach_with(self.root.shape[1])

    def noise(self, best: Floats, terms: int) -> Floats:
        """Scale of squared residuals, given the best sum: the noise, or the lack of fit if larger."""
        result: Floats = np.maximum(self.variance, best / max(self.root.shape[1] - terms - 1, 1))
        return result


def problems(searched: Searched, *, wide: bool, together: int) -> Iterator[tuple[int, Problem]]:
    """Yield the problems of so many call paths at a time, each after the number of its first one."""
    log_value = searched.log_value
    prepared = factors(searched.tables)
    begins, table = stacked(searched.tables)
    root = np.sqrt(searched.precision)
    scale = root * np.exp(-(log_value - log_value.mean(axis=1, keepdims=True)))
    for begin in range(0, len(log_value), together):
        chunk = slice(begin, begin + together)
        yield (
            begin,
            Problem(
                factors=prepared,
                begin=begins,
                table=table,
                scale=scale[chunk],
                root=root[chunk],
                variance=searched.variance[chunk],
                wide=wide,
            ),
        )


def sweep(
    problem: Problem,
    row: Integers,
    terms: NDArray[np.int16],
    slot: int,
    swept: tuple[int, ...],
    near: tuple[bool, ...],
) -> Floats:
    """Residual sum of squares of every state with the blocks of the swept parameters replaced.

    Parameters
    ----------
    problem
        Call paths.
    row, terms
        States: call path, and block numbers of shape (states, terms, parameters).
    slot
        Term that is changed; an unused one becomes a new term.
    swept
        One or two parameters whose block in that term is replaced.
    near
        For each of two swept parameters, whether only blocks similar to the present one are tried.

    Returns
    -------
    Array of shape (states, blocks) or (states, blocks, blocks); infinite where a coefficient would have to be
    negative. With ``problem.wide`` a negative constant is allowed at a cost.
    """
    outer, inner = (-1, swept[0]) if len(swept) == 1 else swept
    axes = [_axis(problem, k, close, len(swept) == 1) for k, close in ((outer, near[0]), (inner, near[-1]))]
    (near0, level0, place0), (near1, level1, place1) = axes
    tables = (problem.begin, problem.table, problem.scale, problem.root)
    cells = np.stack([place0, place1])
    result, negative = swept_residuals(
        row, terms, slot, (outer, inner), (near0, near1), (level0, level1), cells, *tables
    )
    if problem.wide:
        others = np.delete(terms, slot, axis=1).any(axis=2)
        best = np.full(len(problem.variance), np.inf)
        lower(best, row, np.minimum(result, negative))
        columns = int(np.count_nonzero(others.any(axis=0))) + 1
        cost = 2 * NEGATIVE * problem.noise(best, columns)[row][:, None]
        result = np.minimum(result, negative + cost)
    shape = (near0.shape[1], near1.shape[1])
    return result.reshape(len(row), *shape[2 - len(swept) :])


def _axis(problem: Problem, k: int, close: bool, alone: bool) -> tuple[Integers, Floats, Integers]:
    """Blocks to try for a parameter (-1: none), its levels, and which of them every point has.

    Two parameters change together, to blocks that are not constant.
    """
    if k < 0:
        points = problem.table.shape[1]
        return np.zeros((1, 1), dtype=np.intp), np.ones((1, 1)), np.zeros(points, dtype=np.intp)
    factor = problem.factors[k]
    all_ = np.arange(0 if alone else 1, len(factor.level))[None]
    return factor.near if close else all_, factor.level, factor.place
