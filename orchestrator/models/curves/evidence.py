"""How probable measured values are: around curves, formulas, and formulas times curves, for given sizes.

Coefficients of formulas are known nearly, so formulas are linear in their changes (a Laplace approximation).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from orchestrator.models.base import Floats, Integers
from orchestrator.models.curves.design import Design, Process
from orchestrator.models.curves.prior import Draws, log_price

_TOGETHER = 64  # call paths that are weighed at once
# Standard deviation of a term, relative to the whole: terms much larger than the sum cancel each other, which
# many of them can do to follow any bump.
_TERM = 2.0
# Natural logarithm of how much less probable an exponent is for every one that it is too large: only the last
# values of a parameter support it, and anything else may begin there.
_STEEP = 5.0

Whitened = Iterable[tuple[slice, Floats, Floats]]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The formulas of one call path at the measured points.

    Attributes
    ----------
    formulas
        They.
    scale
        By which slopes are multiplied to be 1 on average, shape (formulas, coefficients).
    onto
        Projected slopes, and last projected logarithms of measured over predicted values, shape
        (formulas, coefficients + 1, rank).
    whole
        Weighted products of these columns over the points, shape
        (formulas, coefficients + 1, coefficients + 1).
    log_price
        Logarithm of how probable each is relative to curves, before anything was measured, shape (formulas,).
    """

    formulas: Formulas
    scale: Floats
    onto: Floats
    whole: Floats
    log_price: Floats

    @classmethod
    def of(cls, design: Design, formulas: Formulas, log_value: Floats, scale: Floats | None = None) -> Self:
        """Evaluate formulas at the points of a design.

        Parameters
        ----------
        design
            Points and features.
        formulas
            Those of one call path; or the first ones of many, each of which then is the only one.
        log_value
            Logarithm of the location of the values, shape (points,), or (formulas, points).
        scale
            Standard deviation of every coefficient, shape (formulas, coefficients); without it such that
            each may change the value by as much.
        """
        value, slopes = formulas.at(design.points)
        if scale is None:
            size = np.sqrt((slopes**2).mean(axis=2))
            scale = np.where(size > 0, 1 / np.where(size > 0, size, 1.0), 0.0)
        size = np.where(scale > 0, 1 / np.where(scale > 0, scale, 1.0), 0.0)
        columns = np.concatenate([slopes * scale[:, :, None], (log_value - value)[:, None]], axis=1)
        weighted, onto = design.weighted(columns)
        sizes = -((formulas.coefficients * size) ** 2).sum(axis=1) / (2 * _TERM**2)
        return cls(
            formulas=formulas,
            scale=scale,
            onto=onto,
            whole=np.einsum("kan,kbn->kab", weighted, weighted),
            log_price=sizes - _STEEP * formulas.steepness + log_price(formulas.factors, len(design.points)),
        )

    def first(self, number: int) -> Columns:
        """Return those of so many formulas for their evidence."""
        parts = {name: getattr(self, name)[:number] for name in ("scale", "onto", "whole", "log_price")}
        return replace(self, **parts)

    def joined(self, other: Columns) -> Columns:
        """Return the formulas of both, with coefficients that are not there added to those with fewer."""
        most = max(self.scale.shape[1], other.scale.shape[1])
        first, second = self._padded(most), other._padded(most)
        return Columns(
            formulas=self.formulas,
            **{
                name: np.concatenate([getattr(first, name), getattr(second, name)])
                for name in ("scale", "onto", "whole", "log_price")
            },
        )

    def _padded(self, coefficients: int) -> Columns:
        more = coefficients - self.scale.shape[1]
        here = np.append(np.arange(coefficients - more), coefficients)
        size = len(self.scale)
        onto = np.zeros((size, coefficients + 1, self.onto.shape[2]))
        whole = np.zeros((size, coefficients + 1, coefficients + 1))
        onto[:, here], whole[:, here[:, None], here] = self.onto, self.whole
        return replace(self, scale=np.pad(self.scale, ((0, 0), (0, more))), onto=onto, whole=whole)

    def spread(self, evidence: Floats) -> Floats:
        """Return log probabilities of all formulas from the evidence of a few, shape (draws, formulas).

        How probable formulas are among each other was found with thousands of them; here only how probable
        the first one is beside curves, and which draws each of a few is probable with. The sizes of terms
        count for all.
        """
        each, number = log_sum(evidence), evidence.shape[1]
        within = np.repeat((evidence - each)[:, :1], len(self.onto), axis=1)
        within[:, :number] = evidence - each
        odds = np.log(np.maximum(self.formulas.weights, 1e-300) / self.formulas.weights[0])
        prices = self.log_price - log_price(self.formulas.factors, 0)
        own = prices + log_price(self.formulas.factors[:1], 0)
        result: Floats = within + each[0] + own + odds
        return result


