"""Show what happened in a campaign: what was spent, what was given up and why, when a controller ran.

Everything comes from the journal. The command only reads, also while a controller is running.
"""

from __future__ import annotations

import argparse

from orchestrator.cli import common
from orchestrator.journal.replay import garbage_collection_off
from orchestrator.report import log, log_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    common.add_directory(parser)
    parser.add_argument(
        "--all", action="store_true", help="show every failure and every run that was skipped"
    )
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    with garbage_collection_off():
        history = log.document_in(arguments.directory)
    if arguments.json:
        common.print_json(history)
    else:
        print(log_text.render(history, arguments.all))
    return 0
