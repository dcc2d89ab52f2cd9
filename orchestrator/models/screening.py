"""Exhaustive screening of every one- and two-parameter hypothesis by moments.

All call paths of a group share their points, so the products of blocks are evaluated once; a call path
contributes only its weights. Weighted sums over points then are matrix products, and each hypothesis is
solved in closed form. Residuals are relative to the measured value: noise is multiplicative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.distinct import canonical, first_of_each
from orchestrator.models.exhaustive import nearly_best
from orchestrator.models.hypotheses import Floats, Integers

# Largest number of (call path, hypothesis) pairs in flight: keeps the arrays within the cache.
_CHUNK = 75_000
# Relative variance below which sums of squares differ by rounding.
_ROUNDING = 1e-12
# Most parameters with which every hypothesis is tried.
EXHAUSTIVE = 2
# Price of a block in the ranking of hypotheses: about the logarithm of the number of blocks.
PENALTY = 4.0
# Price of a parameter in one more term.
REPEATED = 2.5
# Price of a negative coefficient.
NEGATIVE = 2.5
# How far behind the best one, in units of log posterior, a hypothesis may be and still be fitted.
REACH = 8.0


@dataclass(frozen=True, slots=True)
class Candidates:
    """Hypotheses worth a closer look, as one flat list over call paths.

    Attributes
    ----------
    row
        Call path of every candidate, shape (candidates,).
    terms
        Block numbers, shape (candidates, terms, parameters); a term of zeros is unused.
    """

    row: Integers
    terms: NDArray[np.int16]

    def take(self, index: NDArray[np.intp]) -> Candidates:
        """Select candidates."""
        return Candidates(self.row[index], self.terms[index])

    @staticmethod
    def join(parts: list[Candidates]) -> Candidates:
        """Concatenate lists whose hypotheses may have different numbers of terms, without duplicates."""
        width = max(part.terms.shape[1] for part in parts)
        padded = [np.pad(p.terms, ((0, 0), (0, width - p.terms.shape[1]), (0, 0))) for p in parts]
        terms, row = np.concatenate(padded), np.concatenate([p.row for p in parts])
        terms, code = canonical(terms)
        first = first_of_each(row, code)
        first = first[np.argsort(row[first], kind="stable")]
        return Candidates(row[first], terms[first])


@dataclass(frozen=True, slots=True)
class Moments:
    """Weighted sums over points: ``s1`` Σ ω z, ``szz`` Σ ω z², ``syz`` Σ ω y z, one column per product."""

    s1: Floats
    szz: Floats
    syz: Floats
    total: Floats
    s1y: Floats
    syy: Floats


def screen(
    tables: tuple[Floats, ...], log_value: Floats, precision: Floats, variance: Floats, *, keep: int
) -> Candidates:
    """Find the hypotheses that explain each call path nearly as well as the best one.

    Guaranteed: within reach and up to ``keep``, none is missed of ``c0 + c1 a b`` and ``c0 + c1 a + c2 b``
    (two parameters), or ``c0 + c1 a`` and ``c0 + c1 a + c2 b`` with blocks a, b of the one parameter.

    Parameters
    ----------
    tables
        Block values per parameter (one or two), each of shape (blocks, points); block 0 is constant.
    log_value, precision
        Logarithm of the location and its weight (effective repetitions), shape (call paths, points).
    variance
        Relative variance of a value of weight 1, shape (call paths,).
    keep
        Most candidates per call path.
    """
    two = len(tables) == 2
    variance = np.maximum(variance, _ROUNDING)
    left, right = tables[0], tables[-1]
    products = (left[:, None, :] * right[None, :, :]).reshape(-1, left.shape[1])
    squares = products**2
    size = max(1, _CHUNK // len(products))
    rows, hypotheses = [], []
    for start in range(0, len(log_value), size):
        sums = moments(products, squares, log_value[start : start + size], precision[start : start + size])
        totals = np.column_stack([sums.total, sums.s1y, sums.syy])
        for place, noise in enumerate(variance[start : start + size]):
            mine = (sums.s1[place], sums.szz[place], sums.syz[place], totals[place])
            freedom = max(left.shape[1] - 3, 1)
            found = nearly_best(*mine, len(right), two, noise, freedom, REACH, PENALTY, keep)
            rows.append(np.full(len(found), start + place))
            hypotheses.append(found)
    return Candidates(
        np.concatenate(rows), _described(np.concatenate(hypotheses), len(left), len(right), two)
    )


def _described(hypotheses: Integers, blocks: int, width: int, two: bool) -> NDArray[np.int16]:
    """Turn numbers of hypotheses, as in `exhaustive`, into block numbers per term and parameter."""
    singles = blocks * width if two else blocks
    terms = np.zeros((len(hypotheses), 2, 2 if two else 1), dtype=np.int16)
    double = hypotheses >= singles
    first, second = np.divmod(hypotheses[double] - singles, width - 1)
    terms[double, 0, 0], terms[double, 1, -1] = first + 1, second + 1
    if two:
        terms[~double, 0, 0], terms[~double, 0, 1] = np.divmod(hypotheses[~double], width)
    else:
        terms[~double, 0, 0] = hypotheses[~double]
    return terms


def moments(products: Floats, squares: Floats, log_value: Floats, precision: Floats) -> Moments:
    """Sum over points, with residuals relative to the measured value; arrays as in `screen`."""
    scale = np.exp(-(log_value - log_value.mean(axis=1, keepdims=True)))
    weighted_y = precision * scale
    weight = weighted_y * scale
    return Moments(
        s1=weight @ products.T,
        szz=weight @ squares.T,
        syz=weighted_y @ products.T,
        total=weight.sum(axis=1),
        s1y=weighted_y.sum(axis=1),
        syy=precision.sum(axis=1),
    )
