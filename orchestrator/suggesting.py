"""What to measure next for measurements that exist already, without a campaign."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator import cost, expressions, registry
from orchestrator.errors import CampaignError, ModelError
from orchestrator.models.base import Model, expected_costs
from orchestrator.space import SearchSpace
from orchestrator.strategies.base import Choice, Costs, View
from orchestrator.types import ROOTS, Measurements, Parameter, Point, Value


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked for.

    Attributes
    ----------
    evaluation_point
        P₊, where the models must hold.
    processes
        Expression in the parameters: cores that a run occupies.
    budget
        Core-seconds that may be spent.
    values
        Further values per parameter, beside the measured ones.
    constraints
        Expressions that every point must satisfy.
    strategy, batch_size, repetitions, seed
        Who chooses; points per proposal; repetitions of a new point and most repetitions; the seed.
    """

    evaluation_point: Point
    processes: str
    budget: float
    values: Mapping[str, Sequence[Value]]
    constraints: Sequence[str] = ()
    strategy: str = "information"
    batch_size: int = 4
    repetitions: tuple[int, int] = (2, 10)
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A choice with its expected cost in core-seconds; None while nothing predicts it."""

    choice: Choice
    cost: float | None


def suggest(known: Measurements, question: Question) -> list[Suggestion]:
    """Return the points to measure next, within the budget.

    Raises
    ------
    CampaignError
        For malformed expressions, an empty space or an evaluation point within it.
    """
    cores = expressions.parse(question.processes, known.parameters)
    space = _space(known, question)
    models = _fit(known)
    costs, relative = _costs(models, lambda point: cores.number(point.as_dict()))
    done = {point: max(len(item.values.get(point, ())) for item in known.items) for point in known.points}
    view = View(
        space,
        question.evaluation_point,
        known,
        models,
        done,
        frozenset(),
        costs,
        question.budget,
        question.batch_size,
        *question.repetitions,
        round=2 if models else 1,
        cost_is_relative=relative,
    )
    strategy = registry.load("strategy", question.strategy)()
    choices: Sequence[Choice] = strategy(view, np.random.default_rng([question.seed, view.round]))
    return [
        Suggestion(choice, None if relative else choice.repetitions * view.cost(choice.point))
        for choice in choices
    ]


def _space(known: Measurements, question: Question) -> SearchSpace:
    parameters = []
    for name in known.parameters:
        values = {*(point[name] for point in known.points), *question.values.get(name, ())}
        categorical = any(isinstance(value, str) for value in values)
        ordered = sorted(values, key=str if categorical else float)
        parameters.append(Parameter(name, tuple(ordered), categorical))
    constraints = [expressions.parse(text, known.parameters) for text in question.constraints]
    space = SearchSpace(parameters, constraints)
    if question.evaluation_point in space:
        raise CampaignError(
            f"the evaluation point {question.evaluation_point} is among the points that can be measured: "
            "models would be judged on what they were fitted to; move it beyond them"
        )
    if next(iter(space), None) is None:
        raise CampaignError("no point satisfies the constraints: relax them or give more --values")
    return space


def _fit(known: Measurements) -> tuple[Model, ...]:
    try:
        models: tuple[Model, ...] = registry.load("model", "pmnf")()(known)
    except ModelError:
        return ()  # too few points: the strategy completes the starting set
    return models


def _costs(models: Sequence[Model], cores: Callable[[Point], float]) -> tuple[Costs, bool]:
    """Return expected core-seconds from the time models; without any, ratios only (the cores)."""
    times = [model for model in models if model.metric == "time"] or list(models)
    counted = [model for model in times if model.callpath in ROOTS][:1] or times
    if not counted:
        return cost.each(cores), True
    return expected_costs(counted, cores), False
