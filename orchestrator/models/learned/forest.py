"""Fitted trees as flat arrays, which take a seventh of the memory of scikit-learn's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats

# Points times trees that go down together: arrays that fit into a cache.
_TOGETHER = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest:
    """A weighted sum of trees, on columns as 32-bit numbers (as scikit-learn compares them)."""

    # shift, scale: the prediction is ``shift + scale * sum of leaves``.
    shift: float
    scale: float
    roots: NDArray[np.int32]  # node at which each tree begins
    column: NDArray[np.int16]  # what a node splits by; -1 for leaves
    value: NDArray[np.float32]  # the largest value that goes to the left, or what a leaf predicts
    right: NDArray[np.int32]  # the node on the right; the next one is on the left

    def predict(self, x: Floats) -> Floats:
        """Return predictions, shape (n,)."""
        values = x.astype(np.float32)
        step = max(_TOGETHER // len(self.roots), 1)
        parts = [self._sums(values[start : start + step]) for start in range(0, len(x), step)]
        return self.shift + self.scale * np.concatenate([np.empty(0), *parts])

    def _sums(self, x: NDArray[np.float32]) -> Floats:
        """Return the sums of leaves, shape (n,)."""
        node = np.tile(self.roots, len(x))
        point = np.repeat(np.arange(len(x)), len(self.roots))
        walking = np.arange(len(node))
        while walking.size:
            here = node[walking]
            column = self.column[here]
            inner = column >= 0
            walking, here, column = walking[inner], here[inner], column[inner]
            left = x[point[walking], column] <= self.value[here]
            node[walking] = np.where(left, here + 1, self.right[here])
        return np.asarray(self.value[node].reshape(len(x), -1).sum(axis=1, dtype=float), np.float64)


def flattened(trees: Sequence[Any], shift: float, scale: float) -> Forest:
    """Return the fitted trees of scikit-learn, grown depth first, as arrays."""
    columns, values, rights, roots = [], [], [], []
    start = 0
    for tree in trees:
        leaf = tree.children_left < 0
        columns.append(np.where(leaf, -1, tree.feature).astype(np.int16))
        values.append(np.where(leaf, tree.value[:, 0, 0], _rounded_down(tree.threshold)).astype(np.float32))
        rights.append((tree.children_right + start).astype(np.int32))
        roots.append(start)
        start += tree.node_count
    return Forest(
        shift=shift,
        scale=scale,
        roots=np.array(roots, np.int32),
        column=np.concatenate(columns),
        value=np.concatenate(values),
        right=np.concatenate(rights),
    )


def _rounded_down(thresholds: Floats) -> Floats:
    """Return the largest 32-bit numbers that are not above; comparisons with such numbers stay the same."""
    rounded = thresholds.astype(np.float32)
    return np.where(rounded > thresholds, np.nextafter(rounded, np.float32(-np.inf)), rounded)
