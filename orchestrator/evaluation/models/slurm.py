"""Fits as jobs of a Slurm cluster, through submitit: one job array, one fit per job."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import submitit
from submitit.core.utils import FailedJobError, FailedSubmissionError, UncompletedJobError

from orchestrator.errors import ExecutorError
from orchestrator.evaluation.models import processes
from orchestrator.evaluation.models.fit import Row, Task, failed

_START_UP = 3  # minutes that a job may take besides its fit: to start, to read its samples, to write its row
_ASK = 2.0  # seconds between looks for results, which are files


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """How jobs are submitted."""

    folder: Path  # of their files, which all nodes must see
    limit: float = 3600.0  # seconds after which a fit is given up
    at_once: int = 256  # most jobs that run at the same time
    # Options of ``sbatch`` by their long name, such as ``partition``; an empty value is a flag.
    sbatch: dict[str, str]


def rows(tasks: Sequence[Task], jobs: Jobs) -> Generator[Row]:
    """Submit all tasks, and yield rows as jobs end. What has not ended when the caller leaves is cancelled.

    Raises
    ------
    ExecutorError
        Where jobs cannot be submitted, with the answer of ``sbatch``.
    """
    submitted = _submitted(tasks, jobs)
    open_jobs = dict(zip(submitted, tasks, strict=True))
    try:
        for job in submitit.helpers.as_completed(submitted, poll_frequency=_ASK):
            task = open_jobs.pop(job)
            yield _row(job, task)
    finally:
        for job in open_jobs:
            with suppress(OSError):
                job.cancel(check=False)


def _submitted(tasks: Sequence[Task], jobs: Jobs) -> list[submitit.Job[Row]]:
    try:
        executor = submitit.SlurmExecutor(jobs.folder)
    except RuntimeError as error:
        raise ExecutorError(
            f"there is no Slurm here ({error}): use --executor local, or a login node of a cluster"
        ) from error
    executor.update_parameters(
        job_name="evaluate-models",
        time=_START_UP + math.ceil(jobs.limit / 60),
        nodes=1,
        cpus_per_task=1,
        array_parallelism=jobs.at_once,
        use_srun=False,  # one process; and some sites have no srun within jobs
        signal_delay_s=0,  # no signal before the end: a fit has no checkpoint to continue from
        additional_parameters={name: value or True for name, value in jobs.sbatch.items()},
    )
    try:
        submitted: list[submitit.Job[Row]] = executor.map_array(_only_row, tasks, [jobs.limit] * len(tasks))
    except (FailedJobError, FailedSubmissionError) as error:
        raise ExecutorError(f"sbatch did not take the jobs: {_line(error)}") from error
    return submitted


def _only_row(task: Task, limit: float) -> Row:
    """Run within a job: the fit has a process of its own, so that its end by a signal gives a row, too."""
    [row] = processes.rows([task], workers=1, limit=limit)
    return row


def _row(job: submitit.Job[Row], task: Task) -> Row:
    try:
        row: Row = job.result()
    except (FailedJobError, UncompletedJobError) as error:
        return failed(
            task, f"Slurm job {job.job_id} ended as {job.state}: {_line(error)}; see {job.paths.stderr}"
        )
    return row


def _line(error: Exception) -> str:
    """Return the last line of an error that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
