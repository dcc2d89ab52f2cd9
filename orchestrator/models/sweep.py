"""Try every block of one or two parameters of a term, for many hypotheses of many call paths at once.

A parameter has few distinct values, so sums over points are first taken per value and then combined with
all blocks: this is what makes a sweep cheap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.hypotheses import Floats, Integers
from orchestrator.models.screening import NEGATIVE
from orchestrator.models.sweeping import lower, swept_residuals

_NEAR = 16


@dataclass(frozen=True, slots=True)
class Factor:
    """Blocks of one parameter: at the points, and at its distinct values.

    Attributes
    ----------
    table
        Shape (blocks, points).
    level
        The same at the distinct values, shape (blocks, values).
    place
        Which of the values every point has, shape (points,).
    near
        The blocks most similar to each block, shape (blocks, near).
    """

    table: Floats
    level: Floats
    place: Integers
    near: Integers


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


@dataclass(frozen=True, slots=True)
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
        price = 2 * NEGATIVE * problem.noise(best, columns)[row][:, None]
        result = np.minimum(result, negative + price)
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
