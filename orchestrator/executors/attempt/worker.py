"""The process that owns one attempt: claim it, start it, enforce its limit, end it, record it.

Executors start it with `command`, on the node that executes the attempt. It needs nothing but the standard
library, so it also starts where none of the project's dependencies can be imported.

Two processes share the work. The *worker* starts ``run.sh``, enforces the limit and writes
``attempt.json``. The *guard*, the parent of the worker, only waits. Each covers the other: if the worker is
killed, the guard (a subreaper, so it inherits every orphan) ends what was started and writes the record. If
the guard is killed, the worker receives SIGTERM and does the same. Only when both are killed at once nothing
is recorded. The executor then ends what is left and reports the attempt as LOST.

The directory of the attempt is the working directory of both, and every file is named from there: it may be
moved while the attempt runs.

The wall clock is read once. ``finished`` is ``started`` plus monotonic time, so no adjustment of the
clock can charge an attempt more than its limit plus `OVERRUN`.
"""

from __future__ import annotations

import errno
import json
import math
import os
import sys
import time
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGTERM

from orchestrator import __version__
from orchestrator.executors import inherited
from orchestrator.executors.attempt import processes
from orchestrator.executors.attempt.processes import KILL_WAIT, TERM_GRACE
from orchestrator.storage import SECRET_WORDS, iso, sync_directory

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

CLAIM, RECORD, REQUEST, SCRIPT = "claim", "attempt.json", "request.json", "run.sh"
STDOUT = "stdout"
OWNER = "attempt"  # who claimed, where it is this process
DONE, CLAIMED, BROKEN = 0, 73, 74  # exit codes: recorded; claimed by another; nothing could be recorded

GUARD_SLACK = 1.0  # seconds that the guard leaves to the worker beyond the worker's own deadlines
OVERRUN = TERM_GRACE + KILL_WAIT + GUARD_SLACK + KILL_WAIT  # most seconds beyond the limit, if all goes wrong
JOB_ENDS = "ORCHESTRATOR_JOB_ENDS"  # when the job reaches Slurm's limit, in seconds of `uptime`
HEARTBEAT = 10.0  # the guard touches the claim this often: the last sign of life of a killed attempt
WRITE_PATIENCE = 30.0  # seconds to retry writing the outcome while the disk is full

_NAP = 0.5  # seconds: reading two clocks takes less, also on a busy machine, and no machine sleeps so briefly

MODULE = "orchestrator.executors.attempt.worker"
_PROBE, _ROOM = ".room", 65536  # a file, and its bytes, that must fit where an attempt writes
_GROWTH = 1024  # bytes that the final record may be longer than the first
_NEXT = ".next"  # suffix of the file that becomes the final record


# --- files --------------------------------------------------------------------------------------------


