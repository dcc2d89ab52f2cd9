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
    parts = []
    for start in range(0, len(log_value), size):
        chunk = slice(start, start + size)
        sums = moments(products, squares, log_value[chunk], precision[chunk])
        sweep = _Sweep(sums, (len(left), len(right)), two)
        row, hypothesis = _select(sweep, variance[chunk], log_value.shape[1], keep)
        parts.append(Candidates(row + start, sweep.describe(hypothesis)))
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


class _Sweep:
    """All hypotheses of a chunk of call paths: first ``c0 + c1 z``, then ``c0 + c1 a + c2 b``.

    With two parameters z is every product and (a, b) one block of each; with one, z is a single block and
    (a, b) a pair of different ones. ``free`` holds the residual sums of squares without regard to signs,
    (call paths, hypotheses): lower bounds of the true ones, which are computed where they matter.
    """

    def __init__(self, sums: Moments, shape: tuple[int, int], two: bool) -> None:
        self.sums, self.shape, self.two = sums, shape, two
        self.singles = shape[0] * shape[1] if two else shape[0]
        self.free = np.concatenate([self._free_singles(), self._free_doubles()], axis=1)
        blocks = np.full(self.free.shape[1], 2.0)
        cube = blocks[: self.singles].reshape(shape[0], -1)
        cube[:, 0] = cube[0, :] = 1.0
        cube[0, 0] = 0.0
        self.price = PENALTY * blocks

    def _free_singles(self) -> Floats:
        m = self.sums
        s1, szz, syz = (
            (values if self.two else values[:, :: self.shape[1]]) for values in (m.s1, m.szz, m.syz)
        )
        self.vzz = s1**2
        self.vzz *= (-1 / m.total)[:, None]
        self.vzz += szz
        self.vzy = s1 * (-m.s1y / m.total)[:, None]
        self.vzy += syz
        self.rss0 = m.syy - m.s1y**2 / m.total
        explained = self.vzy**2
        flat = self.vzz <= _COLLINEAR * szz
        self.vzz[flat] = np.inf
        explained /= self.vzz
        return np.subtract(self.rss0[:, None], explained, out=explained)

    def _sides(self, values: Floats) -> tuple[Floats, Floats]:
        """Values of the plain blocks of the left and right factor, without the constant."""
        if not self.two:
            return values[:, 1:], values[:, 1:]
        cube = values.reshape(-1, *self.shape)
        return cube[:, 1:, 0], cube[:, 0, 1:]

    def _free_doubles(self) -> Floats:
        m = self.sums
        s1 = m.s1 if self.two else m.s1[:, :: self.shape[1]]
        (va, vb), (ya, yb), (sa, sb) = self._sides(self.vzz), self._sides(self.vzy), self._sides(s1)
        wa, wb = 1 / np.sqrt(va), 1 / np.sqrt(vb)
        ra, rb = ya * wa, yb * wb
        ab = m.s1.reshape(-1, *self.shape)[:, 1:, 1:] * wa[:, :, None]
        ab -= (sa * wa / m.total[:, None])[:, :, None] * sb[:, None, :]
        ab *= wb[:, None, :]
        explained = (-2 * ra)[:, :, None] * rb[:, None, :]
        explained *= ab
        explained += (ra**2)[:, :, None]
        explained += (rb**2)[:, None, :]
        np.multiply(ab, ab, out=ab)
        np.subtract(1.0, ab, out=ab)
        ab[ab < 1e-11] = np.inf
        explained /= ab
        np.subtract(self.rss0[:, None, None], explained, out=explained)
        if not self.two:
            explained[:, ~np.tri(self.shape[0] - 1, k=-1, dtype=bool)] = np.inf
        return explained.reshape(len(explained), -1)

    def exact(self, row: Integers, hypothesis: Integers) -> Floats:
        """Residual sum of squares without negative coefficients; infinite where that takes fewer terms."""
        result = np.empty(len(row))
        double = hypothesis >= self.singles
        result[~double] = self._exact_single(row[~double], hypothesis[~double])
        result[double] = self._exact_double(row[double], hypothesis[double] - self.singles)
        return result

    def _exact_single(self, row: Integers, z: Integers) -> Floats:
        m = self.sums
        column = z if self.two else z * self.shape[1]
        slope = self.vzy[row, z] / self.vzz[row, z]
        bound = m.syy[row] - m.syz[row, column] ** 2 / m.szz[row, column]
        rss = np.where(slope * m.s1[row, column] > m.s1y[row], bound, self.free[row, z])
        return np.where(z == 0, self.rss0[row], np.where(slope > 0, rss, np.inf))

    def _exact_double(self, row: Integers, pair: Integers) -> Floats:
        m, width = self.sums, self.shape[1]
        a, b = np.divmod(pair, width - 1)
        left = (a + 1) * width
        right = b + 1 if self.two else (b + 1) * width
        both = (a + 1) * width + b + 1
        sa, sb, sab = m.s1[row, left], m.s1[row, right], m.s1[row, both]
        ya, yb = m.syz[row, left], m.syz[row, right]
        aa, bb = m.szz[row, left], m.szz[row, right]
        total, s1y = m.total[row], m.s1y[row]
        ca, cb, explained = _two(
            aa - sa**2 / total,
            bb - sb**2 / total,
            sab - sa * sb / total,
            ya - sa * s1y / total,
            yb - sb * s1y / total,
        )
        da, db, bound = _two(aa, bb, sab, ya, yb)
        negative = ca * sa + cb * sb > s1y
        rss = np.where(negative, m.syy[row] - bound, self.rss0[row] - explained)
        refused = np.where(negative, (da <= 0) | (db <= 0), (ca <= 0) | (cb <= 0))
        return np.where(refused | ~np.isfinite(rss), np.inf, rss)

    def describe(self, hypothesis: Integers) -> NDArray[np.int16]:
        """Turn numbers of hypotheses into block numbers per term and parameter."""
        terms = np.zeros((len(hypothesis), 2, 2 if self.two else 1), dtype=np.int16)
        double = hypothesis >= self.singles
        first, second = np.divmod(hypothesis[double] - self.singles, self.shape[1] - 1)
        terms[double, 0, 0], terms[double, 1, -1] = first + 1, second + 1
        if self.two:
            terms[~double, 0, 0], terms[~double, 0, 1] = np.divmod(hypothesis[~double], self.shape[1])
        else:
            terms[~double, 0, 0] = hypothesis[~double]
        return terms


