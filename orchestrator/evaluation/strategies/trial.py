"""One campaign of one contender on known runs, within a budget (Ritter et al., figure 4).

A trial has the paper's rules, which differ from those of a campaign (`orchestrator.policy.stop_rules`). The
cost of a run is known before it begins, so nothing is reserved. Nothing fails, and patience plays no part. A
starting set that does not fit the budget ends the trial without a model. A strategy sees the same `View`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from orchestrator import resources
from orchestrator.errors import ModelError
from orchestrator.evaluation.strategies.bench import Bench
from orchestrator.evaluation.strategies.contenders import MAXIMUM_REPETITIONS, Contender
from orchestrator.journal.measurements import ELAPSED
from orchestrator.models.base import Model, Modeler, holds_at
from orchestrator.models.costs import expected_costs
from orchestrator.strategies.base import Choice, Costs, View
from orchestrator.types import Measurements, Point

ROUNDING = 1 + 1e-9
"""Factor on a budget: sums of the same costs in another order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one campaign achieved for one call path."""

    # strategy, budget_percent, subject: the contender, the budget, and the function or call path.
    strategy: str
    budget_percent: float
    subject: str
    # False where the budget did not hold the starting set (or nothing could be modelled): no model.
    feasible: bool
    error_percent: float  # signed relative error at P₊; NaN without a model
    covered: bool  # whether the truth lies in the model's 90 % interval at P₊
    # cost_percent, runs, points: what was spent, and how much was measured.
    cost_percent: float
    runs: int
    points: int


@dataclass
class _Progress:
    """Where a trial stands: repetitions by point, core-seconds, the models and the number of the round."""

    done: dict[Point, int] = field(default_factory=dict)
    spent: float = 0.0
    models: tuple[Model, ...] = ()
    round: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Under which conditions a contender measures."""

    # budget_percent, full_cost: budget, in percent of ``full_cost`` (core-seconds).
    budget_percent: float
    full_cost: float
    batch_size: int = 1  # n_b; the paper's comparison has 1
    maximum_repetitions: int = MAXIMUM_REPETITIONS  # most runs of a point
    seed: Sequence[int] = (0,)  # the generator of a round is ``default_rng([*seed, round])``
    # What another campaign expects runs to cost; only ratios count, and only before there are models.
    assumed_costs: Costs | None = None

    @property
    def budget(self) -> float:
        """In core-seconds."""
        return self.full_cost * self.budget_percent / 100.0


def run_trial(
    bench: Bench,
    contender: Contender,
    modeler: Modeler,
    conditions: Conditions,
    last: Modeler | None = None,
) -> list[Outcome]:
    """Let a contender measure until its proposals end or none of a round fits the budget; λ plays no part.

    As in a campaign, a strategy knows costs only from its models, and before there are any from the monotone
    guess. A run is charged its true cost, and is skipped when that does not fit the remaining budget. A
    starting set that does not fit as a whole is infeasible, as in the paper.

    Parameters
    ----------
    bench
        The known runs.
    contender
        Strategy and repetitions.
    modeler
        Fits the models after every round.
    conditions
        The budget, and what else limits it.
    last
        Fits the models that are compared with the truth, if not ``modeler``.

    Returns
    -------
    list of Outcome
        One per call path of the bench's truth.
    """
    progress = _measured(bench, contender, modeler, conditions)
    if last is not None and progress.done:
        progress.models = last(bench.measured(progress.done))
    return _outcomes(bench, contender, conditions, progress)


def measured(bench: Bench, contender: Contender, modeler: Modeler, conditions: Conditions) -> Measurements:
    """Return what a contender measures; empty where nothing fits."""
    return bench.measured(_measured(bench, contender, modeler, conditions).done)


def _measured(bench: Bench, contender: Contender, modeler: Modeler, conditions: Conditions) -> _Progress:
    """Measure until proposals end or none of a round fits; nothing where the starting set does not fit."""
    strategy, budget = contender.build(), conditions.budget
    progress = _Progress()
    while True:
        view = _view(bench, contender, progress, conditions)
        choices = strategy(view, np.random.default_rng([*conditions.seed, progress.round]))
        if progress.round == 1 and _cost(bench, progress, choices) > budget * ROUNDING:
            return _Progress()
        if not _measure(bench, progress, choices, budget):
            break
        progress.models = fitted(modeler, bench.measured(progress.done))
        progress.round += 1
    return progress


