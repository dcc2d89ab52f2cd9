"""What a campaign says about its Slurm jobs, and how the executor is to use Slurm."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.errors import CampaignError
from orchestrator.executors.attempt import worker
from orchestrator.types import Resources

# Seconds of a job's time limit for its prolog and the start of Python. Where Python takes longer, the attempt
# ends itself that much earlier (see `orchestrator.executors.attempt.worker.JOB_ENDS`).
START_UP = 10.0
BETWEEN = 1.0  # seconds from the end of one attempt of a shared job to the begin of the next one

# What the executor itself decides: another value would break the search for jobs, the limit or the charge.
_OWN = {
    *("array", "chdir", "clusters", "cpus-per-task", "error", "export", "export-file", "job-name", "nodes"),
    *("no-requeue", "ntasks", "ntasks-per-node", "open-mode", "output", "parsable", "quiet", "requeue"),
    *("signal", "test-only", "time", "time-min", "wait", "wrap"),
}
_KEYS = {"partition", "account", "qos", "constraint", "reservation", "exclusive", "gpus-per-node"}

_MEMORY = {"mem", "mem-per-cpu", "mem-per-gpu"}
_AMOUNT = re.compile(r"([1-9]\d*)([KMGT]?)", re.IGNORECASE)  # 0 means all that a node has


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """What a campaign says about its jobs.

    Raises
    ------
    CampaignError
        For an option that is the executor's to choose, and for a line break: it would end the comment that
        holds the option in a batch script, and what follows would be executed.
    """

    # partition, account, qos, constraint, reservation, exclusive: as ``sbatch`` takes them; None leaves the
    # choice to Slurm.
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    reservation: str | None = None
    exclusive: bool = False
    # Further options of ``sbatch``: name -> value, None for a flag.
    sbatch: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    # Partitions for runs of up to some size (keys as in a campaign file).
    by_size: Sequence[Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        texts = {**self.named(), **{f"sbatch.{name}": value for name, value in self.sbatch.items()}}
        for item in self.by_size:
            texts |= {f"by_size.{key}": item[key] for key in ("partition", "qos", "constraint")}
        for key, value in texts.items():
            if not str(value).isprintable():
                raise CampaignError(f"executor.{key}: {value!r} has a line break or the like; remove it")
        for name in self.sbatch:
            if not re.fullmatch(r"[a-z][a-z-]+", long_name(name)):
                raise CampaignError(f"executor.sbatch: {name!r} is not the long name of an option of sbatch")
            if long_name(name) in _OWN:
                raise CampaignError(f"executor.sbatch: {name!r} is chosen by the executor; remove it")
            if long_name(name) in _KEYS:
                key = long_name(name).replace("-", "_")
                raise CampaignError(f"executor.sbatch: write executor.{key} instead")

    def fitting(self, resources: Resources) -> JobOptions:
        """Return the options of a job of this size: those of the first partition that takes it."""
        need = resources.ranks * resources.threads
        fits = [item for item in self.by_size if item["up_to"] is None or need <= item["up_to"]]
        if not fits:  # a larger run is no point of the search space
            return self
        chosen = fits[0]
        return replace(
            self,
            partition=chosen["partition"],
            qos=chosen["qos"] or self.qos,
            constraint=chosen["constraint"] or self.constraint,
            by_size=(),
        )

    def partitions(self) -> tuple[str, ...]:
        """Return the partitions that jobs may be in; empty for the default one."""
        named = [self.partition, *(item["partition"] for item in self.by_size)]
        return tuple(name for names in named if names for name in names.split(","))

    def without(self, nodes: Sequence[str]) -> JobOptions:
        """Return the options with these nodes excluded, besides those that the campaign excludes."""
        if not nodes:
            return self
        kept = {name: value for name, value in self.sbatch.items() if long_name(name) != "exclude"}
        excluded = [str(value) for name, value in self.sbatch.items() if long_name(name) == "exclude"]
        return replace(self, sbatch={**kept, "exclude": ",".join([*excluded, *nodes])})

    def on(self, nodes: Sequence[str]) -> JobOptions:
        """Return the options that ask for these nodes, unless the campaign names nodes itself."""
        if not nodes or any(long_name(name) in ("nodelist", "nodefile") for name in self.sbatch):
            return self
        return replace(self, sbatch={**self.sbatch, "nodelist": ",".join(nodes)})

    def with_memory(self, factor: float) -> JobOptions:
        """Return the options with that much more memory, where some is asked for."""
        if factor == 1.0:
            return self
        return replace(
            self,
            sbatch={
                name: _scaled(value, factor) if long_name(name) in _MEMORY else value
                for name, value in self.sbatch.items()
            },
        )

    def named(self) -> dict[str, str | None]:
        """Return the options that have a key of their own."""
        names = ("partition", "account", "qos", "constraint", "reservation")
        return {name: getattr(self, name) for name in names}


def job_options(executor: Mapping[str, Any]) -> JobOptions:
    """Return what ``executor`` of a campaign says about its jobs; raises as `JobOptions` does."""
    return JobOptions(**{name: executor[name] for name in JobOptions.__slots__})


def asks_for_memory(sbatch: Mapping[str, object]) -> bool:
    """Return whether options of ``sbatch`` ask for an amount of memory, so that it can be raised."""
    return any(long_name(name) in _MEMORY and _AMOUNT.fullmatch(str(sbatch[name])) for name in sbatch)


def gives_own_cores(sbatch: Mapping[str, object]) -> bool:
    """Return whether options of ``sbatch`` leave all but one hardware thread of each core unused."""
    known = {long_name(name): str(value) for name, value in sbatch.items()}
    return known.get("hint") == "nomultithread" or known.get("threads-per-core") == "1"


def _scaled(value: str | int | float | bool | None, factor: float) -> str | int | float | bool | None:
    found = _AMOUNT.fullmatch(str(value))
    return value if found is None else f"{math.ceil(factor * int(found[1]))}{found[2]}"


def long_name(name: str) -> str:
    """Return the name of an option as ``sbatch`` has it after its dashes."""
    return name.lstrip("-").replace("_", "-")


def minutes(*limits: float) -> int:
    """Return the time to ask Slurm for, in its unit, so that attempts always end by their own limits.

    Parameters
    ----------
    *limits
        Seconds that the attempts of one job get in it: see `orchestrator.resources.shared_limits`.
    """
    return math.ceil((START_UP + sum(limits) + (len(limits) - 1) * BETWEEN + worker.OVERRUN) / 60)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmSettings:
    """How to use Slurm. Durations in seconds."""

    job: JobOptions = field(default_factory=JobOptions)  # options of every job
    bills_nodes: bool = False  # whether the site charges whole nodes, whatever Slurm allocates of them
    poll_interval: float = 10.0  # between queries of Slurm
    command_timeout: float = 30.0  # after which a command of Slurm is ended
    # After which a submission that was not confirmed, and that Slurm does not know, did not happen.
    submission_grace: float = 60.0
    # For an attempt's files to become visible here after its job ended elsewhere.
    file_grace: float = 75.0  # Linux caches what it knows of files on NFS for up to 60 s
    accounting_grace: float = 60.0  # for the charge of an attempt to be known after it finished
    hopeless_grace: float = 300.0  # after which a job that fits no limit of Slurm is cancelled
    # After which the charge of a job that Slurm denies will never be known from accounting.
    forgotten_grace: float = 300.0
