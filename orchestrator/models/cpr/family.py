"""The tensors among which the choice is."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import chain

import numpy as np

from orchestrator.models.cpr.completion import Completion, Recipe, complete
from orchestrator.models.cpr.continuation import continued_by
from orchestrator.models.cpr.ensemble import Average, grown_average, tuned
from orchestrator.models.cpr.penalty import Smoothness
from orchestrator.models.cpr.rank_one import PositiveTensor, positive_tensor
from orchestrator.models.cpr.splines import Spline, last_half, mars
from orchestrator.models.regression.learner import Learner
from orchestrator.models.regression.samples import Samples
from orchestrator.models.regression.trend import on_trend

FAMILY = "cpr"

# Tensors of an average; ranks with numbers of nodes or cells of candidates, and of those for points beyond
# the measured range; the last parts of a range that lines are fitted to there, 0 for none; penalties that are
# tried. Chosen by hand; not derived.
_MEMBERS = 4
_GROWN = ((4, 64), (8, 64), (8, 256), (16, 64), (16, 256), (32, 64))
_SMOOTH = ((4, 32), (8, 32), (16, 32), (32, 32))
_CELLS = ((2, 8), (8, 16), (16, 32), (64, 64))
_GROWN_BEYOND = ((8, 64), (16, 64))
_SMOOTH_BEYOND = ((8, 32), (16, 32))
_POSITIVE = ((2, 16), (8, 16))
_LINES = (0.25, 0.5, 0.0)
_SMOOTHNESS = (
    tuple(Smoothness(ridge=1e-3, slope=slope, bend=slope / 10) for slope in (0.03, 0.003, 0.3)),
    (Smoothness(ridge=1e-4, slope=0.03, bend=0.003),),
)
_RIDGES = (tuple(Smoothness(ridge=ridge) for ridge in (1e-4, 1e-6, 1e-5, 1e-3)),)


def candidates(samples: Samples) -> tuple[Learner, ...]:
    """Return the learners for points inside the measured range.

    Three kinds, each with several ranks and numbers of nodes as far as the samples can determine them:
    averages of tensors that are grown along combinations of parameters, smooth tensors, and the cells of the
    paper, which are fitted with and without the trend.
    """
    if not samples.axes:
        return ()
    grown = [_grown(recipe) for recipe in _recipes(samples, _GROWN)]
    smooth = [_smooth(recipe) for recipe in _recipes(samples, _SMOOTH)]
    cells = [_tuned(recipe, _RIDGES, recipe.text) for recipe in _recipes(samples, _CELLS, cells=True)]
    return (*(on_trend(learner) for learner in (*grown, *smooth, *cells)), *cells)


def extrapolators(samples: Samples) -> tuple[Learner, ...]:
    """Return the learners for points beyond the measured range.

    Tensors on the trend that go on along lines, and positive tensors (section 5.3), which have no trend
    removed: the first singular vector of what a trend leaves says little.
    """
    if not samples.axes:
        return ()
    grown = [_grown(recipe) for recipe in _recipes(samples, _GROWN_BEYOND)]
    beyond = _recipes(samples, _SMOOTH_BEYOND) or [Recipe(rank=4, number=32)]
    smooth = [_smooth(recipe) for recipe in beyond]
    lines = chain.from_iterable(continued_by(on_trend(each), _LINES) for each in (*grown, *smooth))
    ends = {"a line": last_half} | ({"MARS": mars} if find_spec("pyearth") else {})
    positive = [
        _positive(rank, cells, how, spline)
        for rank, cells in _POSITIVE
        if _fits(samples, rank)
        for how, spline in ends.items()
    ]
    return (*lines, *positive)


def _fits(samples: Samples, rank: int) -> bool:
    """Return whether there are enough samples for a rank: about as many as eight rows of every factor."""
    return rank <= 4 or 8 * rank * len(samples.axes) <= len(samples)


def _recipes(samples: Samples, shapes: Sequence[tuple[int, int]], cells: bool = False) -> list[Recipe]:
    """Return recipes by rank and number of cells or nodes, as far as there are enough samples."""
    some = [(rank, number) for rank, number in shapes if _fits(samples, rank)]
    return [Recipe(rank=rank, number=number, cells=cells) for rank, number in some]


def _grown(recipe: Recipe) -> Learner:
    def fit(samples: Samples, rng: np.random.Generator) -> Average:
        return grown_average(samples, recipe, _MEMBERS, rng)

    return Learner(family=FAMILY, name=f"grown {recipe.text}", fit=fit)


def _smooth(recipe: Recipe) -> Learner:
    return _tuned(recipe, _SMOOTHNESS, f"smooth {recipe.text}")


def _tuned(recipe: Recipe, ladder: Sequence[Sequence[Smoothness]], name: str) -> Learner:
    def fit(samples: Samples, rng: np.random.Generator) -> Completion:
        return complete(samples, tuned(samples, recipe, ladder, rng), rng)

    return Learner(family=FAMILY, name=name, fit=fit)


def _positive(rank: int, cells: int, how: str, spline: Spline) -> Learner:
    def fit(samples: Samples, rng: np.random.Generator) -> PositiveTensor:
        return positive_tensor(samples, rank, cells, rng, spline)

    name = f"positive tensor of rank {rank} with {cells} cells, continued by {how}"
    return Learner(family=FAMILY, name=name, fit=fit)
