"""Suggest what to measure next for existing measurements, and why, within a budget of core-hours."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TextIO

from rich.table import Table
from rich.text import Text

from orchestrator import registry
from orchestrator.api import points
from orchestrator.api.inputs import campaign_among
from orchestrator.api.suggest import as_seconds, core_seconds, cores_of, describe
from orchestrator.campaign.definition import Campaign
from orchestrator.cli import common, inputs, modeling
from orchestrator.control import existing, suggest
from orchestrator.control.assembly import assemble
from orchestrator.control.suggest import Answer, Question, Suggestion
from orchestrator.errors import CampaignError, OrchestratorError
from orchestrator.journal.measurements import ELAPSED, WHOLE_RUN
from orchestrator.report import ramble, tables
from orchestrator.resources import core_hours
from orchestrator.strategies.base import Choice
from orchestrator.types import Measurements, Point, Value
from orchestrator.units import CostUnit, cost_unit, format_cost, in_unit

_TIME = "time"
_FURTHER = "further values may help (--values NAME=V,V)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    inputs.add_inputs(parser)
    parser.add_argument(
        "--budget", help="what may be spent, e.g. '2 core-hours' (default: what is left of the campaign's)"
    )
    parser.add_argument(
        "--at",
        metavar="POINT",
        help="where models must hold: p=1024,s=35 (default: the evaluation point of the campaign)",
    )
    parser.add_argument(
        "--processes",
        metavar="EXPRESSION",
        help="cores of a run, in the parameters (default: those of the campaign's runs; 1 for files)",
    )
    parser.add_argument(
        "--values",
        metavar="NAME=V,V",
        action="append",
        default=[],
        help="further values of a parameter, beside the measured ones (repeatable)",
    )
    parser.add_argument(
        "--constraint", action="append", default=[], help="points must satisfy it (repeatable)"
    )
    parser.add_argument(
        "--points", type=common.whole(1), default=4, metavar="N", help="most points to suggest (default 4)"
    )
    modeling.add_modeler(parser)
    parser.add_argument(
        "--strategy",
        default="information",
        choices=registry.names("strategy"),
        help="who chooses the points (default information)",
    )
    parser.add_argument(
        "--time",
        metavar="METRIC",
        default=_TIME,
        help="the metric that is a run's time in seconds, from which costs are predicted (default time)",
    )
    common.add_seed(parser.add_argument)
    parser.add_argument(
        "--format",
        choices=("table", "ramble"),
        default="table",
        help="how to print the points: ramble writes experiments for ramble.yaml (default table)",
    )
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    known = _timed(inputs.read(arguments), arguments.time)
    chosen = _campaign(arguments)
    budget, unit = _budget(arguments)
    question = Question(
        evaluation_point=_evaluation_point(arguments, known),
        cores=cores_of(arguments.processes or "1", known) if chosen is None else assemble(chosen).cores,
        budget=budget,
        unit=unit,
        modeler=modeling.modeler(arguments),
        values=_values(arguments.values, known),
        constraints=arguments.constraint,
        campaign=chosen,
        strategy=arguments.strategy,
        batch_size=arguments.points,
        seed=arguments.seed,
    )
    with modeling.shown_progress():
        answer = suggest.suggest(known, question)
    if answer.taken_for_seconds:
        print(f"note: {as_seconds(answer)}; --time names the one that is", file=sys.stderr)
    suggestions = answer.suggestions
    if arguments.json:
        cheapest = None if answer.cheapest is None else core_hours(answer.cheapest.seconds)
        common.print_json({"suggestions": [describe(item) for item in suggestions], "cheapest": cheapest})
    elif suggestions and arguments.format == "ramble":
        print(ramble.experiments([_with_cost(item, question.unit) for item in suggestions]), end="")
    elif suggestions:
        tables.console().print(_table(suggestions, question.unit))
        print(_what_it_costs(suggestions, question), end="")
        if set(known.points).issuperset(item.choice.point for item in suggestions):
            print(f"all of these were measured before; {_FURTHER}")
    else:
        print(_nothing(answer, question.unit), file=_other(arguments))
    return 0


def _evaluation_point(arguments: argparse.Namespace, known: Measurements) -> Point:
    if arguments.at is not None:
        return common.parse_point(arguments.at, known)
    point = inputs.evaluation_point(arguments.inputs[0], known)
    if point is None:
        raise CampaignError("where must models hold? Name it, such as --at p=1024,s=35")
    return point


def _budget(arguments: argparse.Namespace) -> tuple[float, CostUnit]:
    """Return the core-seconds that may be spent, and the unit in which costs are shown."""
    if arguments.budget is not None:
        return core_seconds(common.parse_value(arguments.budget)), cost_unit(arguments.budget)
    directory = campaign_among(arguments.inputs)
    if directory is None:
        raise CampaignError("what may be spent? Name it, such as --budget '2 core-hours'")
    stop, state = existing.load(directory).stop, existing.replayed(directory)
    left = stop.budget - state.spent - state.reserved
    if left <= 0:
        spent = format_cost(stop.budget, stop.unit)
        raise CampaignError(f"{directory}: its budget of {spent} is spent: name another one with --budget")
    return left, stop.unit


def _nothing(answer: Answer, unit: CostUnit) -> str:
    """Say why there is no suggestion."""
    run = answer.cheapest
    if run is None:
        return (
            "nothing left to measure: every point has been repeated often enough, or no run is worth its "
            f"cost; {_FURTHER}"
        )
    cost = format_cost(run.seconds, unit, 3)
    return f"no run fits the budget: the cheapest, at {run.point}, is expected to cost {cost}"


def _timed(known: Measurements, metric: str) -> Measurements:
    """Return measurements whose metric of time is called so; another one of that name is left out."""
    if metric == _TIME:
        return known
    there = known.metrics()
    if metric not in there:
        raise CampaignError(f"--time {metric!r}: the inputs have the metrics {', '.join(there)}")
    whole = [item.callpath == WHOLE_RUN for item in known.items if item.metric == ELAPSED]
    if metric == ELAPSED and any(whole):
        return known  # of an exported campaign: costs are predicted from that anyway
    others = (item for item in known.items if item.metric != _TIME)
    items = (replace(item, metric=_TIME) if item.metric == metric else item for item in others)
    return replace(known, items=tuple(items))


def _other(arguments: argparse.Namespace) -> TextIO:
    """Return where messages go: what another program reads must hold nothing else."""
    return sys.stdout if arguments.format == "table" else sys.stderr


def _with_cost(item: Suggestion, unit: CostUnit) -> Choice:
    """Return what is suggested, with its cost and reason on one line."""
    cost = "" if item.cost is None else f"{format_cost(item.cost, unit)}; "
    return replace(item.choice, reason=cost + " ".join(item.choice.reason.split()))


def _campaign(arguments: argparse.Namespace) -> Campaign | None:
    """Return the campaign that says how many cores a run occupies; None where ``--processes`` does."""
    directory = campaign_among(arguments.inputs)
    return None if directory is None or arguments.processes is not None else existing.load(directory)


def _what_it_costs(suggestions: Sequence[Suggestion], question: Question) -> str:
    """Return a line: what all suggestions cost, and that there may be more; empty while it is unknown."""
    costs = [item.cost for item in suggestions if item.cost is not None]
    if len(costs) < len(suggestions):
        return ""
    spent, budget = in_unit(sum(costs), question.unit), format_cost(question.budget, question.unit)
    return f"{spent} of {budget}. Suggest again once they are measured: what is best next depends on them\n"


def _table(suggestions: Sequence[Suggestion], unit: CostUnit) -> Table:
    table = tables.titled(None, ("point", "repetitions", unit, "why"))
    for item in suggestions:
        cost = "?" if item.cost is None else in_unit(item.cost, unit)
        cells = (str(item.choice.point), str(item.choice.repetitions), cost, item.choice.reason)
        table.add_row(*map(Text, cells))
    return table


def _values(items: list[str], known: Measurements) -> dict[str, list[Value]]:
    values: dict[str, list[Value]] = {}
    for item in items:
        name, equals, texts = (part.strip() for part in item.partition("="))
        if not equals or name not in known.parameters:
            raise CampaignError(f"--values {item!r}: write one of {', '.join(known.parameters)} as NAME=V,V")
        values.setdefault(name, []).extend(_value(text.strip(), name, known) for text in texts.split(","))
    return values


def _value(text: str, name: str, known: Measurements) -> Value:
    """Read a further value: a category need not be measured already."""
    try:
        if known.is_categorical(name):
            return common.parse_category(text, name, known)
        return points.check_number(common.parse_value(text), name, known, text)
    except OrchestratorError as error:
        raise CampaignError(f"--values {error}") from None
