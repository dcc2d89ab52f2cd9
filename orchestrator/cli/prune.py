"""Delete bulky files of attempts that are settled; keep records, scripts, output and profiles.

Without --delete the command only shows what it would delete. Attempts in flight are never touched, so it may
run beside a controller; resume, status, log, report and model work afterwards as before.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from orchestrator.cli import common
from orchestrator.cli.pipes import reader_may_leave
from orchestrator.control import existing, pruning
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.units import count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    common.add_directory(parser)
    parser.add_argument("--delete", action="store_true", help="delete, instead of only saying what")
    parser.add_argument(
        "--keep",
        metavar="PATTERN",
        action="append",
        default=[],
        help="keep further files, such as '*.vtk' or 'restart/*' (repeatable)",
    )
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; 1 if something could not be deleted, or not be read before."""
    chosen = existing.load(arguments.directory)
    entries = read(arguments.directory / FILE_NAME)
    keep = (*pruning.kept_for(chosen), *arguments.keep)
    plan = pruning.plan(arguments.directory, entries, keep)
    complaints = pruning.apply(plan) if arguments.delete else []
    with reader_may_leave():
        if arguments.json:
            common.print_json(document(plan, arguments.delete, complaints))
        else:
            print(render(plan, arguments.delete))
    for complaint in complaints:
        print(f"not deleted: {complaint}", file=sys.stderr)
    return 1 if complaints or (arguments.delete and plan.unreadable) else 0


def document(plan: pruning.Plan, deleted: bool, complaints: list[str]) -> dict[str, Any]:
    """Return the result, JSON-ready."""
    return {
        "deleted": deleted,
        "files": len(plan.files),
        "bytes": plan.size,
        "kinds": [{"kind": kind, "files": number, "bytes": size} for kind, number, size in plan.kinds()],
        "attempts": plan.attempts,
        "untouched": [str(path) for path in plan.untouched],
        "unreadable": [str(path) for path in plan.unreadable],
        "complaints": complaints,
    }


def render(plan: pruning.Plan, deleted: bool) -> str:
    """Return the result as text."""
    word = "deleted" if deleted else "would delete"
    number, settled = count(len(plan.files), "file"), count(plan.attempts, "settled attempt")
    lines = [f"{word} {number}, {_size(plan.size)}, of {settled}"]
    lines += [f"  {number:>8} {kind:<20} {_size(size):>10}" for kind, number, size in plan.kinds()]
    if open_ := len(plan.untouched):
        lines.append(
            f"{count(open_, 'attempt')} not touched: in flight, or still running according to their record"
        )
    if plan.unreadable:
        lines.append(f"{count(len(plan.unreadable), 'attempt')} not touched: this user cannot read them")
    if not deleted and plan.files:
        lines.append("nothing was changed; to delete them: --delete")
    return "\n".join(lines)


def _size(size: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
