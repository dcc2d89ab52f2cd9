"""What submitit executes on the first node of a job: one attempt, or the attempts of a pack in turn.

Jobs in the queue name `run` by this module in their pickles: neither may be renamed while jobs wait.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from orchestrator.executors.attempt import processes, worker

_ASK_AGAIN = 15.0  # seconds
_ANSWER = 10.0  # seconds for the controller to answer
_SRUN = re.compile(r"(^|[\s/])srun(\s|$)", re.MULTILINE)
_MPIRUN = re.compile(r"(^|[\s/])(mpirun|mpiexec|prterun)(\s|$)", re.MULTILINE)


def run(*directories: str) -> NoReturn:
    """Execute the attempts prepared in directories, then exit, as every process forked on the way does."""
    # submitit's handler of this signal would ask Slurm to requeue the job.
    signal.signal(signal.SIGUSR2, signal.SIG_DFL)
    os._exit(worker.execute(directories[0]) if len(directories) == 1 else _in_turn(directories))


def _in_turn(directories: Sequence[str]) -> int:
    """Execute attempts, never two at once; return the last exit code. After a signal the rest never begin."""
    processes.block_signals()
    processes.adopt_orphans()  # of an attempt whose own two processes were killed
    code = worker.DONE
    for position, directory in enumerate(directories):
        # Those that are left are begun in another job, and cost nothing here.
        if position and not (_has_time(directory) and _can_launch(directories[position:])):
            break
        code, how = _one(directory)
        # The first attempt is claimed already: a second start of the job, which would be charged again.
        second = code == worker.CLAIMED and position == 0
        if how == "cancelled" or second or code == worker.BROKEN:
            break
    return code


def _has_time(directory: str) -> bool:
    """Return whether the rest of the job holds the whole limit of an attempt."""
    try:
        return worker.limit_of(directory) <= worker.seconds_left()
    except (OSError, ValueError, KeyError):
        return True  # the attempt itself will say what is wrong


def _can_launch(directories: Sequence[str]) -> bool:
    """Return whether Slurm can start the first of the attempts that are left; waits for that.

    ``srun`` would fail without Slurm's controller. The job may as well wait: until its controller is back,
    Slurm charges it, whether it ends or not. It waits no longer than all attempts can keep their limits.
    Those that are not begun are submitted again later, at no cost.
    """
    if not _needs_controller(directories[0]) or controller_answers():
        return True
    deadline = time.monotonic() + _slack(directories)
    while (left := deadline - time.monotonic()) > 0:
        if signal.sigtimedwait((signal.SIGTERM, signal.SIGINT, signal.SIGHUP), min(left, _ASK_AGAIN)):
            return False
        if controller_answers():
            return True
    sys.stderr.write(f"slurmctld does not answer: {len(directories)} runs are left for another job\n")
    return False


def _needs_controller(directory: str) -> bool:
    """Return whether an attempt starts a job step: with ``srun``, or with ``mpirun`` on several nodes."""
    try:
        script = (Path(directory) / worker.SCRIPT).read_text(errors="replace")
        several = int(_request(directory)["resources"]["nodes"]) > 1
    except (OSError, ValueError, KeyError, TypeError):
        return False  # the attempt itself will say what is wrong
    return bool(_SRUN.search(script) or (several and _MPIRUN.search(script)))


def _slack(directories: Sequence[str]) -> float:
    """Return the seconds that may pass while the next attempt can still use its whole limit."""
    try:
        left = worker.seconds_left() - worker.limit_of(directories[0])
    except (OSError, ValueError, KeyError):
        return 0.0
    return left if math.isfinite(left) else 0.0


def _request(directory: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(directory) / worker.REQUEST).read_bytes())
    return found


def controller_answers() -> bool:
    """Return whether Slurm's controller answers; also true where that cannot be asked here."""
    try:
        done = subprocess.run(
            ["scontrol", "ping"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ANSWER,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    except OSError:
        return True
    return b"is UP" in done.stdout


def _one(directory: str) -> tuple[int, str]:
    """Execute one attempt in a process of its own; return its exit code and how waiting for it ended."""
    runner = os.getpid()
    child = os.fork()
    if child == 0:
        if not processes.die_with(runner, signal.SIGTERM):
            os._exit(worker.BROKEN)
        os._exit(worker.execute(directory))
    ended: dict[int, int] = {}
    while (how := processes.wait_for(child, math.inf, ended)) == "suspended":
        processes.kill(child, signal.SIGCONT)  # Slurm may tell only this process
    if how == "cancelled" and child not in ended:
        processes.kill(child, signal.SIGTERM)
        processes.wait_for(child, math.inf, ended)
    # If the guard was killed, the worker needs a moment to write the record.
    processes.end_all(ended, worker.OVERRUN)
    return ended.get(child, worker.BROKEN), how
