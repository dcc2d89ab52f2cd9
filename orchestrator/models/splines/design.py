"""What a regression sees of a point: splines of numbers, indicators of categories, and their products."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Self

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.regression.samples import Axis, Samples
from orchestrator.models.splines.basis import columns, cubes_of, knots
from orchestrator.models.symbolic import number_text

Pair = tuple[int, int]
"""Positions of two predictors, the smaller first."""

# Knots of predictors, and of the one that is ranked highest (section 3.2.2).
KNOTS, KNOTS_OF_FIRST = 4, 5
# With fewer samples all have fewer; a column of a main effect needs so many samples (Harrell, section 4.4,
# asks for 10 to 20 for a model that can be trusted; what predicts best is found by what was left out).
_FEW, _KNOTS_OF_FEW, _PER_COLUMN = 30, 3, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictor:
    """One parameter in the regression."""

    axis: Axis
    knots: tuple[float, ...] = ()  # of its spline; none for a category and for a straight line
    # Subtracted from the coordinate of a number: products of centred columns can be told apart.
    shift: float = 0.0

    @property
    def bent(self) -> tuple[bool, ...]:
        """Of each column, whether it bends; its length is the number of columns."""
        if self.axis.levels is not None:
            return (False,) * len(self.axis.levels)
        return (False,) + (True,) * max(len(self.knots) - 2, 0)

    def at(self, values: Floats) -> Floats:
        """Return the columns at coordinates (n,), shape (n, columns); NaN for an unknown category."""
        if self.axis.levels is None:
            return columns(values - self.shift, self.knots)
        return np.where(np.isnan(values)[:, None], np.nan, self.axis.columns(values))

    @property
    def knot_values(self) -> list[float]:
        """The knots as values of the parameter."""
        found = np.array(self.knots) + self.shift
        return [float(value) for value in (np.exp(found) if self.axis.logarithmic else found)]

    @property
    def label(self) -> str:
        """How the formula names it: ``rcs(log(m), 4)``, ``solver``."""
        return f"rcs({self.name}, {len(self.knots)})" if self.knots else self.name

    @property
    def name(self) -> str:
        """The coordinate as text: ``log(m)``."""
        return f"log({self.axis.name})" if self.axis.logarithmic else self.axis.name

    @property
    def texts(self) -> list[str]:
        """The columns as text that Python can evaluate."""
        if self.axis.levels is not None:
            return [f"({self.axis.name} == {level!r})" for level in self.axis.levels]
        line = _minus(self.name, self.shift)
        bends = [
            " + ".join(
                f"{_exact(factor)} * max({_minus(self.name, self.shift + knot)}, 0)**3"
                for knot, factor in cubes
            )
            for cubes in cubes_of(self.knots)
        ]
        return [f"({line})", *(f"({bend})" for bend in bends)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Predictors and the pairs of them that interact.

    The columns are a one, those of every predictor, then those of every pair. Two numbers interact by the
    products of their columns, but not of two that bend (Harrell's restricted interaction, section 2.7.2).
    """

    predictors: tuple[Predictor, ...]
    pairs: tuple[Pair, ...] = ()

    @property
    def blocks(self) -> tuple[slice, ...]:
        """Where the columns of each predictor are, then those of each pair."""
        widths = [len(predictor.bent) for predictor in self.predictors]
        widths += [len(self._factors(pair)) for pair in self.pairs]
        ends = np.cumsum([1, *widths])
        return tuple(slice(int(begin), int(end)) for begin, end in pairwise(ends))

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.blocks[-1].stop if self.predictors else 1

    @property
    def bent(self) -> NDArray[np.bool_]:
        """Of each column, of which predictors a bend is a factor, shape (predictors, columns)."""
        found = np.zeros((len(self.predictors), self.width), bool)
        for k, (predictor, block) in enumerate(zip(self.predictors, self.blocks, strict=False)):
            found[k, block] = predictor.bent
        for pair, block in zip(self.pairs, self.blocks[len(self.predictors) :], strict=True):
            for column, factors in zip(range(block.start, block.stop), self._factors(pair), strict=True):
                for k, factor in zip(pair, factors, strict=True):
                    found[k, column] = self.predictors[k].bent[factor]
        return found

    def at(self, x: Floats) -> Floats:
        """Return the columns at coordinates (n, axes), shape (n, columns)."""
        own = [predictor.at(values) for predictor, values in zip(self.predictors, x.T, strict=True)]
        products = [own[i][:, a] * own[j][:, b] for i, j in self.pairs for a, b in self._factors((i, j))]
        return np.column_stack([np.ones(len(x)), *own, *products])

    def with_pairs(self, pairs: Iterable[Pair]) -> Self:
        """Replace the pairs that interact."""
        return replace(self, pairs=tuple(pairs))

    @property
    def label(self) -> str:
        """The right-hand side in short: ``rcs(log(m), 4) + solver + log(m):solver``."""
        pairs = [":".join(self.predictors[k].name for k in pair) for pair in self.pairs]
        return " + ".join([*(predictor.label for predictor in self.predictors), *pairs]) or "1"

    @property
    def texts(self) -> list[str]:
        """The columns as text that Python can evaluate."""
        own = [predictor.texts for predictor in self.predictors]
        pairs = [f"{own[i][a]} * {own[j][b]}" for i, j in self.pairs for a, b in self._factors((i, j))]
        return ["1", *(text for texts in own for text in texts), *pairs]

    def _factors(self, pair: Pair) -> list[tuple[int, int]]:
        first, second = (self.predictors[k].bent for k in pair)
        return [
            (a, b)
            for (a, one), (b, other) in product(enumerate(first), enumerate(second))
            if not (one and other)
        ]


