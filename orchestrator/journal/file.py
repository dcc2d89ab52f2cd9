"""The journal: append-only JSON Lines, one event a line; the truth of a campaign. Here it is read.

A torn last line, which a crash leaves, is ignored; damage anywhere else is an error that changes nothing. The
meaning of events is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from orchestrator.errors import DamagedJournal, JournalError, NoCampaign
from orchestrator.journal import events
from orchestrator.journal.codec import Entry, NewerVersion, TornLine, compact, decode
from orchestrator.journal.forms import RUN
from orchestrator.storage import YAML_SUFFIXES
from orchestrator.types import Run
from orchestrator.units import closest

FILE_NAME = "journal.jsonl"


class Position(NamedTuple):
    """A place between two lines: bytes and ``entries`` before it."""

    offset: int = 0
    entries: int = 0


START = Position()


def holds_campaign(directory: Path) -> bool:
    """Return whether a campaign was begun in a directory."""
    path = directory / FILE_NAME
    return path.exists() and path.stat().st_size > 0


def require_campaign(directory: Path) -> None:
    """Raise `NoCampaign` unless a campaign was begun in a directory."""
    if not holds_campaign(directory):
        raise no_campaign(directory)


def no_campaign(directory: Path) -> NoCampaign:
    """Return the error for a directory without a journal."""
    begun = directory.with_suffix("") if directory.suffix in YAML_SUFFIXES else directory
    if begun != directory and holds_campaign(begun):
        return NoCampaign(f"{directory} is no campaign directory; did you mean {begun}?")
    if not directory.exists():
        beside = {path.parent.name for path in directory.parent.glob(f"*/{FILE_NAME}")}
        if (meant := closest(directory.name, sorted(beside))) is not None:
            return NoCampaign(f"there is no directory {directory}; did you mean {directory.parent / meant}?")
    absent = "it is a file, no directory" if directory.is_file() else "there is no such directory"
    why = f"{FILE_NAME} is missing or empty" if directory.is_dir() else absent
    return NoCampaign(
        f"{directory} holds no campaign: {why}; begin one with: "
        "orchestrator run CAMPAIGN.yaml --directory DIR"
    )


def read(path: Path) -> Iterator[Entry]:
    """Read a journal without locking it; a torn last line, being written or left by a crash, is ignored.

    Raises
    ------
    JournalError
        If the file cannot be read, or a line before the last is damaged or out of sequence.
    """
    for entry, _ in scan(path):
        yield entry


def about(path: Path, run: Run) -> Iterator[Entry]:
    """Yield the entries that name a run or share a job with it; of rules, starting controllers, rereads.

    Others, of runs that are called similarly, may be among them.

    Raises
    ------
    JournalError
        If the file cannot be read, or one of these lines is damaged.
    """
    named = compact(RUN.pack(run))[:-1]
    packs = (f'"pack":{compact(name)}' for name in _packs(scan_for(path, [named])))
    # Of what concerns all runs.
    names = ("campaign_started", "campaign_changed", "controller_started", "reread_began", "reread_completed")
    wanted = [named, *(f'"event":"{name}"' for name in names), *packs]
    return scan_for(path, wanted)


def proposals(path: Path) -> Iterator[Entry]:
    """Yield the entries that propose runs; raise `JournalError` as `about`."""
    return scan_for(path, ['"event":"round_proposed"', '"event":"validation_proposed"'])


def _packs(entries: Iterable[Entry]) -> set[str]:
    """Return the names of the shared jobs of attempts."""
    return {
        entry.event.pack
        for entry in entries
        if isinstance(entry.event, events.AttemptIntended) and entry.event.pack
    }


def scan_for(path: Path, texts: Sequence[str]) -> Iterator[Entry]:
    """Yield the entries whose lines hold one of some texts, as they stand in the file."""
    wanted = re.compile(b"|".join(re.escape(text.encode()) for text in texts))
    with reading(path), path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if wanted.search(line) and line.endswith(b"\n"):
                try:
                    yield _decoded(path, number, line)
                except TornLine as error:
                    raise damaged(path, number, str(error)) from error


def scan(path: Path, begin: Position = START) -> Iterator[tuple[Entry, Position]]:
    """Yield the entries of the intact part behind a position, each with the position of its end.

    Raises
    ------
    JournalError
        As `read`.
    """
    end = begin.offset
    damage = ""
    with reading(path), path.open("rb") as file:
        file.seek(end)
        for number, line in enumerate(file, start=begin.entries + 1):
            if damage:  # and it is not the last line
                raise damaged(path, number - 1, damage)
            if not line.endswith(b"\n"):
                return  # being written, or left by a crash; its rest may appear any time
            try:
                entry = _decoded(path, number, line)
            except TornLine as error:
                damage = str(error)
                continue
            if entry.sequence != number:
                raise damaged(path, number, f"its sequence number is {entry.sequence}")
            end += len(line)
            yield entry, Position(end, number)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise `JournalError` where a journal cannot be read."""
    try:
        yield
    except OSError as error:
        raise JournalError(f"cannot read the journal {path}: {error.strerror}") from error


def _decoded(path: Path, number: int, line: bytes) -> Entry:
    """Read a line back; raise `TornLine`, or `DamagedJournal` with the remedy."""
    try:
        return decode(line)
    except TornLine:
        raise
    except NewerVersion as error:
        raise DamagedJournal(
            f"{path}, line {number}: {error}; a newer version wrote it. Nothing is wrong with the file, and "
            "nothing was changed: update measurement-orchestrator"
        ) from error
    except ValueError as error:
        raise damaged(path, number, str(error)) from error


def damaged(path: Path, line: int, reason: str) -> DamagedJournal:
    """Return the error for a line that cannot be read, or cannot follow those before it."""
    return DamagedJournal(
        f"{path}, line {line}: {reason}. Nothing was changed. Restore the file from a backup, or, to give up "
        f"what follows, keep a copy and cut it with: head -n {line - 1} {path}"
    )
