"""Leave what some runs measured out of the models, because it is wrong: a throttled node, a wrong input file.

RUN is the id of a run, such as p=64,s=20/time-1, the path of its directory, or its name in the log (in
quotes). What was spent stays spent, and outputs and values are kept: --restore lets them count again. Either
all runs are changed, or none. No controller may be running; resume then decides again, and may measure the
same points again.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from orchestrator.cli import common
from orchestrator.control import discarding
from orchestrator.control.discarding import Changed
from orchestrator.resources import core_hours
from orchestrator.units import campaign_unit, count, format_cost

_SHOWN = 10  # runs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    common.add_directory(parser)
    parser.add_argument("runs", metavar="RUN", nargs="*", help="runs; 'orchestrator runs DIR' lists them")
    parser.add_argument(
        "--node", metavar="NAME", help="all measured runs that were on this node; n1* for several nodes"
    )
    parser.add_argument(
        "--where",
        metavar="EXPRESSION",
        help="all measured runs for which it holds, as of 'orchestrator runs': 'p == 64 and n > 100'; with "
        "--node only those that were there",
    )
    parser.add_argument(
        "--because",
        metavar="TEXT",
        default="",
        help="why, in your words; status, log and report show it (needed unless --restore)",
    )
    parser.add_argument("--restore", action="store_true", help="let what was discarded count again")
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    change = discarding.restore if arguments.restore else discarding.discard
    changed = change(
        arguments.directory, arguments.runs, arguments.because, node=arguments.node, where=arguments.where
    )
    if arguments.json:
        common.print_json(document(changed, arguments.restore))
    else:
        print(render(changed, arguments.restore, arguments.directory))
    return 0


def document(changed: Changed, restored: bool) -> dict[str, Any]:
    """Return the result, JSON-ready."""
    return {
        "restored" if restored else "discarded": [run.id for run in changed.runs],
        "reason": changed.reason,
        "cost": core_hours(changed.cost),
        "node_unknown": changed.unknown,
    }


def render(changed: Changed, restored: bool, directory: Path) -> str:
    """Return the result as text."""
    where, word = shlex.quote(str(directory)), "restored" if restored else "discarded"
    because = f": {changed.reason}" if changed.reason else ""
    lines = [f"{word} what {count(len(changed.runs), 'run')} measured{because}"]
    lines += [f"  {run.id}" for run in changed.runs[:_SHOWN]]
    if len(changed.runs) > _SHOWN:
        state = "measured" if restored else "discarded"
        lines.append(f"  and {len(changed.runs) - _SHOWN} more: orchestrator runs {where} --state {state}")
    if changed.unknown:
        lines.append(
            f"not looked at: {count(changed.unknown, 'run')} on several nodes without a record of their names"
        )
    if not restored:
        cost = format_cost(changed.cost, campaign_unit(changed.after.campaign))
        lines.append(f"the {cost} of their attempts stay spent; outputs and values are kept, for --restore")
    lines.append(f"models of what counts now: orchestrator status {where} --fit")
    lines.append(f"to decide with these, and measure what is missing: orchestrator resume {where}")
    return "\n".join(lines)