def _two(aa: Floats, bb: Floats, ab: Floats, ay: Floats, by: Floats) -> tuple[Floats, Floats, Floats]:
    """Solve the normal equations of two predictors; return both coefficients and the explained sum."""
    with np.errstate(divide="ignore", invalid="ignore"):
        determinant = aa * bb - ab * ab
        inverse = np.where(determinant > _COLLINEAR * aa * bb, 1 / determinant, np.nan)
        a = (ay * bb - by * ab) * inverse
        b = (by * aa - ay * ab) * inverse
        return a, b, a * ay + b * by


def _select(sweep: _Sweep, variance: Floats, points: int, keep: int) -> tuple[Integers, Integers]:
    """Keep what lies within reach of the best hypothesis, at most ``keep`` per call path.

    The energy of a hypothesis is its residual in units of the noise, plus the price of its blocks.
    """
    lower = sweep.free.min(axis=1)
    best = np.full(len(variance), np.inf)
    limit = lower + 2 * REACH * np.maximum(variance, lower / max(points - 3, 1))
    open_, found = np.arange(len(variance)), []
    while len(open_):
        # All rows at first; a selection of some costs a copy.
        free = sweep.free if len(open_) == len(best) else sweep.free[open_]
        place, hypothesis = np.divmod(np.flatnonzero(free <= limit[open_, None]), free.shape[1])
        row = open_[place]
        rss = sweep.exact(row, hypothesis)
        np.minimum.at(best, row, rss)
        known, floor = best[open_], np.where(np.isfinite(best), best, lower)[open_]
        reach = 2 * REACH * np.maximum(variance[open_], floor / max(points - 3, 1))
        done = known + reach <= limit[open_]
        settled = done[place]
        found.append((row[settled], hypothesis[settled], rss[settled]))
        # The true residual of what was refused so far is larger than its lower bound: look further.
        wider = np.where(np.isfinite(known), known + reach, lower[open_] + 4 * (limit - lower)[open_])
        limit[open_] = wider
        open_ = open_[~done]
    row, hypothesis, rss = (np.concatenate(part) for part in zip(*found, strict=True))
    energy = rss / (2 * np.maximum(variance, best / max(points - 3, 1))[row]) + sweep.price[hypothesis]
    least = np.full(len(variance), np.inf)
    np.minimum.at(least, row, energy)
    near = np.flatnonzero(energy <= least[row] + REACH)
    order = near[np.lexsort((energy[near], row[near]))]
    place = np.arange(len(order)) - np.searchsorted(row[order], row[order])
    chosen = order[place < keep]
    return row[chosen], hypothesis[chosen]
