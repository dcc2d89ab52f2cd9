"""Trouble of the campaign directory itself: it stops the campaign instead of failing its attempts."""

from __future__ import annotations

import errno
import itertools
import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from orchestrator.errors import ExecutorError, ReadError, SubmitRejected
from orchestrator.executors.attempt import processes
from orchestrator.executors.attempt.worker import CLAIM, OWNER, RECORD, REQUEST, SCRIPT
from orchestrator.types import AttemptRecord, AttemptRequest

_TROUBLE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}
_PROBE = ".probe"
_ROOM = 16384  # bytes, more than what is written before an attempt begins


class DirectoryTrouble(ExecutorError):
    """A campaign directory in which nothing can be written now: no attempt's fault, so that none fails.

    The campaign stops at once and can be resumed; what never began is withdrawn then.
    """

    exit_code = 3


def stop_for_trouble(error: OSError, directory: Path) -> None:
    """Raise `DirectoryTrouble` if an error says that the file system is full, read-only or broken."""
    if error.errno in _TROUBLE:
        raise DirectoryTrouble(
            f"cannot write into {directory}: {error.strerror}. The campaign has stopped, nothing is lost: "
            "free some space (df -h), files (df -i) or quota, or mend the file system, then resume it"
        ) from error


def require_room(directory: Path) -> None:
    """Raise `DirectoryTrouble` where an attempt's directory has no room for a file."""
    path = directory / _PROBE
    try:
        try:
            path.write_bytes(bytes(_ROOM))
        finally:
            path.unlink(missing_ok=True)
    except OSError as error:
        stop_for_trouble(error, directory)


#
# # FOLDED orchestrator.executors.attempt.directory: The files of an attempt, for the controller: preparing them, reading what became of the attempt.


T = TypeVar("T")

_MOST_NODES = 100_000  # a range of more is no list of nodes
OURS = {CLAIM, RECORD, REQUEST, SCRIPT, "stdout", "stderr", "environment.recorded"}


def prepare(request: AttemptRequest, durable: bool = True) -> None:
    """Write the directory of an attempt: ``run.sh``, ``request.json`` and the input files.

    May be called again: what is there already with the same content is left alone.

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
    DirectoryTrouble
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
            _replace(directory / name, data, 0o700 if name == SCRIPT else 0o600, durable)
        if durable and changed:
            _sync(directory)
    except OSError as error:
        stop_for_trouble(error, directory)
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
        "resources": {field: getattr(resources, field) for field in resources.__slots__},
        "files": sorted(request.files),
        "executable": request.executable,
    }
    texts = {**request.files, SCRIPT: request.script, REQUEST: json.dumps(description, indent=1) + "\n"}
    return {name: text.encode("utf-8", "surrogateescape") for name, text in texts.items()}


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


def _replace(path: Path, data: bytes, mode: int, durable: bool) -> None:
    """Write by renaming: a shell that reads the old script, or a symbolic link, is not written through."""
    _make_parents(path)
    temporary = path.with_name(path.name + ".tmp")
    temporary.unlink(missing_ok=True)
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(file, "wb") as stream:
        stream.write(data)
        stream.flush()
        if durable:
            os.fsync(file)
    temporary.replace(path)


def _sync(directory: Path) -> None:
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


# --- what became of it --------------------------------------------------------------------------------


def read_record(directory: Path) -> AttemptRecord | None:
    """Return the content of ``attempt.json``, or None where there is none (yet).

    Raises
    ------
    ReadError
        If the file is not what ``attempt.py`` writes, naming it and what is wrong.
    """
    path = directory / RECORD
    document = _load(path)
    if document is None:
        return None
    try:
        return _record(document)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        raise ReadError(f"{path}: {what}; the file was damaged or edited") from error


def _record(document: Mapping[str, Any]) -> AttemptRecord:
    host = _field(document, "host", str)
    started = _instant(document, "started")
    finished = _instant(document, "finished") if document.get("finished") is not None else None
    if finished is not None and finished < started:
        raise ValueError(f"finished ({document['finished']}) before it started ({document['started']})")
    return AttemptRecord(
        run=_field(document, "run", str),
        attempt=_field(document, "attempt", int),
        host=host,
        pid=_field(document, "pid", int),
        started=started,
        finished=finished,
        exit_code=None if finished is None else _field(document, "exit_code", int),
        timed_out=_field({"timed_out": False, **document}, "timed_out", bool),
        nodes=expand_nodes(_field({"nodes": host, **document}, "nodes", str)),
        cancelled=_field({"cancelled": False, **document}, "cancelled", bool),
        allocated=_allocated(document, started),
    )


def _allocated(document: Mapping[str, Any], started: float) -> float | None:
    """Return when the job began, from what Slurm (22.05 and later) says in its environment."""
    environment = document.get("environment")
    text = environment.get("SLURM_JOB_START_TIME") if isinstance(environment, dict) else None
    if not (isinstance(text, str) and re.fullmatch(r"\d{1,12}", text, re.ASCII)):
        return None
    return float(text) if float(text) <= started else None


def _field(document: Mapping[str, Any], name: str, kind: type[T]) -> T:
    value = document[name]
    if type(value) is not kind:  # not isinstance: true is no exit code
        raise TypeError(f"{name} is {value!r}, not of type {kind.__name__}")
    return value


def _instant(document: Mapping[str, Any], name: str) -> float:
    text = _field(document, name, str)
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{name} is {text!r}, which is no instant in ISO 8601") from None
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()


def _load(path: Path) -> dict[str, Any] | None:
    """Return a JSON object, or None where the file is missing."""
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ReadError(f"{path}: not JSON ({error}); the file was damaged or edited") from error
    if not isinstance(document, dict):
        raise ReadError(f"{path}: not a JSON object; the file was damaged or edited")
    return document


def expand_nodes(text: str) -> tuple[str, ...]:
    """Expand Slurm's ``node[01-03,7],login``; text without such ranges is one name per comma."""
    return tuple(name for part in re.findall(r"(?:[^,\[]|\[[^\]]*\]?)+", text) for name in _expand(part))


