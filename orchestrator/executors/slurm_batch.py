"""Batches: attempts of equal resources, submitted as one job array under a name derived from them.

The manifest of a batch is on disk before ``sbatch`` is called. Whatever happens to the call or to the
controller, a job that is found by its name can be traced back to its attempts.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.errors import ExecutorError
from orchestrator.types import AttemptRequest, Resources

FOLDER = "batches"
_READABLE = 40  # characters of the campaign directory's name in a job's name


@dataclass(frozen=True, slots=True)
class Batch:
    """A job array; ``attempts`` are the names of its attempts by array index.

    ``first`` and ``last`` are the instants (Unix seconds) of the first and the latest submission under this
    name: attempts that never got through may be submitted again.
    """

    name: str
    attempts: tuple[str, ...]
    first: float
    last: float


def groups(requests: Sequence[AttemptRequest], most: int) -> Iterator[list[AttemptRequest]]:
    """Split requests into those that can share an array: equal in what Slurm is told, at most ``most``."""
    alike: dict[tuple[Resources, float, tuple[str, ...], float], list[AttemptRequest]] = {}
    for item in requests:
        alike.setdefault((item.resources, item.limit, item.exclude, item.memory), []).append(item)
    for group in alike.values():
        for start in range(0, len(group), most):
            yield group[start : start + most]


def name_of(requests: Sequence[AttemptRequest], prefix: str) -> str:
    """Return the name of the batch of these requests: the same for the same attempts, in any process."""
    digest = hashlib.sha256("\n".join(request.name for request in requests).encode()).hexdigest()
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", prefix)[:_READABLE].strip("-.")
    return f"{readable or 'campaign'}-{digest[:16]}"


class Batches:
    """The manifests in ``batches/`` of a campaign directory, read once."""

    def __init__(self, directory: Path) -> None:
        self.folder = directory / FOLDER
        self._by_name: dict[str, Batch] = {}
        self._places: dict[str, list[tuple[str, int]]] = {}
        for path in sorted(self.folder.glob("*.json")):
            self._remember(_read(path))

    def begin(self, requests: Sequence[AttemptRequest], now: float) -> Batch:
        """Make the manifest of a batch durable, before its submission; raise ``OSError`` if that fails."""
        name = name_of(requests, self.folder.parent.name)
        batch = Batch(name, tuple(request.name for request in requests), now, now)
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
        for index, attempt in enumerate(batch.attempts):
            self._places[attempt].remove((batch.name, index))

    def places(self, attempt: str) -> list[tuple[Batch, int]]:
        """Return the batches that an attempt was submitted in, each with its index there."""
        return [(self._by_name[name], index) for name, index in self._places.get(attempt, [])]

    def _remember(self, batch: Batch) -> None:
        self._by_name[batch.name] = batch
        for index, attempt in enumerate(batch.attempts):
            self._places.setdefault(attempt, []).append((batch.name, index))


def _write(path: Path, batch: Batch) -> None:
    document = {"attempts": batch.attempts, "first": batch.first, "last": batch.last}
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


def _read(path: Path) -> Batch:
    try:
        document = json.loads(path.read_bytes())
        attempts = tuple(str(name) for name in document["attempts"])
        return Batch(path.stem, attempts, float(document["first"]), float(document["last"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExecutorError(
            f"{path}: not a readable list of submitted attempts ({error!r}); restore it from a backup, or "
            "remove it once no job of this name is queued or running"
        ) from error
