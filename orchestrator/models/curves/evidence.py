"""How probable measured values are: around curves, formulas, and formulas times curves, for given sizes.

Coefficients of formulas are known nearly, so formulas are linear in their changes (a Laplace approximation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from orchestrator.models.base import Floats, Integers
from orchestrator.models.curves.design import Design, Process
from orchestrator.models.curves.prior import Draws, log_price

# Formulas that are weighed with every draw; further ones have the sizes of the most probable formula.
_WEIGHED = 8
_TOGETHER = 64  # call paths that are weighed at once
# Standard deviation of a term, relative to the whole: terms much larger than the sum cancel each other, which
# many of them can do to follow any bump.
_TERM = 2.0


class Formulas(Protocol):
    """Formulas that remain possible, the most probable one first."""

    @property
    def weights(self) -> Floats:
        """Their probabilities among all formulas, shape (formulas,)."""
        ...

    @property
    def factors(self) -> int:
        """How many powers and logarithms the first one has."""
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
    log_odds
        Logarithm of how probable formulas are relative to the first one, shape (formulas,).
    log_price
        Logarithm of how probable the first one is relative to curves, before anything was measured.
    """

    formulas: Formulas
    scale: Floats
    onto: Floats
    whole: Floats
    log_odds: Floats
    log_price: float

    @classmethod
    def of(cls, design: Design, formulas: Formulas, log_value: Floats) -> Self:
        """Evaluate formulas at the points of a design, with measured logarithms of shape (points,)."""
        value, slopes = formulas.at(design.points)
        size = np.sqrt((slopes**2).mean(axis=2))
        scale = np.where(size > 0, 1 / np.where(size > 0, size, 1.0), 0.0)
        columns = np.concatenate([slopes * scale[:, :, None], (log_value - value)[:, None]], axis=1)
        weighted = columns * np.sqrt(design.precision)
        sizes = -((formulas.coefficients * size) ** 2).sum(axis=1) / (2 * _TERM**2)
        odds = np.log(np.maximum(formulas.weights, 1e-300) / formulas.weights[0])
        return cls(
            formulas=formulas,
            scale=scale,
            onto=weighted @ design.projection.T,
            whole=np.einsum("kan,kbn->kab", weighted, weighted),
            log_odds=odds + sizes - sizes[0],
            log_price=float(sizes[0]) + log_price(formulas.factors, len(design.points)),
        )

    def spread(self, evidence: Floats) -> Floats:
        """Return log probabilities of all formulas from those of a few, shape (draws, formulas).

        How probable formulas are among each other was found with thousands of them; here only how probable
        the first one is beside curves, and which draws each of a few is probable with.
        """
        few = evidence[:, : len(self.onto)]
        each = log_sum(few)
        within = np.repeat((few - each)[:, :1], len(self.onto), axis=1)
        within[:, : few.shape[1]] = few - each
        result: Floats = within + each[0] + self.log_price + self.log_odds
        return result


def log_sum(logs: Floats) -> Floats:
    """Return the logarithm of the sum of exponentials over the first axis."""
    most = np.maximum(logs.max(axis=0), -1e300)
    result: Floats = most + np.log(np.exp(logs - most).sum(axis=0))
    return result


def of_curves(design: Design, draws: Draws, log_value: Floats) -> Floats:
    """Return the log evidence of curves alone, shape (draws, call paths), around the mean of the values."""
    noise = draws.noise
    weighted = (log_value - log_value.mean(axis=1, keepdims=True)) * np.sqrt(design.precision)
    projected = weighted @ design.projection.T
    beyond = np.maximum((weighted**2).sum(axis=1) - (projected**2).sum(axis=1), 0)
    result = np.empty((len(noise), len(log_value)))
    for part, inverse, density in design.whitened(draws):
        for begin in range(0, len(log_value), _TOGETHER):
            some = slice(begin, begin + _TOGETHER)
            squares = ((inverse @ projected[some].T) ** 2).sum(axis=1)
            squares += beyond[some] / noise[part, None] ** 2
            result[part, some] = density[:, None] - squares / 2
    return result


def beside_formulas(design: Design, draws: Draws, columns: Sequence[Columns | None]) -> Floats:
    """Return the log evidence of formulas times curves, of a few each: (draws, call paths, formulas)."""
    noise = draws.noise
    result = np.full((len(noise), len(columns), _few(columns)), -np.inf)
    for part, inverse, density in design.whitened(draws):
        for k, item in enumerate(columns):
            if item is not None:
                onto, whole = item.onto[:_WEIGHED], item.whole[:_WEIGHED]
                gram = _gram(onto, whole, inverse, noise[part])
                result[part, k, : len(onto)] = density[:, None] + _log_factor(gram)
    return result


def exact_formulas(design: Design, noise: Floats, columns: Sequence[Columns | None]) -> Floats:
    """Return the log evidence of formulas that nothing multiplies, shape as from `beside_formulas`."""
    number = len(design.points)
    constant = 0.5 * float(np.log(design.precision).sum()) - number / 2 * np.log(2 * np.pi)
    result = np.full((len(noise), len(columns), _few(columns)), -np.inf)
    for k, item in enumerate(columns):
        if item is not None:
            gram = item.whole[:_WEIGHED] / noise[:, None, None, None] ** 2
            density = constant - number * np.log(noise)
            result[:, k, : gram.shape[1]] = density[:, None] + _log_factor(gram)
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


def _few(columns: Sequence[Columns | None]) -> int:
    return min(_WEIGHED, max((len(item.onto) for item in columns if item is not None), default=1))


def _gram(onto: Floats, whole: Floats, inverse: Floats, noise: Floats) -> Floats:
    """Products of whitened columns, shape (draws, formulas, coefficients + 1, coefficients + 1)."""
    formulas, width, rank = onto.shape
    half = (inverse @ onto.reshape(-1, rank).T).reshape(len(noise), rank, formulas, width)
    half = half.transpose(0, 2, 1, 3)
    beyond = whole - onto @ onto.swapaxes(1, 2)
    result: Floats = half.swapaxes(2, 3) @ half + beyond / noise[:, None, None, None] ** 2
    return result


def _log_factor(gram: Floats) -> Floats:
    """Log of the density of residuals over that at the mean, with unknown coefficients integrated out."""
    size = gram.shape[-1] - 1
    precision = gram[..., :size, :size] + np.eye(size)
    moment = gram[..., :size, size]
    shift = np.linalg.solve(precision, moment[..., None])[..., 0]
    left = gram[..., size, size] - (shift * moment).sum(axis=-1)
    result: Floats = -left / 2 - np.linalg.slogdet(precision)[1] / 2
    return result
