"""Deleting what a campaign does not need any more: bulky files of attempts that are settled for good.

Kept are records, scripts, input files, output streams and profiles, so that all can be read again. What
is not settled, or may still be running, is never touched, so pruning is safe beside a controller.
"""

from __future__ import annotations

import fnmatch
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path

from orchestrator.control.attempts import RUNS
from orchestrator.errors import ExecutorError, ReadError
from orchestrator.executors.attempt.directory import OURS
from orchestrator.executors.attempt.record import read_record
from orchestrator.executors.attempt.worker import REQUEST
from orchestrator.executors.slurm.arrays import FOLDER, read
from orchestrator.journal import events
from orchestrator.journal.file import Entry
from orchestrator.readers.effort import SUFFIX as COUNTS

KEPT = (*sorted(OURS), "*.cubex", f"*{COUNTS}")
_BATCH_SCRIPT = "submission.sh"
_KINDS = 8  # kinds of files that are named one by one


@dataclass(frozen=True, slots=True)
class Plan:
    """What pruning would delete, and what it leaves alone.

    Attributes
    ----------
    doomed
        Files to delete, with their sizes in bytes.
    folders
        Directories that may be empty afterwards, the deepest first.
    attempts
        Settled attempts that were looked at.
    untouched
        Directories of attempts that are in flight, or whose record says that they still run.
    unreadable
        Directories of attempts that this user may not read.
    """

    doomed: tuple[tuple[Path, int], ...]
    folders: tuple[Path, ...]
    attempts: int
    untouched: tuple[Path, ...]
    unreadable: tuple[Path, ...] = ()

    @property
    def size(self) -> int:
        """Bytes to be freed."""
        return sum(size for _, size in self.doomed)

    def kinds(self) -> list[tuple[str, int, int]]:
        """Return the kinds of files (by suffix, else by name) with number and bytes, the largest first."""
        numbers: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for path, size in self.doomed:
            kind = f"*{path.suffix}" if path.suffix else path.name
            numbers[kind] += 1
            sizes[kind] += size
        return [(kind, numbers[kind], size) for kind, size in sizes.most_common(_KINDS)]


def plan(directory: Path, entries: Iterable[Entry], keep: Sequence[str] = ()) -> Plan:
    """Look for what may be deleted; change nothing.

    Parameters
    ----------
    directory, entries
        The campaign directory, and its journal.
    keep
        Glob patterns of further files to keep, matched with their names and their paths in the attempt.
    """
    books = _books(entries)
    doomed: list[tuple[Path, int]] = []
    folders: list[Path] = []
    found: dict[_Standing, list[Path]] = {standing: [] for standing in _Standing}
    for name in (*books.in_flight, *books.settled):
        folder = directory / RUNS / name
        standing = _standing(folder)
        if name in books.in_flight and standing is not _Standing.ABSENT:
            standing = _Standing.OPEN
        found[standing].append(folder)
    for folder in found[_Standing.OVER]:
        doomed += _bulky(folder, keep, folders)
    # Whose charge is still an estimate is looked up by its batch.
    final = {name for attempt, name in books.settled.items() if attempt not in books.unconfirmed}
    doomed += _batches(directory / FOLDER, final, folders)
    return Plan(
        tuple(doomed),
        tuple(folders),
        len(found[_Standing.OVER]),
        tuple(found[_Standing.OPEN]),
        tuple(found[_Standing.UNREADABLE]),
    )


@dataclass(slots=True)
class _Books:
    """What the journal says of attempts: names of those settled and in flight by id, and unconfirmed ids."""

    settled: dict[str, str] = field(default_factory=dict)
    in_flight: dict[str, str] = field(default_factory=dict)
    unconfirmed: set[str] = field(default_factory=set)


def _books(entries: Iterable[Entry]) -> _Books:
    books = _Books()
    for entry in entries:
        match entry.event:
            case events.AttemptIntended(attempt, name):
                books.in_flight[attempt.id] = name
                books.settled.pop(attempt.id, None)
            case events.AttemptFinished(attempt):
                books.settled[attempt.id] = books.in_flight.pop(attempt.id, "")
                if entry.event.estimated:
                    books.unconfirmed.add(attempt.id)
            case events.AttemptCharged(attempt):
                books.unconfirmed.discard(attempt.id)
            case events.AttemptWithdrawn(attempt) if entry.event.barred:
                books.settled[attempt.id] = books.in_flight.pop(attempt.id, "")
    return books


def _bulky(folder: Path, keep: Sequence[str], folders: list[Path]) -> Iterator[tuple[Path, int]]:
    """Yield the files of an attempt that nothing needs, and note its folders, deepest first."""
    inputs = _inputs(folder)
    for path, size in _below(folder, folders):
        name_within = path.relative_to(folder).as_posix()
        if name_within not in inputs and not _is_kept(name_within, (*KEPT, *keep)):
            yield path, size


def apply(chosen: Plan) -> list[str]:
    """Delete what a plan says; return what could not be deleted, with the reason."""
    complaints: list[str] = []
    for path, _ in chosen.doomed:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            complaints.append(f"{path}: {error.strerror}")
    for folder in chosen.folders:
        try:
            folder.rmdir()
        except OSError:
            continue  # something in it is kept
    return complaints


class _Standing(Enum):
    """How an attempt's directory stands."""

    ABSENT = auto()
    OPEN = auto()
    OVER = auto()
    UNREADABLE = auto()


def _standing(folder: Path) -> _Standing:
    """Return how an attempt's directory stands; over is what has no record, or one that says it finished."""
    try:
        next(folder.iterdir(), None)
        record = read_record(folder)
    except (FileNotFoundError, NotADirectoryError):
        return _Standing.ABSENT
    except OSError:
        return _Standing.UNREADABLE
    except ReadError as error:  # where it is damaged, what it was is not known
        return _Standing.UNREADABLE if isinstance(error.__cause__, OSError) else _Standing.OPEN
    return _Standing.OVER if record is None or record.finished is not None else _Standing.OPEN


def _inputs(folder: Path) -> set[str]:
    """Return the names of the input files, which belong to what the run was made from."""
    try:
        return set(json.loads((folder / REQUEST).read_bytes())["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _below(folder: Path, folders: list[Path]) -> Iterator[tuple[Path, int]]:
    """Yield the files below a folder, never following a link, and note the folders, deepest first."""
    for path, inner, found in os.walk(folder, topdown=False):
        here = Path(path)
        folders += [here / name for name in inner if not (here / name).is_symlink()]
        links = [name for name in inner if (here / name).is_symlink()]
        for name in [*found, *links]:
            try:
                yield here / name, (here / name).lstat().st_size
            except OSError:
                continue  # gone since


def _is_kept(name: str, patterns: Sequence[str]) -> bool:
    base = name.rpartition("/")[2]
    return any(fnmatch.fnmatchcase(text, pattern) for text in (name, base) for pattern in patterns)


def _batches(folder: Path, settled: set[str], folders: list[Path]) -> Iterator[tuple[Path, int]]:
    """Yield the files of batches of Slurm all of whose attempts are settled, but for their scripts."""
    for manifest in sorted(folder.glob("*.json")):
        try:
            names = {name for pack in read(manifest).packs for name in pack}
        except ExecutorError:
            continue  # whose it is cannot be told
        if names and names <= settled:
            for path, size in _below(manifest.with_suffix(""), folders):
                if path.name != _BATCH_SCRIPT:
                    yield path, size
            yield manifest, manifest.lstat().st_size
