"""Extra-P's search for a function, as in its version 4.2.5 with default options.

One parameter: a constant, or a constant plus one block of the 42 pairs of exponents. The best block is the
one with the smallest SMAPE in leave-one-out cross-validation (Calotoiu et al., Using Automated Performance
Modeling to Find Scalability Bugs in Complex Codes, 2013, section 3).

Several parameters: one such search along the lines of points of every parameter, then sums and products of
the blocks that were found, of which the SMAPE on all points chooses (Calotoiu et al., Fast Multi-Parameter
Performance Modeling, 2016, and the sparse modeling of Ritter et al., Learning Cost-Effective Sampling
Strategies for Empirical Performance Modeling, 2020). All coefficients are of unweighted least squares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.pmnf.hypotheses import EXTRAP, Exponents, block_values

# Extra-P's thresholds: the share of the measured value that a term must reach somewhere, and the share of
# the smallest value below which the constant of a cross-validated fit counts as zero.
_LEAST_TERM = 5e-4
_LEAST_CONSTANT = 5e-4

Term = tuple[int, ...]
"""Parameters whose blocks are multiplied."""


@dataclass(frozen=True, slots=True)
class Form:
    """A constant plus terms."""

    # Parameter -> exponents of its block: a parameter has the same block in all terms.
    blocks: Mapping[int, Exponents]
    terms: tuple[Term, ...]  # which blocks each term multiplies
    coefficients: Floats  # the constant, then one per term

    def design(self, points: Floats) -> Floats:
        """Return ones and the values of the terms at points (n, parameters), shape (n, 1 + terms)."""
        values = _values(self.blocks, points)
        return _design(values, self.terms, len(points))

    def at(self, points: Floats) -> Floats:
        """Return the values at points of shape (n, parameters), shape (n,)."""
        return np.asarray(self.design(points) @ self.coefficients, np.float64)


def search(points: Floats, y: Floats) -> Form:
    """Return the function that Extra-P would find.

    Parameters
    ----------
    points
        Coordinates in ascending order of the first, then of the next parameter, shape (n, parameters). Every
        parameter has at least two values.
    y
        One positive value per point, shape (n,).
    """
    parameters = points.shape[1]
    if parameters == 0:
        return _constant(y)
    if parameters == 1:
        return along(points[:, 0], y, 0)
    found = [along(*line(points, y, axis), axis) for axis in range(parameters)]
    blocks = {axis: form.blocks[axis] for axis, form in enumerate(found) if form.blocks}
    if not blocks:
        return _constant(y)
    if len(blocks) == 1:
        [axis] = blocks
        return _one_parameter(found[axis], points, y)
    return _several(blocks, points, y)


def line(points: Floats, y: Floats, axis: int) -> tuple[Floats, Floats]:
    """Return the values of a parameter with the mean of ``y`` over the longest lines of points along it.

    A line is all points that agree in the other parameters. Of the lines with most points those count that
    have the coordinate with which the first of them begins.
    """
    _, which, sizes = np.unique(
        np.delete(points, axis, axis=1), axis=0, return_inverse=True, return_counts=True
    )
    which = which.reshape(-1)
    longest = sizes[which] == sizes.max()
    x = points[:, axis]
    begin = x[np.argmax(longest)]
    chosen = longest & np.isin(which, which[longest & (x == begin)])
    values, place = np.unique(x[chosen], return_inverse=True)
    place = place.reshape(-1)
    return values, np.bincount(place, weights=y[chosen]) / np.bincount(place)


def along(x: Floats, y: Floats, axis: int) -> Form:
    """Return the function of one parameter: a constant, or a constant plus one block.

    Parameters
    ----------
    x, y
        Values of the parameter, each once, and what was measured there, shape (n,).
    axis
        Number of the parameter.
    """
    constant = _constant(y)
    if len(y) < 2 or np.all(y == constant.coefficients[0]):
        return constant
    exponents = np.array([pair for pair in EXTRAP if x.min() >= 1 or pair[1] == 0])
    designs = np.stack([np.ones((len(exponents), len(x))), block_values(x, exponents)], axis=2)
    coefficients = _solved(designs, y)
    errors = _left_out(designs, y)
    share = np.abs(coefficients[:, 1:] * designs[:, :, 1] / y).max(axis=1)
    valid = np.isfinite(errors) & (coefficients[:, 1] != 0) & (share >= _LEAST_TERM)
    errors = np.where(valid, errors, np.inf)
    best = int(np.argmin(errors))
    if not errors[best] < smape(constant.coefficients[0], y):
        return constant
    power, logarithm = map(float, exponents[best])
    return Form({axis: (power, logarithm)}, ((axis,),), _least_squares(designs[best], y))


def structures(axes: Sequence[int]) -> Iterator[tuple[Term, ...]]:
    """Yield what Extra-P tries of blocks of several parameters: product and sum, and some of both.

    Two and three parameters have combinations of sums and products; more have not.
    """
    whole, alone = tuple(axes), [(axis,) for axis in axes]
    yield (whole,)
    yield tuple(alone)
    if len(axes) == 2:
        yield from ((term, whole) for term in alone)
    if len(axes) == 3:
        pairs = list(combinations(axes, 2))
        yield from ((whole, term) for term in (*alone, *pairs))
        yield from ((whole, pair, _rest(axes, pair)) for pair in pairs)
        yield from ((whole, *two) for two in combinations(alone, 2))
        for pair in pairs:
            rest = _rest(axes, pair)
            yield pair, rest
            yield from ((pair, rest, (axis,)) for axis in pair)


def _rest(axes: Sequence[int], pair: Term) -> Term:
    return tuple(axis for axis in axes if axis not in pair)


def _constant(y: Floats) -> Form:
    return Form({}, (), np.array([y.mean()]))


def _one_parameter(form: Form, points: Floats, y: Floats) -> Form:
    """Return the function with the coefficients of its line, or of all points if these fit better."""
    again = Form(form.blocks, form.terms, _least_squares(form.design(points), y))
    return again if smape(again.at(points), y) < smape(form.at(points), y) else form


def _several(blocks: Mapping[int, Exponents], points: Floats, y: Floats) -> Form:
    """Return the combination with the smallest SMAPE; the product, unless another one is better."""
    values = _values(blocks, points)
    best, least = None, np.inf
    for terms in structures(list(blocks)):
        design = _design(values, terms, len(y))
        coefficients = _least_squares(design, y)
        error = smape(design @ coefficients, y)
        shares = np.abs(coefficients[1:] * design[:, 1:] / y[:, None]).max(axis=0)
        counts = bool(np.all(coefficients[1:] != 0) and not np.any(shares < _LEAST_TERM))
        if best is None or (counts and error < least):
            best, least = Form(blocks, terms, coefficients), error
    assert best is not None  # there is always a product
    return best


def _values(blocks: Mapping[int, Exponents], points: Floats) -> dict[int, Floats]:
    """Return the values of every block at points, shape (n,) each."""
    return {axis: block_values(points[:, axis], np.array([pair]))[0] for axis, pair in blocks.items()}


def _design(values: Mapping[int, Floats], terms: Sequence[Term], points: int) -> Floats:
    columns = [np.prod([values[axis] for axis in term], axis=0) for term in terms]
    return np.column_stack([np.ones(points), *columns])


def _left_out(designs: Floats, y: Floats) -> Floats:
    """Return the SMAPE of every point predicted from all others, per block; NaN where it is no number.

    Parameters
    ----------
    designs
        Ones and the values of the block, shape (blocks, n, 2).
    y
        Shape (n,).
    """
    parts = np.empty((len(designs), len(y)))
    for k in range(len(y)):
        others = np.arange(len(y)) != k
        fitted = _solved(designs[:, others], y[others])
        negligible = np.abs(fitted[:, 0] / y[others].min()) < _LEAST_CONSTANT
        predicted = np.where(negligible, 0.0, fitted[:, 0]) + fitted[:, 1] * designs[:, k, 1]
        parts[:, k] = _relative(predicted, y[k])
    return np.asarray(100 * parts.mean(axis=1), np.float64)


def _solved(designs: Floats, y: Floats) -> Floats:
    """Return coefficients of least squares (of those the smallest), shape (blocks, 2)."""
    usable = np.isfinite(designs).all(axis=(1, 2))
    found = np.full((len(designs), designs.shape[2]), np.nan)
    rcond = np.finfo(float).eps * max(designs.shape[1:])
    found[usable] = np.linalg.pinv(designs[usable], rcond=rcond) @ y
    return found


def _least_squares(design: Floats, y: Floats) -> Floats:
    """Return coefficients; columns of very different size do not make it give up a column."""
    found, _, rank, _ = np.linalg.lstsq(design, y, rcond=None)
    if rank < design.shape[1]:
        found = np.linalg.lstsq(design, y, rcond=-1)[0]
    return np.asarray(found, np.float64)


def _relative(predicted: Floats, y: Floats | float) -> Floats:
    """Return the parts of the SMAPE, 0 to 2."""
    return np.asarray(2 * np.abs(predicted - y) / (np.abs(predicted) + np.abs(y)), np.float64)


def smape(predicted: Floats | float, y: Floats) -> float:
    """Return the SMAPE, 0..200 %."""
    return float(100 * _relative(np.asarray(predicted), y).mean())
