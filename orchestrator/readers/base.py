"""The contract of a reader: an attempt's directory in, samples out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from orchestrator.types import Application, Sample

EXCLUSIVE = frozenset({"scorep", "caliper", "mpi", "hpctoolkit", "tau"})
"""Readers whose times are without those of called regions, unless ``inclusive`` is asked for."""


class Reader(Protocol):
    """Read what one finished attempt left in its directory."""

    def __call__(
        self, directory: Path, application: Application, inclusive: bool = False
    ) -> Sequence[Sample]:
        """Return samples (all aggregates that are there); raise ``ReadError`` with file and reason.

        ``inclusive`` values include those of called regions, where the file distinguishes the two. Values
        that an application prints are taken as they are.
        """
        ...
