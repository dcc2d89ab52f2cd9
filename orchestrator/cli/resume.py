"""Continue an interrupted campaign, or a stopped one with changed rules (--set stop.budget=...)."""

from __future__ import annotations

import argparse
from pathlib import Path

from orchestrator.cli import common
from orchestrator.cli.run import add_cancel, drive
from orchestrator.control import session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("directory", metavar="DIR", type=Path, help="the campaign directory")
    common.add_overrides(parser)
    add_cancel(parser)
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; 3 if the campaign was interrupted again."""
    chosen = session.load(arguments.directory, arguments.overrides, starts=True)
    return drive(chosen, arguments.directory, arguments.json, arguments.cancel)
