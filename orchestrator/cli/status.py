"""Show where a campaign stands: runs, core-hours, models, why points were chosen, what was given up."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from rich.console import Console
from rich.live import Live

from orchestrator import overview, session
from orchestrator.cli import common
from orchestrator.report import status


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("directory", metavar="DIR", type=Path, help="the campaign directory")
    parser.add_argument("--watch", action="store_true", help="refresh until the campaign stops or Ctrl-C")
    parser.add_argument(
        "--interval", type=float, default=2.0, metavar="SECONDS", help="between refreshes (default 2)"
    )
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; it only reads, also while a controller is at work."""
    chosen = session.load(arguments.directory)
    document = overview.status_of(chosen, session.replayed(arguments.directory))
    if arguments.json:
        common.print_json(document)
        return 0
    if not arguments.watch:
        status.print_status(document)
        return 0
    with Live(status.render(document), console=Console(), auto_refresh=False) as live:
        while document["state"] != "stopped":
            time.sleep(arguments.interval)
            document = overview.status_of(chosen, session.replayed(arguments.directory))
            live.update(status.render(document), refresh=True)
    return 0
