"""Measurements from what a command is given: a campaign directory, or files of any known format."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from orchestrator.api import inputs
from orchestrator.errors import CampaignError
from orchestrator.readers.inverse import inverted
from orchestrator.readers.reading import Reading
from orchestrator.types import Measurements, Point


def add_inputs(parser: argparse.ArgumentParser, optional: bool = False) -> None:
    """Add the inputs, and what to take from profiles."""
    parser.add_argument(
        "inputs",
        metavar="INPUT",
        nargs="*" if optional else "+",
        type=Path,
        help="a campaign directory; or files and folders: Extra-P text, JSON, JSON Lines, CSV, "
        "Parquet, sets of CUBE or Caliper profiles, results of Ramble or ReFrame",
    )
    add_reading(parser)


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add what to take from files and profiles; `read` uses it, too."""
    parser.add_argument(
        "--aggregate",
        choices=("mean", "max", "sum", "min"),
        default="mean",
        help="how the ranks of a profile become one value (default mean)",
    )
    add_columns(parser)
    parser.add_argument(
        "--inverse",
        metavar="METRIC",
        action="append",
        default=[],
        help="model 1/METRIC, for figures of merit such as work per second (repeatable)",
    )
    parser.add_argument("--inclusive", action="store_true", help="inclusive values of profiles")


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add what says which columns of tables are what; `read_files` uses it."""
    parser.add_argument(
        "--parameters",
        metavar="NAMES",
        type=_names,
        help="what the parameters are, where files do not say it (columns of tables), or other than they say "
        "(globals of Caliper profiles, variables of Ramble): p,s; columns also by position from 0: 1=p,2=s",
    )
    parser.add_argument(
        "--response",
        metavar="COLUMN",
        action="append",
        default=[],
        help="the column of a table that holds values, others are left out: time, or by position 3=time; of "
        "other files the metric (repeatable)",
    )
    parser.add_argument(
        "--names",
        metavar="NAMES",
        type=_names,
        help="names of all columns of tables without a header line: p,s,time",
    )
    parser.add_argument(
        "--categorical",
        metavar="NAMES",
        type=_names,
        default=[],
        help="parameters of files whose numbers stand for categories: solver,order",
    )
    parser.add_argument(
        "--output-of",
        metavar="CAMPAIGN",
        type=Path,
        help="files are what runs of the program of this campaign file printed, and their names say at which "
        "point, like water_n4_t2_rep1.log",
    )
    parser.add_argument(
        "--named",
        metavar="SHAPE",
        help="where the paths of these files, or of profiles, have the values of parameters, if not behind "
        "their names: 'si-{cutoff}Ry-{p}ranks'; * stands for anything else that differs",
    )


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def refuse_as_output(output: Path, paths: Sequence[Path], option: str = "--output") -> None:
    """Raise `CampaignError` where the output of an option would replace an input."""
    if output.resolve() in [path.resolve() for path in paths]:
        raise CampaignError(f"{option} {output} is an input, which it would replace: name another file")


def read(arguments: argparse.Namespace, paths: Sequence[Path] | None = None) -> Measurements:
    """Return the measurements that the arguments of `add_inputs` name; raises as `inputs.measurements_in`.

    ``paths``: the inputs, where they are none of these arguments (`add_reading`).
    """
    chosen = arguments.inputs if paths is None else paths
    known = read_files(arguments, chosen, aggregate=arguments.aggregate, inclusive=arguments.inclusive)
    return inverted(known, arguments.inverse) if arguments.inverse else known


def evaluation_point(path: Path, known: Measurements) -> Point | None:
    """Return the evaluation point of a campaign in the parameters of its measurements; None without one."""
    from orchestrator.control import existing

    directory = inputs.campaign_among([path])
    point = None if directory is None else existing.load(directory).evaluation_point
    return None if point is None else Point.of({name: point[name] for name in known.parameters})


def read_files(
    arguments: argparse.Namespace, paths: Sequence[Path], *, aggregate: str = "mean", inclusive: bool = False
) -> Measurements:
    """Return the measurements in files as the arguments of `add_columns` say; print what was assumed.

    Raises
    ------
    OrchestratorError
        As `inputs.measurements_in`.
    """
    reading = Reading(
        parameters=arguments.parameters,
        responses=arguments.response,
        names=arguments.names,
        categorical=arguments.categorical,
        aggregate=aggregate,
        inclusive=inclusive,
        named=arguments.named,
        printed=None if arguments.output_of is None else inputs.printed(arguments.output_of),
    )
    known = inputs.measurements_in(paths, reading)
    for note in known.notes:
        print(f"note: {note}", file=sys.stderr)
    return known
