"""Which products may make up values that are exact: one parameter is peeled off after the other.

Along one parameter, all others fixed, a sum of products is a sum of few blocks of that parameter, and these
blocks are the same whatever the others are. So the few blocks are found first that explain all such lines.
Their coefficients are then exact functions of the other parameters, and are described in the same way.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from orchestrator.models.base import Floats, Integers
from orchestrator.models.data import lines_along
from orchestrator.models.pmnf.block_sets import (
    COSTS,
    DENOMINATORS,
    MOST_BLOCKS,
    TERM,
    TINY,
    Bundle,
    interpolations,
    set_costs,
    sets_of,
    table_of,
)
from orchestrator.models.pmnf.hypotheses import Exponents, block_values

Term = tuple[Exponents, ...]
"""The block of every parameter; (0, 0) where it is not part of the product."""

# Cost of blocks that are not among those tried.
_OTHER = 3.5
# Sums that go on: of blocks of one parameter, of descriptions of each of their coefficients, and in all.
_KEPT_BLOCKS, _KEPT_EACH, _KEPT = 10, 5, 40
# Sums less probable than the best one by this factor (natural logarithm) are left out.
NEGLIGIBLE = 8.0
# Relative deviation that a wrong smooth sum leaves: closer ones count as evidence. Chosen by hand.
SMOOTH = 1e-3
# Standard deviations within which a coefficient is zero, and within which it is a round number.
# Errors above which nearness to a round number is no evidence.
_ZERO, _ROUND, _CLEAR = 4.0, 3.0, 0.03
_MULTIPLE = math.lcm(*DENOMINATORS)
# Largest scatter, in standard deviations, of coefficients around a description of them.
_MOST_SCATTER = 4.0
# A coefficient as any number: the price is that of so many digits at most (natural logarithm).
_MOST_DIGITS = 25.0
# With as many terms as there are values of a parameter, nothing checks the terms: up to so many are used
# nevertheless, more only with round numbers. How round they are then counts by this share.
_FEW_LEVELS, _CHECKED = 3, 0.1


@dataclass(frozen=True, slots=True)
class Support:
    """Products whose sum may explain the values."""

    terms: tuple[Term, ...]  # the products
    digits: float  # what their coefficients cost, as natural logarithm: round ones cost less
    unchecked: float = 0.0  # the part of it that is worth little, because nothing checks these terms
    misfit: float = 0.0  # what it costs that the values scatter around the sum

    @property
    def cost(self) -> float:
        """Cost of coefficients, misfit and structure; a block that products share counts once."""
        return self.digits + self.misfit + structure_cost(self.terms)


def structure_cost(terms: Sequence[Term]) -> float:
    """Return the cost of the blocks of products, each block of a parameter once."""
    blocks = (set(column) for column in zip(*terms, strict=True))
    chosen = sum(COSTS.get(block, _OTHER) for column in blocks for block in column if any(block))
    return chosen + TERM * len(terms)


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
        for block in COSTS
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
    """Return sums that equal coefficients of known standard deviation."""
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
    lines = lines_along(points, k)
    places = np.delete(points, k, axis=1)[[line[0] for line in lines]]
    others = (*blocks[:k], *blocks[k + 1 :])
    sums: list[Support] = []
    cheapest = math.inf
    for chosen, scatter in _along(points[:, k], values, sigma, lines, blocks[k], exact):
        misfit, size = len(values) * math.log(scatter), len(chosen)
        if misfit > cheapest + NEGLIGIBLE:
            continue
        known = [j for j, line in enumerate(lines) if len(line) >= size]
        table = block_values(points[:, k], np.array(chosen)).T
        fits = [_line_fit(table[lines[j]], values[lines[j]], scatter * sigma[lines[j]]) for j in known]
        coefficients, error = (np.ascontiguousarray(np.transpose(parts)) for parts in zip(*fits, strict=True))
        # With a coefficient that is zero, the sum is one of fewer blocks.
        if (np.abs(coefficients) <= _ZERO * error).all(axis=1).any():
            continue
        each = []
        for c, u in zip(coefficients, error, strict=True):
            each.append(_described(places[known], c, u, others)[:_KEPT_EACH])
            if not each[-1]:
                break
        else:
            joined = [replace(support, misfit=misfit) for support in _joined(chosen, each, k)]
            cheapest = min(cheapest, *(support.cost for support in joined))
            sums += joined
    return sorted(sums, key=lambda support: support.cost)[:_KEPT]


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
    for size in range(1, MOST_BLOCKS + 1):
        bundles = Bundle.of(x, values, sigma, [line for line in lines if size < len(line)])
        if not bundles:
            break
        scored += _best_sets(bundles, blocks, size, reach, exact)
    scored.sort(key=lambda item: -item[0])
    return [(chosen, scatter) for _, chosen, scatter in scored[:_KEPT_BLOCKS]]


def _best_sets(
    bundles: list[Bundle], blocks: tuple[Exponents, ...], size: int, reach: float, exact: bool
) -> list[tuple[float, tuple[Exponents, ...], float]]:
    """Return score, blocks and scatter of the best sets of one size that explain the lines."""
    sets, costs = sets_of(blocks, size), set_costs(blocks, size)
    tables = [table_of(bundle.x, blocks, size) for bundle in bundles]
    excess = sum(bundle.values.size - size * bundle.values.shape[1] for bundle in bundles)

    def scores(squares: Floats, some: Integers) -> Floats:
        scatter = np.sqrt(np.maximum(squares / excess, 1.0))
        result = excess * (reach - np.log(scatter)) - costs[some]
        return np.where(scatter <= _MOST_SCATTER if exact else result > 0, result, -np.inf)

    def squares(some: Integers) -> Floats:
        each = [bundle.squares(table, some) for bundle, table in zip(bundles, tables, strict=True)]
        return np.asarray(np.sum(each, axis=0))

    least = np.sum(list(map(Bundle.least_squares, bundles, tables)), axis=0)
    bound = scores(least, np.arange(len(sets)))
    first = np.argsort(-bound)[: 2 * _KEPT_BLOCKS]
    enough = np.sort(scores(squares(first), first))[-_KEPT_BLOCKS:][0]
    some = np.flatnonzero(np.isfinite(bound) & (bound >= enough))
    left = squares(some)
    result = scores(left, some)
    order = np.argsort(-result)[:_KEPT_BLOCKS]
    return [
        (
            float(result[place]),
            tuple(blocks[b] for b in sets[some[place]]),
            math.sqrt(max(float(left[place]) / excess, 1.0)),
        )
        for place in order[np.isfinite(result[order])]
    ]


def _line_fit(design: Floats, values: Floats, sigma: Floats) -> tuple[Floats, Floats]:
    """Return coefficients of the blocks on one line, and their standard deviations, shape (blocks,) each."""
    size = np.maximum(np.abs(design).max(axis=0), TINY)
    inverse = np.linalg.pinv(design / size / sigma[:, None])
    return inverse @ (values / sigma) / size, np.sqrt((inverse**2).sum(axis=1)) / size


def _joined(chosen: tuple[Exponents, ...], each: list[list[Support]], k: int) -> list[Support]:
    """Return the cheapest combinations of descriptions of all coefficients, times their blocks."""
    costs = functools.reduce(np.add.outer, [np.array([part.cost for part in options]) for options in each])
    cheapest = np.argsort(costs, axis=None, kind="stable")[: 2 * _KEPT]
    found = []
    for places in zip(*np.unravel_index(cheapest, costs.shape), strict=True):
        parts = [options[place] for options, place in zip(each, places, strict=True)]
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
    sums: list[Support] = []
    at = tuple(x.tolist())
    absent = block_values(x, np.array(blocks)) == 0
    for size in range(1, min(MOST_BLOCKS, len(x)) + 1):
        some, coefficients, error = _explaining(at, values, sigma, blocks, size)
        chosen = sets_of(blocks, size)[some]
        free = (~absent[chosen].all(axis=1)).sum(axis=1) <= size
        fractions = _fractions(coefficients, error)
        digits = np.minimum(_numbers(coefficients, error), fractions).sum(axis=1)
        # More terms than a few through all values are believed only if their coefficients are round.
        digits[free & (size > _FEW_LEVELS) & np.isinf(fractions).any(axis=1)] = np.inf
        more = digits - digits.min(where=free, initial=np.inf)
        unchecked = np.where(free, (1 - _CHECKED) * more, 0.0)
        order = np.argsort(digits + set_costs(blocks, size)[some])[:_KEPT_EACH]
        for k in order[np.isfinite(digits[order])]:
            terms = tuple((blocks[b],) for b in chosen[k])
            sums.append(Support(terms, float(digits[k]), float(unchecked[k])))
    return sorted(sums, key=lambda support: support.cost)[:_KEPT_EACH]


def _explaining(
    x: tuple[float, ...], values: Floats, sigma: Floats, blocks: tuple[Exponents, ...], size: int
) -> tuple[Integers, Floats, Floats]:
    """Return which sets of blocks explain values, their coefficients and errors, none of which is zero."""
    if size == len(x):
        some, inverse, squared = interpolations(x, blocks)
    else:
        # No value deviates by more than this, so the whole rest is not longer.
        most = 1.1 * _MOST_SCATTER * math.sqrt(len(x)) * float(sigma.max())
        table = table_of(x, blocks, size)
        some = np.flatnonzero(table.missed(values[:, None])[:, 0] <= most)
        left = table.rests(some)
        spread = np.sqrt(left**2 @ sigma**2) + 0.1 * sigma
        some = some[(np.abs(left @ values) <= _MOST_SCATTER * spread).all(axis=1)]
        inverse = table.coefficients(some)
        squared = inverse**2
    coefficients = (inverse.reshape(-1, len(x)) @ values).reshape(-1, size)
    error = np.sqrt(squared.reshape(-1, len(x)) @ sigma**2).reshape(-1, size)
    used = (np.abs(coefficients) > _ZERO * error).all(axis=1)
    return some[used], coefficients[used], error[used]


def digits_of(coefficients: Floats, error: Floats) -> Floats:
    """Return the price of coefficients with errors, of any shape: as numbers, or as fractions."""
    return np.minimum(_numbers(coefficients, error), _fractions(coefficients, error))


def _numbers(coefficients: Floats, error: Floats) -> Floats:
    """Return the price of coefficients of any shape as numbers: that of their digits down to the error."""
    size = np.abs(coefficients) / np.maximum(error, TINY)
    return np.clip(np.log(np.maximum(size, 1.0)), 0.5, _MOST_DIGITS)


def _fractions(coefficients: Floats, error: Floats) -> Floats:
    """Return the price of coefficients as fractions, infinite where they are none."""
    size = np.abs(coefficients)
    cost = np.full(size.shape, np.inf)
    # A fraction is also one of the least common multiple.
    finest = size * _MULTIPLE
    some = np.abs(finest - np.rint(finest)) <= (1 + 1e-9) * _ROUND * error * _MULTIPLE
    size, error, costs = size[some], error[some], cost[some]
    for denominator in DENOMINATORS:
        above = np.rint(size * denominator)
        near = np.abs(size * denominator - above) <= _ROUND * error * denominator
        clear = (_ROUND * error * denominator < _CLEAR) & (above > 0)
        price = np.log1p(above) + 2 * math.log(denominator)
        costs = np.where(near & clear, np.minimum(costs, price), costs)
    cost[some] = costs
    return cost
