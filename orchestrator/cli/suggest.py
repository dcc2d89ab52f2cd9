"""Say what to measure next for existing measurements, and why, within a budget of core-hours."""

from __future__ import annotations

import argparse

from rich.table import Table
from rich.text import Text

from orchestrator import registry, suggesting, units
from orchestrator.cli import common, inputs
from orchestrator.cost import core_hours
from orchestrator.errors import CampaignError
from orchestrator.report import status_text
from orchestrator.suggesting import Question, Suggestion
from orchestrator.types import Value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    inputs.add_inputs(parser)
    parser.add_argument("--budget", required=True, help="what may be spent, e.g. '2 core-hours'")
    parser.add_argument("--at", required=True, metavar="POINT", help="where models must hold: p=1024,s=35")
    parser.add_argument(
        "--processes", default="1", metavar="EXPRESSION", help="cores of a run, in the parameters (default 1)"
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
        "--points", type=int, default=4, metavar="N", help="most points to suggest (default 4)"
    )
    parser.add_argument("--strategy", default="information", choices=registry.names("strategy"))
    parser.add_argument("--seed", type=int, default=0)
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    known = inputs.read(arguments)
    question = Question(
        evaluation_point=common.parse_point(arguments.at, known),
        processes=arguments.processes,
        budget=_budget(arguments.budget),
        values=_values(arguments.values, known.parameters),
        constraints=arguments.constraint,
        strategy=arguments.strategy,
        batch_size=arguments.points,
        seed=arguments.seed,
    )
    found = suggesting.suggest(known, question)
    if arguments.json:
        common.print_json({"suggestions": [describe(item) for item in found]})
    elif found:
        status_text.console().print(_table(found))
    else:
        print("nothing left to measure within the budget")
    return 0


def describe(item: Suggestion) -> dict[str, object]:
    """Return a suggestion, JSON-ready; the cost in core-hours."""
    return {
        "point": item.choice.point.as_dict(),
        "repetitions": item.choice.repetitions,
        "cost": None if item.cost is None else core_hours(item.cost),
        "reason": item.choice.reason,
    }


def _table(found: list[Suggestion]) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    for heading in ("point", "repetitions", "core-hours", "why"):
        table.add_column(heading, overflow="fold")
    for item in found:
        cost = "?" if item.cost is None else f"{core_hours(item.cost):.4g}"
        cells = (str(item.choice.point), str(item.choice.repetitions), cost, item.choice.reason)
        table.add_row(*map(Text, cells))
    return table


def _budget(text: str) -> float:
    try:
        return units.parse_cost(common.parse_value(text))
    except ValueError as error:
        raise CampaignError(f"--budget: {error}") from error


def _values(items: list[str], parameters: tuple[str, ...]) -> dict[str, list[Value]]:
    found: dict[str, list[Value]] = {}
    for item in items:
        name, equals, values = item.partition("=")
        if not equals or name not in parameters:
            raise CampaignError(f"--values {item!r}: write one of {', '.join(parameters)} as NAME=V,V")
        found.setdefault(name, []).extend(common.parse_value(value) for value in values.split(","))
    return found
