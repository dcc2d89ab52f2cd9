"""What users want of files of measurements: the same for every format, from Python and from the shell."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What to take from files.

    Attributes
    ----------
    parameters
        The columns of tables, globals of Caliper profiles, variables of Ramble or parameters of ReFrame
        that are parameters, where files do not say.
    metrics
        The wanted metrics; None for all.
    responses
        The columns of tables that hold values, where others are to be left out; of other files the wanted
        metrics. See `orchestrator.readers.table.read_csv` for how to name columns.
    names
        Names of all columns, for CSV files without a header line.
    categorical
        Parameters whose numbers stand for categories.
    aggregate, inclusive
        For profiles: how ranks become one value, and whether it includes called regions.
    """

    parameters: Sequence[str] | None = None
    metrics: Collection[str] | None = None
    responses: Sequence[str] = ()
    names: Sequence[str] | None = None
    categorical: Collection[str] = ()
    aggregate: str = "mean"
    inclusive: bool = False


EVERYTHING = Reading()
"""All that files hold, as they say it."""
