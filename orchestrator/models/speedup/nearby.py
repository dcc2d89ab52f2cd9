"""Means of what was measured nearby, weighted by inverse squares of distances (Shepard 1968)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from orchestrator.models.base import Floats, Integers
from orchestrator.models.regression.samples import Axis

_NEIGHBOURS = 4  # how many of the nearest samples count, the less the further; chosen by hand
_APART = 1e3  # distance between categories, where numbers have the range 1
_SAME = 1e-9  # least distance: less is none


@dataclass(frozen=True, slots=True, eq=False)
class Nearby:
    """Rows of coordinates that can be looked up; exact at the rows themselves."""

    tree: KDTree  # of the rows, scaled and padded
    scale: Floats  # what coordinates are multiplied by, shape (axes,)

    @classmethod
    def of(cls, axes: tuple[Axis, ...], rows: Floats) -> Nearby:
        """Arrange rows of coordinates, shape (rows, axes)."""
        scale = np.array(
            [_APART if axis.is_categorical else 1 / max(axis.high - axis.low, 1e-12) for axis in axes]
        )
        return cls(KDTree(_padded(rows * scale)), scale)

    def nearest(self, x: Floats) -> Integers:
        """Return the nearest row to each of some coordinates, shape (n,)."""
        _, index = self.tree.query(_padded(x * self.scale))
        return np.asarray(index, np.intp)

    def mean(self, x: Floats, values: Floats) -> Floats:
        """Return the weighted mean of the values (rows,) near coordinates, shape (n,)."""
        count = min(_NEIGHBOURS, len(values))
        found = self.tree.query(_padded(x * self.scale), k=np.arange(1, count + 1))
        distance, index = (np.asarray(part).reshape(len(x), count) for part in found)
        exact = distance[:, 0] < _SAME
        weight = 1 / np.maximum(distance, _SAME) ** 2
        mean = (weight * values[index]).sum(axis=1) / weight.sum(axis=1)
        return np.asarray(np.where(exact, values[index[:, 0]], mean), np.float64)


def _padded(rows: Floats) -> Floats:
    """Return rows with one column of zeros more: a tree needs one, also where there is one problem only."""
    return np.pad(rows, [(0, 0), (0, 1)])
