"""Job arrays: attempts whose jobs have equal options, under a name derived from the attempts.

An element of an array is a job that executes one attempt, or the attempts of a pack one after another.

The manifest of an array is on disk before ``sbatch`` is called. Whatever happens to that call or to the
controller, a job that is found by its name can be traced back to its attempts.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator.errors import ExecutorError
from orchestrator.executors.slurm.options import minutes
from orchestrator.resources import shared_limits
from orchestrator.storage import sync_directory, write_atomically
from orchestrator.types import AttemptRequest

FOLDER = "batches"
_READABLE = 40  # characters of the campaign directory's name in a job's name


@dataclass(frozen=True, slots=True, kw_only=True)
class JobArray:
    """A job array as its manifest describes it."""

    name: str  # of the array, hence of its jobs
    # The names of the attempts of each job, by array index, in the order of execution.
    packs: tuple[tuple[str, ...], ...]
    # first, last: instants (Unix seconds) of the first and the latest submission under this name. Attempts
    # whose submission failed may be submitted again.
    first: float
    last: float
    minutes: int  # time limit of each job; 0 in manifests of an earlier version
    # Of attempts that share a job, by name, relative to the campaign directory. What one of them is charged
    # depends on the files of the others.
    directories: Mapping[str, str] = field(default_factory=dict)
    # Where the campaign directory was at the submission: its jobs look for their files there. Empty in
    # manifests of an earlier version.
    root: str = ""


Pack = Sequence[AttemptRequest]
"""Attempts of one job, in the order of execution."""

Element = tuple[JobArray, int]
"""A job array and the index of one of its jobs."""


def groups(requests: Sequence[AttemptRequest], most: int) -> Iterator[list[Pack]]:
    """Split requests into arrays of at most ``most`` packs, whose jobs have equal options."""
    packs: dict[str, list[AttemptRequest]] = {}
    for item in requests:
        packs.setdefault(item.pack or item.name, []).append(item)
    alike: dict[tuple[object, ...], list[Pack]] = {}
    for pack in packs.values():
        first = pack[0]
        key = (first.resources, _minutes(pack), first.exclude, first.nodelist, first.memory)
        alike.setdefault(key, []).append(pack)
    for group in alike.values():
        for start in range(0, len(group), most):
            yield group[start : start + most]


def name_of(packs: Sequence[Pack], directory: Path) -> str:
    """Return the name of the array of these packs: the same for the same attempts, in any process.

    In a copy of the campaign directory it is another one: each of two controllers would take the jobs of the
    other for duplicates of its own.
    """
    lines = [os.path.realpath(directory), *("+".join(request.name for request in pack) for pack in packs)]
    digest = hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", directory.name)[:_READABLE].strip("-.")
    return f"{readable or 'campaign'}-{digest[:16]}"


class JobArrays:
    """The manifests in ``batches/`` of a campaign directory, read once."""

    def __init__(self, directory: Path) -> None:
        self.folder = directory / FOLDER
        self._by_name: dict[str, JobArray] = {}
        self._elements: dict[str, list[tuple[str, int]]] = {}
        self._astray: set[str] = set()  # names of arrays that look for their files elsewhere
        for path in sorted(self.folder.glob("*.json")):
            array = read(path)
            self._remember(array)
            if array.root and not _leads_to(array.root, directory):
                self._astray.add(array.name)

    def begin(self, packs: Sequence[Pack], now: float) -> JobArray:
        """Make the manifest of an array durable, before its submission; raise ``OSError`` if that fails."""
        name = name_of(packs, self.folder.parent)
        names = tuple(tuple(request.name for request in pack) for pack in packs)
        shared = [request for pack in packs if len(pack) > 1 for request in pack]
        directories = {item.name: os.path.relpath(item.directory, self.folder.parent) for item in shared}
        array = JobArray(
            name=name,
            packs=names,
            first=now,
            last=now,
            minutes=_minutes(packs[0]),
            directories=directories,
            root=str(self.folder.parent),
        )
        known = self._by_name.get(name)
        if known is not None:
            array = replace(array, first=known.first)
        self.folder.mkdir(parents=True, exist_ok=True)
        _write(self.folder / f"{name}.json", array)
        if known is None:
            self._remember(array)
        self._by_name[name] = array
        return array

    def drop(self, array: JobArray) -> None:
        """Forget an array that Slurm certainly did not accept."""
        (self.folder / f"{array.name}.json").unlink(missing_ok=True)
        del self._by_name[array.name]
        for index, pack in enumerate(array.packs):
            for attempt in pack:
                self._elements[attempt].remove((array.name, index))

    def elements(self, attempt: str) -> list[Element]:
        """Return the arrays that an attempt was submitted in, each with the index of its job there."""
        return [(self._by_name[name], index) for name, index in self._elements.get(attempt, [])]

    def astray(self, attempt: str) -> bool:
        """Return whether the job of an attempt looks for its files where the directory was before."""
        return all(array.name in self._astray for array, _ in self.elements(attempt))

    def companions(self, attempt: str) -> list[tuple[str, Path]]:
        """Return the attempts of a job that several share, with their directories; empty for a job of one."""
        for array, index in self.elements(attempt):
            if len(array.packs[index]) > 1:
                parent = self.folder.parent
                return [(name, parent / array.directories[name]) for name in array.packs[index]]
        return []

    def _remember(self, array: JobArray) -> None:
        self._by_name[array.name] = array
        for index, attempt in ((i, name) for i, pack in enumerate(array.packs) for name in pack):
            self._elements.setdefault(attempt, []).append((array.name, index))


def _write(path: Path, array: JobArray) -> None:
    document = {
        "attempts": [pack[0] if len(pack) == 1 else pack for pack in array.packs],
        "first": array.first,
        "last": array.last,
        "minutes": array.minutes,
        **({"directories": array.directories} if array.directories else {}),
        "root": array.root,
    }
    write_atomically(path, json.dumps(document, indent=1), durable=True)
    sync_directory(path.parent)


def read(path: Path) -> JobArray:
    """Return the array of a manifest; raise ``ExecutorError`` where the manifest cannot be read."""
    try:
        document = json.loads(path.read_bytes())
        packs = tuple(
            (item,) if isinstance(item, str) else tuple(map(str, item)) for item in document["attempts"]
        )
        return JobArray(
            name=path.stem,
            packs=packs,
            first=float(document["first"]),
            last=float(document["last"]),
            minutes=int(document.get("minutes", 0)),
            directories={str(name): str(path) for name, path in document.get("directories", {}).items()},
            root=str(document.get("root", "")),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ExecutorError(
            f"{path}: not a readable list of submitted attempts ({error!r}); restore it from a backup, or "
            "remove it once no job of this name is queued or running"
        ) from error


def _leads_to(path: str, directory: Path) -> bool:
    """Return whether a path, perhaps a link by now, leads to a directory."""
    try:
        # Not samefile: the same file system may be mounted twice.
        return os.stat(path).st_ino == directory.stat().st_ino  # noqa: PTH116
    except OSError:
        return False


def _minutes(pack: Pack) -> int:
    return minutes(*shared_limits((request.limit, request.likely) for request in pack))
