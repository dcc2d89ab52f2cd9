"""Start a campaign and run it until it stops; if its directory already holds it, continue it."""

from __future__ import annotations

import argparse
from pathlib import Path

from orchestrator import overview, session
from orchestrator.campaign import Campaign
from orchestrator.cli import common
from orchestrator.cli.display import Display
from orchestrator.report import status


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    common.add_campaign(parser)
    parser.add_argument("--executor", help="executor to use instead of the campaign's")
    add_directory(parser)
    common.add_json(parser)


def add_directory(parser: argparse.ArgumentParser) -> None:
    """Add ``--directory``."""
    parser.add_argument(
        "--directory",
        metavar="DIR",
        type=Path,
        help="the campaign directory (default: ./NAME of the campaign)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command; 3 if the campaign was interrupted."""
    extra = (f"executor.name={arguments.executor}",) if arguments.executor else ()
    chosen = common.read_campaign(arguments, extra)
    return drive(chosen, arguments.directory or Path(chosen.name), arguments.json)


def drive(chosen: Campaign, directory: Path, as_json: bool) -> int:
    """Run or continue a campaign with a progress display; print its status at the end."""
    with common.interruptible() as interrupted, Display(chosen) as display:
        state = session.run(chosen, directory, session.Hooks(display.update, interrupted))
    document = overview.status_of(chosen, state)
    if as_json:
        common.print_json(document)
    else:
        status.print_status(document)
    if state.stopped is not None:
        return 0
    display.note(f"interrupted; continue with: orchestrator resume {directory}")
    return 3
