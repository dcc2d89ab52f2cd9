"""What users want of files of measurements: the same for every format, from Python and from the shell."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from orchestrator.readers.output_set import Printed

SUFFIXES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet")
"""Of names of files of measurements, as most have them; what is in a file says which format it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What to take from files."""

    # The columns of tables, globals of Caliper profiles, variables of Ramble or parameters of ReFrame that
    # are parameters, where files do not say.
    parameters: Sequence[str] | None = None
    metrics: Collection[str] | None = None  # the wanted metrics; None for all
    # The columns of tables that hold values, where others are to be left out; of other files the wanted
    # metrics. See `orchestrator.readers.table.read_csv` for how to name columns.
    responses: Sequence[str] = ()
    names: Sequence[str] | None = None  # names of all columns, for CSV files without a header line
    categorical: Collection[str] = ()  # parameters whose numbers stand for categories
    # aggregate, inclusive: of profiles, how ranks become one value, and whether it includes called regions.
    aggregate: str = "mean"
    inclusive: bool = False
    named: str | None = None  # where paths say the point of a profile or output: `path_shape.values_in`
    printed: Printed | None = None  # files are what a program printed, which this describes


EVERYTHING = Reading()
"""All that files hold, as they say it."""