def claim(directory: str | os.PathLike[str], who: str, durable: bool = True) -> bool:
    """Claim an attempt for good; return false if it is claimed already.

    Only the holder of the claim may start the attempt, or declare that it never began. The directory is
    created where it is missing: a controller can revoke an attempt that was never prepared. A claim that is
    not ``durable`` must become durable before the caller acts on it.
    """
    os.makedirs(directory, 0o700, exist_ok=True)
    try:
        file = os.open(os.path.join(directory, CLAIM), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    owner = {"who": who, "time": iso(time.time()), **processes.place(), "processes": [processes.identity()]}
    try:
        _write_and_close(file, json.dumps(owner), durable)
    except OSError as error:
        # The existence of the file is the claim; its content only says who has it.
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
    if durable:
        sync_directory(Path(directory))
    return True


def _write_record(record: dict[str, object], suffix: str) -> None:
    """Replace attempt.json at once: a reader sees the old or the new one, also after a power failure."""
    # Not O_TRUNC: the final record goes into the blocks that `_reserve` allocated.
    _write_and_close(os.open(RECORD + suffix, os.O_WRONLY | os.O_CREAT, 0o644), json.dumps(record) + "\n")
    os.rename(RECORD + suffix, RECORD)
    sync_directory(Path())


def _reserve(size: int) -> None:
    """Allocate room for the final record: it must be possible to write it on a disk that is full then."""
    file = os.open(RECORD + _NEXT, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.posix_fallocate(file, 0, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):  # a file system that cannot
            raise
    finally:
        os.close(file)


def want_of_space(directory: str | os.PathLike[str]) -> str:
    """Return why nothing more can be written into a directory: a full disk, a quota; empty where it can."""
    path = os.path.join(directory, _PROBE)
    try:
        try:
            _write_and_close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "0" * _ROOM, durable=False)
        finally:
            _remove(path)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return error.strerror or "full"
    return ""


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # it was not there


def _write_final(directory: str, record: dict[str, object]) -> int:
    deadline = time.monotonic() + WRITE_PATIENCE
    while True:
        try:
            _write_record(record, _NEXT)
            return DONE
        except OSError as error:
            if time.monotonic() > deadline or _is_deleted():
                return _broken(f"cannot record the outcome in {directory}: {error}")
            time.sleep(0.5)


def _is_deleted() -> bool:
    """Return whether the program deleted the working directory, so that no file can be created any more."""
    try:
        return os.stat(os.curdir).st_nlink == 0
    except OSError:
        return False


def _write_and_close(file: int, text: str, durable: bool = True) -> None:
    try:
        data = text.encode()
        size = len(data)
        while data:
            data = data[os.write(file, data) :]
        os.ftruncate(file, size)
        if durable:
            os.fsync(file)
    finally:
        os.close(file)


def _read_json(path: str) -> dict[str, object]:
    value = json.loads(processes.read_text(path))
    if not isinstance(value, dict):
        raise ValueError(f"{path} is not a JSON object")
    return value


def _masked_environment() -> dict[str, object]:
    """Return the environment without its secrets: by name, and ``user:password@`` in URLs."""
    masked: dict[str, object] = {}
    for name, value in inherited.environment().items():
        if any(word in name.upper() for word in SECRET_WORDS):
            value = "***"
        elif "://" in value and "@" in value:
            value = value[: value.index("://") + 3] + "***" + value[value.rindex("@") :]
        masked[name] = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return masked


def _identity(path: str) -> dict[str, object]:
    """Describe a file so that a later look shows whether it was replaced; hashing it would take too long."""
    try:
        found = os.stat(path)
    except OSError:
        return {"path": path}
    return {"path": path, "size": found.st_size, "mtime_ns": found.st_mtime_ns}


def _ranges(numbers: list[int]) -> str:
    """Write ascending numbers as Linux and Slurm do: ``0-3,8``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)


# --- the two processes --------------------------------------------------------------------------------


class _Attempt:
    """What guard and worker both know. Elapsed time is monotonic; the wall clock is read here only."""

    def __init__(self, directory: str, request: dict[str, object]) -> None:
        self.directory = directory
        # No attempt gets less than a second: it began, and its record says how it ended.
        self.limit = min(float(str(request["limit"])), max(1.0, seconds_left()))
        self.begin, self.started = time.monotonic(), time.time()
        self.guard = os.getpid()
        self.processes = [processes.identity()]
        self.first_record: dict[str, object] = {
            "run": str(request["run"]),
            "attempt": int(str(request["attempt"])),
            "pid": self.guard,
            "started": iso(self.started),
            **processes.place(),
            "processes": self.processes,
            "nodes": os.environ.get("SLURM_JOB_NODELIST") or os.uname().nodename,
            "version": __version__,
            "kernel": os.uname().release,
            "cpus": _ranges(sorted(os.sched_getaffinity(0))),
            "executable": _identity(str(request.get("executable") or "")),
            "environment": _masked_environment(),
        }

    def final_record(
        self, record: dict[str, object], exit_code: int, how: str, leftover: int
    ) -> dict[str, object]:
        return record | {
            "finished": iso(self.started + time.monotonic() - self.begin),
            "exit_code": exit_code,
            "timed_out": how == "deadline",
            "cancelled": how in ("cancelled", "suspended"),
            "suspended": how == "suspended",
            "leftover": leftover,
            "printed": _size(STDOUT),
            "moved": _is_moved(self.directory),
        }


def seconds_left() -> float:
    """Return the seconds after which an attempt must end itself, so that Slurm does not have to.

    They are less than its own limit only where the job took long to start, or an earlier attempt of it took
    long.
    """
    ends = os.environ.get(JOB_ENDS, "")
    return float(ends) - uptime() - OVERRUN if ends.isdigit() else math.inf


def uptime() -> float:
    """Return the seconds since this node was booted: no clock that is set changes them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def limit_of(directory: str) -> float:
    """Return the time limit of the attempt prepared in a directory, in seconds."""
    return float(str(_read_json(os.path.join(directory, REQUEST))["limit"]))


def execute(directory: str) -> int:
    """Execute the attempt prepared in a directory, unless it is claimed already; return an exit code.

    Call it once, in a process of its own: the call forks that process (both return), makes it a subreaper and
    blocks its signals. The code says whether there is a record, not how the application ended.
    """
    directory = os.path.realpath(directory)
    # From here on a signal does not kill this process: it ends the attempt and is recorded.
    processes.block_signals()
    try:
        os.chdir(directory)
        attempt = _Attempt(directory, _read_json(REQUEST))
    except (OSError, ValueError, KeyError) as error:
        return _broken(f"no usable {REQUEST} in {directory}: {error!r}")
    if not claim(os.curdir, OWNER, durable=False):  # it becomes so with the first record
        return CLAIMED
    processes.adopt_orphans()
    worker = os.fork()
    return _guard(attempt, worker) if worker else _work(attempt)


def _work(attempt: _Attempt) -> int:
    processes.adopt_orphans()
    if not processes.die_with(attempt.guard, SIGTERM):
        return _broken("killed before the start")
    record = attempt.first_record
    try:
        attempt.processes.append(processes.identity())
        _reserve(len(json.dumps(record)) + _GROWTH)
        _write_record(record, ".tmp")
    except OSError as error:
        return _broken(f"cannot write {RECORD} in {attempt.directory}, so nothing was started: {error}")
    ended: dict[int, int] = {}
    before, slept = processes.cpu_times(), processes.slept()
    script = _start(attempt.directory)
    in_job = "SLURM_JOB_ID" in os.environ  # Slurm signals all processes of a job at once
    how = processes.wait_for(script, attempt.begin + attempt.limit, ended, doubtful=in_job)
    if how == "ended" and processes.slept() - slept > _NAP:
        how = "suspended"
    count = processes.end_all(ended, TERM_GRACE)
    leftover = count if how == "ended" else 0
    # Slurm's launcher starts ranks that are no children of this process.
    own = None if in_job else processes.used_by_children()
    beside = processes.load_between(before, processes.cpu_times(), os.sched_getaffinity(0))
    record["load"] = {**beside, "own": own}
    final = attempt.final_record(record, ended.get(script, 128 + SIGKILL), how, leftover)
    # What it wrote may be cut, whatever its exit code. Looked at last: that takes no time of the run.
    final["full"] = want_of_space(os.curdir)
    return _write_final(attempt.directory, final)


def _start(directory: str) -> int:
    """Start run.sh in a session of its own; it dies with this process. Exit code 126 if it cannot."""
    worker = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    script = os.path.join(directory, SCRIPT)
    try:
        if not processes.die_with(worker, SIGKILL):
            os._exit(126)
        os.setsid()
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        for descriptor, name in ((1, STDOUT), (2, "stderr")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), descriptor)
        processes.restore_signals()
        environment = {**inherited.environment(), processes.MARK: directory, "PWD": directory}
        try:
            os.execve(script, [script], environment)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            os.execve("/bin/sh", ["sh", script], environment)  # no shebang: as every shell does
    except OSError as error:
        _broken(f"cannot start {script}: {error}")
    os._exit(126)