def log_sum(logs: Floats) -> Floats:
    """Return the logarithm of the sum of exponentials over the first axis."""
    most = np.maximum(logs.max(axis=0), -1e300)
    result: Floats = most + np.log(np.exp(logs - most).sum(axis=0))
    return result


def of_curves(design: Design, draws: Draws, log_value: Floats) -> Floats:
    """Return the log evidence of curves alone, shape (draws, call paths), around the mean of the values."""
    noise = draws.noise
    weighted, projected = design.weighted(log_value - log_value.mean(axis=1, keepdims=True))
    beyond = np.maximum((weighted**2).sum(axis=1) - (projected**2).sum(axis=1), 0)
    result = np.empty((len(noise), len(log_value)))
    for part, inverse, density in design.whitened(draws):
        for begin in range(0, len(log_value), _TOGETHER):
            some = slice(begin, begin + _TOGETHER)
            squares = ((inverse @ projected[some].T) ** 2).sum(axis=1)
            squares += beyond[some] / noise[part, None] ** 2
            result[part, some] = density[:, None] - squares / 2
    return result


def beside_formulas(whitened: Whitened, noise: Floats, onto: Floats, whole: Floats) -> Floats:
    """Return the log evidence of formulas times curves, shape (draws, formulas).

    Parameters
    ----------
    whitened
        What `Design.whitened` yields for the draws.
    noise
        Of the draws, shape (draws,).
    onto, whole
        As in `Columns`.
    """
    result = np.empty((len(noise), len(onto)))
    for part, inverse, density in whitened:
        gram = _gram(onto, whole, inverse, noise[part])
        result[part] = density[:, None] + _log_factor(gram)
    return result


def exact_formulas(design: Design, noise: Floats, whole: Floats) -> Floats:
    """Return the log evidence of formulas that nothing multiplies, shape (draws, formulas)."""
    density = design.log_constant - len(design.points) * np.log(noise)
    result: Floats = density[:, None] + _log_factor(whole / noise[:, None, None, None] ** 2)
    return result


def posterior_of_coefficients(
    process: Process, columns: Columns | None, form: Integers, draw: Integers
) -> tuple[Floats, Floats]:
    """Return changes of scaled coefficients and factors of their covariance, for formulas with draws.

    Parameters
    ----------
    process
        Has the draws.
    columns
        The formulas; None where there are none.
    form, draw
        Which formula, -1 for none, with which draw, shape (members,) each.

    Returns
    -------
    Shape (members, coefficients), and (members, coefficients, coefficients).
    """
    size = 0 if columns is None else columns.onto.shape[1] - 1
    shift, root = np.zeros((len(form), size)), np.zeros((len(form), size, size))
    some = np.flatnonzero(form >= 0)
    if columns is None or not len(some):
        return shift, root
    kinds, place = np.unique(draw[some], return_inverse=True)
    draws = Draws(process.draws.sizes[kinds], process.draws.noise[kinds])
    inverse = np.concatenate([found for _, found, _ in process.design.whitened(draws)])[place]
    onto, whole = columns.onto[form[some]], columns.whole[form[some]]
    half = inverse @ onto.swapaxes(1, 2)
    beyond = whole - onto @ onto.swapaxes(1, 2)
    gram = half.swapaxes(1, 2) @ half + beyond / draws.noise[place, None, None] ** 2
    precision = gram[:, :size, :size] + np.eye(size)
    shift[some] = np.linalg.solve(precision, gram[:, :size, size:])[..., 0]
    root[some] = np.linalg.inv(np.linalg.cholesky(precision))
    return shift, root


def _gram(onto: Floats, whole: Floats, inverse: Floats, noise: Floats) -> Floats:
    """Products of whitened columns, shape (draws, formulas, coefficients + 1, coefficients + 1)."""
    formulas, width, rank = onto.shape
    half = (inverse @ onto.reshape(-1, rank).T).reshape(len(noise), rank, formulas, width)
    half = half.transpose(0, 2, 1, 3)
    beyond = whole - onto @ onto.swapaxes(1, 2)
    result: Floats = half.swapaxes(2, 3) @ half + beyond / noise[:, None, None, None] ** 2
    return result


def _log_factor(gram: Floats) -> Floats:
    """Log of the density of residuals over that at the mean, with unknown coefficients integrated out.

    By elimination for all matrices at once, which are too small and many for LAPACK.
    """
    left = np.ascontiguousarray(np.moveaxis(gram, (-2, -1), (0, 1)))
    size = len(left) - 1
    halves = np.zeros(left.shape[2:])
    for k in range(size):
        # The coefficients have a variance of 1 beforehand: no pivot is smaller, but for rounding.
        pivot = np.maximum(left[k, k] + 1, 1.0)
        halves += np.log(pivot)
        left[k + 1 :, k + 1 :] -= left[k, k + 1 :, None] * (left[k, None, k + 1 :] / pivot)
    result: Floats = -(left[size, size] + halves) / 2
    return result
