"""Measurements from a campaign directory, or from files of any known format."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.api.arguments import in_python, texts, warn
from orchestrator.errors import CampaignError, OrchestratorError, ReadError
from orchestrator.journal.file import holds_campaign
from orchestrator.readers.output_set import Printed
from orchestrator.readers.reading import EVERYTHING, Reading
from orchestrator.types import Measurements

if TYPE_CHECKING:
    import pandas as pd

# What `Reading` has for files alone, and the options that say it.
_OF_FILES = {
    "parameters": "--parameters",
    "names": "--names",
    "categorical": "--categorical",
    "named": "--named",
    "printed": "--output-of",
    "aggregate": "--aggregate",
    "inclusive": "--inclusive",
}


def read(
    *paths: str | os.PathLike[str],
    parameters: str | Sequence[str] | None = None,
    metrics: str | Collection[str] | None = None,
    responses: str | Sequence[str] = (),
    names: Sequence[str] | None = None,
    categorical: str | Collection[str] = (),
    aggregate: str = "mean",
    inclusive: bool = False,
    output_of: str | os.PathLike[str] | None = None,
    named: str | None = None,
) -> pd.DataFrame:
    """Read measurements as a long table, one row per value.

    Parameters
    ----------
    paths
        A campaign directory; or files and folders: Extra-P text, JSON, JSON Lines, CSV, Parquet, sets of
        CUBE or Caliper profiles, results of Ramble or ReFrame.
    parameters
        Columns of CSV and Parquet files, or globals of Caliper profiles, that are parameters, where the files
        do not say which.
    metrics
        The wanted metrics; None for all.
    responses
        Columns of CSV and Parquet files that hold values, where others are to be left out; of other inputs
        the wanted metrics. Columns are named as in the header, or by their position from 0; ``15=time`` also
        says what the column is called from there on. So are parameters. One name is a text, several are a
        list.
    names
        Names of all columns, for CSV files without a header line.
    categorical
        Parameters whose numbers stand for categories.
    aggregate, inclusive
        For profiles: how the ranks become one value (``mean``, ``max``, ``sum``, ``min``), and whether
        the value of a region includes those it calls.
    output_of
        A campaign file: the paths are what runs of its program printed, as that file reads it.
    named
        Where paths of outputs or profiles have the values of parameters: ``si-{cutoff}Ry-{p}ranks``.

    Returns
    -------
    DataFrame
        One column per parameter, then ``callpath``, ``metric``, ``repetition``, ``value`` (times in seconds).

    Raises
    ------
    ReadError
        Naming file and line.
    """
    from orchestrator.api.frames import to_frame

    for given in paths:
        if not isinstance(given, str | os.PathLike):
            raise ReadError(
                f"read takes paths, not {type(given).__name__}: read('a.csv', 'b.csv'), or read(*paths)"
            )
    reading = Reading(
        parameters=None if parameters is None else texts(parameters, "parameters"),
        metrics=None if metrics is None else texts(metrics, "metrics"),
        responses=texts(responses, "responses"),
        names=None if names is None else texts(names, "names"),
        categorical=texts(categorical, "categorical"),
        aggregate=aggregate,
        inclusive=inclusive,
        named=named,
        printed=None if output_of is None else printed(Path(output_of)),
    )
    try:
        return to_frame(warn(measurements_in([Path(path) for path in paths], reading)))
    except ReadError as error:
        error.args = (in_python(str(error)),)
        raise


def printed(campaign: Path) -> Printed:
    """Return what a campaign file says of the outputs of its program.

    Raises
    ------
    CampaignError
        For a campaign that is not valid, or that does not read what its program prints.
    """
    from orchestrator.campaign import loader
    from orchestrator.control.success import check_files

    chosen = loader.load(campaign, starts=False)
    if chosen.measure.profiler != "stdout":
        raise CampaignError(
            f"{campaign}: measure.profiler is {chosen.measure.profiler}, which reads profiles: outputs are "
            "read by stdout"
        )

    def check(path: Path) -> None:
        measure = chosen.measure
        check_files([path], measure.success, measure.failure, f"{path}: nothing in it matches")

    return Printed(
        application=chosen.application_spec,
        parameters=[item.name for item in chosen.parameters],
        metrics=chosen.measure.measured,
        check=check,
    )


def measurements_in(paths: Sequence[Path], reading: Reading = EVERYTHING) -> Measurements:
    """Return the measurements that paths hold.

    Raises
    ------
    CampaignError
        For several campaign directories, or one together with files.
    ReadError, JournalError
        For inputs that cannot be read.
    OrchestratorError
        For a campaign that has not measured anything yet.
    """
    directory = campaign_among(paths)
    if directory is None:
        from orchestrator.readers.load import load

        return load(paths, reading)
    from orchestrator.control import existing
    from orchestrator.journal import executables
    from orchestrator.journal.measurements import measurements
    from orchestrator.report.status import discarded
    from orchestrator.report.wording import discarded_lines

    state = existing.replayed(directory)
    known = measurements(state, existing.parameters(state))
    if not known.items:
        left_out = ": all of them were discarded" if state.discarded else " yet"
        raise OrchestratorError(f"{directory}: the campaign has no measurements{left_out}")
    mixed = [f"{directory}: {text}" for text in executables.warnings(state.measured_with, {})]
    less = [f"{directory}: {text}" for text in discarded_lines(discarded(state))]
    known = replace(known, notes=(*known.notes, *mixed, *less, *_without_effect(directory, reading)))
    wanted = reading.metrics if reading.metrics is not None else reading.responses or None
    return known if wanted is None else of_metrics(known, wanted)


def _without_effect(campaign: Path, reading: Reading) -> Iterator[str]:
    """Say which options do nothing, because a campaign was given."""
    chosen = (
        (option, getattr(reading, name), getattr(EVERYTHING, name)) for name, option in _OF_FILES.items()
    )
    given = [option for option, value, otherwise in chosen if value and value != otherwise]
    if given:
        yield (
            f"{campaign} takes no {', '.join(given)}: its journal says what was measured; export it to a "
            "file to read it otherwise"
        )


def campaign_among(paths: Sequence[Path]) -> Path | None:
    """Return the campaign directory among paths; None where they are files.

    Raises
    ------
    CampaignError
        For several campaign directories, or one together with files.
    """
    campaigns = [path for path in paths if path.is_dir() and holds_campaign(path)]
    if campaigns and len(paths) > 1:
        raise CampaignError(
            f"{campaigns[0]} is a campaign directory: give it alone, or export campaigns to files "
            "(orchestrator export DIR --format extrap-jsonl) and give those together"
        )
    return campaigns[0] if campaigns else None


def of_metrics(known: Measurements, metrics: Collection[str]) -> Measurements:
    """Return the measurements of some metrics.

    Raises
    ------
    CampaignError
        If one of them was not measured.
    """
    from orchestrator.readers import entries

    try:
        return entries.of_metrics(known, metrics, "the inputs")
    except ReadError as error:
        raise CampaignError(str(error)) from None
