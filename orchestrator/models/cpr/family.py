"""The tensors among which the choice is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from orchestrator.models.cpr.completion import Completion, Recipe, complete
from orchestrator.models.cpr.penalty import Smoothness
from orchestrator.models.regression.learner import Learner
from orchestrator.models.regression.samples import Samples
from orchestrator.models.regression.trend import on_trend

FAMILY = "cpr"

# Share of the samples that decides how smooth factors are.
_HELD_OUT = 0.2
_SMOOTHNESS = tuple(
    Smoothness(ridge=ridge, slope=slope, bend=bend)
    for ridge in (1e-4, 1e-3)
    for slope, bend in ((1e-6, 1e-7), (1e-5, 1e-6), (1e-4, 1e-5), (0.0, 1e-5), (1e-4, 0.0))
)
_RIDGES = tuple(Smoothness(ridge=ridge) for ridge in (1e-6, 1e-5, 1e-4, 1e-3))


def candidates(samples: Samples) -> tuple[Learner, ...]:
    """Return the learners for points inside the measured range."""
    if not samples.axes:
        return ()
    cells = [(rank, number) for rank, number in ((2, 4), (4, 8), (16, 16), (32, 32)) if _fits(samples, rank)]
    nodes = [(rank, number) for rank in (4, 8, 16, 32) for number in (32, 128) if _fits(samples, rank)]
    recipes = [Recipe(rank=rank, number=number, cells=True) for rank, number in cells]
    recipes += [Recipe(rank=rank, number=number) for rank, number in nodes]
    return tuple(on_trend(_learner(recipe)) for recipe in recipes)


def extrapolators(samples: Samples) -> tuple[Learner, ...]:
    """Return the learners for points beyond the measured range."""
    return candidates(samples)


def _fits(samples: Samples, rank: int) -> bool:
    return rank <= 4 or rank * 16 * len(samples.axes) <= len(samples)


def _learner(recipe: Recipe) -> Learner:
    def fit(samples: Samples, rng: np.random.Generator) -> Completion:
        return complete(samples, _tuned(samples, recipe, rng), rng)

    return Learner(family=FAMILY, name=recipe.text, fit=fit)


def _tuned(samples: Samples, recipe: Recipe, rng: np.random.Generator) -> Recipe:
    """Choose the smoothness by the mean absolute error of samples that were left out."""
    choices = [replace(recipe, smoothness=each) for each in (_RIDGES if recipe.cells else _SMOOTHNESS)]
    out = np.zeros(len(samples), bool)
    out[rng.permutation(len(samples))[: int(_HELD_OUT * len(samples))]] = True
    if out.sum() < 2:
        return choices[-1]
    rest, held = samples.rows(~out), samples.rows(out)
    seed = int(rng.integers(2**31))

    def error(choice: Recipe) -> float:
        fitted = complete(rest, choice, np.random.default_rng(seed))
        return float(np.mean(np.abs(fitted.at(held.x) - held.y)))

    return min(choices, key=error)
