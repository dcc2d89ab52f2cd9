"""What to measure next for measurements that exist already, without a campaign."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from orchestrator import expressions, registry, resources
from orchestrator.campaign.definition import Campaign
from orchestrator.errors import CampaignError, ExpressionError, ModelError
from orchestrator.journal.measurements import ELAPSED, WHOLE_RUN
from orchestrator.models.base import Model, Modeler, unit_of
from orchestrator.models.costs import expected_costs
from orchestrator.space import SearchSpace
from orchestrator.strategies.base import Choice, Nothing, Strategy, View
from orchestrator.strategies.candidates import Candidate, affordable, chunks, open_points, single_runs
from orchestrator.types import ROOTS, Measurements, Parameter, Point, Value
from orchestrator.units import CostUnit

_MOST_COMBINATIONS = 20_000  # of values, among which points are suggested
_INITIAL, _MOST = 2, 10  # repetitions of a new point, and of any point


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked for."""

    evaluation_point: Point  # P₊, where the models must hold
    # Cores that a run at a point occupies; raises ``CampaignError`` or ``ValueError`` where it is unknown.
    cores: Callable[[Point], float]
    budget: float  # core-seconds that may be spent
    unit: CostUnit  # in which reasons give costs
    modeler: Modeler  # what fits the models
    values: Mapping[str, Sequence[Value]]  # further values per parameter, beside the measured ones
    constraints: Sequence[str]  # expressions that every point must satisfy
    # Whose constraints, application and machine decide what can be measured, if not all points can.
    campaign: Campaign | None = None
    # strategy, batch_size, seed: who chooses; points per proposal; the seed.
    strategy: str
    batch_size: int
    seed: int


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A choice with its expected cost in core-seconds; None while nothing predicts it."""

    choice: Choice
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The points to measure next; where no run fits the budget, one run of the ``cheapest`` instead.

    ``cheapest`` is None, too, while nothing predicts costs, and where every point has its most repetitions.
    """

    suggestions: tuple[Suggestion, ...]
    cheapest: Candidate | None
    # Metrics from which costs are predicted as if they were times in seconds, although none is called time.
    taken_for_seconds: tuple[str, ...]


def suggest(known: Measurements, question: Question) -> Answer:
    """Return the points to measure next, within the budget.

    Raises
    ------
    CampaignError
        For malformed expressions, an empty space, an evaluation point within it, or points without cores.
    ModelError
        For measurements of which none can be modelled, however many more there are.
    """
    _check_usable(known)
    points = _space(known, question)
    for point in points.some():  # before anything is fitted: whether each has cores
        question.cores(point)
    models, why_not = _fit(known, question.modeler)
    counted = _counted(models)
    relative = not counted  # without models of times only the ratios of costs are known: the cores
    costs = resources.each(question.cores) if relative else expected_costs(counted, question.cores)
    done = {point: max(len(item.values.get(point, ())) for item in known.items) for point in known.points}
    view = View(
        space=points,
        evaluation_point=question.evaluation_point,
        measurements=known,
        models=models,
        done=done,
        infeasible=frozenset(),
        costs=costs,
        budget_left=question.budget,
        unit=question.unit,
        batch_size=question.batch_size,
        initial_repetitions=_INITIAL,
        maximum_repetitions=_MOST,
        round=2 if models else 1,
        cost_is_relative=relative,
        cores=resources.cores_at(question.cores),
    )
    strategy = registry.load("strategy", question.strategy)()
    rng = np.random.default_rng([question.seed, view.round])
    choices: Sequence[Choice] = strategy(view, rng)
    # Who asks wants an answer: what would be next, and what is said against it.
    if isinstance(choices, Nothing):
        why = f"{choices.reason}; chosen as gpr does"
        gpr: Strategy = registry.load("strategy", "gpr")()
        choices = [replace(item, reason=f"{item.reason}; {why}") for item in gpr(view, rng)]
    suggestions = tuple(
        Suggestion(
            replace(choice, reason=choice.reason + why_not),
            None if relative else choice.repetitions * view.cost(choice.point),
        )
        for choice in choices
    )
    return Answer(
        suggestions=suggestions,
        cheapest=None if suggestions else _beyond_budget(view),
        taken_for_seconds=_taken_for_seconds(counted),
    )


def _beyond_budget(view: View) -> Candidate | None:
    """Return the cheapest run that could be made, if no run fits the budget."""
    unlimited = replace(view, budget_left=math.inf)
    runs = (run for chunk in chunks(open_points(view)) for run in single_runs(unlimited, chunk))
    known = (run for run in runs if math.isfinite(run.seconds))
    found = min(known, key=lambda run: run.seconds, default=None)
    return None if found is None or affordable(view, found.seconds) else found


