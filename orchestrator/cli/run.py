"""Start a campaign and run it until it stops; if its directory already holds it, continue it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from orchestrator.api import running
from orchestrator.campaign.definition import Campaign
from orchestrator.cli import common
from orchestrator.cli.pipes import reader_may_leave
from orchestrator.control import compiling, overview
from orchestrator.control.session import Hooks
from orchestrator.journal.state import FAILURE_RULES
from orchestrator.report import advice, status_text
from orchestrator.units import count


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
    """Run the command; 3 if the campaign was interrupted or paused, 1 if it measured nothing."""
    chosen = common.read_campaign(arguments)
    hooks = Hooks(cancel_on_interrupt=arguments.cancel)
    return drive(chosen, arguments.directory or Path(chosen.name), hooks, arguments.json)


def drive(chosen: Campaign, directory: Path, hooks: Hooks, as_json: bool) -> int:
    """Run or continue a campaign with a progress display; print its status and how to continue at the end."""
    compiling.begin(chosen)
    state = running.drive(chosen, directory, hooks, progress=True)
    document = overview.status_of(chosen, state)
    why = advice.nothing_measured(state)
    code = 1 if why else 0 if state.stopped is not None else 3
    with reader_may_leave():
        if as_json:
            common.print_json(document)
        else:
            status_text.print_status(document)
    how = advice.to_continue(state, directory)
    if why:
        print(f"error: {why}. {how}", file=sys.stderr)
        return code
    if state.stopped is not None:
        if state.stopped.rule in FAILURE_RULES:
            print(f"stopped early: {state.stopped.rule} ({state.stopped.detail}). {how}", file=sys.stderr)
        return code
    if state.paused is not None:
        print(f"paused: {state.paused.rule} ({state.paused.detail}). {how}", file=sys.stderr)
    else:
        flying = len(state.in_flight)
        left = f"; {count(flying, 'attempt')} left in flight" if flying else ""
        ending = f"; end what is in flight with: orchestrator cancel {directory}" if flying else ""
        print(f"interrupted{left}; continue with: orchestrator resume {directory}{ending}", file=sys.stderr)
    return code
