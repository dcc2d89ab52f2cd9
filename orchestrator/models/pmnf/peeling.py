"""Which products may make up values that are exact: one parameter is peeled off after the other.

Along one parameter, all others fixed, a sum of products is a sum of few blocks of that parameter, and these
blocks are the same whatever the others are. So the few blocks are found first that explain all such lines.
Their coefficients are then exact functions of the other parameters, and are described in the same way.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats, Integers
from orchestrator.models.pmnf.hypotheses import Exponents, block_values

Term = tuple[Exponents, ...]
"""The block of every parameter; (0, 0) where it is not part of the product."""

# What a block costs, in natural logarithms of probability. Loops over grids, their surfaces and edges come
# first, then trees and sorting, then the rest. Chosen by hand; not derived.
_COSTS: dict[Exponents, float] = {
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
# Cost of other blocks, and of every term beyond its blocks.
_OTHER, _TERM = 3.5, 0.5
# Most blocks of one parameter, and what they may cost together.
_MOST_BLOCKS, _MOST_COST = 4, 9.0
# Sums that go on: of blocks of one parameter, of descriptions of each of their coefficients, and in all.
_KEPT_BLOCKS, _KEPT_EACH, _KEPT = 10, 5, 40
# Relative deviation that a wrong smooth sum leaves: closer ones count as evidence. Chosen by hand.
SMOOTH = 1e-3
# Standard deviations within which a coefficient is zero, and within which it is a round number.
# Errors above which nearness to a round number is no evidence.
_ZERO, _ROUND, _CLEAR = 4.0, 3.0, 0.03
_DENOMINATORS = (1, 2, 3, 4, 6, 8, 12)
# Largest scatter, in standard deviations, of coefficients around a description of them.
_MOST_SCATTER = 4.0
# A coefficient as any number: at most so many digits (natural logarithm) are told.
_MOST_DIGITS = 25.0
# Points on a line that are too many to look at, and columns that depend on each other.
_LONGEST, _DEPENDENT = 64, 1e-9
# With as many terms as there are values of a parameter, nothing checks the terms: up to so many are used
# nevertheless, more only with round numbers. How round they are then counts by this share. Most values that
# a polynomial goes through.
_FEW_LEVELS, _CHECKED, _INTERPOLATED = 3, 0.1, 7
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Support:
    """Products whose sum may explain the values.

    Attributes
    ----------
    terms
        The products.
    digits
        What their coefficients cost, as natural logarithm: round ones cost less.
    unchecked
        The part of it that is worth little, because nothing checks these terms.
    misfit
        What it costs that the values scatter around the sum.
    """

    terms: tuple[Term, ...]
    digits: float
    unchecked: float = 0.0
    misfit: float = 0.0

    @property
    def cost(self) -> float:
        """Cost of coefficients, misfit and structure; a block that products share counts once."""
        return self.digits + self.misfit + structure_cost(self.terms)


def structure_cost(terms: Sequence[Term]) -> float:
    """Return the cost of the blocks of products, each block of a parameter once."""
    blocks = (set(column) for column in zip(*terms, strict=True))
    chosen = sum(_COSTS.get(block, _OTHER) for column in blocks for block in column if any(block))
    return chosen + _TERM * len(terms)


def usable(x: Floats, negative: bool) -> tuple[Exponents, ...]:
    """Return the blocks that can be evaluated at all values of a parameter.

    Parameters
    ----------
    x
        Values of the parameter, not negative.
    negative
        Whether falling blocks may be used.
    """
    return tuple(
        block
        for block in _COSTS
        if (block[0] >= 0 or (negative and x.min() > 0)) and (block[1] == 0 or x.min() >= 1)
    )


def supports(
    points: Floats, values: Floats, sigma: Floats, blocks: tuple[tuple[Exponents, ...], ...]
) -> list[Support]:
    """Find sums of products that explain exact values, the most probable first.

    Parameters
    ----------
    points
        Shape (points, parameters).
    values
        What was measured, shape (points,).
    sigma
        Error up to which each value is exact, shape (points,).
    blocks
        Those of every parameter.
    """
    found: dict[frozenset[Term], Support] = {}
    levels = [len(np.unique(column)) for column in points.T]
    for k in np.argsort(levels, kind="stable")[::-1]:
        for support in _peeled(points, values, sigma, blocks, int(k), exact=False):
            key = frozenset(support.terms)
            if key not in found or support.cost < found[key].cost:
                found[key] = support
        if any(support.misfit == 0 for support in found.values()):
            break
    return sorted(found.values(), key=lambda support: support.cost)[:_KEPT]


def _described(
    points: Floats, values: Floats, sigma: Floats, blocks: tuple[tuple[Exponents, ...], ...]
) -> list[Support]:
    """Return sums that equal coefficients of known standard deviation; one without terms if all are zero."""
    if np.all(np.abs(values) <= _ZERO * sigma):
        return [Support((), 0.0)]
    if not blocks:
        return [Support(((),), float(digits_of(values, sigma)[0]))]
    if len(blocks) == 1:
        return _on_line(points[:, 0], values, sigma, blocks[0])
    levels = [len(np.unique(column)) for column in points.T]
    for k in np.argsort(levels)[::-1]:
        if found := _peeled(points, values, sigma, blocks, int(k), exact=True):
            return found
    return []


def _peeled(
    points: Floats,
    values: Floats,
    sigma: Floats,
    blocks: tuple[tuple[Exponents, ...], ...],
    k: int,
    *,
    exact: bool,
) -> list[Support]:
    """Return sums of blocks of parameter k, times sums of products of the others.

    ``exact`` says that values deviate by ``sigma`` and no more; otherwise the scatter is estimated.
    """
    rest = np.delete(points, k, axis=1)
    places, which = np.unique(rest, axis=0, return_inverse=True)
    lines = [np.flatnonzero(which.ravel() == j) for j in range(len(places))]
    others = (*blocks[:k], *blocks[k + 1 :])
    found: list[Support] = []
    for chosen, scatter in _along(points[:, k], values, sigma, lines, blocks[k], exact):
        size = len(chosen)
        known = [j for j, line in enumerate(lines) if len(line) >= size]
        table = block_values(points[:, k], np.array(chosen)).T
        fits = [_line_fit(table[lines[j]], values[lines[j]], scatter * sigma[lines[j]]) for j in known]
        each = [
            _described(
                places[known],
                np.array([c[e] for c, _ in fits]),
                np.array([u[e] for _, u in fits]),
                others,
            )[:_KEPT_EACH]
            for e in range(size)
        ]
        # With a coefficient that is zero, the sum is one of fewer blocks.
        if all(each) and all(option[0].terms for option in each):
            misfit = len(values) * math.log(scatter)
            found += [replace(support, misfit=misfit) for support in _joined(chosen, each, k)]
    return sorted(found, key=lambda support: support.cost)[:_KEPT]


def _along(
    x: Floats,
    values: Floats,
    sigma: Floats,
    lines: list[Integers],
    blocks: tuple[Exponents, ...],
    exact: bool,
) -> list[tuple[tuple[Exponents, ...], float]]:
    """Return the sets of blocks that explain all lines best, with the scatter around them in ``sigma``."""
    reach = float(np.log(np.maximum(SMOOTH * np.abs(values) / sigma, 1.0)).mean())
    scored: list[tuple[float, tuple[Exponents, ...], float]] = []
    for size in range(1, _MOST_BLOCKS + 1):
        longer = [line for line in lines if size < len(line) <= _LONGEST]
        excess = sum(len(line) - size for line in longer)
        if excess < 1:
            break
        sets = _sets(blocks, size)
        squares = np.zeros(len(sets))
        for line in longer:
            table = _table(tuple(x[line].tolist()), blocks, size)
            squares += (((values[line] - table.fit(values[line])) / sigma[line]) ** 2).sum(axis=1)
        scatter = np.sqrt(np.maximum(squares / excess, 1.0))
        score = excess * (reach - np.log(scatter)) - _set_costs(blocks, size)
        if exact:
            score[scatter > _MOST_SCATTER] = -np.inf
        for place in np.argsort(-score)[:_KEPT_BLOCKS]:
            if score[place] > 0 or (exact and np.isfinite(score[place])):
                chosen = tuple(blocks[b] for b in sets[place])
                scored.append((float(score[place]), chosen, float(scatter[place])))
    scored.sort(key=lambda item: -item[0])
    return [(chosen, scatter) for _, chosen, scatter in scored[:_KEPT_BLOCKS]]


def _line_fit(design: Floats, values: Floats, sigma: Floats) -> tuple[Floats, Floats]:
    """Return coefficients of the blocks on one line, and their standard deviations, shape (blocks,) each."""
    size = np.maximum(np.abs(design).max(axis=0), _TINY)
    inverse = np.linalg.pinv(design / size / sigma[:, None])
    return inverse @ (values / sigma) / size, np.sqrt((inverse**2).sum(axis=1)) / size


def _joined(chosen: tuple[Exponents, ...], each: list[list[Support]], k: int) -> list[Support]:
    """Return the cheapest combinations of descriptions of all coefficients, times their blocks."""
    cheapest = sorted(itertools.product(*each), key=lambda parts: sum(part.cost for part in parts))
    found = []
    for parts in cheapest[: 2 * _KEPT]:
        terms = [
            (*term[:k], block, *term[k:])
            for block, part in zip(chosen, parts, strict=True)
            for term in part.terms
        ]
        digits, unchecked = sum(part.digits for part in parts), sum(part.unchecked for part in parts)
        found.append(Support(tuple(terms), digits, unchecked))
    return sorted(found, key=lambda support: support.cost)[:_KEPT]


def _on_line(x: Floats, values: Floats, sigma: Floats, blocks: tuple[Exponents, ...]) -> list[Support]:
    """Describe coefficients along the last parameter: by as few and as round numbers as possible."""
    found: list[Support] = []
    at = tuple(x.tolist())
    for size in range(1, min(_MOST_BLOCKS, len(x)) + 1):
        table, sets = _table(at, blocks, size), _sets(blocks, size)
        coefficients = table.inverse @ values
        error = np.sqrt(table.inverse**2 @ sigma**2)
        spread = np.sqrt(_squared_rest(at, blocks, size) @ sigma**2) + 0.1 * sigma
        apart = np.abs(values - table.fit(values)) > _MOST_SCATTER * spread
        some = np.flatnonzero(~apart.any(axis=1) & (np.abs(coefficients) > _ZERO * error).all(axis=1))
        coefficients, error, free = coefficients[some], error[some], table.levels[some] <= size
        fractions = _fractions(coefficients, error)
        digits = np.minimum(_numbers(coefficients, error), fractions).sum(axis=1)
        # More terms than a few through all values are believed only if their coefficients are round.
        digits[free & (size > _FEW_LEVELS) & np.isinf(fractions).any(axis=1)] = np.inf
        more = digits - digits.min(where=free, initial=np.inf)
        unchecked = np.where(free, (1 - _CHECKED) * more, 0.0)
        order = np.argsort(digits + _set_costs(blocks, size)[some])[:_KEPT_EACH]
        for k in order[np.isfinite(digits[order])]:
            terms = tuple((blocks[b],) for b in sets[some[k]])
            found.append(Support(terms, float(digits[k]), float(unchecked[k])))
    found = found or _interpolated(x, values, sigma)
    return sorted(found, key=lambda support: support.cost)[:_KEPT_EACH]


def _interpolated(x: Floats, values: Floats, sigma: Floats) -> list[Support]:
    """Return polynomials with round numbers through all levels: in the logarithm, and in a cube's edge."""
    if not (_FEW_LEVELS < len(x) <= _INTERPOLATED and x.min() >= 1):
        return []
    powers = range(len(x))
    found = []
    for blocks in ([(0.0, float(j)) for j in powers], [(j / 3, 0.0) for j in powers]):
        coefficients, error = _line_fit(block_values(x, np.array(blocks)).T, values, sigma)
        used = np.abs(coefficients) > _ZERO * error
        digits = _fractions(coefficients[used], error[used])
        if np.isfinite(digits).all():
            terms = tuple((block,) for block, some in zip(blocks, used, strict=True) if some)
            found.append(Support(terms, float(digits.sum())))
    return found


