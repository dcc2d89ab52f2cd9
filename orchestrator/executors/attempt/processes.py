"""Linux processes of one attempt: how to identify them, wait for them, end them, and what ran beside them.

The process on the node that owns an attempt imports this module, so it needs nothing but the standard
library.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from signal import SIGKILL, SIGTERM

MARK = "ORCHESTRATOR_ATTEMPT"  # in the environment of everything an attempt starts: its directory
TERM_GRACE = 3.0  # seconds from SIGTERM to SIGKILL
KILL_WAIT = 4.0  # seconds to wait for processes to die of SIGKILL

# Seconds after a child's end in which a signal to this process counts as its cause. Slurm signals all
# processes of a job within 10 ms, the youngest first, as seen with four busy processes per core.
_AFTERMATH = 0.05
# Seconds after a continuation in which an end from outside follows. Slurm asks each step of a job to go on,
# and then each to end; a busy machine takes a while from the one to the other.
CONTINUED = 1.0
_LONGEST_SLEEP = 86400.0  # seconds; the system call's number of them is finite
_CANCEL = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_CONTINUE = signal.SIGCONT  # ends a suspension; Slurm sends it before SIGTERM, too
_WATCHED = (signal.SIGCHLD, *_CANCEL, _CONTINUE)
_GONE = (FileNotFoundError, ProcessLookupError)  # what reading /proc/PID raises once the process has ended
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36

_STAT = "/proc/stat"
_TICKS = os.sysconf("SC_CLK_TCK")
# Columns of a line of /proc/stat (proc(5)): user, nice, system, idle, iowait, irq, softirq, steal. What a
# virtual machine's guests used is part of user and nice.
_BUSY, _STOLEN = (0, 1, 2, 5, 6), 7

Times = dict[int, tuple[float, float]]
"""Seconds that each CPU was busy, and that a hypervisor took from it, since the boot."""

_libc = ctypes.CDLL(None, use_errno=True)


def block_signals() -> None:
    """Make the signals that `wait_for` watches wait for it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, no child has an exit code
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)


def restore_signals() -> None:
    """Give a child, before it executes a program, the signals as a shell would."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends (child subreaper)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with(parent: int, number: int) -> bool:
    """Ask for a signal when the parent dies; return false if the parent is dead already."""
    _prctl(_PR_SET_PDEATHSIG, number)
    return os.getppid() == parent


def place() -> dict[str, object]:
    """Describe where this process runs, so that another boot or another container is not mistaken."""
    return {
        "host": os.uname().nodename,
        "boot": read_text("/proc/sys/kernel/random/boot_id").strip(),
        "namespace": os.readlink("/proc/self/ns/pid"),
    }


def identity() -> list[int]:
    """Return the pid of this process and when it started, so that a recycled pid is not mistaken."""
    return [os.getpid(), start_time(os.getpid())]


def is_running(pid: int, start_ticks: int) -> bool:
    """Return whether the process that got this pid at that time (clock ticks since boot) still runs."""
    try:
        state, ticks, _ = _stat(pid)
    except _GONE:
        return False
    return ticks == start_ticks and state not in "ZX"


def start_time(pid: int) -> int:
    """Return when a process started, in clock ticks since boot; raise ``OSError`` if it is gone."""
    return _stat(pid)[1]


def _stat(pid: int) -> tuple[str, int, int]:
    """Return state, start time in clock ticks and parent of a process."""
    fields = read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[0], int(fields[19]), int(fields[1])


def descendants() -> list[int]:
    """Return every process below this one."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            children.setdefault(_stat(int(name))[2], []).append(int(name))
        except _GONE:
            continue  # since the listing
    found = children.get(os.getpid(), [])
    for pid in found:
        found += children.get(pid, [])
    return found


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}, {value}): {os.strerror(code)}")


def kill(pid: int, number: int) -> None:
    """Send a signal to a process that may be gone."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass  # gone, or it changed its user: nothing more can be done


def _reap(ended: dict[int, int]) -> bool:
    """Collect exit codes (128 + n for signals) by pid; return whether children are left."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        code = os.waitstatus_to_exitcode(status)
        ended[pid] = code if code >= 0 else 128 - code


