"""What learners see of a point: its coordinates, categories as indicators, and columns that physics suggests.

A regression tree splits one column at a time, and a distance adds columns up. Neither sees by itself that a
time follows the product of three sizes, or that kernels are fast on multiples of a vector's length.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.regression.alignment import LENGTHS, matters
from orchestrator.models.regression.samples import Axis, Samples
from orchestrator.models.regression.trend import Trend, fit_trend


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """A map from coordinates to columns."""

    axes: tuple[Axis, ...]  # what the coordinates are
    # Of each axis, whether every measured value is a whole number, and some is not below 8.
    whole: tuple[bool, ...]
    trend: Trend | None  # the log-linear trend, whose value is a column; None for none
    # Whether the sum of all logarithms is a column, and sums and differences of each two of them.
    products: bool
    values: bool  # whether the value of a logarithmic coordinate is a column, too
    alignment: bool  # whether remainders of whole numbers are columns

    def at(self, x: Floats) -> Floats:
        """Return the columns at coordinates (n, axes), shape (n, columns)."""
        return np.column_stack([np.empty((len(x), 0)), *self._plain(x), *self._derived(x)])

    def _plain(self, x: Floats) -> list[Floats]:
        """Coordinates as they are, and an indicator per category."""
        found: list[Floats] = []
        for axis, values in zip(self.axes, x.T, strict=True):
            if axis.levels is None or len(axis.levels) == 2:
                found.append(values)
            else:
                found.append(axis.columns(values))
        return found

    def _derived(self, x: Floats) -> list[Floats]:
        columns: list[Floats] = []
        logs = [values for axis, values in zip(self.axes, x.T, strict=True) if axis.logarithmic]
        if self.trend is not None:
            columns.append(self.trend.at(x))
        if self.products and len(logs) > 1:
            columns.append(np.sum(logs, axis=0))
            columns.extend(a - b for a, b in combinations(logs, 2))
            if len(logs) > 2:
                columns.extend(a + b for a, b in combinations(logs, 2))
        if self.values:
            pairs = zip(self.axes, x.T, strict=True)
            columns.extend(axis.numbers(values) for axis, values in pairs if axis.logarithmic)
        if self.alignment:
            for axis, whole, values in zip(self.axes, self.whole, x.T, strict=True):
                if whole:
                    columns.extend(_remainders(axis, values))
        return columns


def columns_of(
    samples: Samples,
    *,
    trend: bool = False,
    products: bool = False,
    values: bool = False,
    alignment: bool = False,
) -> Columns:
    """Return a map to columns; what it has to know of the samples (the trend, whole numbers) it finds."""
    whole = tuple(is_whole(axis, values) for axis, values in zip(samples.axes, samples.x.T, strict=True))
    return Columns(
        axes=samples.axes,
        whole=whole,
        trend=fit_trend(samples) if trend else None,
        products=products,
        values=values,
        alignment=alignment,
    )


def is_whole(axis: Axis, coordinates: Floats) -> bool:
    """Tell whether the values of an axis are whole numbers that may or may not be aligned."""
    if axis.levels is not None or not len(coordinates):
        return False
    return matters(axis.numbers(coordinates))


def _remainders(axis: Axis, coordinates: Floats) -> list[Floats]:
    values = np.round(axis.numbers(coordinates))
    return [values % q for q in LENGTHS]
