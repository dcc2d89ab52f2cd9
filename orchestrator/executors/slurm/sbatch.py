"""Submitting a job array through submitit: the options of a job, its script, what ``sbatch`` answers.

submitit writes the script and the pickles, and executes the pickles in the jobs. `_Arrays` is the only place
that changes what submitit does; its docstring lists each change with the reason.
"""

from __future__ import annotations

import functools
import re
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import submitit
from submitit.core.utils import DelayedSubmission

import orchestrator
from orchestrator.errors import SubmitRejected, SubmitUncertain
from orchestrator.executors.attempt.directory import raise_if_unwritable
from orchestrator.executors.attempt.worker import JOB_ENDS
from orchestrator.executors.slurm.commands import (
    CommandFailed,
    call,
    in_one_line,
    submission_environment,
)
from orchestrator.executors.slurm.job import run
from orchestrator.executors.slurm.options import JobOptions, long_name, minutes
from orchestrator.resources import shared_limits
from orchestrator.types import AttemptRequest, Resources

_ROOT = Path(orchestrator.__file__).resolve().parent.parent
_MOST_AT_ONCE = 10**6  # elements of an array: the campaign limits how many are submitted

# What ``sbatch`` says where the same submission may succeed later, and where it may have succeeded.
_NOT_NOW = re.compile(r"SubmitJob|temporarily un(?:able|available)", re.IGNORECASE)
# An administrator closed the partition, or Slurm's controller cannot save a job: no submission succeeds then.
_CLOSED = re.compile(
    r"partition not available|in standby mode|I/O error writing script|due to maintenance", re.IGNORECASE
)
_UNCLEAR = re.compile(
    r"timed? ?out|unable to contact|communication|connection|not responding|zero bytes|insane"
    r"|unexpected message|transport endpoint|message (?:send|receive)|protocol|credential|munge"
    r"|configuration source|ClusterName|process configuration",
    re.IGNORECASE,
)
_ANSWER = 30.0  # seconds to wait for it where nothing is submitted
# What it says of an option that no job could have, now or later.
_INVALID = re.compile(
    r"invalid (?:partition|account|qos|feature|generic resource|wckey|license)|reservation is invalid"
    r"|not permitted to use this partition",
    re.IGNORECASE,
)


class SubmitLater(SubmitRejected):
    """A submission that was refused for now: the user has too many jobs, or the partition is closed.

    ``closed``: no smaller submission would be accepted either.
    """

    def __init__(self, message: str, closed: bool = False) -> None:
        super().__init__(message)
        self.closed = closed


@dataclass(frozen=True, kw_only=True)
class ArrayRequest:
    """An array of jobs that all ask for the same."""

    name: str  # of the array, hence of its jobs
    resources: Resources  # of each of its attempts
    limits: Sequence[float]  # in seconds, of the attempts of each of its jobs
    options: JobOptions  # the campaign's
    folder: Path  # where the files of the array are
    python: str = sys.executable  # what executes the jobs
    root: Path = _ROOT  # directory to start Python in: it finds the orchestrator there, installed or not

    @property
    def fitting(self) -> JobOptions:
        """Return the options of jobs of this size."""
        return self.options.fitting(self.resources)


def parameters(array: ArrayRequest) -> dict[str, Any]:
    """Return submitit's parameters for an array. Pure."""
    resources, options = array.resources, array.fitting
    time = minutes(*array.limits)
    files = shlex.quote(str(array.folder))
    task = f"{files}/${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}"
    further = {
        long_name(key): True if value in (None, "") else value for key, value in options.sbatch.items()
    }
    named: dict[str, Any] = options.named()
    reservation = named.pop("reservation")  # for which submitit has no parameter
    return {
        **named,
        "job_name": array.name,
        "time": time,
        "nodes": resources.nodes,
        "cpus_per_task": resources.threads,
        "exclusive": True if options.exclusive else None,
        # One process per job, which starts the launcher; within srun an mpirun would hang.
        "use_srun": False,
        # 0 switches off the signal with which submitit would requeue the job before its end.
        "signal_delay_s": 0,
        "array_parallelism": _MOST_AT_ONCE,
        "wckey": None,
        # submitit expects a task's pickle under the id of the job, which is not known before sbatch returns.
        "setup": [
            f"ln -sf {files}/$SLURM_ARRAY_TASK_ID.pkl {task}_submitted.pkl",
            # By the node's uptime: its clock may differ from that of slurmctld, and may be set meanwhile.
            f"export {JOB_ENDS}=$(($(cut -d. -f1 /proc/uptime) + {60 * time}))",
        ],
        "additional_parameters": {
            "ntasks": resources.ranks,
            "ntasks-per-node": resources.ranks_per_node,
            "chdir": str(array.root),
            "export": "ALL",
            "no-requeue": True,
            **({} if reservation is None else {"reservation": reservation}),
            **({"gpus-per-node": resources.gpus_per_node} if resources.gpus_per_node else {}),
            **further,
        },
    }


