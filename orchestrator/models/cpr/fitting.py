"""From samples to factors: rounds of least squares whose weights follow residuals and jumps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.cpr.als import Entries, alternating, row_begins
from orchestrator.models.cpr.modes import Mode
from orchestrator.models.cpr.penalty import Smoothness, diagonals

# Factors begin as constants with so much noise: products of nine random numbers would be far apart.
_NOISE = 0.3
# Residuals beyond so many median ones count less, as in Huber's loss: what counts is the mean
# absolute error, and run times have outliers.
_USUAL = 1.5
# The first round needs no jumps: all slopes cost the same, ten times as much.
_FIRST_SLOPE = 10.0
# Rounds, and the most sweeps of each: from random factors, and from those that already follow samples.
_ANEW, _BEGUN = (4, 10), (2, 5)


def neighbours(modes: Sequence[Mode], x: Floats) -> tuple[NDArray[np.int32], Floats]:
    """Return nodes below and weights of the nodes above for all modes, shapes (modes, n)."""
    pairs = [mode.neighbours(x) for mode in modes]
    return np.array([node for node, _ in pairs]), np.array([weight for _, weight in pairs])


def at_samples(modes: Sequence[Mode], x: Floats, y: Floats) -> Entries:
    """Return the samples at their true coordinates."""
    node, weight = neighbours(modes, x)
    return Entries(node=node, weight=weight, y=y, share=np.ones(len(y)))


def cell_means(modes: Sequence[Mode], x: Floats, y: Floats) -> Entries:
    """Return the means of the cells that have samples (section 5.1); each counts as many as it has."""
    index = np.array([mode.cells(x) for mode in modes])
    distinct, owner = np.unique(index, axis=1, return_inverse=True)
    owner = owner.ravel()
    count = np.bincount(owner).astype(float)
    means = np.bincount(owner, y) / count
    node = np.ascontiguousarray(distinct, np.int32)
    return Entries(node=node, weight=np.zeros(distinct.shape), y=means, share=count)


def beginning(modes: Sequence[Mode], rank: int, rng: np.random.Generator) -> Floats:
    """Return random factors: constants with noise, the first mode with a sign and a size per rank."""
    rows = sum(len(mode) for mode in modes)
    table = np.zeros((rows + 1, rank))
    table[:-1] = 1 + _NOISE * rng.standard_normal((rows, rank))
    table[: len(modes[0])] *= rng.standard_normal(rank) / np.sqrt(rank)
    return table


def fitted_table(
    modes: Sequence[Mode],
    entries: Entries,
    smoothness: Smoothness,
    table: Floats,
    *,
    is_begun: bool = False,
) -> Floats:
    """Return the factors after rounds of sweeps; each takes weights of residuals and of jumps anew.

    Parameters
    ----------
    modes, entries
        What is known and where.
    smoothness
        What factors cost.
    table
        Where to begin.
    is_begun
        Whether the table already follows the samples, so that weights are taken from it at once.
    """
    rounds, sweeps = _BEGUN if is_begun else _ANEW
    first = row_begins([len(mode) for mode in modes])
    begun = replace(smoothness, slope=_FIRST_SLOPE * smoothness.slope)
    later = replace(smoothness, slope=smoothness.slope / 100) if smoothness.jump else smoothness
    for k in range(rounds):
        follows = is_begun or k > 0
        if follows:
            values = entries.completed(first, table)
            entries = replace(entries, share=_shares(values - entries.y))
        penalties = [
            diagonals(mode, later, len(entries), table[begin : begin + len(mode)])
            if follows
            else diagonals(mode, begun, len(entries))
            for mode, begin in zip(modes, first, strict=True)
        ]
        table = alternating(entries, penalties, table, sweeps=sweeps, tolerance=1e-3)
    return table


def _shares(residuals: Floats) -> Floats:
    """Return the weights with which least squares minimise Huber's loss."""
    size = np.abs(residuals)
    usual = _USUAL * float(np.median(size))
    return np.asarray(usual / np.maximum(size, max(usual, 1e-12)), np.float64)
