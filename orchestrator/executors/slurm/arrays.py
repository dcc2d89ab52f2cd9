"""Batches: attempts of equal resources, submitted as one job array under a name derived from them.

An element of the array executes one attempt, or the attempts of a pack one after another.

The manifest of a batch is on disk before ``sbatch`` is called. Whatever happens to the call or to the
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
from orchestrator.types import AttemptRequest, Resources

FOLDER = "batches"
_READABLE = 40  # characters of the campaign directory's name in a job's name


@dataclass(frozen=True, slots=True)
class Batch:
    """A job array; ``packs`` are the names of its attempts by array index, in the order of execution.

    ``first`` and ``last`` are the instants (Unix seconds) of the first and the latest submission under this
    name: attempts that never got through may be submitted again. ``minutes`` is what each job may take (0: an
    earlier version did not note it), and
    ``directories`` are those of attempts that share one, from the campaign's: their charges depend on each
    other's files.
    """

    name: str
    packs: tuple[tuple[str, ...], ...]
    first: float
    last: float
    minutes: int
    directories: Mapping[str, str] = field(default_factory=dict)


Pack = Sequence[AttemptRequest]


def groups(requests: Sequence[AttemptRequest], most: int) -> Iterator[list[Pack]]:
    """Split requests into arrays of packs that are equal in what Slurm is told, at most ``most`` of them."""
    packs: dict[str, list[AttemptRequest]] = {}
    for item in requests:
        packs.setdefault(item.pack or item.name, []).append(item)
    alike: dict[tuple[Resources, int, tuple[str, ...], float], list[Pack]] = {}
    for pack in packs.values():
        first = pack[0]
        key = (first.resources, _minutes(pack), first.exclude, first.memory)
        alike.setdefault(key, []).append(pack)
    for group in alike.values():
        for start in range(0, len(group), most):
            yield group[start : start + most]


def name_of(packs: Sequence[Pack], prefix: str) -> str:
    """Return the name of the batch of these packs: the same for the same attempts, in any process."""
    lines = ("+".join(request.name for request in pack) for pack in packs)
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", prefix)[:_READABLE].strip("-.")
    return f"{readable or 'campaign'}-{digest[:16]}"


class Batches:
    """The manifests in ``batches/`` of a campaign directory, read once."""

    def __init__(self, directory: Path) -> None:
        self.folder = directory / FOLDER
        self._by_name: dict[str, Batch] = {}
        self._places: dict[str, list[tuple[str, int]]] = {}
        for path in sorted(self.folder.glob("*.json")):
            self._remember(read(path))

    def begin(self, packs: Sequence[Pack], now: float) -> Batch:
        """Make the manifest of a batch durable, before its submission; raise ``OSError`` if that fails."""
        name = name_of(packs, self.folder.parent.name)
        names = tuple(tuple(request.name for request in pack) for pack in packs)
        shared = [request for pack in packs if len(pack) > 1 for request in pack]
        directories = {item.name: os.path.relpath(item.directory, self.folder.parent) for item in shared}
        batch = Batch(name, names, now, now, _minutes(packs[0]), directories)
        known = self._by_name.get(name)
        if known is not None:
            batch = replace(batch, first=known.first)
        self.folder.mkdir(parents=True, exist_ok=True)
        _write(self.folder / f"{name}.json", batch)
        if known is None:
            self._remember(batch)
        self._by_name[name] = batch
        return batch

    def drop(self, batch: Batch) -> None:
        """Forget a batch that Slurm certainly did not accept."""
        (self.folder / f"{batch.name}.json").unlink(missing_ok=True)
        del self._by_name[batch.name]
        for index, pack in enumerate(batch.packs):
            for attempt in pack:
                self._places[attempt].remove((batch.name, index))

    def places(self, attempt: str) -> list[tuple[Batch, int]]:
        """Return the batches that an attempt was submitted in, each with its index there."""
        return [(self._by_name[name], index) for name, index in self._places.get(attempt, [])]

    def companions(self, attempt: str) -> list[tuple[str, Path]]:
        """Return the attempts that share a job with one, itself among them, with directories; or none."""
        for batch, index in self.places(attempt):
            if len(batch.packs[index]) > 1:
                parent = self.folder.parent
                return [(name, parent / batch.directories[name]) for name in batch.packs[index]]
        return []

    def _remember(self, batch: Batch) -> None:
        self._by_name[batch.name] = batch
        for index, attempt in ((i, name) for i, pack in enumerate(batch.packs) for name in pack):
            self._places.setdefault(attempt, []).append((batch.name, index))


def _write(path: Path, batch: Batch) -> None:
    document = {
        "attempts": [pack[0] if len(pack) == 1 else pack for pack in batch.packs],
        "first": batch.first,
        "last": batch.last,
        "minutes": batch.minutes,
        **({"directories": batch.directories} if batch.directories else {}),
    }
    temporary = path.with_suffix(".tmp")
    with temporary.open("w") as stream:
        json.dump(document, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read(path: Path) -> Batch:
    """Return the batch of a manifest; raise ``ExecutorError`` where it cannot be told whose it is."""
    try:
        document = json.loads(path.read_bytes())
        packs = tuple(
            (item,) if isinstance(item, str) else tuple(map(str, item)) for item in document["attempts"]
        )
        return Batch(
            path.stem,
            packs,
            float(document["first"]),
            float(document["last"]),
            int(document.get("minutes", 0)),
            {str(name): str(path) for name, path in document.get("directories", {}).items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ExecutorError(
            f"{path}: not a readable list of submitted attempts ({error!r}); restore it from a backup, or "
            "remove it once no job of this name is queued or running"
        ) from error


def _minutes(pack: Pack) -> int:
    return minutes(*(request.limit for request in pack))