def design_of(samples: Samples, number: int | None = None) -> Design:
    """Return the predictors of samples, without interactions.

    Parameters
    ----------
    samples
        What is fitted.
    number
        Knots of every number; None for four, five for the number that is ranked highest, and three or a
        straight line for all where samples are few.
    """
    ranks = [
        0.0 if axis.is_categorical else correlation(values, samples.y) ** 2
        for axis, values in zip(samples.axes, samples.x.T, strict=True)
    ]
    first = int(np.argmax(ranks)) if ranks else -1
    numbers = [_number(samples, k == first) if number is None else number for k in range(len(ranks))]
    return Design(
        predictors=tuple(
            _predictor(axis, values, wanted)
            for axis, values, wanted in zip(samples.axes, samples.x.T, numbers, strict=True)
        )
    )


def correlation(values: Floats, y: Floats) -> float:
    """Return Spearman's rank correlation (equation 1, with mean ranks of equal values); 0 for a constant."""
    from scipy.stats import rankdata

    if len(y) < 2 or np.ptp(values) == 0 or np.ptp(y) == 0:
        return 0.0
    return float(np.corrcoef(rankdata(values), rankdata(y))[0, 1])


def _number(samples: Samples, is_first: bool) -> int:
    """Return how many knots a number has: 0 for a straight line."""
    wanted = KNOTS_OF_FIRST if is_first else KNOTS
    if len(samples) < _FEW:
        wanted = _KNOTS_OF_FEW
    straight = 1 + sum(1 if axis.levels is None else len(axis.levels) - 1 for axis in samples.axes)
    numbers = sum(not axis.is_categorical for axis in samples.axes)
    spare = (len(samples) / _PER_COLUMN - straight) / max(numbers, 1)
    return int(min(wanted, 2 + max(spare, 0)))


def _predictor(axis: Axis, values: Floats, number: int) -> Predictor:
    if axis.levels is not None:
        return Predictor(axis=axis)
    shift = float(np.mean(values))
    return Predictor(axis=axis, knots=knots(values - shift, number), shift=shift)


def _minus(name: str, shift: float) -> str:
    return f"{name} - {_exact(shift)}" if shift >= 0 else f"{name} + {_exact(-shift)}"


def _exact(value: float) -> str:
    """Return a number with so many digits that sums of cubes agree with the prediction."""
    short = number_text(value)
    return short if float(short) == value else f"{value:.12g}"
