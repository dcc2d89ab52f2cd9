"""Tell what happened in a campaign: what was spent, what was given up and why, who was at work when.

Rebuilt from the journal; it only reads, also while a controller is at work.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from orchestrator.cli import common
from orchestrator.journal.file import FILE_NAME, read, require_campaign
from orchestrator.report import log, log_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("directory", metavar="DIR", type=Path, help="the campaign directory")
    parser.add_argument(
        "--all", action="store_true", help="show every failure and every run that was skipped"
    )
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    require_campaign(arguments.directory)
    story = log.document(read(arguments.directory / FILE_NAME))
    if arguments.json:
        common.print_json(story)
    else:
        print(log_text.render(story, arguments.all))
    return 0
