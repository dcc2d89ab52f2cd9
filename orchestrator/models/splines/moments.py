"""Weighted least squares from sums of products, so that many subsets of columns are fitted in little time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats

# Directions of standardised columns with less of the variance than this are not determined.
_DETERMINED = 1e-10


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over weighted rows."""

    gram: Floats  # products of columns, shape (columns, columns)
    right: Floats  # products with the response, shape (columns,)
    square: float  # sum of squares of the response
    rows: int  # number of rows

    @classmethod
    def of(cls, columns: Floats, response: Floats, weights: Floats) -> Self:
        """Return the sums of columns (n, columns)."""
        weighted = columns * weights[:, None]
        return cls(columns.T @ weighted, weighted.T @ response, float(weights @ response**2), len(response))

    def minus(self, other: Self) -> Self:
        """Return the sums without some of the rows."""
        return type(self)(
            self.gram - other.gram,
            self.right - other.right,
            self.square - other.square,
            self.rows - other.rows,
        )

    def some(self, columns: NDArray[np.bool_]) -> Self:
        """Return the sums of some of the columns."""
        return type(self)(self.gram[np.ix_(columns, columns)], self.right[columns], self.square, self.rows)

    def solved(self) -> tuple[Floats, int]:
        """Return coefficients of least squares, the shortest where several fit, and the rank."""
        values, vectors = np.linalg.eigh(self.gram)
        known = values > _DETERMINED * max(float(values[-1]), 1e-300)
        along = vectors[:, known]
        return along @ ((along.T @ self.right) / values[known]), int(known.sum())

    def ridged(self, ridge: float) -> Floats:
        """Return coefficients with a small price on squares, ``ridge`` per row: faster than `solved`."""
        priced = self.gram + np.diag(np.full(len(self.right), ridge * self.rows))
        return np.asarray(np.linalg.solve(priced, self.right), np.float64)

    def loss(self, coefficients: Floats) -> float:
        """Return the weighted sum of squared residuals."""
        explained = coefficients @ (self.gram @ coefficients) - 2 * coefficients @ self.right
        return max(float(self.square + explained), 0.0)


@dataclass(frozen=True, slots=True)
class Scale:
    """Shift and scale of columns: all but the constant get weighted mean zero and variance one."""

    # mean, spread: what is subtracted from every column, and what it is then divided by, shape (columns,).
    mean: Floats
    spread: Floats

    @classmethod
    def of(cls, columns: Floats, weights: Floats) -> Self:
        """Return that of columns (n, columns) whose first is one."""
        total = weights.sum()
        mean = weights @ columns / total
        mean[0] = 0.0
        spread = np.sqrt(weights @ (columns - mean) ** 2 / total)
        # A column of no variance takes no part.
        return cls(mean, np.where(spread > 1e-12 * (1 + np.abs(mean)), spread, np.inf))

    def at(self, columns: Floats) -> Floats:
        """Return the scaled columns."""
        return (columns - self.mean) / self.spread

    def unscaled(self, coefficients: Floats) -> Floats:
        """Return the coefficients of the columns from those of the scaled ones."""
        found = coefficients / self.spread
        found[0] -= found @ self.mean
        return np.asarray(found, np.float64)
