"""Write a launch template and a campaign, with comments, ready for plan: for an application or any command.

For an application, the template that comes with the program is copied, and the campaign has values to begin
with. For a command, what is written as {NAME} varies. If the program is there, its smallest point is run,
once, which is charged: that shows how long runs take, and where times stand in the output. The files
are yours to edit.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from orchestrator import registry
from orchestrator.api.running import interruptible
from orchestrator.campaign import draft
from orchestrator.cli import common
from orchestrator.cli.pipes import reader_may_leave
from orchestrator.doctor import initial
from orchestrator.doctor.first_draft import Wanted
from orchestrator.doctor.initial import Written
from orchestrator.errors import CampaignError
from orchestrator.types import Value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add = parser.add_argument
    add("application", metavar="APPLICATION", nargs="?", help="such as lulesh; without one they are listed")
    add("--command", metavar="TEXT", help="a command with {parameters}: 'mpirun -np {p} ./prog -n {n}'")
    add("--executable", metavar="PATH", help="the program (default: that of the command, or a variable)")
    add("--name", help="of the campaign and its files (default: that of the application or program)")
    add(
        "--values",
        metavar="NAME=LIST",
        action="append",
        default=[],
        help="values of a parameter: n=100,200,400 (repeatable); one value makes it a setting",
    )
    add("--evaluation-point", metavar="POINT", default="", help="p=216,s=35 (default: one step beyond)")
    add(
        "--goal",
        choices=("scaling", "tuning"),
        default="scaling",
        help="scaling: models that hold at the evaluation point; tuning: the fastest of many configurations "
        "(default scaling)",
    )
    add("--executor", choices=("local", "slurm"), help="default: slurm where it answers, else local")
    add("--into", metavar="DIR", type=Path, default=Path(), help="where to write (default: here)")
    add("--no-try", action="store_true", help="do not run the smallest point")
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; 1 if the run that was tried failed."""
    if bool(arguments.application) == bool(arguments.command):
        known = ", ".join(registry.names("application"))
        raise CampaignError(f"give an application or --command 'PROGRAM -n {{n}}'; applications: {known}")
    wanted = Wanted(
        application=arguments.application or "",
        command=arguments.command or "",
        executable=arguments.executable or "",
        name=arguments.name or "",
        executor=arguments.executor or "",
        values=dict(_values(text) for text in arguments.values),
        evaluation_point=_point(arguments.evaluation_point),
        directory=arguments.into,
        tries=not arguments.no_try,
        tuning=arguments.goal == "tuning",
    )
    with interruptible() as interrupted:
        written = initial.write(wanted, interrupted)
    with reader_may_leave():
        if arguments.json:
            common.print_json(_document(written))
        else:
            _show(written)
    return 1 if written.trouble else 0


def _values(text: str) -> tuple[str, tuple[Value, ...]]:
    """Read ``n=100,200,400``; the value of the evaluation point is added: one step beyond, or a category."""
    name, equals, listed = text.partition("=")
    values = tuple(common.parse_value(item.strip()) for item in listed.split(","))
    if not equals or not name.strip() or "" in values:
        raise CampaignError(f"--values {text!r}: give a name and values, like n=100,200,400")
    if len(values) == 1:
        return name.strip(), values
    categories = all(isinstance(value, str) for value in values)
    return name.strip(), (*values, values[-1] if categories else draft.next_value(values))


def _point(text: str) -> dict[str, Value]:
    pairs = [item.partition("=") for item in text.split(",") if item]
    if not all(name.strip() and value.strip() for name, _, value in pairs):
        raise CampaignError(f"--evaluation-point {text!r}: give names and values, like p=216,s=35")
    return {name.strip(): common.parse_value(value.strip()) for name, _, value in pairs}


def _document(written: Written) -> dict[str, object]:
    return {
        "files": [str(path) for path in written.files],
        "points": written.points,
        "tried": written.tried or None,
        "trouble": written.trouble or None,
        "untried": written.untried or None,
        "notes": list(written.notes),
    }


def _show(written: Written) -> None:
    for path in written.files:
        print(f"wrote {path}" + (f": {written.points} points" if path.suffix == ".yaml" else ""))
    if written.tried:
        print(written.tried)
    if written.untried:
        print(written.untried)
    for note in written.notes:
        print(f"note: {note}")
    if written.trouble:
        print(f"error: {written.trouble}", file=sys.stderr)
    print(f"next: {_next(written)}")


def _next(written: Written) -> str:
    """Say what comes after: the first batch, where a run failed behind its correction."""
    plan = f"orchestrator plan {written.files[-1]}"
    if not written.trouble:
        return plan
    return f"correct {' or '.join(map(str, written.files))} (or remove them and init again), then {plan}"