def digits_of(coefficients: Floats, error: Floats) -> Floats:
    """Return what it costs to tell coefficients with errors, of any shape: as numbers, or as fractions."""
    return np.minimum(_numbers(coefficients, error), _fractions(coefficients, error))


def _numbers(coefficients: Floats, error: Floats) -> Floats:
    """Return what it costs to tell coefficients of any shape as numbers rounded to their error."""
    size = np.abs(coefficients) / np.maximum(error, _TINY)
    return np.clip(np.log(np.maximum(size, 1.0)), 0.5, _MOST_DIGITS)


def _fractions(coefficients: Floats, error: Floats) -> Floats:
    """Return what it costs to tell coefficients as fractions, infinite where they are none."""
    size = np.abs(coefficients)
    cost = np.full(size.shape, np.inf)
    for denominator in _DENOMINATORS:
        above = np.rint(size * denominator)
        near = np.abs(size * denominator - above) <= _ROUND * error * denominator
        clear = (_ROUND * error * denominator < _CLEAR) & (above > 0)
        told = np.log1p(above) + 2 * math.log(denominator)
        cost = np.where(near & clear, np.minimum(cost, told), cost)
    return cost


@dataclass(frozen=True, slots=True)
class _Table:
    """Least squares with every set of blocks at some values of a parameter.

    Attributes
    ----------
    basis
        Orthonormal, shape (sets, values, blocks).
    inverse
        Gives the coefficients, shape (sets, blocks, values).
    valid
        Of which sets the values determine the coefficients, shape (sets,).
    levels
        At how many values not all blocks of a set are 0, shape (sets,).
    """

    basis: Floats
    inverse: Floats
    valid: NDArray[np.bool_]
    levels: Integers

    def fit(self, values: Floats) -> Floats:
        """Return the fitted values, shape (sets, values); infinite where they are not determined."""
        fitted = self.basis @ (values @ self.basis)[:, :, None]
        return np.where(self.valid[:, None], fitted[:, :, 0], np.inf)