class _Arrays(submitit.SlurmExecutor):
    """submitit's executor, for arrays that survive the death of the controller at any point.

    Used as submitit documents it: `update_parameters`, `submit_array`, `job_class`. What differs:

    ``affinity`` (public)
        submitit requires ``srun`` on PATH. It is not used here, and missing where scripts are only shown.
    ``python`` (public)
        Starts with ``exec``: a signal to the batch script must reach the attempt. A shell in between would
        die of it first, and the record of the attempt would be lost.
    ``_internal_process_submissions`` (overridden)
        submitit writes the pickles of the tasks after ``sbatch`` has returned, under the id of the job. A
        controller that is killed in between would leave jobs without work. So the pickles are written
        before, under their array index, and the script links them (see ``setup`` in `parameters`). submitit
        submits a single task without an array; here it is an array, too, so that one name finds all. And
        submitit's call of ``sbatch`` has no time limit and passes on the variables of an enclosing job.
    ``_submitit_command_str``, ``_make_submission_file_text``, ``_get_job_id_from_submission_command``
        Called as submitit's own method calls them: for the command of a task, the text of the script, and the
        job id in the answer of ``sbatch``.
    """

    def __init__(self, array: ArrayRequest, seconds: float = 0.0) -> None:
        super().__init__(array.folder, python=f"exec {shlex.quote(array.python)}")
        self._seconds = seconds
        self._environment = submission_environment(array.fitting.named())
        self.update_parameters(**parameters(array))

    @classmethod
    def affinity(cls) -> int:
        """Return that this executor is available, with or without ``srun``."""
        return 2

    def text(self, count: int) -> str:
        """Return the script of an array of ``count`` jobs."""
        self.parameters["map_count"] = count
        return self._make_submission_file_text(self._submitit_command_str, "")

    def _internal_process_submissions(
        self, delayed_submissions: list[DelayedSubmission]
    ) -> list[submitit.Job[Any]]:
        self.folder.mkdir(parents=True, exist_ok=True)
        for index, delayed in enumerate(delayed_submissions):
            delayed.set_timeout(self.parameters["time"], 0)
            delayed.dump(self.folder / f"{index}.pkl")
        script = self.folder / "submission.sh"
        script.write_text(self.text(len(delayed_submissions)))
        output = call(["sbatch", str(script)], self._seconds, self._environment)
        number = self._get_job_id_from_submission_command(output)
        return [self.job_class(self.folder, f"{number}_{i}") for i in range(len(delayed_submissions))]


def script(array: ArrayRequest, count: int = 1) -> str:
    """Return the script that would be submitted for an array of ``count`` jobs. Touches nothing."""
    return _Arrays(array).text(count)


_SHOWN = re.compile(
    r"^#SBATCH (--(?!array|chdir|error|export|job-name|open-mode|output|signal)\S.*)$", re.MULTILINE
)


def asked(resources: Resources, limit: float, options: JobOptions) -> list[str]:
    """Return what the job of one run asks Slurm for, as options of ``sbatch``, without names and files."""
    array = ArrayRequest(name="run", resources=resources, limits=[limit], options=options, folder=Path("run"))
    return _SHOWN.findall(script(array))


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
        If Slurm accepts no more jobs of this user, or none in this partition, now.
    SubmitRejected
        If it certainly did not accept these, saying why.
    SubmitUncertain
        If it may have.
    DirectoryUnwritable
        If the files of an array cannot be written now.
    """
    first = packs[0][0]
    limits = shared_limits((request.limit, request.likely) for request in packs[0])
    options = options.without(first.exclude).on(first.nodelist).with_memory(first.memory)
    arrays = _Arrays(
        ArrayRequest(name=name, resources=first.resources, limits=limits, options=options, folder=folder),
        seconds,
    )
    directories = [[str(request.directory.absolute()) for request in pack] for pack in packs]
    try:
        jobs = arrays.submit_array([functools.partial(run, *pack) for pack in directories])
    except CommandFailed as error:
        raise _classified(error) from error
    except submitit.core.utils.FailedSubmissionError as error:
        raise SubmitUncertain(f"sbatch gave no job id: {error}") from error
    except OSError as error:
        raise_if_unwritable(error, folder)
        raise SubmitRejected(
            f"cannot write the files of a job array into {folder}: {error.strerror}"
        ) from error
    return [job.job_id for job in jobs]


def refusal(resources: Resources, options: JobOptions, seconds: float = _ANSWER) -> str | None:
    """Return why Slurm would take no job with these options, now or later; None where it may, or is silent.

    Asks with ``sbatch --test-only``, which submits nothing.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "submission.sh"
        array = ArrayRequest(
            name="trial", resources=resources, limits=[60.0], options=options, folder=Path(folder)
        )
        path.write_text(script(array))
        try:
            call(["sbatch", "--test-only", str(path)], seconds, submission_environment(array.fitting.named()))
        except CommandFailed as error:
            return in_one_line(error.output, "sbatch") if _INVALID.search(error.output) else None
    return None


def _classified(error: CommandFailed) -> SubmitRejected | SubmitUncertain:
    """Return what a failure of ``sbatch`` means for the submission."""
    # A negative code: out of time, or killed by a signal. Beyond 128: a wrapper reports the same of the
    # command that it called. Slurm's own commands exit with 1 or 255.
    if error.code < 0 or 128 < error.code < 255 or _UNCLEAR.search(error.output):
        return SubmitUncertain(str(error))
    closed = bool(_CLOSED.search(error.output))
    if closed or _NOT_NOW.search(error.output):
        return SubmitLater(str(error), closed)
    return SubmitRejected(str(error))
