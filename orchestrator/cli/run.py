"""Start a campaign and run it until it stops; if its directory already holds it, continue it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from orchestrator.api import running
from orchestrator.campaign.definition import Campaign
from orchestrator.cli import common
from orchestrator.control import overview
from orchestrator.report import status_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    common.add_campaign(parser)
    parser.add_argument("--executor", help="executor to use instead of the campaign's")
    add_directory(parser)
    add_cancel(parser)
    common.add_json(parser)


def add_directory(
    parser: argparse.ArgumentParser, text: str = "the campaign directory (default: ./NAME of the campaign)"
) -> None:
    """Add ``--directory`` with its help."""
    parser.add_argument("--directory", metavar="DIR", type=Path, help=text)


def add_cancel(parser: argparse.ArgumentParser) -> None:
    """Add ``--cancel``."""
    parser.add_argument(
        "--cancel",
        action="store_true",
        help="on Ctrl-C end the runs in flight (they are charged) instead of leaving them running",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command; 3 if the campaign was interrupted."""
    extra = (f"executor.name={arguments.executor}",) if arguments.executor else ()
    chosen = common.read_campaign(arguments, extra)
    return drive(chosen, arguments.directory or Path(chosen.name), arguments.json, arguments.cancel)


def drive(chosen: Campaign, directory: Path, as_json: bool, cancel: bool = False) -> int:
    """Run or continue a campaign with a progress display; print its status at the end."""
    state = running.drive(chosen, directory, progress=True, cancel=cancel)
    document = overview.status_of(chosen, state)
    if as_json:
        common.print_json(document)
    else:
        status_text.print_status(document)
    if state.stopped is not None:
        return 0
    print(f"interrupted; continue with: orchestrator resume {directory}", file=sys.stderr)
    return 3