@lru_cache(maxsize=64)
def _sets(blocks: tuple[Exponents, ...], size: int) -> Integers:
    """Return all sets of so many blocks that do not cost too much, shape (sets, size)."""
    cost = [_COSTS[block] for block in blocks]
    found = [
        chosen
        for chosen in itertools.combinations(range(len(blocks)), size)
        if sum(cost[b] for b in chosen) <= _MOST_COST
    ]
    return np.array(found, dtype=np.intp).reshape(len(found), size)


@lru_cache(maxsize=64)
def _set_costs(blocks: tuple[Exponents, ...], size: int) -> Floats:
    cost = np.array([_COSTS[block] for block in blocks])
    return np.asarray((cost[_sets(blocks, size)] + _TERM).sum(axis=1))


@lru_cache(maxsize=64)
def _table(x: tuple[float, ...], blocks: tuple[Exponents, ...], size: int) -> _Table:
    columns = block_values(np.array(x), np.array(blocks))
    scale = np.maximum(np.abs(columns).max(axis=1), _TINY)
    sets = _sets(blocks, size)
    basis, triangle = np.linalg.qr((columns / scale[:, None])[sets].swapaxes(1, 2))
    diagonal = np.abs(np.einsum("sbb->sb", triangle))
    valid = diagonal.min(axis=1) > _DEPENDENT
    triangle[~valid] = np.eye(size)
    inverse = np.linalg.solve(triangle, basis.swapaxes(1, 2)) / scale[sets][:, :, None]
    levels = (columns != 0)[sets].any(axis=1).sum(axis=1)
    return _Table(basis, inverse, valid, levels)


@lru_cache(maxsize=64)
def _squared_rest(x: tuple[float, ...], blocks: tuple[Exponents, ...], size: int) -> Floats:
    """Return by how much residuals vary with the variance of every value, shape (sets, values, values)."""
    basis = _table(x, blocks, size).basis
    return np.asarray((np.eye(len(x)) - basis @ basis.swapaxes(1, 2)) ** 2)