def _guard(attempt: _Attempt, worker: int) -> int:
    """Wait for the worker. If it was killed or hangs, end the attempt and record that."""
    ended: dict[int, int] = {}
    deadline = attempt.begin + attempt.limit + TERM_GRACE + KILL_WAIT + GUARD_SLACK
    while True:
        beat = time.monotonic() + HEARTBEAT
        how = processes.wait_for(worker, min(beat, deadline) if time.monotonic() < deadline else beat, ended)
        if how == "ended":
            break
        if how == "cancelled":
            processes.kill(worker, SIGTERM)
        elif how == "suspended":  # Slurm may tell only the first process of a job; the worker ends it now
            processes.kill(worker, SIGCONT)
            needs = processes.CONTINUED + TERM_GRACE + KILL_WAIT + GUARD_SLACK
            deadline = max(deadline, time.monotonic() + needs)
        elif time.monotonic() >= deadline and processes.descendants() != [worker]:
            break  # the worker was stopped; a worker without children still tries to write the record
        _touch(CLAIM)
    if ended.get(worker) in (DONE, BROKEN):
        return ended[worker]
    leftover = processes.end_all(ended, grace=0)
    try:
        record = _read_json(RECORD)
    except (OSError, ValueError) as error:
        return _broken(f"killed before the start: {error}")
    if "finished" in record:
        return DONE
    how = "deadline" if how == "deadline" else "cancelled"
    final = attempt.final_record(record, 128 + SIGKILL, how, leftover)
    return _write_final(attempt.directory, final)


def _is_moved(directory: str) -> bool:
    """Return whether an attempt's directory is no longer where the attempt began."""
    try:
        return not os.path.samefile(directory, os.curdir)
    except OSError:
        return True


def _size(path: str) -> int:
    """Return the bytes of a file: 0 where it is not there."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _touch(path: str) -> None:
    try:
        os.utime(path)
    except OSError:
        pass  # it only says more precisely when a killed attempt ended


def command(directory: str) -> list[str]:
    """Return the command that executes an attempt. Numbers after it are the CPUs to bind the attempt to.

    Python starts isolated (``-I -S``): no variable of the user and no ``site-packages`` changes what runs.
    """
    code = f"import sys; sys.path.append({_ROOT!r}); from {MODULE} import main; main()"
    return [os.path.realpath(sys.executable), "-I", "-S", "-c", code, directory]


def main() -> None:
    """Execute the attempt that the command line names, bound to the CPUs that it names, and exit.

    Guard and worker are one program forked: neither may run what the interpreter does at its exit.
    """
    _bind({int(number) for number in sys.argv[2:]})
    os._exit(execute(sys.argv[1]))


def _bind(cpus: set[int]) -> None:
    """Bind this process and all that it will start; ``attempt.json`` then records these CPUs."""
    try:
        if cpus:
            os.sched_setaffinity(0, cpus)
    except OSError as error:  # the CPUs were taken away meanwhile: better to measure than to fail
        sys.stderr.write(f"attempt: not bound to the CPUs {_ranges(sorted(cpus))}: {error}\n")


def _broken(message: str) -> int:
    sys.stderr.write(f"attempt: {message}\n")
    return BROKEN
