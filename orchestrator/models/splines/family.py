"""The regressions among which the choice is."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np

from orchestrator.models.regression.learner import Fitted, Learner
from orchestrator.models.regression.samples import Samples
from orchestrator.models.splines.fitting import SAMPLINGS, Names, Recipe, fit
from orchestrator.models.splines.response import RESPONSES

FAMILY = "splines"

# Tests and columns of more samples take longer than what they would still tell.
_MOST = 20_000
# Weights level out what logarithms have levelled out already: of these no second kind.
_NEEDLESS = ("log", "stratified")


def learners(
    *,
    responses: tuple[str, ...] = RESPONSES,
    samplings: tuple[str, ...] = SAMPLINGS,
    interactions: Names | None = None,
    knots: int | None = None,
) -> tuple[Learner, ...]:
    """Return a learner for every combination of responses and samplings."""
    several = len(responses) * len(samplings) > 1
    return tuple(
        learner(Recipe(response=response, sampling=sampling, interactions=interactions, knots=knots))
        for response, sampling in product(responses, samplings)
        if not (several and (response, sampling) == _NEEDLESS)
    )


@cache
def learner(recipe: Recipe) -> Learner:
    """Return the learner of a recipe: the same one for the same recipe."""

    def build(samples: Samples, rng: np.random.Generator) -> Fitted:
        return fit(samples, recipe, rng)

    return Learner(family=FAMILY, name=recipe.name, fit=build, most=_MOST)


def candidates(samples: Samples) -> tuple[Learner, ...]:
    """Return the learners for points inside the measured range."""
    return learners() if samples.axes else ()


def extrapolators(samples: Samples) -> tuple[Learner, ...]:
    """Return the learners for points beyond the measured range: splines are straight there."""
    return learners(responses=("log",), samplings=("plain",)) if samples.axes else ()
