"""What can go wrong with a Slurm: a fault script is a tuple of `Fault`, readable from and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

# What may happen to a call of a command while a fault of it lasts.
COMMAND_FAULTS = {
    "sbatch": (
        "accepted, no answer",  # the job is there, the answer never comes
        "no answer",  # the answer never comes, and neither does the job
        "accepted late",  # no answer; the job appears `value` seconds after
        "accepted twice",
        "lost",  # an answer with a job id, and no such job
        "garbage",  # the job is there, the answer makes no sense
        "connection refused",
        "refused",  # invalid for some reason
        "submit limit",
        "slow",
    ),
    "squeue": (
        "no answer",
        "connection refused",
        "garbage",
        "cut off",
        "stale",
        "empty",
        "odd state",
        "slow",
    ),
    "sacct": ("no answer", "connection refused", "garbage", "cut off", "stale", "empty", "slow"),
    "scancel": ("no answer", "connection refused", "ignored"),
    "scontrol": ("no answer", "connection refused", "garbage"),
    "sacctmgr": ("connection refused", "garbage"),
}
# What may happen to the job that is the `ordinal`-th to start, `value` seconds after that.
JOB_FAULTS = (
    "node fails",
    "node fails before the start",
    "taken for dead",  # Slurm says NODE_FAIL while the attempt goes on
    "scancel from outside",
    "requeue",
    "preempted",
    "out of memory",
    "killed",  # the attempt's processes vanish; Slurm says FAILED
    "frozen",  # the node stops executing; Slurm says TIMEOUT in the end
    "application crashes",
    "application hangs",
    "files appear late",
    "held",  # queued for `value` seconds more
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong.

    Attributes
    ----------
    what
        One of `COMMAND_FAULTS` or `JOB_FAULTS`.
    command
        The command that it happens to; empty for a fault of a job.
    begin, seconds
        From when and for how long calls of the command are affected, in seconds since the beginning.
    ordinal
        Of the affected start of a job, from 1.
    value
        Seconds, see above.
    """

    what: str
    command: str = ""
    begin: float = 0.0
    seconds: float = 0.0
    ordinal: int = 0
    value: float = 0.0

    def __post_init__(self) -> None:
        known = COMMAND_FAULTS[self.command] if self.command else JOB_FAULTS
        if self.what not in known:
            raise ValueError(f"no such fault of {self.command or 'a job'}: {self.what!r}; known: {known}")


def load(path: Path) -> tuple[Fault, ...]:
    """Read a fault script: a JSON list of objects with the fields of `Fault`."""
    return tuple(Fault(**item) for item in json.loads(path.read_text()))


def dump(faults: Iterable[Fault]) -> str:
    """Return a fault script as JSON."""
    return json.dumps([asdict(fault) for fault in faults], indent=1)
