"""Positive tensors whose factors go on beyond their nodes along their best rank-one approximation (5.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.cpr.als import row_begins
from orchestrator.models.cpr.fitting import cell_means
from orchestrator.models.cpr.modes import Mode, cell_modes
from orchestrator.models.cpr.positive import positive_factors
from orchestrator.models.cpr.splines import Spline
from orchestrator.models.regression.samples import Samples


@dataclass(frozen=True, slots=True, kw_only=True)
class PositiveTensor:
    """A sum of products of positive functions."""

    modes: tuple[Mode, ...]  # where their nodes are
    factors: tuple[NDArray[np.float32], ...]  # of each mode, shape (nodes, rank)
    # Of each mode, the row that its rows are nearly multiples of, shape (modes, rank).
    directions: NDArray[np.float32]
    # Of each mode, logarithm of that multiple and its slope outwards, below and above, shape (modes, 2, 2).
    lines: NDArray[np.float32]
    mean: float  # what is added to the logarithm of the sum

    @property
    def text(self) -> str:
        """What it is."""
        return f"positive tensor of rank {self.directions.shape[1]}"

    def at(self, x: Floats) -> Floats:
        """Return logarithms at coordinates (n, axes), shape (n,), anywhere."""
        product = np.ones((len(x), self.directions.shape[1]))
        for k in range(len(self.modes)):
            product *= self._rows(k, x)
        total = product.sum(axis=1)
        return np.asarray(self.mean + np.log(np.maximum(total, 1e-300)) + 0 * total, np.float64)

    def _rows(self, k: int, x: Floats) -> Floats:
        """Return the factor of a mode at each point, shape (n, rank): equation 5 inside, the line outside."""
        mode, factor = self.modes[k], self.factors[k].astype(np.float64)
        node, weight = mode.neighbours(x)
        above = np.minimum(node + 1, len(factor) - 1)
        rows = factor[node] + weight[:, None] * (factor[above] - factor[node])
        # Equation 5 goes on in a straight line to the ends of the range, which may cross zero.
        rows = np.maximum(rows, np.minimum(factor[node], factor[above]) / 2)
        if mode.is_categorical:
            return np.asarray(rows, np.float64)
        z = mode.coordinate(x)
        for side, (end, distance) in enumerate(
            ((mode.nodes[0], mode.edges[0] - z), (mode.nodes[-1], z - mode.edges[-1]))
        ):
            beyond = distance > 0
            value, slope = self.lines[k, side]
            steps = np.abs(z[beyond] - end)
            rows[beyond] = np.exp(value + slope * steps)[:, None] * self.directions[k]
        return np.asarray(rows, np.float64)


def positive_tensor(
    samples: Samples, rank: int, cells: int, rng: np.random.Generator, spline: Spline
) -> PositiveTensor:
    """Fit positive factors to the means of cells, and their continuation.

    Parameters
    ----------
    samples
        Logarithms; a trend must not be removed from them.
    rank, cells
        Number of products, and cells of a numeric mode.
    rng
        For the beginning.
    spline
        Continues the logarithms of the best rank-one approximation of each factor, which is positive by the
        theorem of Perron and Frobenius.
    """
    modes = cell_modes(samples, cells)
    mean = float(samples.y.mean())
    entries = cell_means(modes, samples.x, samples.y - mean)
    sizes = [len(mode) for mode in modes]
    table = positive_factors(entries, sizes, rank, rng)
    # The squares and the barrier cost size: what they shift is put back.
    found = entries.completed(row_begins(sizes), table)
    mean += float(np.average(entries.y - np.log(found), weights=entries.share))
    factors = [table[begin : begin + size] for begin, size in zip(row_begins(sizes), sizes, strict=True)]
    directions, lines = np.zeros((len(modes), rank)), np.zeros((len(modes), 2, 2))
    for k, (mode, factor) in enumerate(zip(modes, factors, strict=True)):
        multiples, directions[k] = rank_one(factor)
        if not mode.is_categorical:
            logs = np.log(multiples)
            lines[k] = spline(-mode.nodes[::-1], logs[::-1]), spline(mode.nodes, logs)
    small = tuple(factor.astype(np.float32) for factor in factors)
    return PositiveTensor(
        modes=modes,
        factors=small,
        directions=directions.astype(np.float32),
        lines=lines.astype(np.float32),
        mean=mean,
    )


def rank_one(factor: Floats) -> tuple[Floats, Floats]:
    """Return the positive vectors, of nodes and of ranks, whose outer product is nearest to a factor."""
    left, sizes, right = np.linalg.svd(factor, full_matrices=False)
    return np.abs(left[:, 0]), sizes[0] * np.abs(right[0])
