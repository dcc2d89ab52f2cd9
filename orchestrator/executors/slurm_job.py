"""What submitit executes on the first node of a job: one attempt."""

from __future__ import annotations

import os
import signal
from typing import NoReturn

from orchestrator.executors import attempt


def run(directory: str) -> NoReturn:
    """Execute the attempt prepared in a directory and leave, as its two processes both must."""
    # submitit's handler of this signal would ask Slurm to requeue the job.
    signal.signal(signal.SIGUSR2, signal.SIG_DFL)
    os._exit(attempt.execute(directory))
