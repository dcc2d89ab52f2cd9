"""What submitit executes on the first node of a job: one attempt, or the attempts of a pack in turn.

Jobs in the queue name `run` by this module in their pickles: neither may be renamed while jobs wait.
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Sequence
from typing import NoReturn

from orchestrator.executors.attempt import processes, worker


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
        code, how = _one(directory)
        # The first attempt is claimed already: a second start of the job, which would be charged again.
        second = code == worker.CLAIMED and position == 0
        if how == "cancelled" or second or code == worker.BROKEN:
            break
    return code


def _one(directory: str) -> tuple[int, str]:
    """Execute one attempt in a process of its own; return its exit code and how waiting for it ended."""
    runner = os.getpid()
    child = os.fork()
    if child == 0:
        if not processes.die_with(runner, signal.SIGTERM):
            os._exit(worker.BROKEN)
        os._exit(worker.execute(directory))
    ended: dict[int, int] = {}
    how = processes.wait_for(child, math.inf, ended)
    if how == "cancelled" and child not in ended:
        processes.kill(child, signal.SIGTERM)
        processes.wait_for(child, math.inf, ended)
    # If the guard was killed, the worker needs a moment to write the record.
    processes.end_all(ended, worker.OVERRUN)
    return ended.get(child, worker.BROKEN), how
