"""Pruning: deleting bulky files of settled attempts that a campaign does not need any more.

Records, scripts, input files, output streams and what readers declare to read are kept, so that everything
can be read again.
Attempts that are not settled, or may still be running, are never touched, so a controller may run meanwhile.
"""

from __future__ import annotations

import fnmatch
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache
from pathlib import Path

from orchestrator import registry
from orchestrator.campaign.definition import Campaign
from orchestrator.control.attempts import RUNS
from orchestrator.errors import CampaignError, ExecutorError, ReadError
from orchestrator.executors.attempt.directory import OURS
from orchestrator.executors.attempt.record import read_record
from orchestrator.executors.attempt.worker import REQUEST
from orchestrator.executors.slurm.arrays import FOLDER, read
from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.readers.base import files_of

_BATCH_SCRIPT = "submission.sh"
_KINDS = 8  # kinds of files that are named one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The files that pruning would delete, and the attempts that it does not touch."""

    files: tuple[tuple[Path, int], ...]  # files to delete, with their sizes in bytes
    folders: tuple[Path, ...]  # directories that may be empty afterwards, the deepest first
    attempts: int  # settled attempts that were looked at
    # Directories of attempts that are in flight, or whose record says that they still run.
    untouched: tuple[Path, ...]
    unreadable: tuple[Path, ...]  # directories of attempts that this user may not read

    @property
    def size(self) -> int:
        """Bytes to be freed."""
        return sum(size for _, size in self.files)

    def kinds(self) -> list[tuple[str, int, int]]:
        """Return the kinds of files (by suffix, else by name) with number and bytes, the largest first."""
        numbers: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for path, size in self.files:
            kind = f"*{path.suffix}" if path.suffix else path.name
            numbers[kind] += 1
            sizes[kind] += size
        return [(kind, numbers[kind], size) for kind, size in sizes.most_common(_KINDS)]


@cache
def kept() -> tuple[str, ...]:
    """Return the patterns of files that stay in every campaign: ours, and those of all readers of ours."""
    return (*sorted(OURS), *_read_by(*registry.TABLES["reader"]))


def kept_for(campaign: Campaign) -> tuple[str, ...]:
    """Return the patterns of further files that a campaign reads: of its output, and of readers of others.

    Raises
    ------
    CampaignError
        If its application or a reader is not installed or cannot be imported: what it reads is then unknown.
    """
    if unknown := [why for key, why in campaign.missing.items() if key in ("application", "measure")]:
        raise CampaignError(f"what must be kept is not known: {'; '.join(unknown)}")
    measure = campaign.measure
    readers = [measure.profiler, *([measure.effort.profiler] if measure.effort else [])]
    return (*campaign.application_spec.output_files, *_read_by(*readers))


def _read_by(*readers: str) -> Iterator[str]:
    return (pattern for name in readers for pattern in files_of(registry.load("reader", name)))


def plan(directory: Path, entries: Iterable[Entry], keep: Sequence[str] = ()) -> Plan:
    """Find the files that may be deleted; change nothing.

    Parameters
    ----------
    directory, entries
        The campaign directory, and its journal.
    keep
        Glob patterns of further files to keep, matched with their names and their paths in the attempt.
    """
    attempts = _attempts(entries)
    files: list[tuple[Path, int]] = []
    folders: list[Path] = []
    by_status: dict[_Status, list[Path]] = {status: [] for status in _Status}
    for name in (*attempts.in_flight, *attempts.settled):
        folder = directory / RUNS / name
        status = _status(folder)
        if name in attempts.in_flight and status is not _Status.ABSENT:
            status = _Status.OPEN
        by_status[status].append(folder)
    for folder in by_status[_Status.OVER]:
        files += _bulky(folder, keep, folders)
    # The charge of an unconfirmed attempt is looked up by its batch, which must stay.
    final = {name for attempt, name in attempts.settled.items() if attempt not in attempts.unconfirmed}
    files += _batches(directory / FOLDER, final, folders)
    return Plan(
        files=tuple(files),
        folders=tuple(folders),
        attempts=len(by_status[_Status.OVER]),
        untouched=tuple(by_status[_Status.OPEN]),
        unreadable=tuple(by_status[_Status.UNREADABLE]),
    )


