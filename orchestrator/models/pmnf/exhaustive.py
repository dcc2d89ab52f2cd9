"""Exhaustive screening of every hypothesis of one or two parameters, by moments.

All call paths of a group share their points, so the products of blocks are evaluated once; a call path
contributes only its weights. Weighted sums over points then are matrix products, and each hypothesis is
solved in closed form. First come ``c0 + c1 z``, then ``c0 + c1 a + c2 b``. With two parameters z is every
product of two blocks and (a, b) one block of each; with one, z is a single block and (a, b) a pair of
different ones. Sums are those of `Moments` for all products, of which ``width`` belong to one block of the
first parameter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats, Integers
from orchestrator.models.machine_code import compiled
from orchestrator.models.pmnf.candidates import PENALTY, Candidates, Searched, reach_with
from orchestrator.models.pmnf.moments import moments

# A predictor whose part independent of the others is below this fraction counts as collinear: a few thousand
# times the rounding of sums of squares.
_COLLINEAR = 1e-12
# Length of the stretches of values of which the least is kept, so that whole stretches are passed over.
# Chosen by hand; not derived.
_PASSED = 32
# Two predictors of whose squares less than this share is independent explain nothing together: a little
# above `_COLLINEAR`, because two roundings come together.
_PARALLEL = 1e-11
# Largest number of (call path, hypothesis) pairs in flight: keeps the arrays within the cache. Chosen by
# hand; not derived.
_CHUNK = 75_000
# Relative variance below which sums of squares differ by rounding: some thousand times the machine
# precision.
_ROUNDING = 1e-12
# Most parameters with which every hypothesis is tried: three have about a million.
EXHAUSTIVE = 2


def screen(searched: Searched, *, keep: int) -> Candidates:
    """Find the hypotheses that explain each call path nearly as well as the best one.

    Guaranteed: within reach and up to ``keep``, none is missed of ``c0 + c1 a b`` and ``c0 + c1 a + c2 b``
    (two parameters), or ``c0 + c1 a`` and ``c0 + c1 a + c2 b`` with blocks a, b of the one parameter.

    Parameters
    ----------
    searched
        Values over one or two parameters.
    keep
        Most candidates per call path.
    """
    log_value, precision = searched.log_value, searched.precision
    two = len(searched.tables) == 2
    variance = np.maximum(searched.variance, _ROUNDING)
    left, right = searched.tables[0], searched.tables[-1]
    products = (left[:, None, :] * right[None, :, :]).reshape(-1, left.shape[1])
    squares = products**2
    size = max(1, _CHUNK // len(products))
    reach = reach_with(left.shape[1])
    rows, hypotheses = [], []
    for start in range(0, len(log_value), size):
        sums = moments(products, squares, log_value[start : start + size], precision[start : start + size])
        totals = np.column_stack([sums.total, sums.s1y, sums.syy])
        for place, noise in enumerate(variance[start : start + size]):
            mine = (sums.s1[place], sums.szz[place], sums.syz[place], totals[place])
            freedom = max(left.shape[1] - 3, 1)
            near, energy = nearly_best(*mine, len(right), two, noise, freedom, reach, PENALTY)
            found = near[np.argsort(energy, kind="stable")[:keep]]
            rows.append(np.full(len(found), start + place))
            hypotheses.append(found)
    return Candidates(
        np.concatenate(rows), _described(np.concatenate(hypotheses), len(left), len(right), two)
    )


def _described(hypotheses: Integers, blocks: int, width: int, two: bool) -> NDArray[np.int16]:
    """Turn numbers of hypotheses, as of `nearly_best`, into block numbers per term and parameter."""
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


@compiled
def nearly_best(
    s1: Floats,
    szz: Floats,
    syz: Floats,
    totals: Floats,
    width: int,
    two: bool,
    noise: float,
    freedom: int,
    reach: float,
    penalty: float,
) -> tuple[Integers, Floats]:
    """Return the hypotheses of one call path within reach of the best one, and their energies.

    The energy of a hypothesis is its residual in units of the noise, plus the cost of its blocks.

    Parameters
    ----------
    s1, szz, syz
        One per product.
    totals
        The sums of ``Moments`` that belong to no product: ``total``, ``s1y`` and ``syy``.
    width, two
        Blocks of the second parameter; whether there are two parameters.
    noise, freedom
        Relative variance of a value of weight 1; degrees of freedom of the best residual sum of squares.
    reach, penalty
        How much more energy than the best is within reach; energy per block.
    """
    total, s1y, syy = totals
    singles = len(s1) if two else len(s1) // width
    vzz, vzy = _independent(s1, szz, syz, total, s1y)
    rss0 = syy - s1y**2 / total
    # Without regard to signs: lower bounds of the true residuals, which are computed where they matter.
    free = _free(s1, vzz, vzy, total, rss0, width, two)
    lows = _lows(free)
    lower = least(lows)
    step = 0.05 * noise
    done, limit, best, place = -np.inf, lower, np.inf, 0
    while best > done:
        some = _between(free, lows, done, limit)
        rss = _exact(some, s1, szz, syz, totals, width, two)
        for which in range(len(some)):
            if rss[which] < best:
                best, place = rss[which], some[which]
        # What was refused so far has a larger residual than its lower bound: look further.
        done, limit = limit, min(best, lower + step)
        step *= 4
    scale = 2 * max(noise, best / freedom)
    # The least energy is at most that of the constant, and that of the hypothesis with the smallest residual.
    bound = min(rss0 / scale, best / scale + penalty * _blocks(place, singles, width, two)) + reach
    found = _between(free, lows, -np.inf, (bound - penalty) * scale)
    # The constant comes first, whatever rounding makes of its residual: it is always possible.
    near, cost, count = np.zeros(len(found) + 1, dtype=np.intp), np.zeros(len(found) + 1), 1
    for h in found:
        blocks = penalty * _blocks(h, singles, width, two)
        if h and free[h] <= (bound - blocks) * scale:
            near[count], cost[count] = h, blocks
            count += 1
    near, cost = near[:count], cost[:count]
    energy = _exact(near, s1, szz, syz, totals, width, two) / scale + cost
    within = energy <= least(energy) + reach
    return near[within], energy[within]


@compiled
def _blocks(h: int, singles: int, width: int, two: bool) -> int:
    """Return the number of blocks of a hypothesis."""
    if h >= singles or (two and h >= width and h % width):
        return 2
    return 1 if h else 0


@compiled
def least(values: Floats) -> float:
    """Return the least of many values, four at a time: each comparison waits for the one before."""
    a = b = c = d = np.inf
    for h in range(0, len(values) - 3, 4):
        a, b = min(a, values[h]), min(b, values[h + 1])
        c, d = min(c, values[h + 2]), min(d, values[h + 3])
    for h in range(len(values) - len(values) % 4, len(values)):
        a = min(a, values[h])
    return min(min(a, b), min(c, d))


@compiled
def _lows(values: Floats) -> Floats:
    """Return the least of every so many values, by which most can be passed over."""
    result = np.empty((len(values) + _PASSED - 1) // _PASSED)
    for part in range(len(result)):
        result[part] = least(values[part * _PASSED : (part + 1) * _PASSED])
    return result


@compiled
def _between(values: Floats, lows: Floats, above: float, limit: float) -> Integers:
    """Return where values are above one limit and not above another, which is rare; see `_lows`."""
    found = np.empty(len(values), dtype=np.intp)
    count = 0
    for part in range(len(lows)):
        if lows[part] > limit:
            continue
        for h in range(part * _PASSED, min((part + 1) * _PASSED, len(values))):
            if above < values[h] <= limit:
                found[count] = h
                count += 1
    return found[:count].copy()


@compiled
def _independent(s1: Floats, szz: Floats, syz: Floats, total: float, s1y: float) -> tuple[Floats, Floats]:
    """Sums without what the constant explains; infinite squares where that is everything."""
    vzz, vzy = np.empty(len(s1)), np.empty(len(s1))
    share, mean = 1 / total, s1y / total
    for z in range(len(s1)):
        left = szz[z] - s1[z] * s1[z] * share
        vzz[z] = left if left > _COLLINEAR * szz[z] else np.inf
        vzy[z] = syz[z] - s1[z] * mean
    return vzz, vzy


@compiled
def _free(s1: Floats, vzz: Floats, vzy: Floats, total: float, rss0: float, width: int, two: bool) -> Floats:
    """Residual sums of squares where coefficients may have any sign; pairs that do not exist are infinite."""
    blocks = len(s1) // width
    singles = len(s1) if two else blocks
    free = np.full(singles + (blocks - 1) * (width - 1), np.inf)
    # Slices, because an index that might be negative keeps a loop from using all lanes of the processor.
    step = 1 if two else width
    slope, square = vzy[::step].copy(), vzz[::step].copy()
    for h in range(singles):
        free[h] = rss0 - slope[h] * slope[h] / square[h]
    root = 1 / np.sqrt(square[:width])
    part, mean = slope[:width] * root, s1[::step][:width] * root / total
    for a in range(1, blocks):
        z = a * width
        unit = 1 / np.sqrt(vzz[z])
        alone, scaled = vzy[z] * unit, s1[z] * unit
        begin, end = singles + (a - 1) * (width - 1) - 1, width if two else a
        product, result = s1[z : z + end], free[begin : begin + end]
        for b in range(1, end):
            both = product[b] * unit * root[b] - scaled * mean[b]
            apart = 1 - both * both
            explained = alone * alone + part[b] * part[b] - 2 * alone * part[b] * both
            result[b] = rss0 - explained / (apart if apart >= _PARALLEL else np.inf)
    return free


@compiled
def _exact(
    hypotheses: Integers, s1: Floats, szz: Floats, syz: Floats, totals: Floats, width: int, two: bool
) -> Floats:
    """Residual sums of squares without negative coefficients; infinite where that takes fewer terms."""
    total, s1y, syy = totals
    singles = len(s1) if two else len(s1) // width
    rss = np.empty(len(hypotheses))
    for place, h in enumerate(hypotheses):
        if h == 0:
            rss[place] = syy - s1y**2 / total
        elif h < singles:
            z = h if two else h * width
            left, along = szz[z] - s1[z] * s1[z] / total, syz[z] - s1[z] * s1y / total
            slope = along / left if left > _COLLINEAR * szz[z] else 0.0
            explained = slope * along + s1y**2 / total
            if slope * s1[z] > s1y:  # the constant would be negative
                explained = syz[z] * syz[z] / szz[z]
            rss[place] = syy - explained if slope > 0 else np.inf
        else:
            pair = h - singles
            a, b = pair // (width - 1) + 1, pair % (width - 1) + 1
            one, other, both = a * width, b if two else b * width, a * width + b
            sa, sb, ya, yb = s1[one], s1[other], syz[one], syz[other]
            ca, cb, explained = _two(
                szz[one] - sa * sa / total,
                szz[other] - sb * sb / total,
                s1[both] - sa * sb / total,
                ya - sa * s1y / total,
                yb - sb * s1y / total,
            )
            explained += s1y**2 / total
            if ca * sa + cb * sb > s1y:  # the constant would be negative
                ca, cb, explained = _two(szz[one], szz[other], s1[both], ya, yb)
            rss[place] = syy - explained if ca > 0 and cb > 0 and np.isfinite(explained) else np.inf
    return rss


@compiled
def _two(aa: float, bb: float, ab: float, ay: float, by: float) -> tuple[float, float, float]:
    """Solve the normal equations of two predictors; return both coefficients and the explained sum."""
    determinant = aa * bb - ab * ab
    if not determinant > _COLLINEAR * aa * bb:
        return np.nan, np.nan, np.nan
    a, b = (ay * bb - by * ab) / determinant, (by * aa - ay * ab) / determinant
    return a, b, a * ay + b * by
