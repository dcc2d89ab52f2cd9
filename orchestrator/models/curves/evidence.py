"""How probable measured values are: around curves, formulas, and formulas times curves, for given sizes.

Coefficients of formulas are known nearly, so formulas are linear in their changes (a Laplace approximation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Protocol, Self

import numpy as np

from orchestrator.models.base import Floats, Integers
from orchestrator.models.curves.design import Design, Precisions, inverse_root
from orchestrator.models.curves.prior import Draws, log_price

_NUMBERS = 200_000  # numbers in the matrices of formulas that are weighed at once: as many as caches hold
# Standard deviation of a term, relative to the whole: terms much larger than the sum cancel each other, which
# many of them can do to follow any bump.
_TERM = 2.0
# Natural logarithm of how much less probable an exponent is for every one that it is too large: only the last
# values of a parameter support it, and anything else may begin there.
_STEEP = 5.0


class Formulas(Protocol):
    """Formulas that remain possible, the most probable one first."""

    @property
    def weights(self) -> Floats:
        """Their probabilities among all formulas, shape (formulas,)."""
        ...

    @property
    def factors(self) -> Integers:
        """How many powers and logarithms each has, shape (formulas,)."""
        ...

    @property
    def steepness(self) -> Floats:
        """By how much exponents exceed what real programs have, summed over factors, shape (formulas,)."""
        ...

    @property
    def coefficients(self) -> Floats:
        """What their terms are multiplied by, shape (formulas, coefficients); 0 for one that is not there."""
        ...

    def at(self, x: Floats) -> tuple[Floats, Floats]:
        """Return logarithms (formulas, n), and their slopes by coefficients (formulas, coefficients, n)."""
        ...

    def followed_by(self, others: Sequence[Self]) -> Self:
        """Return these formulas, then those of each of the others."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Formulas of one call path or of many at the measured points.

    Attributes
    ----------
    scale
        By which slopes are multiplied to be 1 on average, shape (formulas, coefficients).
    weighted
        Weighted slopes, and last weighted logarithms of measured over predicted values, shape
        (formulas, coefficients + 1, points).
    onto
        The same projected, shape (formulas, coefficients + 1, rank).
    log_price
        Logarithm of how probable each is relative to curves, before anything was measured, shape (formulas,).
    """

    scale: Floats
    weighted: Floats
    onto: Floats
    log_price: Floats

    @classmethod
    def of(cls, design: Design, formulas: Formulas, log_value: Floats) -> Self:
        """Evaluate formulas at the points of a design.

        The scale of every coefficient is such that each may change the value by as much.

        Parameters
        ----------
        design
            Points and features.
        formulas
            Those of one call path, or of many.
        log_value
            Logarithm of the location of the values, shape (points,), or (formulas, points).
        """
        value, slopes = formulas.at(design.points)
        size = np.sqrt((slopes**2).mean(axis=2))
        scale = np.where(size > 0, 1 / np.where(size > 0, size, 1.0), 0.0)
        sizes = -((formulas.coefficients * size) ** 2).sum(axis=1) / (2 * _TERM**2)
        price = sizes - _STEEP * formulas.steepness + log_price(formulas.factors, len(design.points))
        return cls.around(design, log_value - value, slopes * scale[:, :, None], scale, price)

    @classmethod
    def around(
        cls, design: Design, residuals: Floats, slopes: Floats, scale: Floats, log_price: Floats
    ) -> Self:
        """Project what is around formulas.

        Parameters
        ----------
        design
            Points and features.
        residuals
            Logarithms of measured over predicted values, shape (formulas, points).
        slopes
            Scaled slopes of the logarithm by coefficients, shape (formulas, coefficients, points).
        scale, log_price
            As in `Columns`.
        """
        weighted, onto = design.weighted(np.concatenate([slopes, residuals[:, None]], axis=1))
        return cls(scale=scale, weighted=weighted, onto=onto, log_price=log_price)

    def rows(self, index: Integers | slice) -> Columns:
        """Select formulas."""
        return Columns(
            scale=self.scale[index],
            weighted=self.weighted[index],
            onto=self.onto[index],
            log_price=self.log_price[index],
        )

    def joined(self, places: Integers, other: Columns, others: Integers) -> Columns:
        """Return the formulas of both in given places, with coefficients that are not there where missing."""
        total, most = len(places) + len(others), max(self.scale.shape[1], other.scale.shape[1])
        result = Columns(
            scale=np.zeros((total, most)),
            weighted=np.zeros((total, most + 1, self.weighted.shape[2])),
            onto=np.zeros((total, most + 1, self.onto.shape[2])),
            log_price=np.zeros(total),
        )
        for part, place in ((self, places), (other, others)):
            size = part.scale.shape[1]
            ends = np.append(np.arange(size), most)
            result.scale[place, :size] = part.scale
            result.weighted[place[:, None], ends] = part.weighted
            result.onto[place[:, None], ends] = part.onto
            result.log_price[place] = part.log_price
        return result


def log_sum(logs: Floats) -> Floats:
    """Return the logarithm of the sum of exponentials over the first axis."""
    most = np.maximum(logs.max(axis=0), -1e300)
    result: Floats = most + np.log(np.exp(logs - most).sum(axis=0))
    return result


def of_curves(design: Design, draws: Draws, log_value: Floats) -> Floats:
    """Return the log evidence of curves alone, shape (draws, call paths), around the mean of the values."""
    weighted, onto = design.weighted((log_value - log_value.mean(axis=1, keepdims=True))[:, None])
    nothing = np.empty((len(log_value), 0))
    columns = Columns(scale=nothing, weighted=weighted, onto=onto, log_price=nothing)
    return np.concatenate([beside_formulas(part, columns) for part in Precisions.parts(design, draws)])


def beside_formulas(precisions: Precisions, columns: Columns) -> Floats:
    """Return the log evidence of formulas times curves, shape (draws, formulas)."""
    draws, size = precisions.packed.shape
    formulas, width = columns.onto.shape[:2]
    result = np.empty((draws, formulas))
    step = max(1, _NUMBERS // (width**2 * max(draws, size)))
    for begin in range(0, formulas, step):
        part = slice(begin, begin + step)
        products = _products(columns.rows(part))
        gram = precisions.packed @ products.reshape(size, -1)
        result[:, part] = _log_factor(gram.reshape(draws, *products.shape[1:]), width)
    result += precisions.log_density[:, None]
    return result


def exact_formulas(design: Design, noise: Floats, columns: Columns) -> Floats:
    """Return the log evidence of formulas that nothing multiplies, shape (draws, formulas)."""
    formulas, width = columns.onto.shape[:2]
    packed = _whole(columns)
    result = np.empty((len(noise), formulas))
    step = max(1, _NUMBERS // (width**2 * len(noise)))
    for begin in range(0, formulas, step):
        part = slice(begin, begin + step)
        result[:, part] = _log_factor(packed[:, part] / noise[:, None, None] ** 2, width)
    result += (design.log_constant - len(design.points) * np.log(noise))[:, None]
    return result


def posterior_of_coefficients(
    precisions: Precisions, columns: Columns, draw: Integers, noise: Floats
) -> tuple[Floats, Floats]:
    """Return changes of scaled coefficients and factors of their covariance, for formulas with draws.

    Parameters
    ----------
    precisions
        Of the draws beside formulas.
    columns
        A formula for every member.
    draw
        Which draw each has, -1 where the formula is exact, shape (members,).
    noise
        Scatter of that draw, shape (members,).

    Returns
    -------
    Shape (members, coefficients), and (members, coefficients, coefficients).
    """
    gram = columns.weighted @ columns.weighted.swapaxes(1, 2) / noise[:, None, None] ** 2
    smooth = np.flatnonzero(draw >= 0)
    onto = columns.onto[smooth]
    half = precisions.inverse[draw[smooth]] @ onto.swapaxes(1, 2)
    gram[smooth] += half.swapaxes(1, 2) @ half - onto @ onto.swapaxes(1, 2) / noise[smooth, None, None] ** 2
    size = gram.shape[1] - 1
    root = inverse_root(gram[:, :size, :size] + np.eye(size))
    shift = root.swapaxes(1, 2) @ (root @ gram[:, :size, size:])
    return shift[..., 0], root


def _whole(columns: Columns) -> Floats:
    """Products over the points of every two columns, shape (pairs of columns, formulas)."""
    by_column = np.ascontiguousarray(columns.weighted.swapaxes(0, 1))
    pairs = combinations_with_replacement(by_column, 2)
    return np.array([np.einsum("kn,kn->k", left, right) for left, right in pairs])


def _products(columns: Columns) -> Floats:
    """Products of every two columns and every two dimensions, as `Precisions.packed` needs them.

    The shape is (packed, pairs of columns, formulas).
    """
    formulas, width, rank = columns.onto.shape
    row, column = np.triu_indices(width)
    by_dimension = np.ascontiguousarray(columns.onto.transpose(2, 1, 0))
    left, right = by_dimension[:, row], by_dimension[:, column]
    result = np.empty((rank * (rank + 1) // 2 + 1, len(row), formulas))
    begin = 0
    for i in range(rank):
        end = begin + rank - i
        np.multiply(left[i], right[i:], out=result[begin:end])
        result[begin:end] += left[i:] * right[i]
        begin = end
    result[-1] = _whole(columns) - (left * right).sum(axis=0)
    return result


def _log_factor(gram: Floats, width: int) -> Floats:
    """Log of the density of residuals over that at the mean, with unknown coefficients integrated out.

    ``gram`` has the products of every two of ``width`` columns, shape (draws, pairs, formulas). By
    elimination for all at once, since matrices are too small and many for LAPACK.
    """
    left = {pair: gram[:, k] for k, pair in enumerate(combinations_with_replacement(range(width), 2))}
    last = width - 1
    halves = np.zeros((gram.shape[0], gram.shape[2]))
    for k in range(last):
        # The coefficients have a variance of 1 beforehand: no pivot is smaller, but for rounding.
        pivot = np.maximum(left[k, k] + 1, 1.0)
        halves += np.log(pivot)
        for i in range(k + 1, width):
            share = left[k, i] / pivot
            for j in range(i, width):
                left[i, j] = left[i, j] - share * left[k, j]
    result: Floats = -(left[last, last] + halves) / 2
    return result
