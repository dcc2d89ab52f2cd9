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
from dataclasses import dataclass
from pathlib import Path

from orchestrator import events
from orchestrator.assembly import RUNS
from orchestrator.errors import ExecutorError, ReadError
from orchestrator.executors import files, slurm_batch
from orchestrator.executors.attempt import REQUEST
from orchestrator.journal import Entry
from orchestrator.readers.effort import SUFFIX as COUNTS

KEPT = (*sorted(files.OURS), "*.cubex", f"*{COUNTS}")
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
    """

    doomed: tuple[tuple[Path, int], ...]
    folders: tuple[Path, ...]
    attempts: int
    untouched: tuple[Path, ...]

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
    settled: dict[str, str] = {}  # id of attempts -> name
    names: dict[str, str] = {}
    unconfirmed: set[str] = set()
    for entry in entries:
        match entry.event:
            case events.AttemptIntended(attempt, name):
                names[attempt.id] = name
                settled.pop(attempt.id, None)
            case events.AttemptFinished(attempt):
                settled[attempt.id] = names.pop(attempt.id, "")
                if entry.event.estimated:
                    unconfirmed.add(attempt.id)
            case events.AttemptCharged(attempt):
                unconfirmed.discard(attempt.id)
            case events.AttemptWithdrawn(attempt) if entry.event.barred:
                settled[attempt.id] = names.pop(attempt.id, "")
    doomed: list[tuple[Path, int]] = []
    folders: list[Path] = []
    untouched = [directory / RUNS / name for name in names]
    looked_at = 0
    for name in settled:
        folder = directory / RUNS / name
        if not folder.is_dir():
            continue
        if not _is_over(folder):
            untouched.append(folder)
            continue
        looked_at += 1
        inputs = _inputs(folder)
        for path, size in _below(folder, folders):
            name_within = path.relative_to(folder).as_posix()
            if name_within not in inputs and not _is_kept(name_within, (*KEPT, *keep)):
                doomed.append((path, size))
    # Whose charge is still an estimate is looked up by its batch.
    final = {name for attempt, name in settled.items() if attempt not in unconfirmed}
    doomed += _batches(directory / slurm_batch.FOLDER, final, folders)
    return Plan(tuple(doomed), tuple(folders), looked_at, tuple(path for path in untouched if path.exists()))


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


def _is_over(folder: Path) -> bool:
    """Whether an attempt's own record, if it has one, says that it finished."""
    try:
        record = files.read_record(folder)
    except ReadError:  # damaged: what it was is not known
        return False
    return record is None or record.finished is not None


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
            names = {name for pack in slurm_batch.read(manifest).packs for name in pack}
        except ExecutorError:
            continue  # whose it is cannot be told
        if names and names <= settled:
            for path, size in _below(manifest.with_suffix(""), folders):
                if path.name != _BATCH_SCRIPT:
                    yield path, size
            yield manifest, manifest.lstat().st_size
