"""What a strategy measures in the paper's evaluation, in order (Ritter et al., section IV-B, figure 4).

The evaluation ends at the first point that does not fit the budget, and a choice does not depend on what is
left of it. So what is measured within a budget is the beginning of what is measured within a larger one, and
one course tells of all budgets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.evaluation.strategies.bench import Bench
from orchestrator.evaluation.strategies.contenders import Contender
from orchestrator.evaluation.strategies.trial import ROUNDING, fitted
from orchestrator.models.base import Model, Modeler
from orchestrator.policy.progress import Quality, fits_better
from orchestrator.resources import each
from orchestrator.strategies.base import View
from orchestrator.strategies.starting_set import starting_points
from orchestrator.types import Point


@dataclass(frozen=True, slots=True)
class Step:
    """Runs at a point that are made together, and the core-seconds of all runs up to then."""

    point: Point
    repetitions: int
    spent: float
    round: int


@dataclass(frozen=True, slots=True)
class Course:
    """The steps of a strategy; those of round 1 are the starting set, which is measured as a whole."""

    steps: tuple[Step, ...]

    def within(self, budget: float) -> tuple[Step, ...]:
        """Return the steps up to the first that does not fit; none where the starting set does not."""
        start = [step for step in self.steps if step.round == 1]
        if not start or start[-1].spent > budget * ROUNDING:
            return ()
        return tuple(step for step in self.steps if step.spent <= budget * ROUNDING)


def course(
    bench: Bench,
    contender: Contender,
    *,
    most: float,
    batch_size: int,
    maximum_repetitions: int,
    seed: Sequence[int],
    modeler: Modeler | None,
) -> Course:
    """Let a strategy choose until it exceeds ``most`` core-seconds.

    The costs of all runs are known to the strategy, as in the published evaluation. The starting set is four
    points per parameter and the one they share: 9, 13 and 17 points with two, three and four parameters.

    Parameters
    ----------
    bench
        The known runs.
    contender
        Strategy and repetitions.
    most
        Largest budget.
    batch_size
        n_b.
    maximum_repetitions
        Most runs of a point.
    seed
        The generator of a round is ``default_rng([*seed, round])``.
    modeler
        Fits the models that the strategy sees after every round; None where it looks at none.
    """
    strategy, done = contender.build(), dict[Point, int]()
    steps: list[Step] = []
    models: tuple[Model, ...] = ()
    spent, number = 0.0, 1
    while spent <= most * ROUNDING:
        view = View(
            space=bench.space,
            evaluation_point=bench.evaluation_point,
            measurements=bench.measured(done),
            models=models,
            done=dict(done),
            infeasible=frozenset(),
            costs=each(lambda point: bench.cost(point, min(done.get(point, 0) + 1, maximum_repetitions))),
            budget_left=math.inf,
            batch_size=batch_size,
            initial_repetitions=min(contender.repetitions, maximum_repetitions),
            maximum_repetitions=maximum_repetitions,
            round=number,
            cores=each(lambda point: bench.cores.get(point, math.nan)),
        )
        if number == 1:
            chosen = [(point, view.initial_repetitions) for point in starting_points(view, extra=0)]
        else:
            rng = np.random.default_rng([*seed, number])
            chosen = [(choice.point, choice.repetitions) for choice in strategy(view, rng)]
        if not chosen:
            break
        for point, repetitions in chosen:
            before = done.get(point, 0)
            spent += sum(bench.cost(point, before + k) for k in range(1, repetitions + 1))
            done[point] = before + repetitions
            steps.append(Step(point, repetitions, spent, number))
        if modeler is not None:
            models = fitted(modeler, bench.measured(done))
        number += 1
    return Course(tuple(steps))


def measured(steps: Sequence[Step]) -> dict[Point, int]:
    """Return the repetitions of every point."""
    done: dict[Point, int] = {}
    for step in steps:
        done[step.point] = done.get(step.point, 0) + step.repetitions
    return done


def until_no_gain(bench: Bench, steps: Sequence[Step], modeler: Modeler, patience: int) -> tuple[Step, ...]:
    """Return the steps up to λ rounds in a row in which the SMAPE of the model did not fall (figure 3)."""
    before, waited = Quality(), 0
    for number in dict.fromkeys(step.round for step in steps):
        rounds = [step for step in steps if step.round <= number]
        models = fitted(modeler, bench.measured(measured(rounds)))
        now = Quality(smape=models[0].smape if models else None)
        waited = 0 if fits_better(now, before) else waited + 1
        if waited >= patience:
            return tuple(rounds)
        before = now
    return tuple(steps)
