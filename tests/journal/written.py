"""A short journal of plain events."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from orchestrator.journal import events
from orchestrator.journal.file import FILE_NAME
from orchestrator.journal.writer import Journal

SOME = [events.ControllerStopped(f"reason {i}") for i in range(4)]


def write(directory: Path, *batches: Sequence[events.Event]) -> bytes:
    with Journal(directory) as opened:
        for batch in batches:
            opened.append(batch, 1.5)
    return (directory / FILE_NAME).read_bytes()
