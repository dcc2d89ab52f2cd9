"""Exact values as sums of products with coefficients of any sign: what counters count in loops and halos.

A count of a stencil code is a polynomial such as ``p s^3 - 3 p s^2``, exactly. It may have more terms than
any hypothesis of measured times, and negative ones: noise would hide them, but counts have none. Such a sum
is believed if it explains all values with clearly fewer coefficients than there are points, or if it is a
polynomial with whole coefficients, where few whole numbers are values of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats, Integers, Label, smape_of
from orchestrator.models.data import Group, lines_along
from orchestrator.models.pmnf.block_sets import DENOMINATORS
from orchestrator.models.pmnf.hypotheses import Exponents, block_values
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.pmnf.peeling import (
    NEGLIGIBLE,
    SMOOTH,
    Support,
    Term,
    digits_of,
    structure_cost,
    supports,
    usable,
)
from orchestrator.models.pmnf.posterior import Posterior
from orchestrator.models.pmnf.unchecked import Beyond, gains
from orchestrator.units import count

# Repetitions that differ by less than this agree exactly: the rest is the arithmetic of sums and means.
_AGREE = 1e-12
# Error of an exact value: of whole numbers, which counters count; of decimals, in units of the last place;
# and relative, of the arithmetic with it. Chosen by hand; not derived.
_WHOLE, _ROUNDING, _ARITHMETIC = 1e-6, 0.3, 1e-13
# Decimal places that are looked for, and steps of rounding that can be told from the precision of numbers.
_DECIMALS, _STEPS = 10, 1e9
# Least relative standard deviation of the truth around a sum.
_LEAST_MISFIT = 1e-9
# Least points beyond the coefficients, and least evidence from them (natural logarithm of the probability).
_LEAST_EXCESS, _LEAST_EVIDENCE = 2, 10.0
# Where fewer points are left, only whole coefficients tell. Least evidence from them, least values of each
# parameter (through three values of a cubic goes a quadratic with whole coefficients), and how many times as
# large as their sum terms may be: those through powers of two or fourth powers cancel each other. Chosen by
# hand.
_LEAST_WHOLE, _LEAST_VALUES, _MOST_CANCELLED = 2.0, 4, 20.0
# By how much the evidence must exceed that of the hypothesis found before.
_BETTER = 3.0
# Scatter, in errors of the values, up to which a sum explains them exactly.
_EXACT = 3.0
# Share of the squared deviations that varies along a parameter without importance. Chosen by hand.
_ALIKE = 0.01
# Standard deviations by which coefficients are rounded to fractions, at most.
_ROUND = 4.0
# Values are kept above this share of the sizes of their terms: exact ones cancel each other almost.
_LEAST_SHARE = 1e-12
_TINY = 1e-300


def with_exact_sums(
    group: Group, models: Mapping[int, PmnfModel], negative: bool = True
) -> dict[int, PmnfModel]:
    """Return models of the call paths whose values an exact sum explains better, by row of the group.

    Parameters
    ----------
    group
        All call paths with these points.
    models
        What the search for hypotheses found, by row; others have no exact sum.
    negative
        Whether falling blocks may be used.
    """
    if not group.parameters:
        return {}
    blocks = tuple(usable(column, negative) for column in group.points.T)
    better = {}
    for row in map(int, np.flatnonzero(repeats_exactly(group.values))):
        if row in models and (sums := _better(_Exact.of(group, row), models[row].posterior, blocks)):
            better[row] = _model(group, row, models[row], sums)
    return better


def _better(exact: _Exact, before: Posterior, blocks: tuple[tuple[Exponents, ...], ...]) -> list[_Fit]:
    """Return sums that explain the values better than what was found before, the best first; may be none."""
    known, distinct = _Known.of(before, exact), _distinct(exact.points, exact.values)
    if _explains(before, known, distinct):
        return []
    # Loop bounds are rounded: what a hypothesis leaves of that needs no more terms.
    as_rounded = replace(exact, sigma=np.maximum(exact.sigma, _ROUNDING))
    rounded = exact.is_whole and _Known.of(before, as_rounded).scatter <= _ROUND
    most_terms = min(len(distinct), len(exact.values) - 1)
    fits = [
        fit
        for support in supports(exact.points, exact.values, exact.sigma, blocks)
        if len(support.terms) <= most_terms
        and (fit := _fit(exact, support, known.pieces)) is not None
        and (fit.is_exact or not rounded)
        and (len(distinct) - len(fit.terms) >= _LEAST_EXCESS or _is_whole_polynomial(exact, fit, distinct))
    ]
    if not fits or (best := max(fits, key=lambda fit: fit.score)).score <= known.score(best) + _BETTER:
        return []
    fits.sort(key=lambda fit: -fit.score)
    most = max(fit.weight for fit in fits)
    return [fit for fit in fits if fit is best or fit.weight > most - NEGLIGIBLE]


def doubtful(group: Group, models: Mapping[Label, PmnfModel]) -> list[int]:
    """Return the rows of call paths with exact values that no formula explains, or not everywhere.

    Parameters
    ----------
    group
        All call paths with these points.
    models
        Of every call path, by call path and metric.
    """
    rows = []
    for row in map(int, np.flatnonzero(repeats_exactly(group.values))):
        model = models[group.labels[row]]
        if not group.parameters or model.parameters != group.parameters:
            continue
        if model.beyond is not None:
            if len(model.beyond.parameters):
                rows.append(row)
            continue
        exact = _Exact.of(group, row)
        known, distinct = _Known.of(model.posterior, exact), _distinct(exact.points, exact.values)
        if not _explains(model.posterior, known, distinct):
            rows.append(row)
    return rows


def _explains(found: Posterior, known: _Known, distinct: Integers) -> bool:
    """Return whether a hypothesis explains exact values, as many coefficients as there are values do not."""
    is_checked = len(distinct) > np.count_nonzero(found.coefficients[0])
    return bool(is_checked and known.scatter <= _ROUND and found.correction is None)


def repeats_exactly(values: Floats) -> NDArray[np.bool_]:
    """Return of which call paths repetitions agree exactly, or without any, all values are whole numbers.

    Parameters
    ----------
    values
        Shape (call paths, points, repetitions), NaN where there is none.
    """
    low, high = np.fmin.reduce(values, axis=2), np.fmax.reduce(values, axis=2)
    agree = (high - low <= _AGREE * high).all(axis=1)
    several = (np.count_nonzero(np.isfinite(values), axis=2) > 1).any(axis=1)
    return np.asarray(agree & (several | (high == np.rint(high)).all(axis=1)))


def _is_whole(values: Floats) -> bool:
    return bool(np.all(values == np.rint(values)))


def _tolerance(values: Floats) -> Floats:
    """Return the error up to which every value is exact, shape (points,)."""
    arithmetic = _ARITHMETIC * np.maximum(values, float(values.max()) / 10)
    if _is_whole(values):
        return np.maximum(arithmetic, _WHOLE)
    for place in 10.0 ** -np.arange(1, _DECIMALS):
        if np.all(np.abs(values / place - np.rint(values / place)) < 1e-3) and values.max() < _STEPS * place:
            return np.full(len(values), _ROUNDING * place)
    return arithmetic


@dataclass(frozen=True, slots=True)
class _Exact:
    """Exact values of a call path."""

    points: Floats  # shape (points, parameters)
    # values, sigma: the values, and the error up to which each is exact, shape (points,).
    values: Floats
    sigma: Floats

    @classmethod
    def of(cls, group: Group, row: int) -> Self:
        values = np.nanmedian(group.values[row], axis=1)
        return cls(group.points, values, _tolerance(values))

    @property
    def is_whole(self) -> bool:
        """Whether all values are whole numbers."""
        return _is_whole(self.values)

    @property
    def reach(self) -> float:
        """How much more probable an exact sum makes a value than a smooth curve, without its price."""
        return float(np.log(np.maximum(SMOOTH * self.values / self.sigma, 1.0)).mean())

    def scatter(self, fitted: Floats, excess: int) -> float:
        """Return the standard deviation of the values around a sum, in errors of the values, at least 1."""
        return max(float(np.sqrt((((self.values - fitted) / self.sigma) ** 2).sum() / excess)), 1.0)


@dataclass(frozen=True, slots=True)
class _Known:
    """How well the hypothesis found before explains the values."""

    scatter: float  # standard deviation of the values around it, in errors of the values
    cost: float  # what its blocks and coefficients cost
    # How many independent pieces of evidence the values are against it, at most as many as points. Where
    # deviations are the same whatever a parameter is, points that differ in it count once.
    pieces: float
    points: int  # number of points

    @classmethod
    def of(cls, posterior: Posterior, exact: _Exact) -> Self:
        values = exact.values
        used = posterior.coefficients[0] != 0
        with np.errstate(all="ignore"):
            fitted = np.exp(replace(posterior, correction=None).log_mean(exact.points)[0])
        terms = tuple(
            tuple((float(i), float(j)) for i, j in term)
            for term, u in zip(posterior.exponents[0], used[1:], strict=True)
            if u
        )
        excess = len(values) - int(used.sum())
        if excess < 1 or not np.isfinite(fitted).all():
            return cls(np.inf, 0.0, len(values), len(values))
        scatter = exact.scatter(fitted, excess)
        told = float(np.log(values / exact.sigma).mean() - np.log(scatter))
        cost = max(told, 0.5) * int(used.sum()) + (structure_cost(terms) if terms else 0.0)
        pieces = _pieces(exact.points, np.log(values / np.maximum(fitted, _TINY)))
        return cls(scatter, cost, pieces, len(values))

    def score(self, other: _Fit) -> float:
        """Return its natural logarithm of the probability, comparable with that of another sum."""
        pieces = self.points if other.is_exact else self.pieces
        return -pieces * float(np.log(self.scatter)) - self.cost


def _pieces(points: Floats, deviations: Floats) -> float:
    """Return the number of points, where those count once that differ in an unimportant parameter only."""
    pieces = float(len(points))
    for k, column in enumerate(points.T):
        lines = [deviations[line] for line in lines_along(points, k)]
        within = sum(float(((line - line.mean()) ** 2).sum()) for line in lines)
        if within < _ALIKE * float((deviations**2).sum()):
            pieces /= len(np.unique(column))
    return max(pieces, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """A sum with its coefficients."""

    # terms, coefficients, covariance: the products; a product without any block is the constant.
    terms: tuple[Term, ...]
    coefficients: Floats
    covariance: Floats
    is_exact: bool  # whether it explains the values to rounding
    misfit: float  # relative standard deviation of the values around the sum
    score: float  # natural logarithm of the probability of the sum among others
    # The same where terms that nothing checks are not told apart by how round their coefficients are.
    weight: float


def _fit(exact: _Exact, support: Support, pieces: float) -> _Fit | None:
    """Fit a sum to all values; return None where these are no evidence for it."""
    terms, values, sigma = support.terms, exact.values, exact.sigma
    excess = len(values) - len(terms)
    design = _columns(exact.points, terms).T
    size = np.abs(design).max(axis=0)
    inverse = np.linalg.pinv(design / size / sigma[:, None], rcond=1e-15)
    covariance = inverse @ inverse.T / np.outer(size, size)
    coefficients = _solved(design / size, values, sigma) / size
    scatter = exact.scatter(design @ coefficients, excess)
    error = np.sqrt(np.diag(covariance)) * scatter
    near = _rounded(coefficients, error)
    if exact.scatter(design @ near, excess) <= 2 * scatter:
        coefficients = near
    if scatter > _EXACT and not _economical(exact.points, terms):
        return None
    structure = structure_cost(terms)
    digits = float(digits_of(coefficients, error).sum())
    evidence = len(values) if scatter <= _EXACT else pieces
    score = -evidence * float(np.log(scatter)) - digits - structure
    fitted = design @ coefficients
    if evidence * exact.reach + score < _LEAST_EVIDENCE or not np.all(fitted > 0):
        return None
    residuals = np.maximum(np.abs(np.log(values / fitted)), _LEAST_MISFIT)
    # The best of N sums that fit no better than others leaves N**(-1/excess) of their residuals.
    chosen = float(np.exp(structure / excess))
    return _Fit(
        terms=terms,
        coefficients=coefficients,
        covariance=covariance * (chosen * scatter) ** 2,
        is_exact=scatter <= _EXACT,
        misfit=chosen * float(np.sqrt((residuals**2).sum() / excess)),
        score=score,
        weight=score + support.unchecked,
    )


def _is_whole_polynomial(exact: _Exact, fit: _Fit, distinct: Integers) -> bool:
    """Return whether a sum is a polynomial whose whole coefficients are no chance.

    At given points, few whole numbers are the values of a polynomial with whole coefficients: one of as many
    as the cell of their lattice is large.
    """
    powers, points, values = np.array(fit.terms), exact.points[distinct], exact.values[distinct]
    is_polynomial = _is_whole(powers) and powers.min() >= 0 and not powers[..., 1].any()
    if not (fit.is_exact and exact.is_whole and is_polynomial and _is_whole(fit.coefficients)):
        return False
    used = powers.any(axis=(0, 2))
    columns = _columns(points, fit.terms)
    if any(len(np.unique(column)) < _LEAST_VALUES for column in points.T[used]):
        return False
    if np.any(np.abs(fit.coefficients) @ columns > _MOST_CANCELLED * values):
        return False
    cell = float(np.linalg.slogdet(columns @ columns.T)[1]) / 2
    near = float(np.log(np.maximum(SMOOTH * values, 1.0)).mean())
    return cell + (len(points) - len(fit.terms)) * near - structure_cost(fit.terms) >= _LEAST_WHOLE


def _distinct(points: Floats, values: Floats) -> Integers:
    """Return a point for each place in the parameters that the values depend on."""
    kept = [
        k
        for k in range(points.shape[1])
        if len(np.unique(np.column_stack([np.delete(points, k, axis=1), values]), axis=0))
        > len(np.unique(np.delete(points, k, axis=1), axis=0))
    ]
    return np.unique(points[:, kept], axis=0, return_index=True)[1] if kept else np.zeros(1, np.intp)


def _economical(points: Floats, terms: tuple[Term, ...]) -> bool:
    """Return whether a sum has half as many terms as points, and half as many blocks as values, or three."""
    levels = [len(np.unique(column)) for column in points.T]
    blocks = [len(set(column)) for column in zip(*terms, strict=True)]
    checked = all(few <= max(3, (many + 1) // 2) for few, many in zip(blocks, levels, strict=True))
    return checked and 2 * len(terms) <= len(points)


def _columns(points: Floats, terms: tuple[Term, ...]) -> Floats:
    """Return the products at points, shape (terms, points)."""
    exponents = np.array(terms)
    return np.asarray(
        np.prod([block_values(points[:, k], exponents[:, k]) for k in range(points.shape[1])], axis=0)
    )


def _solved(design: Floats, values: Floats, sigma: Floats) -> Floats:
    """Return the coefficients of least squares, with one step of refinement: terms cancel each other."""
    weighted, target = design / sigma[:, None], values / sigma
    first = np.linalg.lstsq(weighted, target, rcond=1e-15)[0]
    return np.asarray(first + np.linalg.lstsq(weighted, target - weighted @ first, rcond=1e-15)[0])


def _rounded(coefficients: Floats, error: Floats) -> Floats:
    """Return coefficients as fractions where these are within their error."""
    result = coefficients.copy()
    for denominator in reversed(DENOMINATORS):
        near = np.rint(coefficients * denominator) / denominator
        clear = (error * denominator < 0.01) & (np.abs(near - coefficients) <= _ROUND * error)
        result = np.where(clear & (near != 0), near, result)
    return result


def _model(group: Group, row: int, before: PmnfModel, fits: list[_Fit]) -> PmnfModel:
    """Return a model whose members are the possible sums, the most probable one first."""
    weights = np.exp(np.array([fit.weight for fit in fits]) - max(fit.weight for fit in fits))
    width = max(sum(_is_product(term) for term in fit.terms) for fit in fits)
    shape = len(fits), max(width, 1)
    exponents = np.zeros((*shape, len(group.parameters), 2))
    coefficients = np.zeros((shape[0], shape[1] + 1))
    covariance = np.zeros((shape[0], shape[1] + 1, shape[1] + 1))
    gain = np.full((shape[1] + 1, len(group.parameters)), np.inf)
    for k, fit in enumerate(fits):
        products = sorted((t for t, term in enumerate(fit.terms) if _is_product(term)), key=_place(fit.terms))
        constants = [t for t, term in enumerate(fit.terms) if not _is_product(term)]
        exponents[k, : len(products)] = np.array([fit.terms[t] for t in products]).reshape(
            len(products), len(group.parameters), 2
        )
        place = [0] * len(constants) + list(range(1, len(products) + 1))
        order = constants + products
        coefficients[k, place] = fit.coefficients[order]
        covariance[k][np.ix_(place, place)] = fit.covariance[np.ix_(order, order)]
        if k == 0:
            gain[place] = gains(group.points, fit.terms, fit.coefficients)[order]
    posterior = Posterior(
        weights=weights / weights.sum(),
        exponents=exponents,
        coefficients=coefficients,
        covariance=covariance,
        misfit=np.array([fit.misfit for fit in fits]),
        least_share=_LEAST_SHARE,
    )
    values = np.nanmedian(group.values[row], axis=1)
    residuals = np.log(values / posterior.best(group.points))
    levels = tuple(np.unique(column) for column in group.points.T)
    beyond = Beyond(levels=levels, gains=gain, model=before) if fits[0].is_exact else None
    return replace(
        before,
        smape=float(smape_of(residuals)),
        notes=_notes(group, row, before, fits[0], beyond),
        posterior=posterior,
        beyond=beyond,
    )


def _place(terms: tuple[Term, ...]) -> Callable[[int], list[tuple[bool, float, float]]]:
    """Return a key that sorts terms by number as those of hypotheses: falling blocks, then high exponents."""
    return lambda t: [(power >= 0, -power, -log_power) for power, log_power in terms[t]]


def _is_product(term: Term) -> bool:
    return any(any(block) for block in term)


def _notes(group: Group, row: int, before: PmnfModel, best: _Fit, beyond: Beyond | None) -> tuple[str, ...]:
    """Return the notes on the data, what makes the sum believable, and where nothing does."""
    kept = [note for note in before.notes if note in group.notes[row] or "exponents are uncertain" in note]
    points, terms = len(group.points), len(best.terms)
    what = "one term explains" if terms == 1 else f"a sum of {count(terms, 'term')} explains"
    kept.append(f"{what} all {points} values with a relative error of {best.misfit:.0e}")
    if beyond is not None and len(beyond.parameters):
        names = " and ".join(group.parameters[k] for k in beyond.parameters)
        kept.append(f"only the measured values of {names} check the sum: elsewhere predictions are doubtful")
    return tuple(kept)
