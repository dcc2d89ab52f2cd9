"""Loops over arrays as machine code, where operations on whole arrays would wait for memory.

Hypotheses are fitted one after another, so that everything one needs stays in the cache. Terms are ``t``,
the constant being number 0, hypotheses ``l``, points ``n``. Small axes come first in results, so that what
follows runs over long rows. `solve` takes whole arrays instead: very many small systems at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats, Integers
from orchestrator.models.machine_code import compiled
from orchestrator.models.noise import GUESS_WEIGHT


class Data(NamedTuple):
    """What the hypotheses of a group of call paths are fitted to."""

    # begin, table: block values of all parameters one after another, shape (blocks, points), and where each
    # begins.
    begin: Integers
    table: Floats
    # shift, target: mean logarithm of the values, shape (call paths,), and the logarithms less that, (call
    # paths, points).
    shift: Floats
    target: Floats
    share: Floats  # reciprocals of the values, ``exp(-target)``
    weights: Floats  # shape (call paths, points)
    # Monomials of the smooth correction, shape (features, points), none where there is no correction.
    features: Floats
    root: Floats  # square root of the covariance of its coefficients, shape (call paths, features, features)
    # variance, freedom: variance that is expected of a value of weight 1, and how sure that is, shape (call
    # paths,).
    variance: Floats
    freedom: Floats


class Coefficients(NamedTuple):
    """Hypotheses as `coefficients` fits them."""

    # Means of the terms over the values, by which coefficients are multiplied here, shape (t, l).
    scale: Floats
    c: Floats  # coefficients, shape (t, l)
    inverse: Floats  # their inverse normal matrix after the step, shape (t, t, l)
    # Row of the constant in that before the step, from which it is never left out, shape (t, l).
    constant_row: Floats
    noise: Floats  # residual variance, shape (l,)
    deviation: Floats  # coefficients before the step in units of their standard deviations, shape (t, l)
    log_det: Floats  # log determinant of the normal matrix with the prior of uniform shares, shape (l,)


_TINY = 1e-300  # keeps logarithms and quotients of zero finite
# Pivots below this share of the diagonal are rounding: some hundred times the machine precision.
_LEAST_PIVOT = 1e-13


@compiled
def _evaluate(terms: NDArray[np.int16], begin: Integers, table: Floats, z: Floats) -> None:
    """Write the constant and the terms of a hypothesis, shape (1 + terms, points)."""
    for n in range(z.shape[1]):
        z[0, n] = 1.0
    for t in range(1, len(z)):
        for n in range(z.shape[1]):
            z[t, n] = 1.0
        for k in range(len(begin)):
            if terms[t - 1, k]:
                block = table[begin[k] + terms[t - 1, k]]
                for n in range(z.shape[1]):
                    z[t, n] *= block[n]


@compiled
def _combine(c: Floats, z: Floats, value: Floats) -> None:
    """Write the sum of terms (t, n) times coefficients (t)."""
    for n in range(len(value)):
        value[n] = 0.0
    for t in range(len(z)):
        for n in range(len(value)):
            value[n] += c[t] * z[t, n]


@compiled
def _along(vector: Floats, weights: Floats, features: Floats, root: Floats, result: Floats) -> None:
    """Write the coordinates of what the smooth correction absorbs of a vector over points."""
    size = len(result)
    for s in range(size):
        result[s] = 0.0
    for r in range(size):
        total = 0.0
        for n in range(len(vector)):
            total += vector[n] * weights[n] * features[r, n]
        for s in range(r + 1):
            result[s] += total * root[r, s]


@compiled
def _square(vector: Floats, weights: Floats, features: Floats, root: Floats, along: Floats) -> float:
    """Return the squared length of a vector over points, without what the correction absorbs."""
    total = 0.0
    for n in range(len(vector)):
        total += weights[n] * vector[n] * vector[n]
    if len(along):
        _along(vector, weights, features, root, along)
        for s in range(len(along)):
            total -= along[s] * along[s]
    return max(total, _TINY)


@compiled
def _normal(
    columns: Floats,
    target: Floats,
    weights: Floats,
    features: Floats,
    root: Floats,
    gram: Floats,
    right: Floats,
    along: Floats,
) -> None:
    """Write the normal matrix and the right side of columns (t, n) and a target (n)."""
    size = len(columns)
    for i in range(size):
        for j in range(i + 1):
            total = 0.0
            for n in range(len(weights)):
                total += weights[n] * columns[i, n] * columns[j, n]
            gram[i, j] = total
        total = 0.0
        for n in range(len(weights)):
            total += weights[n] * columns[i, n] * target[n]
        right[i] = total
    if along.shape[1]:
        for i in range(size):
            _along(columns[i], weights, features, root, along[i])
        _along(target, weights, features, root, along[size])
        for i in range(size):
            for s in range(along.shape[1]):
                right[i] -= along[i, s] * along[size, s]
                for j in range(i + 1):
                    gram[i, j] -= along[i, s] * along[j, s]
    for i in range(size):
        for j in range(i):
            gram[j, i] = gram[i, j]


@compiled
def _multiply(matrix: Floats, vector: Floats, first: int, result: Floats) -> None:
    """Write a matrix times a vector, both without their first rows and columns."""
    for i in range(first, len(vector)):
        total = 0.0
        for j in range(first, len(vector)):
            total += matrix[i, j] * vector[j]
        result[i] = total


@compiled
def invert(gram: Floats, first: int, work: Floats, unit: Floats) -> None:
    """Write the inverse of a matrix without its first rows and columns; ``unit`` is for its own use.

    Gauss-Jordan elimination after scaling to a unit diagonal; pivots below 1e-13 count as that.
    """
    size = len(gram)
    for i in range(first, size):
        unit[i] = 1 / np.sqrt(max(gram[i, i], _TINY))
    for i in range(first, size):
        for j in range(first, size):
            work[i, j] = gram[i, j] * (unit[i] * unit[j])
    for k in range(first, size):
        share = 1 / max(work[k, k], _LEAST_PIVOT)
        for i in range(first, size):
            if i != k:
                factor = work[i, k] * share
                for j in range(first, size):
                    if j != k:
                        work[i, j] -= factor * work[k, j]
                work[i, k] = -factor
        for j in range(first, size):
            work[k, j] *= share
        work[k, k] = share
    for i in range(first, size):
        for j in range(first, size):
            work[i, j] *= unit[i] * unit[j]


@compiled
def _log_determinant(gram: Floats, ridge: float, work: Floats, unit: Floats) -> float:
    """Return the log determinant of a matrix with a ridge on its diagonal; pivots are as in `invert`."""
    size = len(gram)
    total = 0.0
    for i in range(size):
        unit[i] = 1 / np.sqrt(max(gram[i, i] + ridge, _TINY))
        for j in range(i):
            work[i, j] = gram[i, j] * (unit[i] * unit[j])
        work[i, i] = 1.0
    for k in range(size):
        pivot = max(work[k, k], _LEAST_PIVOT)
        total += np.log(pivot / (unit[k] * unit[k]))
        for i in range(k + 1, size):
            factor = work[i, k] / pivot
            for j in range(k + 1, i + 1):
                work[i, j] -= factor * work[j, k]
    return total


def coefficients(row: Integers, terms: NDArray[np.int16], data: Data, free: bool) -> Coefficients:
    """Least squares relative to the measured value, then one Gauss-Newton step on the logarithm.

    Parameters
    ----------
    row, terms
        Call path of every hypothesis, and its block numbers (hypotheses, terms, parameters), all terms used.
    data
        What the hypotheses are fitted to.
    free
        Whether the constant may be negative; otherwise it is left out where it would be.
    """
    # The loop takes arrays: taken from a tuple there, they made it slower.
    return Coefficients(
        *coefficients_loop(
            row,
            terms,
            data.begin,
            data.table,
            data.target,
            data.weights,
            data.features,
            data.root,
            data.share,
            data.variance,
            data.freedom,
            free,
        )
    )


@compiled
def coefficients_loop(
    row: Integers,
    terms: NDArray[np.int16],
    begin: Integers,
    table: Floats,
    target: Floats,
    weights: Floats,
    features: Floats,
    root: Floats,
    share: Floats,
    variance: Floats,
    freedom: Floats,
    free: bool,
) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats, Floats]:
    """Return what `Coefficients` holds, see `coefficients` and `Data`."""
    count, size, points = len(row), terms.shape[1] + 1, target.shape[1]
    scale, c, deviation = np.empty((size, count)), np.zeros((size, count)), np.empty((size, count))
    inverse, constant_row = np.zeros((size, size, count)), np.empty((size, count))
    noise, log_det = np.empty(count), np.zeros(count)
    z, columns = np.empty((size, points)), np.empty((size, points))
    gram, right, work = np.empty((size, size)), np.empty(size), np.empty((size, size))
    along = np.empty((size + 1, len(features)))
    ones, residual, value = np.ones(points), np.empty(points), np.empty(points)
    first_c, change, unit = np.empty(size), np.empty(size), np.empty(size)
    # One loop: its parts as functions of their own, with the same results, made it 2 to 25 % slower.
    for h in range(count):
        r = row[h]
        weight, covariance = weights[r], root[r]
        # --- Terms in units of their means over the values; columns are those terms over the values.
        _evaluate(terms[h], begin, table, z)
        for t in range(size):
            total = 0.0
            for n in range(points):
                total += z[t, n] * share[r, n]
            scale[t, h] = total / points
            factor = points / total
            for n in range(points):
                z[t, n] *= factor
                columns[t, n] = z[t, n] * share[r, n]
        # --- Least squares relative to the values, of which the columns are to sum to one.
        _normal(columns, ones, weight, features, covariance, gram, right, along)
        invert(gram, 0, work, unit)
        for t in range(size):
            constant_row[t, h] = work[0, t]
        _multiply(work, right, 0, first_c)
        _combine(first_c, columns, value)
        # --- What is left is noise, as far as there are points enough, else what is expected beforehand.
        for n in range(points):
            residual[n] = 1 - value[n]
        rss = _square(residual, weight, features, covariance, along[0])
        left = max(points - size, 0)
        known = freedom[r] if left == 0 or freedom[r] > GUESS_WEIGHT else 0.0
        noise[h] = (variance[r] * known + rss) / max(known + left, 1.0)
        for t in range(size):
            deviation[t, h] = first_c[t] / np.sqrt(max(work[t, t], _TINY) * noise[h])
        # No direction of the coefficients is known worse than the prior says (uniform shares: variance 1/12).
        log_det[h] = _log_determinant(gram, 12 * noise[h], work, unit)
        # --- A constant that would be negative is left out: from here on term 1 is the first.
        first = 1 if first_c[0] < 0 and size > 1 and not free else 0
        if first:
            invert(gram, 1, work, unit)
            first_c[0] = 0.0
            _multiply(work, right, 1, first_c)
        # --- A Gauss-Newton step on the logarithm, from there; columns are its derivatives.
        _combine(first_c, z, value)
        for n in range(points):
            value[n] = max(value[n], _TINY)
            residual[n] = target[r, n] - np.log(value[n])
            value[n] = 1 / value[n]
        for t in range(size):
            for n in range(points):
                columns[t, n] = z[t, n] * value[n]
        _normal(columns, residual, weight, features, covariance, gram, right, along)
        invert(gram, first, work, unit)
        _multiply(work, right, first, change)
        for t in range(first, size):
            for u in range(first, size):
                inverse[t, u, h] = work[t, u]
            stepped = first_c[t] + change[t]
            c[t, h] = stepped if free else max(stepped, 0.1 * first_c[t])
    return scale, c, inverse, constant_row, noise, deviation, log_det


def residuals(
    row: Integers, terms: NDArray[np.int16], data: Data, c: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """Weighted sum of squares of the residuals of the logarithm, and whether all values are positive.

    Parameters as in `coefficients`; ``c`` are the coefficients of the terms as they are, shape (t, l).
    """
    return residuals_loop(
        row, terms, data.begin, data.table, data.target, data.weights, data.features, data.root, c
    )


@compiled
def residuals_loop(
    row: Integers,
    terms: NDArray[np.int16],
    begin: Integers,
    table: Floats,
    target: Floats,
    weights: Floats,
    features: Floats,
    root: Floats,
    c: Floats,
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return what `residuals` does."""
    count, size, points = len(row), terms.shape[1] + 1, target.shape[1]
    rss, positive = np.empty(count), np.empty(count, dtype=np.bool_)
    z, along = np.empty((size, points)), np.empty(len(features))
    residual, value = np.empty(points), np.empty(points)
    for h in range(count):
        r = row[h]
        _evaluate(terms[h], begin, table, z)
        _combine(c[:, h], z, value)
        least = np.inf
        for n in range(points):
            least = min(least, value[n])
            residual[n] = target[r, n] - np.log(max(value[n], _TINY))
        rss[h] = _square(residual, weights[r], features, root[r], along)
        positive[h] = least > 0
    return rss, positive


def solve(gram: Floats, right: Floats, least: float) -> Floats:
    """Solve symmetric positive systems stored as (t, t, ...) by elimination.

    Parameters
    ----------
    gram
        Matrices, shape (t, t, ...); only the upper triangles are read.
    right
        Right sides, shape (t, ...).
    least
        Pivots below this times the diagonal count as that.
    """
    size = len(gram)
    least_pivot = least * np.maximum(np.einsum("tt...->t...", gram), _TINY)
    work, c = gram.copy(), right.copy()
    for k in range(size):
        work[k, k] = np.maximum(work[k, k], least_pivot[k])
        for i in range(k + 1, size):
            factor = work[k, i] / work[k, k]
            work[i, i:] -= factor * work[k, i:]
            c[i] -= factor * c[k]
    for k in reversed(range(size)):
        for j in range(k + 1, size):
            c[k] -= work[k, j] * c[j]
        c[k] /= work[k, k]
    return c
