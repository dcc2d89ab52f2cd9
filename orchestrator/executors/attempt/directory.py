"""The directory of an attempt, before it begins: its files, and whether anything can be written there."""

from __future__ import annotations

import errno
import json
import math
from pathlib import Path, PurePosixPath

from orchestrator.errors import ExecutorError, SubmitRejected
from orchestrator.executors.attempt.worker import CLAIM, RECORD, REQUEST, SCRIPT
from orchestrator.storage import sync_directory, write_atomically
from orchestrator.types import AttemptRequest, Resources

OURS = {CLAIM, RECORD, REQUEST, SCRIPT, "stdout", "stderr", "environment.recorded"}
"""Files of the orchestrator in the directory of an attempt: an input file may not have their names."""

_UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}
_PROBE = ".probe"
_ROOM = 16384  # bytes, more than what is written before an attempt begins


class DirectoryUnwritable(ExecutorError):
    """A campaign directory in which nothing can be written now. No attempt is at fault, so none fails.

    The campaign stops at once and can be resumed. Attempts that never began are withdrawn then.
    """

    exit_code = 3


def raise_if_unwritable(error: OSError, directory: Path) -> None:
    """Raise `DirectoryUnwritable` if an error says that the file system is full, read-only or broken."""
    if error.errno in _UNWRITABLE:
        raise DirectoryUnwritable(
            f"cannot write into {directory}: {error.strerror}. The campaign has stopped, nothing is lost: "
            "free some space (df -h), files (df -i) or quota, or repair the file system, then resume it"
        ) from error


def require_room(directory: Path) -> None:
    """Raise `DirectoryUnwritable` where an attempt's directory has no room for a file."""
    path = directory / _PROBE
    try:
        try:
            path.write_bytes(bytes(_ROOM))
        finally:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise_if_unwritable(error, directory)


def prepare(request: AttemptRequest, durable: bool = True) -> None:
    """Write the directory of an attempt: ``run.sh``, ``request.json`` and the input files.

    May be called again: a file that is there with the same content is left alone.

    Parameters
    ----------
    request
        The attempt, with its directory.
    durable
        Whether the files must survive a power failure here, because the attempt runs elsewhere.

    Raises
    ------
    SubmitRejected
        If the directory cannot be written, a file may not have its name, or the attempt has begun with
        other content.
    DirectoryUnwritable
        If nothing can be written there now, whatever the attempt.
    """
    contents = _contents(request)
    directory = request.directory
    try:
        _make_directory(directory)
        changed = {name: data for name, data in contents.items() if not _has(directory / name, data)}
        if changed and (directory / CLAIM).exists():
            raise SubmitRejected(
                f"{request.attempt}: {directory} belongs to an attempt that began with another "
                f"{', '.join(changed)}; a new attempt needs a new directory"
            )
        for name, data in changed.items():
            _make_parents(directory / name)
            mode = 0o700 if name == SCRIPT else 0o600
            write_atomically(directory / name, data, mode=mode, durable=durable)
        if durable and changed:
            sync_directory(directory)
    except OSError as error:
        raise_if_unwritable(error, directory)
        raise SubmitRejected(
            f"{request.attempt}: cannot write into {directory}: {error.strerror}; free or make writable "
            f"{error.filename or directory}"
        ) from error


def _contents(request: AttemptRequest) -> dict[str, bytes]:
    if not (math.isfinite(request.limit) and request.limit > 0):
        raise SubmitRejected(f"{request.attempt}: a time limit of {request.limit} s; give a positive number")
    for name in request.files:
        path = PurePosixPath(name)
        if name in OURS or path.is_absolute() or ".." in path.parts or not path.name:
            raise SubmitRejected(
                f"{request.attempt}: an input file may not be called {name!r}; rename it in the adapter"
            )
    resources = request.resources
    description = {
        "run": request.attempt.run.id,
        "attempt": request.attempt.number,
        "name": request.name,
        "limit": request.limit,
        "resources": _described(resources),
        "files": sorted(request.files),
        "executable": request.executable,
    }
    texts = {**request.files, SCRIPT: request.script, REQUEST: json.dumps(description, indent=1) + "\n"}
    return {name: text.encode("utf-8", "surrogateescape") for name, text in texts.items()}


def _described(resources: Resources) -> dict[str, int]:
    """Return resources by name, without GPUs where there are none, as earlier versions wrote it."""
    found = {field: getattr(resources, field) for field in resources.__slots__}
    return {field: count for field, count in found.items() if count}


def _make_directory(directory: Path) -> None:
    """Create what is missing, writable by the owner only, whatever the umask; refuse what others can."""
    _make_parents(directory)
    directory.mkdir(0o700, exist_ok=True)
    if directory.stat().st_mode & 0o002:
        raise SubmitRejected(
            f"everybody can write into {directory} and replace what is executed there: chmod o-w it"
        )


def _make_parents(path: Path) -> None:
    for parent in reversed(path.parents):
        if not parent.exists():
            parent.mkdir(0o755, exist_ok=True)


def _has(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except FileNotFoundError:
        return False