def _expand(part: str) -> list[str]:
    pieces = re.split(r"\[([\d,-]+)\]", part)
    choices = [_numbers(piece) if i % 2 else [piece] for i, piece in enumerate(pieces)]
    return ["".join(combination) for combination in itertools.product(*choices)]


def _numbers(ranges: str) -> list[str]:
    numbers: list[str] = []
    for item in ranges.split(","):
        first, _, last = item.partition("-")
        if first.isdigit() and last.isdigit() and int(last) - int(first) < _MOST_NODES:
            numbers += [f"{i:0{len(first)}d}" for i in range(int(first), int(last) + 1)]
        else:
            numbers.append(item)
    return numbers


@dataclass(frozen=True, slots=True)
class Owners:
    """The processes that own an attempt, identified over reboots, recycled pids and containers.

    ``processes`` holds pid and start time (clock ticks since boot); ``who`` is `OWNER`
    for ``attempt.py``, else what a controller said when it barred the attempt. In a copy of a campaign
    directory these are the processes of the original, which ``directory`` tells apart.
    """

    host: str
    boot: str
    namespace: str
    processes: tuple[tuple[int, int], ...]
    who: str = OWNER
    directory: Path | None = None

    def alive(self) -> tuple[int, ...] | None:
        """Return the pids of those that still run; None where that cannot be told from here."""
        here = processes.place()
        if self.host != here["host"]:
            return None
        if self.boot != here["boot"]:
            return ()  # the machine was restarted since
        if self.namespace != here["namespace"]:
            return None
        running = (pid for pid, ticks in self.processes if processes.is_running(pid, ticks))
        return tuple(
            pid for pid in running if self.directory is None or processes.belongs(pid, self.directory)
        )


def owners(directory: Path) -> Owners | None:
    """Return who executes (or barred) an attempt: from ``attempt.json``, else from ``claim``.

    Returns
    -------
    Owners or None
        None where nobody claimed the attempt.

    Raises
    ------
    ReadError
        If the file does not say (damaged, or claimed on a full disk).
    """
    path = directory / RECORD
    document = _load(path)
    if document is None:
        path = directory / CLAIM
        document = _load(path)
    if document is None:
        return None
    try:
        return Owners(
            host=_field(document, "host", str),
            boot=_field(document, "boot", str),
            namespace=_field(document, "namespace", str),
            processes=tuple((int(pid), int(ticks)) for pid, ticks in document["processes"]),
            who=_field({"who": OWNER, **document}, "who", str),
            directory=directory,
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ReadError(f"{path}: it does not say who owns the attempt ({error!r})") from error


def is_in_a_batch(campaign: Path, name: str) -> bool:
    """Tell whether an attempt was handed to Slurm, where a job of it may wait (see `slurm_batch`)."""
    wanted = json.dumps(name)
    return any(wanted in path.read_text() for path in (campaign / "batches").glob("*.json"))


def last_sign_of_life(directory: Path) -> float:
    """Return the latest modification (Unix seconds) of the files of an attempt, its heartbeat among them."""
    return max((entry.stat(follow_symlinks=False).st_mtime for entry in os.scandir(directory)), default=0.0)


def readable_record(directory: Path) -> tuple[AttemptRecord | None, str]:
    """Return the record of an attempt, and why it cannot be read."""
    try:
        return read_record(directory), ""
    except ReadError as error:
        return None, str(error)


def owner(directory: Path) -> str | None:
    """Return who claimed an attempt; its own process where the claim does not say."""
    try:
        found = owners(directory)
    except ReadError:
        return OWNER
    return found.who if found is not None else None


def heartbeat(directory: Path) -> int | None:
    """Return what an attempt that lives changes every few seconds; None before it began."""
    try:
        return (directory / CLAIM).stat().st_mtime_ns
    except OSError:
        return None


def sign(directory: Path) -> tuple[int, int] | None:
    """Return what changes when an attempt writes its record; None before it does."""
    try:
        status = (directory / RECORD).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
