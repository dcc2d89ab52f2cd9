"""Factors that are all positive, found by an interior-point method (sections 4.2.2 and 5.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.cpr.als import Entries, Ints, product_at, row_begins
from orchestrator.models.machine_code import compiled

# Weights of the barrier that keeps factors positive, from the first to the last, each smaller by a factor.
# Then the most steps of Newton's method for a row. Chosen by hand; not derived.
FIRST_BARRIER, LAST_BARRIER, BARRIER_FACTOR = 10.0, 1e-11, 8.0
MOST_STEPS = 40
# Over all modes for each weight of the barrier, and for the last one; until factors hardly change.
_SWEEPS, _LAST_SWEEPS, _TOLERANCE = 5, 50, 1e-3
# Newton's matrix stays positive definite where a prediction is far too large.
_LEAST_CURVATURE = 0.1
_BOUNDARY = 0.995  # of the way to zero that a step may go


def barriers() -> list[float]:
    """Return the weights of the barrier, falling (section 6.0.4)."""
    weights = [FIRST_BARRIER]
    while weights[-1] > LAST_BARRIER:
        weights.append(weights[-1] / BARRIER_FACTOR)
    return weights


@compiled
def _objective(
    row: Floats, products: Floats, logs: Floats, share: Floats, total: float, ridge: float, barrier: float
) -> float:
    """Return what `newton_row` lowers; ``total`` is the sum of shares."""
    value = 0.0
    for n in range(len(logs)):
        predicted = 0.0
        for r in range(len(row)):
            predicted += row[r] * products[n, r]
        error = logs[n] - np.log(predicted)
        value += share[n] * error * error / total
    for r in range(len(row)):
        value += ridge * row[r] * row[r] - barrier * np.log(row[r])
    return value


@compiled
def _derivatives(
    row: Floats, products: Floats, logs: Floats, share: Floats, total: float, ridge: float, barrier: float
) -> tuple[Floats, Floats]:
    """Return the gradient of `_objective`, and a Hessian that is positive definite."""
    rank = len(row)
    gradient = np.empty(rank)
    hessian = np.zeros((rank, rank))
    for r in range(rank):
        gradient[r] = 2 * ridge * row[r] - barrier / row[r]
        hessian[r, r] = 2 * ridge + barrier / (row[r] * row[r])
    for n in range(len(logs)):
        predicted = 0.0
        for r in range(rank):
            predicted += row[r] * products[n, r]
        error = logs[n] - np.log(predicted)
        first = 2 * share[n] / total * error / predicted
        second = 2 * share[n] / total * max(1 + error, _LEAST_CURVATURE) / (predicted * predicted)
        for r in range(rank):
            gradient[r] -= first * products[n, r]
            for s in range(rank):
                hessian[r, s] += second * products[n, r] * products[n, s]
    return gradient, hessian


@compiled
def newton_row(
    row: Floats, products: Floats, logs: Floats, share: Floats, ridge: float, barrier: float, steps: int
) -> int:
    """Improve a positive row in place by Newton's method with a log barrier (equation 4); return the steps.

    Parameters
    ----------
    row
        One row of a factor, shape (rank,).
    products
        Products of the other factors at its entries, shape (n, rank).
    logs, share
        Logarithms of the entries and how much each counts, shape (n,).
    ridge, barrier
        Weights of the squares and of the barrier.
    steps
        At most so many.
    """
    rank = len(row)
    total = np.sum(share)
    value = _objective(row, products, logs, share, total, ridge, barrier)
    for step in range(steps):
        gradient, hessian = _derivatives(row, products, logs, share, total, ridge, barrier)
        change = np.linalg.solve(hessian, -gradient)
        # The longest step that stays positive, halved until the objective falls (Armijo's rule).
        length, descent = 1.0, 0.0
        for r in range(rank):
            descent += gradient[r] * change[r]
            if change[r] < 0:
                length = min(length, -_BOUNDARY * row[r] / change[r])
        if -descent < 1e-12 * (1 + abs(value)):
            return step
        for _ in range(30):
            tried = row + length * change
            tried_value = _objective(tried, products, logs, share, total, ridge, barrier)
            if tried_value <= value + 1e-4 * length * descent:
                break
            length *= 0.5
        else:
            return step
        for r in range(rank):
            row[r] = tried[r]
        value = tried_value
    return steps


@compiled
def _sweep_mode(
    node: Ints,
    weight: Floats,
    logs: Floats,
    share: Floats,
    order: NDArray[np.int64],
    begins: NDArray[np.int64],
    first: Ints,
    table: Floats,
    mode: int,
    ridge: float,
    barrier: float,
    steps: int,
) -> None:
    rank = table.shape[1]
    for i in range(len(begins) - 1):
        count = begins[i + 1] - begins[i]
        if count == 0:
            continue
        products, own, counts = np.empty((count, rank)), np.empty(count), np.empty(count)
        for k in range(count):
            n = order[begins[i] + k]
            product_at(node, weight, first, table, mode, n, products[k])
            own[k], counts[k] = logs[n], share[n]
        newton_row(table[first[mode] + i], products, own, counts, ridge, barrier, steps)


def positive_factors(
    entries: Entries, sizes: Sequence[int], rank: int, rng: np.random.Generator, ridge: float = 1e-3
) -> Floats:
    """Return positive factors with the least squares of logarithms of their sums of products.

    Alternating minimisation by Newton's method, one sweep for each weight of the barrier. Rows without
    entries take the geometric mean of their neighbours that have some.

    Parameters
    ----------
    entries
        Means of cells; ``y`` are logarithms with mean 0.
    sizes
        Nodes of each mode.
    rank
        Number of products.
    rng
        For the beginning.
    ridge
        Of the squares of each row: the paper's lambda.
    """
    first = row_begins(sizes)
    table = np.zeros((sum(sizes) + 1, rank))
    table[:-1] = np.exp(0.1 * rng.standard_normal((sum(sizes), rank))) * rank ** (-1 / max(len(sizes), 1))
    orders = [np.argsort(node, kind="stable") for node in entries.node]
    begins = [
        np.searchsorted(node[order], np.arange(size + 1))
        for node, order, size in zip(entries.node, orders, sizes, strict=True)
    ]
    for barrier in barriers():
        before = table.copy()
        for _ in range(_SWEEPS if barrier > LAST_BARRIER else _LAST_SWEEPS):
            for mode in range(len(sizes)):
                _sweep_mode(
                    entries.node, entries.weight, entries.y, entries.share, orders[mode], begins[mode], first,
                    table, mode, ridge, barrier, MOST_STEPS,
                )  # fmt: skip
            if np.max(np.abs(table - before)) <= _TOLERANCE * np.max(table):
                break
            before = table.copy()
    for mode, size in enumerate(sizes):
        _fill(table[first[mode] : first[mode] + size], np.diff(begins[mode]) > 0)
    return table


def _fill(factor: Floats, known: NDArray[np.bool_]) -> None:
    """Interpolate the logarithms of rows without entries."""
    rows = np.arange(len(factor))
    for column in factor.T:
        column[~known] = np.exp(np.interp(rows[~known], rows[known], np.log(column[known])))
