"""Stochastic gradient descent: all factors at once, one entry after another (section 4.2.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.cpr.als import Entries, Ints, product_at, row_begins
from orchestrator.models.machine_code import compiled

# Passes over the samples. Chosen by hand; not derived.
_EPOCHS = 200
# Step of the first epoch over the square of a usual gradient; it falls to a hundredth over the epochs.
_STEP = 0.5
_LAST_STEP = 0.01


@compiled
def _epoch(
    node: Ints,
    weight: Floats,
    y: Floats,
    share: Floats,
    order: NDArray[np.int64],
    first: Ints,
    decay: Floats,
    table: Floats,
    step: float,
) -> None:
    """Visit all entries once; steps are normalised by the length of the gradient (least mean squares)."""
    modes, rank = node.shape[0], table.shape[1]
    products = np.empty((modes, rank))
    for n in order:
        length = 1.0
        for mode in range(modes):
            product_at(node, weight, first, table, mode, n, products[mode])
            for r in range(rank):
                length += products[mode, r] * products[mode, r]
        error = y[n]
        row, above = first[0] + node[0, n], weight[0, n]
        for r in range(rank):
            error -= products[0, r] * (table[row, r] + above * (table[row + 1, r] - table[row, r]))
        size = step * share[n] / length
        for mode in range(modes):
            row, above = first[mode] + node[mode, n], weight[mode, n]
            for r in range(rank):
                table[row, r] += size * ((1 - above) * error * products[mode, r] - decay[row] * table[row, r])
                if above != 0.0:
                    change = above * error * products[mode, r] - decay[row + 1] * table[row + 1, r]
                    table[row + 1, r] += size * change


def stochastic(
    entries: Entries,
    penalties: Sequence[Floats],
    table: Floats,
    rng: np.random.Generator,
    *,
    epochs: int = _EPOCHS,
) -> Floats:
    """Return the table after epochs of steps along the gradient of single entries.

    Only the diagonals of the penalties count: this is meant for cells. Steps are longer for entries that
    count more.

    Parameters
    ----------
    entries, penalties, table
        As of `als.alternating`.
    rng
        For the order of the entries.
    epochs
        How often each entry is visited.
    """
    first = row_begins([penalty.shape[1] for penalty in penalties])
    table = table.copy()
    decay = np.concatenate([*(penalty[0] for penalty in penalties), [0.0]])
    shares = entries.share / max(float(entries.share.max()), 1e-300)
    visits = np.zeros(len(table))
    for mode, begin in enumerate(first):
        np.add.at(visits, begin + entries.node[mode], 1.0)
    decay /= np.maximum(visits, 1.0)
    for epoch in range(epochs):
        step = _STEP * (_LAST_STEP ** (epoch / max(epochs - 1, 1)))
        order = rng.permutation(len(entries))
        _epoch(entries.node, entries.weight, entries.y, shares, order, first, decay, table, step)
    return table
