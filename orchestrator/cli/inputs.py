"""Measurements from what a command is given: a campaign directory, or files of any known format."""

from __future__ import annotations

import argparse
from pathlib import Path

from orchestrator.control import session
from orchestrator.errors import CampaignError, OrchestratorError
from orchestrator.journal.measurements import measurements
from orchestrator.readers.load import load
from orchestrator.types import Measurements


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add the inputs, and what to take from Score-P profiles."""
    parser.add_argument(
        "inputs",
        metavar="INPUT",
        nargs="+",
        type=Path,
        help="a campaign directory; or files and folders: Extra-P text, JSON, JSON Lines, CUBE sets, CSV",
    )
    parser.add_argument(
        "--aggregate",
        choices=("mean", "max", "sum", "min"),
        default="mean",
        help="how the ranks of a CUBE profile become one value (default mean)",
    )
    parser.add_argument(
        "--parameters",
        metavar="NAMES",
        type=lambda text: [name.strip() for name in text.split(",")],
        help="columns of tables that are parameters, where the header does not tell: p,s",
    )
    parser.add_argument("--inclusive", action="store_true", help="inclusive values of CUBE profiles")


def read(arguments: argparse.Namespace) -> Measurements:
    """Return the measurements that the arguments name.

    Raises
    ------
    CampaignError
        For several campaign directories, or one together with files.
    ReadError, JournalError
        For inputs that cannot be read.
    OrchestratorError
        For a campaign that has not measured anything yet.
    """
    directory = campaign_directory(arguments)
    if directory is None:
        return load(
            arguments.inputs,
            parameters=arguments.parameters,
            aggregate=arguments.aggregate,
            inclusive=arguments.inclusive,
        )
    known = measurements(session.replayed(directory), session.load(directory).parameters)
    if not known.items:
        raise OrchestratorError(f"{directory}: the campaign has no measurements yet")
    return known


def campaign_directory(arguments: argparse.Namespace) -> Path | None:
    """Return the campaign directory that the arguments name; None where they name files.

    Raises
    ------
    CampaignError
        For several campaign directories, or one together with files.
    """
    paths: list[Path] = arguments.inputs
    campaigns = [path for path in paths if path.is_dir() and session.holds_campaign(path)]
    if campaigns and len(paths) > 1:
        raise CampaignError(
            f"{campaigns[0]} is a campaign directory: give it alone, or export campaigns to files "
            "(orchestrator export DIR --format extrap-jsonl) and give those together"
        )
    return campaigns[0] if campaigns else None
