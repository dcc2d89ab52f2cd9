"""Submitting a batch through submitit: the options of a job, its script, what ``sbatch`` answers."""

from __future__ import annotations

import functools
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import submitit
from submitit.core.utils import DelayedSubmission

import orchestrator
from orchestrator.errors import SubmitRejected, SubmitUncertain
from orchestrator.executors.attempt.directory import stop_for_trouble
from orchestrator.executors.slurm.commands import CommandFailed, call, submission_environment
from orchestrator.executors.slurm.job import run
from orchestrator.executors.slurm.options import JobOptions as JobOptions
from orchestrator.executors.slurm.options import long_name, minutes
from orchestrator.types import AttemptRequest, Resources

_MOST_AT_ONCE = 10**6  # elements of an array: the campaign limits how many are submitted

_NOT_NOW = re.compile(r"SubmitJob|temporarily un(?:able|available)", re.IGNORECASE)
_UNCLEAR = re.compile(
    r"timed? ?out|unable to contact|communication|connection|not responding|zero bytes|insane"
    r"|unexpected message|transport endpoint|message (?:send|receive)|protocol|credential|munge"
    r"|configuration source|ClusterName|process configuration",
    re.IGNORECASE,
)


class SubmitLater(SubmitRejected):
    """A submission that was refused because the user has too many jobs: it will be accepted later."""


def parameters(
    name: str, resources: Resources, limits: Sequence[float], options: JobOptions, folder: Path, root: Path
) -> dict[str, Any]:
    """Return submitit's parameters for a batch. Pure.

    Parameters
    ----------
    name
        Of the batch, hence of the job.
    resources
        Of each of its attempts.
    limits
        In seconds, of the attempts of each of its jobs.
    options
        The campaign's.
    folder
        Where the batch's files are.
    root
        Directory to start Python in: it finds the orchestrator there, installed or not.
    """
    batch = shlex.quote(str(folder))
    task = f"{batch}/${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}"
    further = {long_name(key): True if value is None else value for key, value in options.sbatch.items()}
    named: dict[str, Any] = options.named()
    reservation = named.pop("reservation")  # for which submitit has no parameter
    return {
        **named,
        "job_name": name,
        "time": minutes(*limits),
        "nodes": resources.nodes,
        "cpus_per_task": resources.threads,
        "exclusive": True if options.exclusive else None,
        # One process per job, which starts the launcher; within srun an mpirun would hang.
        "use_srun": False,
        # 0 switches off the signal with which submitit would requeue the job before its end.
        "signal_delay_s": 0,
        "array_parallelism": _MOST_AT_ONCE,
        "wckey": None,
        # submitit expects a task's work under the id of the job, which is not known before sbatch returns.
        "setup": [f"ln -sf {batch}/$SLURM_ARRAY_TASK_ID.pkl {task}_submitted.pkl"],
        "additional_parameters": {
            "ntasks": resources.ranks,
            "ntasks-per-node": resources.ranks_per_node,
            "chdir": str(root),
            "export": "ALL",
            "no-requeue": True,
            **({} if reservation is None else {"reservation": reservation}),
            **({} if options.gpus_per_node is None else {"gpus-per-node": options.gpus_per_node}),
            **further,
        },
    }


class _Arrays(submitit.SlurmExecutor):
    """submitit's executor, for arrays that survive the death of the controller at any point."""

    def __init__(self, folder: Path, python: str, seconds: float, options: JobOptions) -> None:
        # exec: a signal to the batch script is then one to the attempt, whose record would be lost if
        # the shell died of it first.
        super().__init__(folder, python=f"exec {shlex.quote(python)}")
        self._seconds = seconds
        self._environment = submission_environment(options.named())

    @classmethod
    def affinity(cls) -> int:
        """Be available without ``srun``, which is not used (and not there where scripts are only shown)."""
        return 2

    def text(self, count: int) -> str:
        """Return the script of an array."""
        self.parameters["map_count"] = count
        return self._make_submission_file_text(self._submitit_command_str, "")

    def _internal_process_submissions(
        self, delayed_submissions: list[DelayedSubmission]
    ) -> list[submitit.Job[Any]]:
        # submitit writes the tasks' work after sbatch has returned, under the id of the job. A controller
        # that is killed in between would leave jobs without work. And a single task is an array, too.
        self.folder.mkdir(parents=True, exist_ok=True)
        for index, delayed in enumerate(delayed_submissions):
            delayed.set_timeout(self.parameters["time"], 0)
            delayed.dump(self.folder / f"{index}.pkl")
        script = self.folder / "submission.sh"
        script.write_text(self.text(len(delayed_submissions)))
        # submitit's own call of sbatch has no time limit and hands on the variables of an enclosing job.
        output = call(["sbatch", str(script)], self._seconds, self._environment)
        number = self._get_job_id_from_submission_command(output)
        return [self.job_class(self.folder, f"{number}_{i}") for i in range(len(delayed_submissions))]


def script(
    name: str,
    resources: Resources,
    limits: Sequence[float],
    options: JobOptions,
    folder: Path,
    count: int = 1,
    root: Path | None = None,
    python: str = sys.executable,
) -> str:
    """Return the script that would be submitted for a batch of ``count`` jobs. Touches nothing."""
    options = options.fitting(resources)
    arrays = _Arrays(folder, python, 0.0, options)
    arrays.update_parameters(**parameters(name, resources, limits, options, folder, root or _root()))
    return arrays.text(count)


def submit(
    name: str,
    packs: Sequence[Sequence[AttemptRequest]],
    options: JobOptions,
    folder: Path,
    seconds: float,
) -> list[str]:
    """Submit jobs of equal resources and time as one array; return their ids, in order.

    Each executes the attempts of one pack, one after another.

    Raises
    ------
    SubmitLater
        If Slurm accepts no more jobs of this user now.
    SubmitRejected
        If it certainly did not accept these, saying why.
    SubmitUncertain
        If it may have.
    DirectoryTrouble
        If the files of a batch cannot be written now.
    """
    first, limits = packs[0][0], [request.limit for request in packs[0]]
    options = options.fitting(first.resources).without(first.exclude).with_memory(first.memory)
    arrays = _Arrays(folder, sys.executable, seconds, options)
    arrays.update_parameters(**parameters(name, first.resources, limits, options, folder, _root()))
    directories = [[str(request.directory.absolute()) for request in pack] for pack in packs]
    try:
        jobs = arrays.submit_array([functools.partial(run, *pack) for pack in directories])
    except CommandFailed as error:
        raise _verdict(error) from error
    except submitit.core.utils.FailedSubmissionError as error:
        raise SubmitUncertain(f"sbatch gave no job id: {error}") from error
    except OSError as error:
        stop_for_trouble(error, folder)
        raise SubmitRejected(f"cannot write the files of a batch into {folder}: {error.strerror}") from error
    return [job.job_id for job in jobs]


def _verdict(error: CommandFailed) -> SubmitRejected | SubmitUncertain:
    # A negative code: out of time, or killed by a signal; beyond 128: so was what a wrapper called. Slurm's
    # own commands know 1 and 255.
    if error.code < 0 or 128 < error.code < 255 or _UNCLEAR.search(error.output):
        return SubmitUncertain(str(error))
    return SubmitLater(str(error)) if _NOT_NOW.search(error.output) else SubmitRejected(str(error))


def _root() -> Path:
    return Path(orchestrator.__file__).resolve().parent.parent