def fitted(modeler: Modeler, known: Measurements) -> tuple[Model, ...]:
    """Return the models; none where too little was measured. Other failures of a modeler are errors here."""
    try:
        return modeler(known)
    except ModelError:
        return ()


def _view(bench: Bench, contender: Contender, progress: _Progress, conditions: Conditions) -> View:
    expected = _expected_costs(bench, progress.models)
    most = conditions.maximum_repetitions
    return View(
        space=bench.space,
        evaluation_point=bench.evaluation_point,
        measurements=bench.measured(progress.done),
        models=progress.models,
        done=dict(progress.done),
        infeasible=frozenset(),
        costs=expected or conditions.assumed_costs or resources.each(_guess(bench)),
        budget_left=conditions.budget - progress.spent,
        batch_size=conditions.batch_size,
        initial_repetitions=min(contender.repetitions, most),
        maximum_repetitions=most,
        round=progress.round,
        cost_is_relative=expected is None,
        cores=resources.each(lambda point: bench.cores.get(point, math.nan)),
    )


def _guess(bench: Bench) -> Callable[[Point], float]:
    """Return the monotone guess of costs, before any model knows them."""
    values = {parameter.name: parameter.values for parameter in bench.space.parameters}
    return resources.guess(values, lambda point: round(bench.cores[point]))


def _expected_costs(bench: Bench, models: Sequence[Model]) -> Costs | None:
    """Return the costs by the models of whole runs, or of the only call path; None without such models."""
    durations = [model for model in models if model.metric == ELAPSED]
    if not durations and len({model.callpath for model in models}) == 1:
        durations = list(models)
    return expected_costs(durations, bench.cores.__getitem__) if durations else None


def _cost(bench: Bench, progress: _Progress, choices: Sequence[Choice]) -> float:
    """Return the core-seconds of a round."""
    return sum(
        bench.cost(choice.point, progress.done.get(choice.point, 0) + extra)
        for choice in choices
        for extra in range(1, choice.repetitions + 1)
    )


def _measure(bench: Bench, progress: _Progress, choices: Sequence[Choice], budget: float) -> bool:
    """Execute the runs that fit the budget; return whether any did."""
    measured = False
    for choice in choices:
        for _ in range(choice.repetitions):
            repetition = progress.done.get(choice.point, 0) + 1
            cost = bench.cost(choice.point, repetition)
            if progress.spent + cost > budget * ROUNDING:
                break
            progress.spent += cost
            progress.done[choice.point] = repetition
            measured = True
    return measured


def _outcomes(
    bench: Bench, contender: Contender, conditions: Conditions, progress: _Progress
) -> list[Outcome]:
    models = {
        model.callpath: model
        for model in progress.models
        if model.metric != ELAPSED and holds_at(model, bench.evaluation_point)
    }
    return [
        outcome(
            bench,
            contender,
            callpath,
            models.get(callpath),
            budget_percent=conditions.budget_percent,
            cost_percent=100.0 * progress.spent / conditions.full_cost,
            done=progress.done,
        )
        for callpath in bench.truth
    ]


def outcome(
    bench: Bench,
    contender: Contender,
    callpath: str,
    model: Model | None,
    *,
    budget_percent: float,
    cost_percent: float,
    done: Mapping[Point, int],
) -> Outcome:
    """Return what a contender achieved for a call path: its model, if there is one, beside the truth at P₊.

    Parameters
    ----------
    bench, contender
        The known runs, and what chose among them.
    callpath, model
        What was modelled, and the model.
    budget_percent, cost_percent
        The budget, and what was spent.
    done
        Repetitions by point.
    """
    truth, error, covered = bench.truth[callpath], float("nan"), False
    if model is not None:
        prediction = model.predict([bench.evaluation_point])
        error = 100.0 * (float(prediction.value[0]) - truth) / truth
        covered = bool(prediction.low[0] <= truth <= prediction.high[0])
    return Outcome(
        strategy=contender.label,
        budget_percent=budget_percent,
        subject=callpath,
        feasible=bool(np.isfinite(error)),
        error_percent=error,
        covered=covered,
        cost_percent=cost_percent,
        runs=sum(done.values()),
        points=len(done),
    )
