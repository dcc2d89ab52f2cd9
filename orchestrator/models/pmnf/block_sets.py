"""Least squares with every small set of blocks of one parameter, at the same values for many call paths.

There are thousands of sets, and all but a few miss the values by far. One vector per set tells: it has unit
length and is orthogonal to the blocks of its set, so its product with the values is a part of what the set
leaves of them. It is computed once for the values of a parameter. The few sets that remain are solved.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats, Integers
from orchestrator.models.pmnf.hypotheses import Exponents, block_values

# What a block costs, in natural logarithms of probability. Loops over grids, their surfaces and edges come
# first, then trees and sorting, then the rest. Chosen by hand; not derived.
COSTS: dict[Exponents, float] = {
    (0.0, 0.0): 0.5,
    (1.0, 0.0): 0.5,
    (2.0, 0.0): 0.7,
    (3.0, 0.0): 0.7,
    (4.0, 0.0): 2.0,
    (1 / 3, 0.0): 1.5,
    (2 / 3, 0.0): 1.5,
    (1 / 2, 0.0): 1.7,
    (3 / 2, 0.0): 2.5,
    (4 / 3, 0.0): 2.5,
    (5 / 3, 0.0): 2.5,
    (1 / 4, 0.0): 3.0,
    (3 / 4, 0.0): 3.0,
    (0.0, 1.0): 1.5,
    (1.0, 1.0): 2.0,
    (2.0, 1.0): 2.5,
    (3.0, 1.0): 3.5,
    (1 / 2, 1.0): 3.0,
    (1 / 3, 1.0): 3.0,
    (2 / 3, 1.0): 3.0,
    (0.0, 2.0): 2.5,
    (0.0, 3.0): 3.0,
    (1.0, 2.0): 3.0,
    (-1.0, 0.0): 2.0,
    (-1 / 3, 0.0): 2.0,
    (-2 / 3, 0.0): 2.0,
    (-1 / 2, 0.0): 2.5,
    (-1.0, 1.0): 3.0,
}
# Cost of every term beyond its blocks.
TERM = 0.5
# Most blocks of one parameter, and what they may cost together.
MOST_BLOCKS, _MOST_COST = 4, 9.0
# Denominators of coefficients that count as fractions.
DENOMINATORS = (1, 2, 3, 4, 6, 8, 12)
# Share of a block that is left when it does not depend on others; least size of a number that divides.
_DEPENDENT, TINY = 1e-9, 1e-300


@lru_cache(maxsize=64)
def sets_of(blocks: tuple[Exponents, ...], size: int) -> Integers:
    """Return all sets of so many blocks that do not cost too much, in order, shape (sets, size)."""
    cost = [COSTS[block] for block in blocks]
    found = [
        chosen
        for chosen in itertools.combinations(range(len(blocks)), size)
        if sum(cost[b] for b in chosen) <= _MOST_COST
    ]
    return np.array(found, dtype=np.intp).reshape(len(found), size)


@lru_cache(maxsize=64)
def set_costs(blocks: tuple[Exponents, ...], size: int) -> Floats:
    """Return what the sets cost, with their terms, shape (sets,)."""
    cost = np.array([COSTS[block] for block in blocks])
    return np.asarray((cost[sets_of(blocks, size)] + TERM).sum(axis=1))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Table:
    """Every set of so many blocks at some values of a parameter; `table_of` makes it."""

    sets: Integers  # the blocks of every set, shape (sets, size)
    # columns, scale: all blocks, scaled to at most 1, shape (blocks, values), and by what.
    columns: Floats
    scale: Floats
    basis: Floats  # orthonormal, of what the blocks of a set span, shape (sets, values, size)
    across: Floats  # a unit vector orthogonal to the blocks of every set, shape (sets, values)
    valid: NDArray[np.bool_]  # of which sets the values determine the coefficients, shape (sets,)

    def missed(self, values: Floats) -> Floats:
        """Return a part of what every set leaves of values: the length of the rest is at least that.

        Parameters
        ----------
        values
            Shape (values of the parameter, lines), more of the former than blocks in a set.

        Returns
        -------
        Shape (sets, lines); infinite where the values of the parameter do not determine the coefficients.
        """
        return np.where(self.valid[:, None], np.abs(self.across @ values), np.inf)

    def rests(self, some: Integers) -> Floats:
        """Return what gives from values the rests that some sets leave, shape (sets, values, values)."""
        basis = self.basis[some]
        return np.asarray(np.eye(basis.shape[1]) - basis @ basis.swapaxes(1, 2))

    def coefficients(self, some: Integers) -> Floats:
        """Return what gives the coefficients of some sets from values, shape (sets, size, values)."""
        basis, sets = self.basis[some], self.sets[some]
        triangle = basis.swapaxes(1, 2) @ self.columns[sets].swapaxes(1, 2)
        inverse = basis.swapaxes(1, 2).copy()
        # From the last row up: for thousands of small triangles faster than a solver called for each.
        for k in range(sets.shape[1] - 1, -1, -1):
            inverse[:, k] -= np.einsum("sb,sbv->sv", triangle[:, k, k + 1 :], inverse[:, k + 1 :])
            inverse[:, k] /= triangle[:, k, k, None]
        return np.asarray(inverse / self.scale[sets][:, :, None])


@lru_cache(maxsize=64)
def table_of(x: tuple[float, ...], blocks: tuple[Exponents, ...], size: int) -> Table:
    """Return all sets of so many blocks at values of their parameter.

    One block is added to each set of one fewer, by Gram and Schmidt, twice: blocks are almost parallel.
    """
    sets, (columns, scale) = sets_of(blocks, size), _columns(x, blocks)
    last = columns[sets[:, -1]]
    if size == 1:
        basis, valid = np.zeros((len(sets), len(x), 0)), np.ones(len(sets), dtype=bool)
    else:
        before, parents = table_of(x, blocks, size - 1), _parents(blocks, size)
        basis, valid = before.basis[parents], before.valid[parents]
    added, left = _orthogonal(last, basis)
    basis, valid = np.concatenate([basis, added[:, :, None]], axis=2), valid & (left > _DEPENDENT)
    # Any vector will do that is not smooth: what wrong blocks leave has changing signs.
    across, _ = _orthogonal(np.broadcast_to((-1.0) ** np.arange(len(x)), last.shape), basis)
    return Table(sets=sets, columns=columns, scale=scale, basis=basis, across=across, valid=valid)


@lru_cache(maxsize=16)
def interpolations(x: tuple[float, ...], blocks: tuple[Exponents, ...]) -> tuple[Integers, Floats, Floats]:
    """Return which sets of as many blocks as values are determined, what gives coefficients, its squares."""
    table = table_of(x, blocks, len(x))
    some = np.flatnonzero(table.valid)
    inverse = table.coefficients(some)
    return some, inverse, inverse**2


@dataclass(frozen=True, slots=True)
class Bundle:
    """Lines of points at the same values of the parameter."""

    x: tuple[float, ...]  # values of the parameter
    # values, sigma: what was measured and its error, shape (values of the parameter, lines).
    values: Floats
    sigma: Floats

    @classmethod
    def of(cls, x: Floats, values: Floats, sigma: Floats, lines: Iterable[Integers]) -> list[Bundle]:
        """Return bundles of lines, given as places of points."""
        bundles: dict[tuple[float, ...], list[Integers]] = {}
        for line in lines:
            bundles.setdefault(tuple(x[line].tolist()), []).append(line)
        return [cls(at, values[np.array(some).T], sigma[np.array(some).T]) for at, some in bundles.items()]

    def least_squares(self, table: Table) -> Floats:
        """Return sums of squared rests in ``sigma``, or less, of every set, shape (sets,); quickly."""
        # By Cauchy and Schwarz: the rest in errors, times the errors times the unit vector.
        rest = table.missed(self.values) ** 2
        return np.asarray((rest / (table.across**2 @ self.sigma**2)).sum(axis=1))

    def squares(self, table: Table, some: Integers) -> Floats:
        """Return sums of squared rests in ``sigma`` of some sets, shape (sets,)."""
        left = table.rests(some) @ self.values / self.sigma
        return np.asarray((left**2).sum(axis=(1, 2)))


def _orthogonal(vectors: Floats, basis: Floats) -> tuple[Floats, Floats]:
    """Return the parts of vectors orthogonal to each basis, with unit length, and their lengths before."""
    left = np.ones(len(vectors))
    for _ in range(2):
        vectors = vectors - (basis @ (vectors[:, None, :] @ basis).swapaxes(1, 2))[:, :, 0]
        length = np.sqrt((vectors**2).sum(axis=1))
        vectors, left = vectors / np.maximum(length, TINY)[:, None], left * length
    return vectors, left


@lru_cache(maxsize=64)
def _parents(blocks: tuple[Exponents, ...], size: int) -> Integers:
    """Return the place of every set without its last block among the sets of one block fewer."""
    place = {tuple(chosen): k for k, chosen in enumerate(sets_of(blocks, size - 1).tolist())}
    return np.array([place[tuple(chosen[:-1])] for chosen in sets_of(blocks, size).tolist()], dtype=np.intp)


@lru_cache(maxsize=64)
def _columns(x: tuple[float, ...], blocks: tuple[Exponents, ...]) -> tuple[Floats, Floats]:
    """Return blocks scaled to at most 1, shape (blocks, values), and their scales."""
    columns = block_values(np.array(x), np.array(blocks))
    scale = np.maximum(np.abs(columns).max(axis=1), TINY)
    return columns / scale[:, None], scale
