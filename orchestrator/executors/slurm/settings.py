"""What a campaign says of its Slurm jobs, as the Slurm executor needs it."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.executors.slurm.sbatch import JobOptions


@dataclass(frozen=True, slots=True)
class SlurmSettings:
    """How to use Slurm. Durations in seconds.

    Attributes
    ----------
    job
        Options of every job.
    poll_interval
        Between queries of Slurm.
    command_timeout
        After which a command of Slurm is given up.
    submission_grace
        After which a submission that nobody confirmed, and that Slurm does not know, did not happen.
    file_grace
        For an attempt's files to become visible here after its job ended elsewhere.
    accounting_grace
        For the charge of an attempt to be known after it finished.
    hopeless_grace
        After which a job that Slurm says fits no limit is cancelled.
    """

    job: JobOptions = field(default_factory=JobOptions)
    poll_interval: float = 10.0
    command_timeout: float = 30.0
    submission_grace: float = 60.0
    file_grace: float = 30.0
    accounting_grace: float = 60.0
    hopeless_grace: float = 300.0