def _check_usable(known: Measurements) -> None:
    """Refuse measurements that look like another quantity than times or counts: models would never hold."""
    values = (value for item in known.items for found in item.values.values() for value in found)
    if not any(value >= 0 for value in values):
        metrics = ", ".join(known.metrics())
        raise ModelError(
            f"no usable measurement: every value of {metrics} is negative or missing; is it the right column?"
        )


def _space(known: Measurements, question: Question) -> SearchSpace:
    parameters = _parameters(known, question.values)
    points = _constrained(parameters, question)
    if next(points.some(), None) is None:
        raise CampaignError("no point satisfies the constraints: relax them or give more --values")
    if question.evaluation_point in points:
        raise CampaignError(
            f"the evaluation point {question.evaluation_point} is among the points that can be measured: "
            "models must be checked where they were not fitted; move it beyond them"
        )
    return points


def _parameters(known: Measurements, further: Mapping[str, Sequence[Value]]) -> list[Parameter]:
    """Return the parameters with their measured and further values.

    Samples of a tuning space hold thousands of values each, with more combinations than can be looked at: of
    numbers that were measured, so many are taken that `_MOST_COMBINATIONS` remain.
    """
    parameters = []
    for name in known.parameters:
        values = {*known.values_of(name), *further.get(name, ())}
        categorical = name in known.categorical or any(isinstance(value, str) for value in values)
        ordered = sorted(values, key=str if categorical else float)
        parameters.append(Parameter(name, tuple(ordered), categorical))
    most = _most_values(parameters)
    return [
        item
        if item.categorical or len(item.values) <= most
        else replace(item, values=_spread(item.values, most, further.get(item.name, ())))
        for item in parameters
    ]


def _most_values(parameters: Sequence[Parameter]) -> int:
    """Return how many values of numeric parameters leave few enough combinations; at least 2."""

    def combinations(most: int) -> int:
        numbers = (
            len(item.values) if item.categorical else min(len(item.values), most) for item in parameters
        )
        return math.prod(numbers)

    longest = max((len(item.values) for item in parameters), default=0)
    return max(2, 1 + bisect_right(range(2, longest + 1), _MOST_COMBINATIONS, key=combinations))


def _spread(values: Sequence[Value], most: int, further: Sequence[Value]) -> tuple[Value, ...]:
    """Return the ends of sorted values and others between, at even steps, and all further ones."""
    steps = np.linspace(0, len(values) - 1, most).round().astype(int)
    kept = {*(values[step] for step in steps), *further}
    return tuple(value for value in values if value in kept)


def _constrained(parameters: Sequence[Parameter], question: Question) -> SearchSpace:
    """Return the space of what satisfies the constraints, and the campaign's."""
    texts = [parameter.name for parameter in parameters if parameter.categorical]
    names = [parameter.name for parameter in parameters]
    try:
        constraints = [expressions.parse(text, names, texts) for text in question.constraints]
        SearchSpace(parameters, constraints).size()  # evaluates them everywhere
    except ExpressionError as error:
        raise ExpressionError(f"--constraint: {error}") from None
    if question.campaign is None:
        return SearchSpace(parameters, constraints)
    of_campaign = replace(question.campaign, parameters=tuple(parameters))
    _check_values(of_campaign.space, question.values)
    return replace(of_campaign, constraints=(*of_campaign.constraints, *question.constraints)).space


def _check_values(possible: SearchSpace, values: Mapping[str, Sequence[Value]]) -> None:
    """Refuse further values that the campaign excludes at every point."""
    space = possible.describe()
    for name, wanted in values.items():
        for value in wanted:
            if value not in space.values[name]:
                raise CampaignError(
                    f"--values {name}={value}: the campaign cannot measure there: "
                    f"{'; '.join(space.infeasible)}; for runs elsewhere say with --processes how many cores "
                    "they occupy"
                )


def _fit(known: Measurements, modeler: Modeler) -> tuple[tuple[Model, ...], str]:
    """Return the models, or none and why: mostly too few points, for which strategies have starting sets."""
    try:
        return modeler(known), ""
    except ModelError as error:
        return (), f"; no models: {error}"


def _counted(models: Sequence[Model]) -> Sequence[Model]:
    """Return the models whose sum is the duration of a run.

    The duration of whole runs says most; else the time of the call path that is the whole run, or of all.
    """
    whole = [model for model in models if (model.callpath, model.metric) == (WHOLE_RUN, ELAPSED)]
    times = [model for model in models if model.metric == "time"] or list(models)
    roots = [model.callpath for model in times if model.callpath in ROOTS][:1]  # with a model per category
    return whole or [model for model in times if model.callpath in roots] or times


def _taken_for_seconds(counted: Sequence[Model]) -> tuple[str, ...]:
    """Return the metrics of models that count as the duration of a run, unless all of them are times."""
    metrics = tuple(dict.fromkeys(model.metric for model in counted))
    return () if all(unit_of(metric) == "s" for metric in metrics) else metrics
