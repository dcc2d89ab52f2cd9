"""Processes that outlive the controller which starts them: starting them, waiting, ending what they left."""

from __future__ import annotations

import fcntl
import math
import os
import select
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from signal import SIGKILL

from orchestrator.executors import inherited
from orchestrator.executors.attempt import processes, worker

_WITHOUT_PIDFD = 0.01  # seconds between looks on kernels before 5.3
_LONGEST_SLEEP = 3600.0  # seconds; poll(2) counts milliseconds in an int


def start(directory: Path, cpus: Collection[int]) -> int | None:
    """Start the process of an attempt in a session of its own: no signal to the terminal reaches it.

    The process binds itself, and so all that it starts, to ``cpus``, if there are any.

    Its standard input is a locked file. The lock exists from before the process to its end, so another
    controller never calls an attempt absent whose process is about to claim it.

    Returns
    -------
    int or None
        The pid; None if another controller's process is about to execute the attempt.

    Raises
    ------
    OSError
        If no process can be had.
    """
    path = os.path.realpath(directory)
    command = [*worker.command(path), *map(str, sorted(cpus or inherited.cpus()))]
    complaints = str(directory / "stderr")
    request = os.open(directory / worker.REQUEST, os.O_RDONLY)
    try:
        if not _lock(request):
            return None
        return os.posix_spawn(
            command[0],
            command,
            {**inherited.environment(), processes.MARK: path},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, request, 0),
                (os.POSIX_SPAWN_OPEN, 1, complaints, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            setsigmask=[],
        )
    finally:
        os.close(request)


def is_about_to_begin(directory: Path) -> bool:
    """Return whether a process was started for an attempt that is not claimed yet (see `start`)."""
    try:
        request = os.open(directory / worker.REQUEST, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return not _lock(request)
    finally:
        os.close(request)


def _lock(file: int) -> bool:
    """Lock a file until its last descriptor is closed; return false if another process holds the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: there the claim alone decides
        return True
    return True


def pidfd(pid: int) -> int | None:
    """Return a descriptor that becomes readable when a process ends; None where the system gives none.

    Raises
    ------
    ProcessLookupError
        If the process is gone.
    """
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except OSError:  # an old kernel, or no descriptor left: `sleep_until_one_ends` works without it
        return None


def sleep_until_one_ends(pidfds: Iterable[int | None], seconds: float) -> None:
    """Return when one of the processes ends, at the latest after some seconds.

    Where a process has no descriptor, it returns early, so that the caller can look at the process.
    """
    poll = select.poll()
    for descriptor in pidfds:
        if descriptor is None:
            seconds = min(seconds, _WITHOUT_PIDFD)
        else:
            poll.register(descriptor, select.POLLIN)
    poll.poll(math.ceil(min(seconds, _LONGEST_SLEEP) * 1000))


def owners(directory: Path) -> list[int]:
    """Return the processes that own an attempt, where its files do not name them any more."""
    return [pid for pid in processes.marked(directory) if _is_owner(pid)]


def _is_owner(pid: int) -> bool:
    try:
        return worker.MODULE in processes.read_text(f"/proc/{pid}/cmdline")
    except OSError:  # it has just ended
        return False


def end_survivors(directory: Path) -> int | None:
    """Kill the processes that an attempt left behind; return how many, None if they do not die."""
    ended: set[int] = set()
    deadline = time.monotonic() + processes.KILL_WAIT
    while pids := processes.marked(directory):
        if time.monotonic() > deadline:
            return None
        ended.update(pids)
        for pid in pids:
            processes.kill(pid, SIGKILL)
        time.sleep(0.01)
    return len(ended)
