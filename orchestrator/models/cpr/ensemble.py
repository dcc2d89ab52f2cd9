"""Averages of tensors that begin, and are grown, differently: their errors partly cancel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.cpr.completion import Completion, Recipe, complete, standardised
from orchestrator.models.cpr.growth import chosen_combinations
from orchestrator.models.cpr.penalty import Smoothness
from orchestrator.models.regression.samples import Samples

# Share of the samples by which penalties are chosen, those that are tried, and where that begins. Chosen by
# hand; not derived.
_HELD_OUT = 0.2
_MOST_TUNED = 4096  # the penalties are of whole factors: what suits a subset suits all
_START = Smoothness(ridge=1e-3, slope=0.03, jump=0.4)
_LADDER = (
    (_START, *(replace(_START, jump=jump) for jump in (0.1, 0.4, 1.5))),
    tuple(replace(_START, ridge=ridge) for ridge in (1e-4, 1e-3)),
)


@dataclass(frozen=True, slots=True)
class Average:
    """The mean of the logarithms that several tensors predict."""

    members: tuple[Completion, ...]

    @property
    def text(self) -> str:
        """What it is."""
        return f"mean of {len(self.members)} times {self.members[0].text}"

    def at(self, x: Floats) -> Floats:
        """Return logarithms at coordinates (n, axes), shape (n,)."""
        return np.asarray(np.mean([member.at(x) for member in self.members], axis=0), np.float64)


def grown_average(samples: Samples, recipe: Recipe, members: int, rng: np.random.Generator) -> Average:
    """Fit tensors that are grown along combinations of parameters.

    Parameters
    ----------
    samples
        What is fitted.
    recipe
        Rank and number of nodes; its smoothness is chosen here.
    members
        How many tensors; each is grown on other samples from another beginning.
    rng
        For all that is random.
    """
    normal, _, _ = standardised(samples)
    further = [chosen_combinations(normal, rng) for _ in range(members)]
    recipe = tuned(samples, replace(recipe, further=further[0]), _LADDER, rng)
    return Average(tuple(complete(samples, replace(recipe, further=each), rng) for each in further))


def tuned(
    samples: Samples, recipe: Recipe, ladder: Sequence[Sequence[Smoothness]], rng: np.random.Generator
) -> Recipe:
    """Choose the smoothness with the least mean absolute error of samples that are left out.

    Parameters
    ----------
    samples
        A random subset of which is used.
    recipe
        All else.
    ladder
        Steps of choices; each step changes only what differs from the first choice of the first step.
    rng
        For the subset and the factors' beginnings, which all choices share.
    """
    size = min(len(samples), _MOST_TUNED)
    used = samples.rows(rng.permutation(len(samples))[:size])
    held = np.arange(size) < round(_HELD_OUT * size)
    seed = int(rng.integers(2**31))
    best = ladder[0][0]
    if held.sum() < 2:
        return replace(recipe, smoothness=best)
    for step in ladder:
        choices = dict.fromkeys(_moved(ladder[0][0], choice, best) for choice in step)
        best = min(choices, key=lambda choice: _error(used, held, replace(recipe, smoothness=choice), seed))
    return replace(recipe, smoothness=best)


def _moved(start: Smoothness, choice: Smoothness, best: Smoothness) -> Smoothness:
    """Return the best so far with what a choice changes of the start."""
    before = asdict(start)
    return replace(best, **{name: value for name, value in asdict(choice).items() if value != before[name]})


def _error(samples: Samples, held: NDArray[np.bool_], recipe: Recipe, seed: int) -> float:
    fitted = complete(samples.rows(~held), recipe, np.random.default_rng(seed))
    return float(np.mean(np.abs(fitted.at(samples.x[held]) - samples.y[held])))
