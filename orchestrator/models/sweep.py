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
from orchestrator.models.normal import invert
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
    rest = np.stack([*(_column(problem, terms[:, t], (), scale) for t in others), scale])
    rest[~kept] = 0.0
    project, shape = _projector(problem, terms, slot, swept, near)
    base = _column(problem, terms[:, slot], swept, scale)
    beside = _Rest.of(rest, kept, root)
    raw = project(base * base, squared=True)
    along = np.stack([project(base * column) for column in rest])
    rss = _solve(problem, row, beside, raw, along, project(base * root)).reshape(len(row), *shape)
    if len(swept) == 1:
        alone = ~np.delete(terms[:, slot], swept[0], axis=1).any(axis=1)
        rss[alone, 0] = _without(beside)[alone]
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


@dataclass(frozen=True, slots=True)
class _Rest:
    """Least squares with all columns but the swept one; the constant comes last.

    Attributes
    ----------
    inverse
        Inverse normal matrix, shape (rest, rest, states).
    right
        Right side, shape (rest, states).
    c
        Coefficients, shape (rest, states).
    rss
        Residual sum of squares, shape (states,).
    kept
        Which columns there are, shape (rest, states).
    """

    inverse: Floats
    right: Floats
    c: Floats
    rss: Floats
    kept: NDArray[np.bool_]

    @classmethod
    def of(cls, rest: Floats, kept: NDArray[np.bool_], root: Floats) -> _Rest:
        """Solve for columns of shape (rest, states, points); what is not kept is zero."""
        gram = np.empty((len(rest), *kept.shape))
        for t in range(len(rest)):
            for u in range(t + 1):
                gram[t, u] = gram[u, t] = np.einsum("sn,sn->s", rest[t], rest[u])
            gram[t, t] += ~kept[t]
        inverse, _ = invert(gram)
        right = np.einsum("tsn,sn->ts", rest, root)
        c = np.einsum("tus,us->ts", inverse, right)
        rss = np.einsum("sn,sn->s", root, root) - np.einsum("ts,ts->s", right, c)
        return cls(inverse, right, c, rss, kept)


def _solve(
    problem: Problem, row: Integers, rest: _Rest, raw: Floats, along: Floats, target: Floats
) -> Floats:
    """Residual sums of squares with the swept column; where the constant would be negative, without it.

    ``raw``, ``along`` and ``target`` are the products of the swept column with itself, the rest and the
    target: (states, blocks), along with the rest in front.
    """
    mixed = np.zeros_like(along)
    left, new = raw.copy(), target.copy()
    for t in range(len(along)):
        for u in range(len(along)):
            mixed[t] += rest.inverse[t, u][:, None] * along[u]
        left -= along[t] * mixed[t]
        new -= rest.right[t][:, None] * mixed[t]
    flat = left <= _COLLINEAR * raw
    left[flat] = np.inf
    slope = new / left
    free = rest.rss[:, None] - slope * new
    free[flat] = np.inf
    constant = rest.c[-1][:, None] - slope * mixed[-1]
    negative = constant < 0
    # What leaving out the constant changes (the textbook update of least squares).
    lever = mixed[-1] / left
    ratio = constant / (rest.inverse[-1, -1][:, None] + mixed[-1] * lever)
    bound = free + constant * ratio
    bound[slope + lever * ratio <= 0] = np.inf
    free[slope <= 0] = np.inf
    for t in range(len(along) - 1):
        c = rest.c[t][:, None] - slope * mixed[t]
        kept = rest.kept[t][:, None]
        free[kept & (c < 0)] = np.inf
        c -= (rest.inverse[t, -1][:, None] + mixed[t] * lever) * ratio
        bound[kept & (c < 0)] = np.inf
    rss = np.where(negative, bound, free)
    if problem.wide:
        best = np.full(len(problem.variance), np.inf)
        np.minimum.at(best, row, free.min(axis=1))
        price = 2 * NEGATIVE * problem.noise(best, len(along))[row][:, None]
        rss = np.where(negative, np.minimum(rss, free + price), rss)
    result: Floats = np.maximum(rss, 0.0)
    return result


def _without(rest: _Rest) -> Floats:
    """Residual sum of squares without the swept term; infinite where a coefficient is negative."""
    full = np.where(np.any(rest.c < 0, axis=0), np.inf, rest.rss)
    ratio = rest.c[-1] / rest.inverse[-1, -1]
    c = rest.c[:-1] - rest.inverse[:-1, -1] * ratio
    less = np.where(np.any((c < 0) & rest.kept[:-1], axis=0), np.inf, rest.rss + rest.c[-1] * ratio)
    less = np.where(rest.kept[:-1].any(axis=0), less, np.inf)
    return np.where(rest.c[-1] < 0, less, full)
