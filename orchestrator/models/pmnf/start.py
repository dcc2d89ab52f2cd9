"""Starting points for three and more parameters: every partition, every combination of a few blocks.

A handful of blocks that look most different from one another stand for all. Sums over the products of two
terms with different parameters are sums over a larger product, so all normal equations of all partitions
come from one table of moments (see `moments`).
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats, Integers
from orchestrator.models.pmnf.candidates import Candidates, Searched, lowest
from orchestrator.models.pmnf.hypotheses import canonical, partitions
from orchestrator.models.pmnf.kernels import solve
from orchestrator.models.pmnf.moments import Moments, moments

# A predictor whose part independent of the others is below this fraction counts as collinear: rounding.
_COLLINEAR = 1e-12


def different_blocks(table: Floats, count: int) -> Integers:
    """Choose blocks whose curves differ most from each other: the constant, then farthest first.

    Parameters
    ----------
    table
        Block values, shape (blocks, points); block 0 is constant.
    count
        How many, the constant included.
    """
    low, high = table.min(axis=1, keepdims=True), table.max(axis=1, keepdims=True)
    curves = (table - low) / np.where(high > low, high - low, 1.0)
    # Start from the middle of the family, or the extremes would be chosen twice over.
    middle = int(np.argsort(curves[1:].mean(axis=1))[(len(table) - 1) // 2]) + 1
    chosen = [0, middle]
    distance = np.abs(curves - curves[middle]).max(axis=1)
    distance[0] = 0.0
    while len(chosen) < min(count, len(table)):
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.abs(curves - curves[chosen[-1]]).max(axis=1))
    return np.array(sorted(chosen), dtype=np.intp)


def start(searched: Searched, count: int, width: int) -> tuple[Candidates, Floats]:
    """Find starting hypotheses: the best few of every partition for every call path.

    Parameters
    ----------
    searched
        Values over three and more parameters.
    count
        Representative blocks per parameter, the constant included.
    width
        Hypotheses kept per partition.

    Returns
    -------
    The hypotheses, and their weighted residual sums of squares.
    """
    tables, size = searched.tables, searched.log_value.shape[1]
    chosen = [different_blocks(table, count) for table in tables]
    products = np.ones((1, size))
    for table, blocks in zip(tables, chosen, strict=True):
        # Largest value 1, so that powers of large parameters neither overflow nor drown the constant.
        part = table[blocks] / np.abs(table[blocks]).max(axis=1, keepdims=True)
        products = (products[:, None, :] * part[None]).reshape(-1, size)
    shape = tuple(len(blocks) for blocks in chosen)
    combinations = np.array(list(itertools.product(*(range(n) for n in shape))), dtype=np.intp)
    sums = moments(products, products**2, searched.log_value, searched.precision)
    parts, found_rss = [], []
    for partition in _partitions(len(tables)):
        hypotheses = combinations[_canonical(combinations, partition)]
        rss = _residuals(sums, _numbers(hypotheses, partition, shape))
        row, place = lowest(rss, width)
        found = hypotheses[place]
        terms = np.zeros((len(row), len(tables), len(tables)), dtype=np.int16)
        for t, group in enumerate(partition):
            for k in group:
                terms[:, t, k] = chosen[k][found[:, k]]
        parts.append(Candidates(row, canonical(terms)[0]))
        found_rss.append(rss[row, place])
    return Candidates.concatenate(parts), np.concatenate(found_rss)


def _partitions(parameters: int) -> list[tuple[tuple[int, ...], ...]]:
    """All partitions; beyond five parameters only those into one, two or single-parameter terms."""
    every = partitions(tuple(range(parameters)))
    if parameters <= 5:
        return list(every)
    return [p for p in every if len(p) <= 2 or len(p) == parameters]


def _canonical(combinations: Integers, partition: tuple[tuple[int, ...], ...]) -> NDArray[np.bool_]:
    """Return which combinations belong to a partition: only a parameter that stands alone may be absent."""
    keep = np.ones(len(combinations), dtype=bool)
    for group in partition:
        if len(group) > 1:
            keep &= np.all(combinations[:, list(group)] > 0, axis=1)
    return keep


def _numbers(
    hypotheses: Integers, partition: tuple[tuple[int, ...], ...], shape: tuple[int, ...]
) -> Integers:
    """Number of the product that is each term of each hypothesis: (terms, hypotheses)."""
    strides = np.cumprod((1, *shape[::-1]))[:-1][::-1]
    return np.stack([hypotheses[:, list(group)] @ strides[list(group)] for group in partition])


def _residuals(m: Moments, numbers: Integers) -> Floats:
    """Residual sums of squares, shape (call paths, hypotheses); infinite where a coefficient is negative."""
    size = len(numbers)
    absent = numbers == 0
    present = ~absent[:, None, :]
    s = np.where(present, m.s1[:, numbers].swapaxes(0, 1), 0.0)
    y = np.where(present, m.syz[:, numbers].swapaxes(0, 1), 0.0)
    gram = np.empty((size, size, *y.shape[1:]))
    for i in range(size):
        gram[i, i] = np.where(absent[i], 1.0, m.szz[:, numbers[i]])
        for j in range(i):
            gram[i, j] = gram[j, i] = np.where(absent[i] | absent[j], 0.0, m.s1[:, numbers[i] + numbers[j]])
    total, s1y, syy = m.total[:, None], m.s1y[:, None], m.syy[:, None]
    c, explained = _solve(gram - s[:, None] * s[None] / total, y - s * s1y / total)
    rss = syy - s1y**2 / total - explained
    negative = np.sum(c * s, axis=0) > s1y
    if np.any(negative):
        alone, explained = _solve(gram[:, :, negative], y[:, negative])
        c[:, negative] = alone
        rss[negative] = (syy - np.zeros_like(rss))[negative] - explained
    refused = np.any((c < 0) & present, axis=0)
    return np.where(refused | ~np.isfinite(rss), np.inf, np.maximum(rss, 0.0))


def _solve(gram: Floats, right: Floats) -> tuple[Floats, Floats]:
    c = solve(gram, right, _COLLINEAR)
    return c, np.sum(c * right, axis=0)
