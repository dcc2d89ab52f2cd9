"""Exhaustive screening of every one- and two-parameter hypothesis by moments.

All call paths of a group share their points, so the products of blocks are evaluated once; a call path
contributes only its weights. Weighted sums over points then are matrix products, and each hypothesis is
solved in closed form. Residuals are relative to the measured value: noise is multiplicative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.hypotheses import Floats, Integers

# Largest number of (call path, hypothesis) pairs in flight: keeps the arrays within the cache.
_CHUNK = 150_000
# A predictor whose part independent of the others is below this fraction counts as collinear.
_COLLINEAR = 1e-12
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
        _, first = np.unique(np.column_stack([row, code]), axis=0, return_index=True)
        return Candidates(row[first], terms[first])


def canonical(terms: NDArray[np.int16]) -> tuple[NDArray[np.int16], Integers]:
    """Sort the terms of each hypothesis, so that a + b and b + a are one; return also a code per term."""
    code = terms @ (1000 ** np.arange(terms.shape[2], dtype=np.intp)[::-1])
    order = np.argsort(-code, axis=1, kind="stable")
    return np.take_along_axis(terms, order[:, :, None], axis=1), np.take_along_axis(code, order, axis=1)


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
    left, right = tables[0], tables[-1]
    products = (left[:, None, :] * right[None, :, :]).reshape(-1, left.shape[1])
    squares = products**2
    size = max(1, _CHUNK // len(products))
    parts = []
    for start in range(0, len(log_value), size):
        chunk = slice(start, start + size)
        sums = moments(products, squares, log_value[chunk], precision[chunk])
        shape = (len(sums.total), len(left), len(right))
        single, double = _residuals(sums, shape, two)
        row, hypothesis = _select(single, double, variance[chunk], log_value.shape[1], keep)
        parts.append(Candidates(row + start, _describe(hypothesis, shape, two)))
    return Candidates(np.concatenate([p.row for p in parts]), np.concatenate([p.terms for p in parts]))


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


def _residuals(m: Moments, shape: tuple[int, int, int], two: bool) -> tuple[Floats, Floats]:
    """Weighted residual sums of squares of ``c0 + c1 z`` and ``c0 + c1 a + c2 b``; refused ones are infinite.

    With one parameter, z is a single block (the last row of products is the plain blocks) and (a, b) a
    pair of different blocks; with two, z is every product, (a, b) one block of each parameter.
    """
    mean, mean_y = m.s1 / m.total[:, None], (m.s1y / m.total)[:, None]
    rss0 = m.syy - m.s1y**2 / m.total
    vzz = m.szz - m.s1 * mean
    vzy = m.syz - m.s1 * mean_y
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = vzy / vzz
        rss = np.where(slope * mean > mean_y, m.syy[:, None] - m.syz**2 / m.szz, rss0[:, None] - slope * vzy)
        flat = vzz <= _COLLINEAR * m.szz
        single = np.where((slope > 0) & ~flat, rss, np.inf).reshape(shape)
    single[:, 0, 0] = rss0

    def split(values: Floats) -> tuple[Floats, Floats, Floats]:
        cube = values.reshape(shape)
        return (cube[:, 1:, 0, None], cube[:, 0, None, 1:], cube[:, 1:, 1:])

    s1a, s1b, sab = split(m.s1)
    saa, sbb, _ = split(m.szz)
    say, sby, _ = split(m.syz)
    vaa, vbb, _ = split(vzz)
    vay, vby, _ = split(vzy)
    total, s1y = m.total[:, None, None], m.s1y[:, None, None]
    vab = sab - s1a * (s1b / total)
    free, ca, cb = _two(vaa, vbb, vab, vay, vby)
    double = rss0[:, None, None] - free
    with np.errstate(divide="ignore", invalid="ignore"):
        negative = ca * s1a + cb * s1b > s1y
        bound, da, db = _two(saa, sbb, sab, say, sby)
        double = np.where(negative, m.syy[:, None, None] - bound, double)
        refused = np.where(negative, (da <= 0) | (db <= 0), (ca <= 0) | (cb <= 0))
    double = np.where(refused | ~np.isfinite(double), np.inf, double)
    if not two:
        double = np.where(np.tri(shape[1] - 1, k=-1, dtype=bool)[None], double, np.inf)
        single = single[:, :, :1]
    return single, double


def _two(aa: Floats, bb: Floats, ab: Floats, ay: Floats, by: Floats) -> tuple[Floats, Floats, Floats]:
    """Solve the normal equations of two predictors; return the explained sum and both coefficients."""
    with np.errstate(divide="ignore", invalid="ignore"):
        determinant = aa * bb - ab * ab
        inverse = np.where(determinant > _COLLINEAR * aa * bb, 1 / determinant, np.nan)
        a = (ay * bb - by * ab) * inverse
        b = (by * aa - ay * ab) * inverse
        return a * ay + b * by, a, b


def _select(
    single: Floats, double: Floats, variance: Floats, points: int, keep: int
) -> tuple[Integers, Integers]:
    """Keep what lies within reach of the best residual, at most ``keep`` per call path."""
    rows = len(single)
    flat = np.concatenate([single.reshape(rows, -1), double.reshape(rows, -1)], axis=1)
    present = np.full(flat.shape[1], 2.0)
    cube = present[: single[0].size].reshape(single.shape[1:])
    cube[:, 0] = 1.0
    cube[0, :] = 1.0
    cube[0, 0] = 0.0
    scale = np.maximum(variance, flat.min(axis=1) / max(points - 3, 1))[:, None]
    energy = flat / (2 * scale) + PENALTY * present
    chosen = energy <= energy.min(axis=1, keepdims=True) + REACH
    for k in np.flatnonzero(chosen.sum(axis=1) > keep):
        members = np.flatnonzero(chosen[k])
        chosen[k, members[np.argpartition(energy[k, members], keep)[keep:]]] = False
    row, hypothesis = np.nonzero(chosen)
    return row, hypothesis


def _describe(hypothesis: Integers, shape: tuple[int, int, int], two: bool) -> NDArray[np.int16]:
    """Turn numbers of hypotheses into block numbers per term and parameter."""
    parameters = 2 if two else 1
    terms = np.zeros((len(hypothesis), 2, parameters), dtype=np.int16)
    singles = shape[1] * (shape[2] if two else 1)
    is_double = hypothesis >= singles
    one, rest = hypothesis[~is_double], hypothesis[is_double] - singles
    if two:
        terms[~is_double, 0, 0], terms[~is_double, 0, 1] = np.divmod(one, shape[2])
        first, second = np.divmod(rest, shape[2] - 1)
        terms[is_double, 0, 0], terms[is_double, 1, 1] = first + 1, second + 1
    else:
        terms[~is_double, 0, 0] = one
        first, second = np.divmod(rest, shape[2] - 1)
        terms[is_double, 0, 0], terms[is_double, 1, 0] = first + 1, second + 1
    return terms
