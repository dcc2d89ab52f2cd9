"""Linux processes of one attempt: who they are, waiting for them, ending all of them.

Imported by ``attempt.py``, so it too avoids everything that is slow to import.
"""

import os
import time
from _ctypes import call_function, dlopen, dlsym  # without `ctypes`, which takes 2 ms more to import

# The module behind `signal`, without the enum classes that take 4 ms to build.
_signal = __import__("_signal")

SIGTERM: int = _signal.SIGTERM
SIGKILL: int = _signal.SIGKILL
MARK = "ORCHESTRATOR_ATTEMPT"  # in the environment of everything an attempt starts: its directory
TERM_GRACE = 3.0  # seconds from SIGTERM to SIGKILL
KILL_WAIT = 4.0  # seconds to wait for processes to die of SIGKILL

# Seconds after a child's end in which a signal to this process counts as its cause. Slurm signals all
# processes of a job within 10 ms, the youngest first, as seen with four busy processes per core.
_AFTERMATH = 0.05
_LONGEST_SLEEP = 86400.0  # seconds; the system call's number of them is finite
_CANCEL = (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP)
_WATCHED = (_signal.SIGCHLD, *_CANCEL)
_GONE = (FileNotFoundError, ProcessLookupError)  # what reading /proc/PID says of a process that ended
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36

# None is this program with its libraries, which the stub does not know.
_prctl_address = dlsym(dlopen(None, 0), "prctl")  # type: ignore[arg-type]


def block_signals() -> None:
    """Make the signals that `wait_for` watches wait for it."""
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)  # where it is ignored, no child has an exit code
    _signal.pthread_sigmask(_signal.SIG_BLOCK, _WATCHED)


def restore_signals() -> None:
    """Give a child, before it executes a program, the signals as a shell would."""
    for signal in (_signal.SIGPIPE, _signal.SIGXFSZ):  # which Python ignores
        _signal.signal(signal, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, _WATCHED)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends (child subreaper)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with(parent: int, signal: int) -> bool:
    """Get a signal when the parent dies; false if it is dead already."""
    _prctl(_PR_SET_PDEATHSIG, signal)
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
    """Tell whether the process that got this pid at that time (clock ticks since boot) still runs."""
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
    if call_function(_prctl_address, (option, value, 0, 0, 0)) != 0:
        raise OSError(f"prctl({option}, {value}) failed")


def kill(pid: int, signal: int) -> None:
    """Send a signal to a process that may be gone."""
    try:
        os.kill(pid, signal)
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


def wait_for(pid: int, deadline: float, ended: dict[int, int], doubtful: bool = False) -> str:
    """Return "ended", "deadline" or "cancelled", whichever happens first to a child.

    A good end is taken at its word unless it is ``doubtful``: a shell goes on when its command is ended,
    and leaves with 0.
    """
    while True:
        _reap(ended)
        if pid in ended:
            # Schedulers signal every process of a job: the child may have got it a moment before us.
            told = (ended[pid] or doubtful) and _signal.sigtimedwait(_CANCEL, _AFTERMATH)
            return "cancelled" if told else "ended"
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return "deadline"
        signal = _signal.sigtimedwait(_WATCHED, min(remaining, _LONGEST_SLEEP))
        if signal is not None and signal.si_signo in _CANCEL:
            return "cancelled"


def end_all(ended: dict[int, int], grace: float) -> int:
    """End every descendant (orphans too, this is a subreaper); return how many there were."""
    if not _reap(ended):
        return 0
    victims = set(descendants())
    if grace:
        # Only who is there now: what a handler of SIGTERM starts for its cleanup has until SIGKILL.
        for pid in victims:
            kill(pid, SIGTERM)
        deadline = time.monotonic() + grace
        while _reap(ended) and (remaining := deadline - time.monotonic()) > 0:
            _signal.sigtimedwait((_signal.SIGCHLD,), remaining)
    deadline = time.monotonic() + KILL_WAIT
    while _reap(ended) and time.monotonic() < deadline:
        for pid in descendants():
            victims.add(pid)
            kill(pid, SIGKILL)
        _signal.sigtimedwait((_signal.SIGCHLD,), 0.02)  # and look again: they may have forked meanwhile
    return len(victims)


def read_text(path: str) -> str:
    """Return the content of a file; bytes that are not UTF-8 are replaced."""
    return _read(path).decode("utf-8", "replace")


def _read(path: str) -> bytes:
    file = os.open(path, os.O_RDONLY)  # `open` would make eight system calls for the three needed here
    try:
        chunks = []
        while chunk := os.read(file, 65536):
            chunks.append(chunk)
        return b"".join(chunks)
    finally:
        os.close(file)


def belongs(pid: int, directory: str | os.PathLike[str]) -> bool:
    """Tell whether a process is of the attempt in this directory, not in one that this is a copy of.

    The standard input of a local attempt is a file in its directory, wherever that is moved to; else the
    environment names it. True where neither says.
    """
    try:
        name = os.readlink(f"/proc/{pid}/fd/0")
        if os.path.basename(name) == "request.json":
            return os.path.samefile(os.path.dirname(name), directory)
    except OSError:
        pass
    mark = f"{MARK}=".encode()
    try:
        paths = [
            item[len(mark) :] for item in _read(f"/proc/{pid}/environ").split(b"\0") if item.startswith(mark)
        ]
        return not paths or os.path.samefile(paths[0], os.fsencode(directory))
    except OSError:  # gone, somebody else's, or the directory was moved
        return True


def marked(directory: str) -> list[int]:
    """Return the processes that an attempt started, by the directory in their environment.

    This finds what outlived its owners, whoever adopted it; only a program that also clears its
    environment escapes.
    """
    mark = f"{MARK}={directory}".encode(errors="surrogateescape")
    found: list[int] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark in _read(f"/proc/{name}/environ").split(b"\0"):
                found.append(int(name))
        except (*_GONE, PermissionError):
            continue  # since the listing; or it is somebody else's
    return found
