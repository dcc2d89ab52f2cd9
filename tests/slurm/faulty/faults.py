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

SITE = "site"
# What may happen to the daemons, the clocks and the file system of a site while a fault lasts.
SITE_FAULTS = (
    "controller away",  # slurmctld is down, and knows everything when it is back
    "controller killed",  # the same, but it has forgotten the jobs of its last `value` seconds
    "controller hangs",  # nothing is answered; what was asked meanwhile is done when it goes on
    "accounting away",  # slurmdbd is down
    "both away",
    "controller's clock",  # is set by `value` seconds, forwards or backwards
    "nodes' clocks",
    "our clock",
    "files late",  # what nodes write is seen `value` seconds later by our host
    "output late",  # the same, for what the application printed only
    "signs late",  # the same, for claims and signs of life only
)
# Where a job may be when a fault of the site begins; the `ordinal`-th time that a job gets there.
MOMENTS = (
    "submitting",
    "queued",
    "starting",  # it has its node, and its first attempt has not begun
    "running",
    "between",  # one run of a shared job is over, the next one has not begun
    "ending",  # its last attempt has ended, the job has not
    "ended",  # slurmctld knows, accounting may not
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong.

    Attributes
    ----------
    what
        One of `COMMAND_FAULTS`, `JOB_FAULTS` or `SITE_FAULTS`.
    command
        The command that it happens to; `SITE` for a fault of the site; empty for a fault of a job.
    begin, seconds
        From when and for how long calls of the command, or the site, are affected, in seconds since the
        beginning.
    ordinal
        Of the affected start of a job, or of the moment, from 1.
    value
        Seconds, see above.
    moment
        One of `MOMENTS`: a fault of the site begins then, and not at ``begin``. Empty otherwise.
    """

    what: str
    command: str = ""
    begin: float = 0.0
    seconds: float = 0.0
    ordinal: int = 0
    value: float = 0.0
    moment: str = ""

    def __post_init__(self) -> None:
        known = {"": JOB_FAULTS, SITE: SITE_FAULTS, **COMMAND_FAULTS}[self.command]
        if self.what not in known:
            raise ValueError(f"no such fault of {self.command or 'a job'}: {self.what!r}; known: {known}")
        if self.moment and (self.command != SITE or self.moment not in MOMENTS):
            raise ValueError(
                f"no such moment of {self.command or 'a job'}: {self.moment!r}; known: {MOMENTS}"
            )


def load(path: Path) -> tuple[Fault, ...]:
    """Read a fault script: a JSON list of objects with the fields of `Fault`."""
    return tuple(Fault(**item) for item in json.loads(path.read_text()))


def dump(faults: Iterable[Fault]) -> str:
    """Return a fault script as JSON."""
    return json.dumps([asdict(fault) for fault in faults], indent=1)
