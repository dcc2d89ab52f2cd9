"""Read the kept outputs and profiles of a campaign again: with other patterns, or with a corrected reader.

Nothing is measured, and no core-hours are spent. Attempts whose output could not be read become
measurements if it can be read now. If an attempt that was accepted cannot be read any more, nothing is
changed. The campaign says which values are read: --campaign names the edited file, --set changes the one in
the directory.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from orchestrator.api.campaign_paths import campaign_path
from orchestrator.cli import common
from orchestrator.cli.pipes import reader_may_leave
from orchestrator.control import reread
from orchestrator.control.reread import Reread
from orchestrator.units import count

_SHOWN = 5  # attempts that cannot be read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    common.add_directory(parser)
    parser.add_argument(
        "--campaign",
        metavar="CAMPAIGN.yaml",
        help="read what this file says; all other rules stay those of the directory",
    )
    common.add_overrides(parser)
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; 1 if nothing was changed because an accepted attempt cannot be read."""
    file = None if arguments.campaign is None else campaign_path(arguments.campaign)
    chosen = reread.rules(arguments.directory, file, arguments.overrides)
    result = reread.reread(arguments.directory, chosen)
    with reader_may_leave():
        if arguments.json:
            common.print_json(document(result))
        else:
            print(render(result, arguments.directory))
    if result.refused:
        lost = count(len(result.unreadable), "attempt")
        print(f"error: {lost} cannot be read: nothing was changed", file=sys.stderr)
    return 1 if result.refused else 0


def document(result: Reread) -> dict[str, Any]:
    """Return the result, JSON-ready."""
    return {
        "read": result.read,
        "changed": 0 if result.refused else result.changed,
        "recovered": 0 if result.refused else result.recovered,
        "rules": list(result.changes),
        "unreadable": dict(result.unreadable),
        "refused": result.refused,
    }


def render(result: Reread, directory: Path) -> str:
    """Return the result as text."""
    lines = [f"rule changed: {text}" for text in result.changes]
    would = "would have" if result.refused else "have"
    lines.append(
        f"read {count(result.read, 'attempt')}: {result.changed} {would} other values, {result.recovered} "
        "that could not be read before are measurements"
    )
    shown = list(result.unreadable.items())[:_SHOWN]
    lines += [f"cannot be read: {name}: {reason}" for name, reason in shown]
    if len(result.unreadable) > _SHOWN:
        lines.append(f"... and {len(result.unreadable) - _SHOWN} more")
    if not result.refused and (result.changed or result.recovered):
        lines.append(f"models of these values: orchestrator status {directory} --fit")
    return "\n".join(lines)