def slept() -> float:
    """Return the seconds that this machine has slept since its boot; of two, the difference counts.

    Many programs time themselves by clocks that go on meanwhile: the wall clock, or that since the boot.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


def wait_for(pid: int, deadline: float, ended: dict[int, int], doubtful: bool = False) -> str:
    """Return "ended", "deadline", "cancelled" or "suspended", whichever happens first to a child.

    An exit code of 0 means "ended", unless it is ``doubtful``: a shell whose command was ended from outside
    continues, and may exit with 0. "suspended": this process was stopped for a while, and so was the child.
    """
    while True:
        _reap(ended)
        if pid in ended:
            # Schedulers signal every process of a job: the child may have got it a moment before us.
            if ended[pid] or doubtful:
                return _told(signal.sigtimedwait((*_CANCEL, _CONTINUE), _AFTERMATH)) or "ended"
            return "ended"
        remaining = deadline - time.monotonic()
        if remaining <= 0:  # perhaps only because of a suspension
            return _told(signal.sigtimedwait((_CONTINUE,), 0)) or "deadline"
        if told := _told(signal.sigtimedwait(_WATCHED, min(remaining, _LONGEST_SLEEP))):
            return told


def _told(received: signal.struct_siginfo | None) -> str:
    """Return what a signal to this process says of its child; empty if it says nothing."""
    if received is None or received.si_signo == signal.SIGCHLD:
        return ""
    ends = received.si_signo in _CANCEL or signal.sigtimedwait(_CANCEL, CONTINUED)
    return "cancelled" if ends else "suspended"


def end_all(ended: dict[int, int], grace: float) -> int:
    """End every descendant (orphans too, this is a subreaper); return how many there were."""
    if not _reap(ended):
        return 0
    victims = set(descendants())
    if grace:
        # Only processes that exist now: what a handler of SIGTERM starts for its cleanup has until SIGKILL.
        for pid in victims:
            kill(pid, SIGTERM)
        deadline = time.monotonic() + grace
        while _reap(ended) and (remaining := deadline - time.monotonic()) > 0:
            signal.sigtimedwait((signal.SIGCHLD,), remaining)
    deadline = time.monotonic() + KILL_WAIT
    while _reap(ended) and time.monotonic() < deadline:
        for pid in descendants():
            victims.add(pid)
            kill(pid, SIGKILL)
        signal.sigtimedwait((signal.SIGCHLD,), 0.02)  # then look again: they may have forked meanwhile
    return len(victims)


def read_text(path: str) -> str:
    """Return the content of a file; bytes that are not UTF-8 are replaced."""
    return _read(path).decode("utf-8", "replace")


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def belongs(pid: int, directory: str | os.PathLike[str]) -> bool:
    """Return whether a process is of the attempt in this directory, not of a copy of the directory.

    The standard input of a local attempt is a file in its directory, wherever the directory is moved to.
    Elsewhere the environment names the directory. True where neither says.
    """
    try:
        name = os.readlink(f"/proc/{pid}/fd/0")
        if os.path.basename(name) == "request.json":
            return os.path.samefile(os.path.dirname(name), directory)
    except OSError:
        pass
    try:
        paths = _attempts_of(pid)
        return not paths or os.path.samefile(paths[0], os.fsencode(directory))
    except OSError:  # gone, of another user, or the directory was moved
        return True


def marked(directory: Path) -> list[int]:
    """Return the processes that an attempt started, by the directory in their environment.

    This finds what outlived its owners, whichever process adopted it. Only a program that also clears its
    environment escapes.
    """
    wanted = os.fsencode(os.path.realpath(directory))  # as the owner marked them, wherever it is seen from
    return [pid for pid, found in _marks() if found == wanted]


def of_attempts(but: Collection[bytes]) -> list[int]:
    """Return the processes of this user's attempts in all other directories than some."""
    return [pid for pid, directory in _marks() if directory not in but]


def _marks() -> Iterator[tuple[int, bytes]]:
    """Yield every process with the directories of attempts in its environment."""
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            yield from ((pid, directory) for directory in _attempts_of(pid))
        except (*_GONE, PermissionError):
            continue  # ended since the listing; or of another user


def _attempts_of(pid: int) -> list[bytes]:
    """Return the directories of attempts that the environment of a process names."""
    mark = f"{MARK}=".encode()
    variables = _read(f"/proc/{pid}/environ").split(b"\0")
    return [item.removeprefix(mark) for item in variables if item.startswith(mark)]


# --- what else the machine did ----------------------------------------------------------------------


def cpu_times() -> Times:
    """Return the times of all CPUs of this machine; empty where it does not say."""
    try:
        with open(_STAT, encoding="ascii") as file:
            lines = [line.split() for line in file if line.startswith("cpu")]
    except (OSError, ValueError):
        return {}
    return {int(line[0][3:]): _seconds(list(map(int, line[1:]))) for line in lines if line[0] != "cpu"}


def _seconds(ticks: list[int]) -> tuple[float, float]:
    stolen = ticks[_STOLEN] if len(ticks) > _STOLEN else 0
    return sum(ticks[column] for column in _BUSY) / _TICKS, stolen / _TICKS


def load_between(before: Times, after: Times, cpus: Collection[int]) -> dict[str, float]:
    """Describe what happened between two readings, for ``attempt.json``.

    Parameters
    ----------
    before, after
        Times at the start and at the end.
    cpus
        CPUs that the attempt may use.

    Returns
    -------
    ``cpus``, their number; ``busy`` and ``stolen``, seconds of these CPUs; ``elsewhere``, busy seconds of all
    other CPUs of the machine.
    """
    known = before.keys() & after.keys()
    mine = known & set(cpus)
    spent = {cpu: (after[cpu][0] - before[cpu][0], after[cpu][1] - before[cpu][1]) for cpu in known}
    return {
        "cpus": len(mine),
        "busy": round(sum(spent[cpu][0] for cpu in mine), 3),
        "stolen": round(sum(spent[cpu][1] for cpu in mine), 3),
        "elsewhere": round(sum(spent[cpu][0] for cpu in known - mine), 3),
    }


def used_by_children() -> float:
    """Return the CPU seconds of all processes that ended below this one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
