"""Alternating least squares: the factors of one mode at a time, all others fixed (sections 4.2.1 and 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpbsv, dptsv

from orchestrator.models.base import Floats
from orchestrator.models.machine_code import compiled

Ints = NDArray[np.int32]

# Sweeps over all factors; most fits have converged earlier. Chosen by hand; not derived.
MOST_SWEEPS = 100
# What is added to a singular diagonal at first, as a share of its largest element.
_LEAST_PIVOT, _ATTEMPTS = 1e-12, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """What the tensor is known at."""

    node: Ints  # the node below, shape (modes, n)
    weight: Floats  # weight of the node above it, shape (modes, n)
    y: Floats  # values, shape (n,)
    share: Floats  # how much each entry counts, shape (n,)

    def __len__(self) -> int:
        return len(self.y)

    def completed(self, first: Ints, table: Floats) -> Floats:
        """Return what factors say of the entries, shape (n,), see `completed`."""
        return completed(self.node, self.weight, first, table)


@compiled
def product_at(
    node: Ints, weight: Floats, first: Ints, table: Floats, left_out: int, n: int, product: Floats
) -> None:
    """Write the product of the factors of all modes but one at an entry, shape (rank,)."""
    for r in range(len(product)):
        product[r] = 1.0
    for mode in range(len(first)):
        if mode == left_out:
            continue
        row, above = first[mode] + node[mode, n], weight[mode, n]
        if above == 0.0:
            for r in range(len(product)):
                product[r] *= table[row, r]
        else:
            for r in range(len(product)):
                product[r] *= table[row, r] + above * (table[row + 1, r] - table[row, r])


@compiled
def completed(node: Ints, weight: Floats, first: Ints, table: Floats) -> Floats:
    """Return the sums of products, shape (n,): equation 2, and equation 5 between nodes.

    Parameters
    ----------
    node, weight
        Where, shapes (modes, n).
    first
        Row of the table where each mode begins, shape (modes,).
    table
        Rows of all factors one below the other and a last one of zeros, shape (rows + 1, rank).
    """
    product = np.empty(table.shape[1])
    values = np.zeros(node.shape[1])
    for n in range(node.shape[1]):
        product_at(node, weight, first, table, -1, n, product)
        for r in range(len(product)):
            values[n] += product[r]
    return values


@compiled
def _gram(
    node: Ints,
    weight: Floats,
    y: Floats,
    share: Floats,
    first: Ints,
    table: Floats,
    mode: int,
    own: Floats,
    next_one: Floats,
    right: Floats,
) -> None:
    """Add up the normal equations of a mode: of nodes with themselves and with the next one."""
    rank = table.shape[1]
    product = np.empty(rank)
    for n in range(len(y)):
        product_at(node, weight, first, table, mode, n, product)
        i, above = node[mode, n], weight[mode, n]
        below = 1.0 - above
        a, b, c = share[n] * below * below, share[n] * below * above, share[n] * above * above
        for r in range(rank):
            right[i, r] += share[n] * below * y[n] * product[r]
            scaled = a * product[r]
            for s in range(r + 1):
                own[i, r, s] += scaled * product[s]
        if above == 0.0:
            continue
        for r in range(rank):
            right[i + 1, r] += share[n] * above * y[n] * product[r]
            across, scaled = b * product[r], c * product[r]
            for s in range(r + 1):
                next_one[i, r, s] += across * product[s]
                own[i + 1, r, s] += scaled * product[s]


@compiled
def _banded(own: Floats, next_one: Floats, penalty: Floats, band: Floats) -> None:
    """Write the lower band of the normal equations with the penalty of neighbours, node by node."""
    nodes, rank = own.shape[0], own.shape[1]
    for i in range(nodes):
        for r in range(rank):
            column = i * rank + r
            band[0, column] += penalty[0, i]
            for s in range(r, rank):
                band[s - r, column] += own[i, s, r]
            for k in range(1, min(3, nodes - i)):
                band[k * rank, column] += penalty[k, i]
            if i + 1 < nodes:
                for s in range(rank):
                    largest, least = max(r, s), min(r, s)
                    band[rank + s - r, column] += next_one[i, largest, least]


def row_begins(sizes: Sequence[int]) -> Ints:
    """Return where the rows of each mode begin in the table."""
    return np.asarray(np.concatenate([[0], np.cumsum(sizes)[:-1]]), np.int32)


def improved(entries: Entries, first: Ints, table: Floats, mode: int, penalty: Floats) -> Floats:
    """Return the factor of a mode that is best while all others stay, shape (nodes, rank).

    Parameters
    ----------
    entries
        What is known.
    first, table
        The factors (see `completed`).
    mode
        Whose factor to improve.
    penalty
        Diagonal and the next two diagonals of the penalty on the column of a factor, shape (3, nodes).
    """
    nodes, rank = penalty.shape[1], table.shape[1]
    own, next_one = np.zeros((nodes, rank, rank)), np.zeros((nodes, rank, rank))
    right = np.zeros((nodes, rank))
    _gram(entries.node, entries.weight, entries.y, entries.share, first, table, mode, own, next_one, right)
    if not penalty[1:].any() and not next_one.any():
        own += np.tril(own, -1).transpose(0, 2, 1)
        own += penalty[0][:, None, None] * np.eye(rank)
        return _by_rows(own, right)
    # Column by column in memory, as it is written and as LAPACK reads it.
    band = np.zeros((nodes * rank, 1 + 2 * rank)).T
    _banded(own, next_one, penalty, band)
    keep = min(len(band) if penalty[2].any() else 2 * rank, nodes * rank)
    found = _solution(band[:keep], right.ravel())
    return np.asarray(found.reshape(nodes, rank), np.float64)


def _by_rows(own: Floats, right: Floats) -> Floats:
    """Solve a small system per node."""
    diagonal = np.einsum("irr->ir", own)
    diagonal += _LEAST_PIVOT * np.maximum(diagonal.max(axis=1, keepdims=True), 1e-300)
    return np.asarray(np.linalg.solve(own, right[..., None])[..., 0], np.float64)


def _solution(band: Floats, right: Floats) -> Floats:
    """Solve the normal equations, a little more regular where rounding makes them singular."""
    least = _LEAST_PIVOT * float(band[0].max())
    for _ in range(_ATTEMPTS):
        # What scipy.linalg.solveh_banded calls after checks that take several times as long.
        if len(band) == 2:
            _, _, found, singular = dptsv(band[0], band[1, :-1], right)
        else:
            _, found, singular = dpbsv(band, right, lower=True)
        if not singular:
            return np.asarray(found, np.float64)
        band[0] += least
        least *= 1000
    return np.zeros(len(right))


def alternating(
    entries: Entries,
    penalties: Sequence[Floats],
    table: Floats,
    *,
    sweeps: int,
    tolerance: float = 1e-4,
) -> Floats:
    """Return the table after sweeps over all modes, until a sweep changes the values hardly.

    Parameters
    ----------
    entries
        What is known.
    penalties
        Of each mode (see `improved`).
    table
        Where to begin.
    sweeps
        At most so many.
    tolerance
        Ends when values change by less than this share of their standard deviation, root mean square.
    """
    first = row_begins([penalty.shape[1] for penalty in penalties])
    table = table.copy()
    scale = max(float(np.sqrt(np.mean(entries.y**2))), 1e-300)
    before = entries.completed(first, table)
    for _ in range(sweeps):
        for mode, penalty in enumerate(penalties):
            begin = first[mode]
            table[begin : begin + penalty.shape[1]] = improved(entries, first, table, mode, penalty)
        values = entries.completed(first, table)
        if np.sqrt(np.mean((values - before) ** 2)) < tolerance * scale:
            break
        before = values
    return table