@dataclass(slots=True)
class _Attempts:
    """Attempts in the journal: names by id, settled or in flight; ids of those without a confirmed charge."""

    settled: dict[str, str] = field(default_factory=dict)
    in_flight: dict[str, str] = field(default_factory=dict)
    unconfirmed: set[str] = field(default_factory=set)


def _attempts(entries: Iterable[Entry]) -> _Attempts:
    attempts = _Attempts()
    for entry in entries:
        match entry.event:
            case events.AttemptIntended(attempt=attempt, name=name):
                attempts.in_flight[attempt.id] = name
                attempts.settled.pop(attempt.id, None)
            case events.AttemptFinished(attempt=attempt):
                attempts.settled[attempt.id] = attempts.in_flight.pop(attempt.id, "")
                if entry.event.estimated:
                    attempts.unconfirmed.add(attempt.id)
            case events.AttemptCharged(attempt):
                attempts.unconfirmed.discard(attempt.id)
            case events.AttemptWithdrawn(attempt) if entry.event.barred:
                attempts.settled[attempt.id] = attempts.in_flight.pop(attempt.id, "")
    return attempts


def _bulky(folder: Path, keep: Sequence[str], folders: list[Path]) -> Iterator[tuple[Path, int]]:
    """Yield the files of an attempt that may be deleted, and collect its folders, deepest first."""
    inputs = _inputs(folder)
    for path, size in _below(folder, folders):
        name_within = path.relative_to(folder).as_posix()
        if name_within not in inputs and not _is_kept(name_within, (*kept(), *keep)):
            yield path, size


def apply(chosen: Plan) -> list[str]:
    """Delete the files of a plan; return those that could not be deleted, with the reason."""
    failures: list[str] = []
    for path, _ in chosen.files:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            failures.append(f"{path}: {error.strerror}")
    for folder in chosen.folders:
        try:
            folder.rmdir()
        except OSError:
            continue  # something in it is kept
    return failures


class _Status(Enum):
    """State of an attempt's directory."""

    ABSENT = auto()
    OPEN = auto()
    OVER = auto()
    UNREADABLE = auto()


def _status(folder: Path) -> _Status:
    """Return the state of an attempt's directory.

    The attempt is over if there is no record, or if the record says that it finished.
    """
    try:
        next(folder.iterdir(), None)
        record = read_record(folder)
    except (FileNotFoundError, NotADirectoryError):
        return _Status.ABSENT
    except OSError:
        return _Status.UNREADABLE
    except ReadError as error:  # a damaged record does not show whether the attempt ended
        return _Status.UNREADABLE if isinstance(error.__cause__, OSError) else _Status.OPEN
    return _Status.OVER if record is None or record.finished is not None else _Status.OPEN


def _inputs(folder: Path) -> set[str]:
    """Return the names of the input files: the run was made from them."""
    try:
        return set(json.loads((folder / REQUEST).read_bytes())["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _below(folder: Path, folders: list[Path]) -> Iterator[tuple[Path, int]]:
    """Yield the files below a folder, never following a link, and collect the folders, deepest first."""
    for path, inner, names in os.walk(folder, topdown=False):
        here = Path(path)
        folders += [here / name for name in inner if not (here / name).is_symlink()]
        links = [name for name in inner if (here / name).is_symlink()]
        for name in [*names, *links]:
            try:
                yield here / name, (here / name).lstat().st_size
            except OSError:
                continue  # gone since


def _is_kept(name: str, patterns: Sequence[str]) -> bool:
    base = name.rpartition("/")[2]
    return any(fnmatch.fnmatchcase(text, pattern) for text in (name, base) for pattern in patterns)


def _batches(folder: Path, settled: set[str], folders: list[Path]) -> Iterator[tuple[Path, int]]:
    """Yield the files of Slurm batches whose attempts are all settled, except their scripts."""
    for manifest in sorted(folder.glob("*.json")):
        try:
            names = {name for pack in read(manifest).packs for name in pack}
        except ExecutorError:
            continue  # its attempts are unknown
        if names and names <= settled:
            for path, size in _below(manifest.with_suffix(""), folders):
                if path.name != _BATCH_SCRIPT:
                    yield path, size
            yield manifest, manifest.lstat().st_size
