"""Measurements from what a command is given: a campaign directory, or files of any known format."""

from __future__ import annotations

import argparse
from pathlib import Path

from orchestrator.api import inputs
from orchestrator.readers.inverse import inverted
from orchestrator.types import Measurements


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add the inputs, and what to take from profiles."""
    parser.add_argument(
        "inputs",
        metavar="INPUT",
        nargs="+",
        type=Path,
        help="a campaign directory; or files and folders: Extra-P text, JSON, JSON Lines, CSV, "
        "Parquet, sets of CUBE or Caliper profiles, results of Ramble or ReFrame",
    )
    parser.add_argument(
        "--aggregate",
        choices=("mean", "max", "sum", "min"),
        default="mean",
        help="how the ranks of a profile become one value (default mean)",
    )
    parser.add_argument(
        "--parameters",
        metavar="NAMES",
        type=lambda text: [name.strip() for name in text.split(",")],
        help="what the parameters are, where files do not say it (columns of tables), or other than they say "
        "(globals of Caliper profiles, variables of Ramble): p,s",
    )
    parser.add_argument(
        "--inverse",
        metavar="METRIC",
        action="append",
        default=[],
        help="model 1/METRIC, for figures of merit such as work per second (repeatable)",
    )
    parser.add_argument("--inclusive", action="store_true", help="inclusive values of profiles")


def read(arguments: argparse.Namespace) -> Measurements:
    """Return the measurements that the arguments name; raises as `inputs.measurements_in`."""
    known = inputs.measurements_in(
        arguments.inputs,
        parameters=arguments.parameters,
        aggregate=arguments.aggregate,
        inclusive=arguments.inclusive,
    )
    return inverted(known, arguments.inverse) if arguments.inverse else known
