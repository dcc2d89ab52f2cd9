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
from orchestrator.models.curves.design import Design, Precisions, inverse_root, solved_lower
from orchestrator.models.curves.prior import Draws, log_price

_NUMBERS = 200_000  # numbers in the matrices of formulas that are weighed at once: as many as caches hold
# Standard deviation of a term, relative to the whole: terms much larger than the sum cancel each other, which
# many of them can do to follow any bump.
_TERM = 2.0


Pair = tuple[int, int]


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

    def log_prior(self, points: Floats) -> Floats:
        """Return how much more probable their exponents are than others, natural logarithm, (formulas,).

        Before anything is known but where it was measured, shape (points, parameters).
        """
        ...

    @property
    def learned(self) -> Floats:
        """Share of each that is known from other campaigns, shape (formulas,)."""
        ...

    @property
    def coefficients(self) -> Floats:
        """What their terms are multiplied by, shape (formulas, coefficients); 0 for one that is not there."""
        ...

    def at(self, x: Floats) -> tuple[Floats, Floats]:
        """Return logarithms (formulas, n), and their slopes by coefficients (formulas, coefficients, n)."""
        ...

    def rows(self, index: Integers) -> Self:
        """Select formulas."""
        ...

    def followed_by(self, others: Sequence[Self]) -> Self:
        """Return these formulas, then those of each of the others."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Formulas of one call path or of many at the measured points."""

    scale: Floats  # by which slopes are multiplied to be 1 on average, shape (formulas, coefficients)
    # Weighted slopes, and last weighted logarithms of measured over predicted values, shape (formulas,
    # coefficients + 1, points).
    weighted: Floats
    onto: Floats  # the same projected, shape (formulas, coefficients + 1, rank)
    # Logarithm of how probable each is relative to curves, before anything was measured, shape (formulas,).
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
        price = (
            sizes
            + formulas.log_prior(design.points)
            + log_price(formulas.factors, len(design.points), design.points.shape[1], formulas.learned)
        )
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


def normalised(logs: Floats) -> tuple[Floats, Floats]:
    """Return probabilities over the first axis from their logarithms, and the logarithm of their sum."""
    most = np.maximum(logs.max(axis=0), -1e300)
    odds = np.exp(logs - most)
    total = odds.sum(axis=0)
    return odds / total, most + np.log(total)


def of_curves(design: Design, draws: Draws, log_value: Floats) -> Floats:
    """Return the log evidence of curves alone, shape (draws, call paths), around the mean of the values."""
    weighted, onto = design.weighted((log_value - log_value.mean(axis=1, keepdims=True))[:, None])
    nothing = np.empty((len(log_value), 0))
    columns = Columns(scale=nothing, weighted=weighted, onto=onto, log_price=nothing)
    return np.concatenate([of_formulas(part, columns) for part in Precisions.parts(design, draws)])


def of_values(design: Design, draws: Draws, values: Floats) -> Floats:
    """Return the log evidence of curves around 0, shape (draws,), of one value per point, (points,)."""
    weighted, onto = design.weighted(values)
    lower = np.asarray(np.linalg.cholesky(design.covariance(draws)), np.float64)
    scaled = solved_lower(lower, onto)
    beyond = max(float(weighted @ weighted - onto @ onto), 0.0)
    logs = design.log_constant - np.log(np.einsum("kii->ki", lower)).sum(axis=1)
    logs -= (len(values) - len(onto)) * np.log(draws.noise)
    result: Floats = logs - ((scaled**2).sum(axis=1) + beyond / draws.noise**2) / 2
    return result


def of_formulas(precisions: Precisions, columns: Columns, alike: int | None = None) -> Floats:
    """Return the log evidence of formulas times curves, shape (draws, formulas).

    Parameters
    ----------
    precisions
        Of draws of the curves.
    columns
        The formulas.
    alike
        After so many formulas the same slopes come again; None where they do not.
    """
    draws, size = precisions.packed.shape
    number, width = columns.onto.shape[:2]
    last = width - 1
    of_slopes = list(combinations_with_replacement(range(last), 2))
    of_residuals = [(k, last) for k in range(width)]
    pairs = len(of_residuals) + (0 if alike else len(of_slopes))
    step = max(1, _NUMBERS // (pairs * max(draws, size)))
    step = max(step - step % alike, alike) if alike else step
    result = np.empty((draws, number))
    for begin in range(0, number, step):
        some = columns.rows(slice(begin, begin + step))
        first = some.rows(slice(alike))
        gram = _gram(precisions, first, of_slopes) | _gram(precisions, some, of_residuals)
        by_period = {pair: item.reshape(draws, -1, len(first.onto)) for pair, item in gram.items()}
        result[:, begin : begin + step] = _log_factor(by_period, last).reshape(draws, -1)
    result += precisions.log_density[:, None]
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


def _gram(precisions: Precisions, columns: Columns, pairs: Sequence[Pair]) -> dict[Pair, Floats]:
    """Products of pairs of columns, weighted with the inverse covariance of every draw: (draws, formulas)."""
    if not pairs:
        return {}
    row, column = np.array(pairs).T
    draws, rank = precisions.inverse.shape[:2]
    by_column = np.ascontiguousarray(columns.weighted.swapaxes(0, 1))
    whole = [np.einsum("kn,kn->k", by_column[a], by_column[b]) for a, b in pairs]
    by_dimension = np.ascontiguousarray(columns.onto[:, :, :rank].transpose(2, 1, 0))
    left, right = by_dimension[:, row], by_dimension[:, column]
    products = np.empty((precisions.packed.shape[1], len(pairs), len(columns.onto)))
    begin = 0
    for i in range(rank):
        end = begin + rank - i
        np.multiply(left[i], right[i:], out=products[begin:end])
        products[begin:end] += left[i:] * right[i]
        begin = end
    products[-1] = np.array(whole) - (left * right).sum(axis=0)
    gram = (precisions.packed @ products.reshape(len(products), -1)).reshape(draws, *products.shape[1:])
    return {pair: gram[:, k] for k, pair in enumerate(pairs)}


def _log_factor(gram: dict[Pair, Floats], last: int) -> Floats:
    """Log of the density of residuals over that at the mean, with unknown coefficients integrated out.

    By elimination for all at once, since matrices are too small and many for LAPACK. ``gram`` has the upper
    triangle of the products of the columns; number ``last`` are the residuals.
    """
    left = dict(gram)
    halves = np.zeros(1)
    for k in range(last):
        # The coefficients have a variance of 1 beforehand: no pivot is smaller, but for rounding.
        pivot = np.maximum(left[k, k] + 1, 1.0)
        halves = halves + np.log(pivot)
        for i in range(k + 1, last + 1):
            share = left[k, i] / pivot
            for j in range(i, last + 1):
                left[i, j] = left[i, j] - share * left[k, j]
    result: Floats = -(left[last, last] + halves) / 2
    return result
