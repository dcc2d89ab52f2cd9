"""Modes of the tensor: how a coordinate becomes two neighbouring nodes and a weight.

A cell is a node with weight 0 of the next one, a point between two nodes touches both: the same arrays serve
the discretisation of the paper (section 5.1) and piecewise-linear functions at true coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.regression.samples import Axis, Samples

Ints = NDArray[np.int32]

FEW_LEVELS = 16
"""Up to so many distinct values of a number have a node each."""

_DIGITS = 9  # of sums of logarithms, which differ by rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """One mode of the tensor."""

    axes: tuple[int, ...]  # the axes that the coordinate of the mode is made of
    slopes: tuple[float, ...]  # what each of them is multiplied by before they are summed
    nodes: Floats  # coordinates of the nodes, rising; the levels' numbers for a category
    edges: Floats  # the first and the last bound the range; of a mode of cells also those between them
    is_categorical: bool = False  # whether neighbours have nothing in common

    def __len__(self) -> int:
        return len(self.nodes)

    def coordinate(self, x: Floats) -> Floats:
        """Return the coordinate of the mode for coordinates of the axes (n, axes), shape (n,)."""
        return np.asarray(x[:, list(self.axes)] @ np.array(self.slopes), np.float64)

    def cells(self, x: Floats) -> Ints:
        """Return the cell of each row, shape (n,)."""
        z = self.coordinate(x)
        cell = z if self.is_categorical else np.searchsorted(self.edges[1:-1], z, side="right")
        return np.asarray(cell, np.int32)

    def neighbours(self, x: Floats) -> tuple[Ints, Floats]:
        """Return the node below each row and the weight of the one above, shapes (n,).

        Between the last nodes and the end of the range the line through them goes on (equation 5); what
        is beyond the range is taken at its end. NaN has weight NaN.
        """
        z = self.coordinate(x)
        if self.is_categorical or len(self.nodes) == 1:
            node = np.where(np.isnan(z), 0, z) if self.is_categorical else np.zeros(len(z))
            return np.asarray(node, np.int32), np.where(np.isnan(z), np.nan, 0.0)
        z = np.clip(z, self.edges[0], self.edges[-1])
        node = np.clip(np.searchsorted(self.nodes, z, side="right") - 1, 0, len(self.nodes) - 2)
        weight = (z - self.nodes[node]) / (self.nodes[node + 1] - self.nodes[node])
        return np.asarray(node, np.int32), np.asarray(weight, np.float64)


def cell_modes(samples: Samples, cells: int) -> tuple[Mode, ...]:
    """Divide every axis into cells with a node in the middle (section 5.1)."""
    return tuple(_of_axis(samples, k, cells, middle=True) for k in range(len(samples.axes)))


def node_modes(samples: Samples, nodes: int) -> tuple[Mode, ...]:
    """Place nodes along every axis, the first and the last at the ends of its range."""
    return tuple(_of_axis(samples, k, nodes, middle=False) for k in range(len(samples.axes)))


def combined(samples: Samples, slopes: Sequence[float], number: int) -> Mode:
    """Return a mode along a combination of axes, such as the product of all sizes."""
    axes = tuple(k for k, slope in enumerate(slopes) if slope)
    weights = tuple(float(slopes[k]) for k in axes)
    z = samples.x[:, list(axes)] @ np.array(weights)
    distinct = np.unique(np.round(z, _DIGITS))
    if len(distinct) > 2 * FEW_LEVELS:
        distinct = np.unique((np.quantile(z, np.linspace(0, 1, number)) + _even(z, number)) / 2)
    return Mode(axes=axes, slopes=weights, nodes=distinct, edges=distinct[[0, -1]])


def _even(z: Floats, number: int) -> Floats:
    return np.linspace(float(z.min()), float(z.max()), number)


def _of_axis(samples: Samples, k: int, number: int, *, middle: bool) -> Mode:
    axis, z = samples.axes[k], samples.x[:, k]
    if axis.levels is not None:
        codes = np.arange(len(axis.levels), dtype=np.float64)
        edges = np.arange(len(codes) + 1, dtype=np.float64) - 0.5
        return Mode(axes=(k,), slopes=(1.0,), nodes=codes, edges=edges, is_categorical=True)
    distinct = np.unique(z)
    if len(distinct) <= FEW_LEVELS:
        between = (distinct[1:] + distinct[:-1]) / 2
        return Mode(
            axes=(k,),
            slopes=(1.0,),
            nodes=distinct,
            edges=np.concatenate([distinct[:1], between, distinct[-1:]]),
        )
    edges = _edges(axis, z, number if middle else number - 1)
    if middle:
        return Mode(axes=(k,), slopes=(1.0,), nodes=(edges[1:] + edges[:-1]) / 2, edges=edges)
    return Mode(axes=(k,), slopes=(1.0,), nodes=edges, edges=edges[[0, -1]])


def _edges(axis: Axis, z: Floats, number: int) -> Floats:
    """Divide the range evenly in the coordinate or, where that fits the values better, in what it is of."""
    low, high = min(axis.low, float(z.min())), max(axis.high, float(z.max()))
    even = np.linspace(low, high, number + 1)
    if not axis.logarithmic:
        return even
    linear = np.log(np.linspace(np.exp(low), np.exp(high), number + 1))
    linear[0], linear[-1] = low, high
    return min(even, linear, key=lambda edges: _unevenness(edges, z))


def _unevenness(edges: Floats, values: Floats) -> float:
    return float(np.var(np.histogram(values, edges)[0]))
