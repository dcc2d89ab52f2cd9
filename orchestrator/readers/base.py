"""The contract of a reader: an attempt's directory in, samples out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from orchestrator.types import Application, Sample

EXCLUSIVE = frozenset({"scorep", "caliper", "mpi", "hpctoolkit", "tau"})
"""Readers whose times are without those of called regions, unless ``inclusive`` is asked for."""


_Function = TypeVar("_Function", bound=Callable[..., Sequence[Sample]])


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


def reads(*patterns: str) -> Callable[[_Function], _Function]:
    """Declare the files that a reader reads, as glob patterns of names: pruning keeps them.

    Texts that the orchestrator writes itself (``stdout``, ``attempt.json``) need no declaration.
    """

    def declared(reader: _Function) -> _Function:
        reader.__dict__["files"] = patterns
        return reader

    return declared


def files_of(reader: Reader) -> tuple[str, ...]:
    """Return the patterns that a reader declares with `reads`; none where it declares nothing."""
    return tuple(getattr(reader, "files", ()))
