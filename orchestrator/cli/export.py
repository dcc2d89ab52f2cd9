"""Write a campaign's measurements, every repetition, for other tools."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from orchestrator.cli import common, inputs
from orchestrator.report import export


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    inputs.add_inputs(parser)
    parser.add_argument("--format", required=True, choices=export.FORMATS, help="what to write")
    parser.add_argument("--output", metavar="FILE", type=Path, help="where to (default: standard output)")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if arguments.output is not None:
        inputs.refuse_as_output(arguments.output, arguments.inputs)
    content = export.export(inputs.read(arguments), arguments.format)
    if arguments.output is None:
        sys.stdout.buffer.write(content)
        return 0
    common.write(arguments.output, content)
    return 0
