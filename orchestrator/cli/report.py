"""Write one self-contained HTML file about a campaign, with plots of every model."""

from __future__ import annotations

import argparse
from pathlib import Path

from orchestrator.cli import common
from orchestrator.control.reporting import report
from orchestrator.errors import CampaignError

FILE_NAME = "report.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    common.add_directory(parser)
    parser.add_argument("--output", metavar="FILE", type=Path, help=f"where to (default: DIR/{FILE_NAME})")
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; it only reads the campaign, also while a controller is running."""
    text = report(arguments.directory)
    output = arguments.output or arguments.directory / FILE_NAME
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CampaignError(f"cannot write {output}: {error.strerror}") from error
    if arguments.json:
        common.print_json({"report": str(output)})
    else:
        print(output)
    return 0
