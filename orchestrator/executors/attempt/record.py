"""What the files of an attempt say about it: its record, the owners of its claim, signs of life."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from orchestrator.errors import ReadError
from orchestrator.executors.attempt import processes
from orchestrator.executors.attempt.worker import CLAIM, OWNER, RECORD, STDOUT
from orchestrator.types import AttemptRecord

T = TypeVar("T")

_LOAD = ("cpus", "busy", "stolen")
SUSPENDED = "it, or its machine, was suspended while it ran: its time would not be that of the program"
"""Why an attempt was ended, in words."""
_MOST_NODES = 100_000  # a range of more is no list of nodes


def read_record(directory: Path) -> AttemptRecord | None:
    """Return the content of ``attempt.json``, or None where there is none (yet).

    Raises
    ------
    ReadError
        If the file is not what the attempt writes, naming the file and what is wrong.
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


def readable_record(directory: Path) -> tuple[AttemptRecord | None, str]:
    """Return the record of an attempt if it can be read, and else why it cannot (empty: there is none)."""
    try:
        return read_record(directory), ""
    except ReadError as error:
        return None, str(error)


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
        suspended=_field({"suspended": False, **document}, "suspended", bool),
        allocated=_allocated(document, started),
        printed=_field(document, "printed", int) if "printed" in document else None,
        full=_field({"full": "", **document}, "full", str),
        moved=_field({"moved": False, **document}, "moved", bool),
        load={} if finished is None else _shares(document.get("load"), finished - started),
        executable=_file(document.get("executable")),
    )


def _file(described: object) -> dict[str, str | int]:
    """Return what an attempt recorded of the file that it started, as far as it is known."""
    known = described if isinstance(described, dict) else {}
    return {key: value for key, value in known.items() if isinstance(value, str | int)}


def _shares(load: object, seconds: float) -> dict[str, float]:
    """Return what the CPUs of an attempt did beside it, as shares of their time, as far as it is known."""
    if not isinstance(load, dict) or not all(isinstance(load.get(key), int | float) for key in _LOAD):
        return {}
    time = load["cpus"] * seconds
    if not time > 0:
        return {}
    found = {"stolen": load["stolen"] / time}
    if isinstance(own := load.get("own"), int | float):
        found["others"] = (load["busy"] - own) / time
    return {name: round(min(max(share, 0.0), 1.0), 4) for name, share in found.items()}


def _allocated(document: Mapping[str, Any], started: float) -> float | None:
    """Return when the job began, as Slurm (22.05 and later) says in the environment of the job."""
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
        content = path.read_bytes()
        if not content.strip():
            raise ReadError(f"{path}: is empty; perhaps the disk was full when it was written")
        document = json.loads(content)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ReadError(f"{path}: not JSON ({error}); the file was damaged or edited") from error
    if not isinstance(document, dict):
        raise ReadError(f"{path}: not a JSON object; the file was damaged or edited")
    return document


@dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """The processes that own an attempt, identified over reboots, recycled pids and containers."""

    # host, boot, namespace: name of the machine, identifier of its boot, and PID namespace (container).
    host: str
    boot: str
    namespace: str
    processes: tuple[tuple[int, int], ...]  # pid and start time (clock ticks since boot) of each
    # `OWNER` for the attempt's own process, else what a controller wrote when it revoked the attempt.
    who: str = OWNER
    # The attempt's. In a copy of a campaign directory the processes are those of the original.
    directory: Path | None = None

    def alive(self) -> tuple[int, ...] | None:
        """Return the pids of those that still run; None where this machine cannot know."""
        here = processes.place()
        if self.boot != here["boot"]:  # a machine may be renamed while it runs
            return () if self.host == here["host"] else None  # it was restarted since, or is another one
        if self.namespace != here["namespace"]:
            return None
        running = (pid for pid, ticks in self.processes if processes.is_running(pid, ticks))
        return tuple(
            pid for pid in running if self.directory is None or processes.belongs(pid, self.directory)
        )


def owners(directory: Path) -> Owners | None:
    """Return who executes, or revoked, an attempt: from ``attempt.json``, else from ``claim``.

    Returns
    -------
    Owners or None
        None where the attempt is not claimed.

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


def owner(directory: Path) -> str | None:
    """Return who claimed an attempt: `OWNER` where the claim does not say; None while it is unclaimed."""
    try:
        found = owners(directory)
    except ReadError:
        return OWNER
    return found.who if found is not None else None


def is_deleted(directory: Path) -> bool:
    """Return whether the directory of an attempt is certainly not there."""
    try:
        directory.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def last_sign_of_life(directory: Path) -> float:
    """Return the latest modification (Unix seconds) of the files of an attempt, its heartbeat among them."""
    return max((entry.stat(follow_symlinks=False).st_mtime for entry in os.scandir(directory)), default=0.0)


def heartbeat(directory: Path) -> int | None:
    """Return when the claim was last modified (ns), which a living attempt does every few seconds."""
    try:
        return (directory / CLAIM).stat().st_mtime_ns
    except OSError:
        return None


def record_version(directory: Path) -> tuple[int, int] | None:
    """Return what changes whenever an attempt writes its record; None before it does."""
    try:
        status = (directory / RECORD).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def output_seen(directory: Path, record: AttemptRecord) -> bool:
    """Return whether all is visible here that a finished attempt printed.

    A network file system may show the record of an attempt up to a minute before its output.
    """
    if not record.printed:
        return True
    try:
        return (directory / STDOUT).stat().st_size >= record.printed
    except OSError:
        return False


def output_hidden(record: AttemptRecord) -> str:
    """Return what to say of an attempt whose output is not all there (see `output_seen`)."""
    return f"the file system does not show the {record.printed} bytes that it printed"


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
