"""List the runs of a campaign as a table: where each stands, how long it took, what it cost, on which node.

Conditions are combined: --state failed --where 'p >= 64'. CSV and JSON have every row that fulfils them.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections.abc import Mapping
from typing import Any

from orchestrator.cli import common
from orchestrator.journal.replay import garbage_collection_off
from orchestrator.journal.state import RunStatus

_SHOWN = 200  # rows of a table, unless asked for more


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    common.add_directory(parser)
    parser.add_argument(
        "--state",
        metavar="STATE",
        type=_state,
        action="append",
        default=[],
        help=f"only runs in this state: {', '.join(map(str, RunStatus))} (repeatable)",
    )
    parser.add_argument("--kind", choices=("time", "effort"), help="only runs of this kind")
    parser.add_argument(
        "--where",
        metavar="EXPRESSION",
        help="only runs for which it holds; its names: parameters, repetition, attempts, elapsed (s) and "
        "core_hours, such as 'p >= 64 and elapsed > 10'",
    )
    parser.add_argument(
        "--node",
        metavar="NAME",
        help="only runs that were on this node, those on several, too; n1*: on any of these",
    )
    parser.add_argument(
        "--sort",
        metavar="COLUMN",
        action="append",
        default=[],
        help="sort by a column or parameter, --sort=-elapsed from large to small (repeatable)",
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=common.whole(0),
        default=_SHOWN,
        help=f"rows of the table, 0 for all (default {_SHOWN})",
    )
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--csv", action="store_true", help="print CSV, a column per parameter")
    common.add_json(shape)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; also while a controller is running."""
    with garbage_collection_off():
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    from orchestrator.control import overview
    from orchestrator.report import runs_table

    state, _ = overview.seen(arguments.directory)
    there = None
    if arguments.node is not None:
        from orchestrator.control import discarding  # it reads the campaign's file, which takes longer

        there = {
            run.id
            for run, item in state.runs.items()
            if fnmatch.filter(discarding.nodes_of(run, item, arguments.directory), arguments.node)
        }
    table = runs_table.chosen(
        runs_table.rows(state),
        states=arguments.state,
        kind=arguments.kind,
        where=arguments.where,
        runs=there,
    )
    table = runs_table.ordered(table, arguments.sort)
    if arguments.json:
        common.print_json(table)
    elif arguments.csv:
        sys.stdout.write(runs_table.to_csv(table))
    else:
        _print(table, state.campaign, arguments.limit or len(table))
    return 0


def _print(table: list[dict[str, Any]], campaign: Mapping[str, Any], most: int) -> None:
    from orchestrator.report import runs_table, tables
    from orchestrator.units import count

    if table:
        console = tables.console()
        # Where even the figures find no space, a terminal wraps them.
        console.print(runs_table.to_table(table[:most], campaign, console.width), crop=False)
    more = f", {count(most, 'row')} shown: --limit 0 shows all" if len(table) > most else ""
    print(f"{count(len(table), 'run')}{more}")


def _state(text: str) -> str:
    found = text.replace("-", " ").replace("_", " ")
    if found not in list(RunStatus):
        raise argparse.ArgumentTypeError(f"{text!r} is none of: {', '.join(map(str, RunStatus))}")
    return found
