"""Try every block of one or two parameters of a term, for many hypotheses of many call paths at once.

A parameter has few distinct values, so sums over points are first taken per value and then combined with
all blocks: this is what makes a sweep cheap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.hypotheses import Floats, Integers
from orchestrator.models.normal import invert, solve
from orchestrator.models.screening import NEGATIVE

_NEAR = 16
_COLLINEAR = 1e-12


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
    negative. With ``problem.wide`` a negative constant is allowed at a price.
    """
    scale, root = problem.scale[row], problem.root[row]
    used = np.asarray(terms.any(axis=2))
    others = [t for t in range(terms.shape[1]) if t != slot and used[:, t].any()]
    kept = np.concatenate([used[:, others].T, np.ones((1, len(row)), dtype=bool)])
    rest = np.stack(
        [_column(problem, terms[:, t], (), scale) * kept[i][:, None] for i, t in enumerate(others)] + [scale]
    )
    project, shape = _projector(problem, terms, slot, swept, near)
    base = _column(problem, terms[:, slot], swept, scale)
    rss = _solve(problem, row, project, base, rest, kept, root).reshape(len(row), *shape)
    if len(swept) == 1:
        alone = ~np.delete(terms[:, slot], swept[0], axis=1).any(axis=1)
        rss[alone, 0] = _without(rest, kept, root)[alone]
    return rss


def _column(problem: Problem, blocks: NDArray[np.int16], without: tuple[int, ...], scale: Floats) -> Floats:
    """Evaluate one term of every state, weighted, leaving out some parameters: (states, points)."""
    column = scale
    for k, factor in enumerate(problem.factors):
        if k not in without and blocks[:, k].any():
            column = column * factor.table[blocks[:, k]]
    return column


def _projector(
    problem: Problem, terms: NDArray[np.int16], slot: int, swept: tuple[int, ...], near: tuple[bool, ...]
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
    left: Floats = a.level[a.near[terms[:, slot, swept[0]]]] if near[0] else a.level[1:][None]
    right: Floats = b.level[b.near[terms[:, slot, swept[1]]]] if near[1] else b.level[1:][None]
    right = right.swapaxes(1, 2)
    cells = (a.indicator[:, :, None] * b.indicator[:, None, :]).reshape(a.indicator.shape[0], -1)

    def double(values: Floats, squared: bool = False) -> Floats:
        grid = (values @ cells).reshape(len(values), left.shape[2], right.shape[1])
        product: Floats = left**2 @ grid @ right**2 if squared else left @ grid @ right
        return product.reshape(len(values), -1)

    return double, (left.shape[1], right.shape[2])


def _solve(
    problem: Problem,
    row: Integers,
    project: Callable[..., Floats],
    base: Floats,
    rest: Floats,
    kept: NDArray[np.bool_],
    root: Floats,
) -> Floats:
    """Solve for the swept column beside the rest (the constant last), with and without the constant."""
    raw = project(base * base, squared=True)
    along = np.stack([project(base * column) for column in rest])
    target = project(base * root)
    gram, right = _normal(rest, kept, root)
    total = np.einsum("sn,sn->s", root, root)[:, None]
    slope, c, free = _block_solve(gram, right, raw, along, target, total)
    refused = (slope <= 0) | np.any((c[:-1] < 0) & kept[:-1, :, None], axis=0)
    negative = c[-1] < 0
    slope, c, bound = _block_solve(gram[:-1, :-1], right[:-1], raw, along[:-1], target, total)
    bound[(slope <= 0) | np.any((c < 0) & kept[:-1, :, None], axis=0)] = np.inf
    free[refused] = np.inf
    rss = np.where(negative | refused, bound, free)
    if problem.wide:
        best = np.full(len(problem.variance), np.inf)
        np.minimum.at(best, row, free.min(axis=1))
        price = 2 * NEGATIVE * problem.noise(best, len(rest))[row][:, None]
        rss = np.where(negative, np.minimum(rss, free + price), rss)
    result: Floats = np.maximum(rss, 0.0)
    return result


def _normal(rest: Floats, kept: NDArray[np.bool_], root: Floats) -> tuple[Floats, Floats]:
    gram = np.matmul(rest.swapaxes(0, 1), rest.transpose(1, 2, 0)).transpose(1, 2, 0).copy()
    for t in range(len(rest)):
        gram[t, t] += ~kept[t]
    return gram, np.einsum("tsn,sn->ts", rest, root)


def _block_solve(
    gram: Floats, right: Floats, raw: Floats, along: Floats, target: Floats, total: Floats
) -> tuple[Floats, Floats, Floats]:
    """Eliminate the rest from the equation of the swept column.

    Returns
    -------
    Coefficient of the swept column (states, blocks), of the rest (rest, states, blocks), and the residual sum
    of squares (states, blocks), infinite where the column is a combination of the rest.
    """
    inverse, _ = invert(gram)
    alone = np.einsum("tus,us->ts", inverse, right)
    mixed = np.zeros_like(along)
    left, new = raw.copy(), target.copy()
    for t in range(len(along)):
        for u in range(len(along)):
            mixed[t] += inverse[t, u][:, None] * along[u]
        left -= along[t] * mixed[t]
        new -= right[t][:, None] * mixed[t]
    flat = left <= _COLLINEAR * raw
    slope = new / np.where(flat, np.inf, left)
    rss = total - np.einsum("ts,ts->s", right, alone)[:, None] - slope * new
    rss[flat] = np.inf
    mixed *= -slope
    mixed += alone[:, :, None]
    return slope, mixed, rss


def _without(rest: Floats, kept: NDArray[np.bool_], root: Floats) -> Floats:
    """Residual sum of squares without the swept term; infinite where a coefficient is negative."""
    gram, right = _normal(rest, kept, root)
    total = np.einsum("sn,sn->s", root, root)
    c, bound = solve(gram, right), solve(gram[:-1, :-1], right[:-1])
    full = np.where(np.any(c < 0, axis=0), np.inf, total - np.einsum("ts,ts->s", c, right))
    less = np.where(np.any(bound < 0, axis=0), np.inf, total - np.einsum("ts,ts->s", bound, right[:-1]))
    less = np.where(kept[:-1].any(axis=0), less, np.inf)
    return np.where(c[-1] < 0, less, full)
