"""The longest and the largest job that Slurm would ever start: by partition, QOS and the user's association.

A job that asks for more is refused, or stays queued for ever: which of both depends on the site. What Slurm
does not say is taken to be no limit.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from orchestrator.executors.attempt.worker import OVERRUN
from orchestrator.executors.slurm.cluster import Association, Cluster, Enforced, Qos
from orchestrator.executors.slurm.options import START_UP, JobOptions, minutes
from orchestrator.executors.slurm.partitions import Partition, meant
from orchestrator.types import Resources
from orchestrator.units import format_duration

_N = TypeVar("_N", int, float)
_ASK_AGAIN = 600.0  # seconds until Slurm is asked again for limits that it did not say
# Fields of `Most`, in words that follow the name of whose limit it is.
_MOST = {
    "job": "allows a job",
    "user": "allows the jobs of a user",
    "account": "allows the jobs of an account",
    "together": "allows all its jobs together",
}


@dataclass(frozen=True, slots=True)
class Width:
    """The most of something that a job may occupy, and whose limit that is, such as ``QOS short``."""

    amount: int
    of: str
    allows: str


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The longest job that starts, in seconds, and whose limit that is, such as ``partition debug``."""

    seconds: float
    of: str

    def holds(self, limit: float) -> bool:
        """Return whether a job of one run with this time limit starts."""
        return 60 * minutes(limit) <= self.seconds

    @property
    def limit(self) -> float:
        """The longest time limit of a run alone in its job, in seconds."""
        return 60 * (self.seconds // 60) - START_UP - OVERRUN

    def remedy(self, slowdown: float = 1.0) -> str:
        """Return what to change in a campaign file whose run may take ``slowdown`` times its time limit."""
        key = f"another executor.{self.of.split()[0].lower()}"
        longest = self.limit / slowdown
        longest -= longest % (60 if longest > 600 else 1)
        if longest <= 0:
            return f"set {key}"
        return f"set measure.time_limit to at most {format_duration(longest)}, or {key}"


def chosen(options: JobOptions, name: str) -> str | None:
    """Return an option by its key; where the campaign leaves it out, that of the user's environment."""
    stated: str | None = getattr(options, name)
    return stated if stated is not None else os.environ.get(f"SBATCH_{name.upper()}") or None


def ceiling(options: JobOptions, cluster: Cluster) -> Ceiling | None:
    """Return the longest job with these options that starts at all; None where nothing is known to limit it.

    Parameters
    ----------
    options
        Of jobs of one size.
    cluster
        Where the jobs are to be.
    """
    wall = _highest(options, cluster, lambda item: item.wall)
    ceilings = [*_of_partitions(options, cluster), *([] if wall is None else [Ceiling(*wall)])]
    return min(ceilings, key=lambda item: item.seconds, default=None)


def granting(
    options: JobOptions,
    cluster: Cluster,
    again: Callable[[], Cluster] = Cluster,
    clock: Callable[[], float] = time.monotonic,
) -> Callable[[Resources], tuple[float, str]]:
    """Return what says the longest time limit of a run with some resources, and by what.

    Parameters
    ----------
    options, cluster
        Of the campaign's jobs, and where they are to be.
    again, clock
        Give a cluster that is asked anew, and the seconds after which it is, while Slurm has not said all.
    """
    asked = clock()
    known: dict[Resources, tuple[float, str]] = {}

    def granted(resources: Resources) -> tuple[float, str]:
        nonlocal cluster, asked
        if not cluster.complete and clock() - asked >= _ASK_AGAIN:
            cluster, asked = again(), clock()
            known.clear()
        if resources not in known:
            most = ceiling(options.fitting(resources), cluster)
            known[resources] = (math.inf, "") if most is None else (max(most.limit, 0.0), most.of)
        return known[resources]

    return granted


def _of_partitions(options: JobOptions, cluster: Cluster) -> Iterator[Ceiling]:
    possible = _possible(options, cluster)
    times = [item.time for item in possible if item.time is not None]
    if not times or len(times) < len(possible):  # a job starts in whichever partition takes it
        return
    if not lifted("PartitionTimeLimit", options, cluster.enforced):
        yield Ceiling(max(times), f"partition {' and '.join(item.name for item in possible)}")


def lifted(flag: str, options: JobOptions, limits: Enforced) -> bool:
    """Return whether the QOS of a job may lift a limit of its partition, by this flag."""
    qos = chosen(options, "qos")
    if qos is not None and qos not in limits.qos:
        return True  # nothing is known of it
    names = {qos or "", *(item.default_qos for item in _mine(options, limits)), *limits.of_partition.values()}
    return any(name in limits.qos and flag in limits.qos[name].flags for name in names)


def widest(options: JobOptions, cluster: Cluster, kind: str) -> Width | None:
    """Return the most that one of these jobs may occupy; None where accounting sets no limit that is known.

    Parameters
    ----------
    options, cluster
        As of `ceiling`.
    kind
        ``cpu`` or ``node``, as Slurm calls it.
    """
    widths: list[Width] = []
    for field, allows in _MOST.items():
        most = _highest(options, cluster, partial(_amount, field=field, kind=kind))
        widths += [] if most is None else [Width(*most, allows)]
    return min(widths, key=lambda item: item.amount, default=None)


def _amount(item: Qos | Association, field: str, kind: str) -> int | None:
    """Return one amount of a text such as ``cpu=512,node=8``; None where it has no such amount."""
    pairs = (text.partition("=") for text in getattr(item.most, field).split(","))
    return next((int(amount) for name, _, amount in pairs if name == kind and amount.isdecimal()), None)


def _highest(
    options: JobOptions, cluster: Cluster, stated: Callable[[Qos | Association], _N | None]
) -> tuple[_N, str] | None:
    """Return the highest limit, and whose it is, where all associations that a job may be under have one."""
    limits: list[tuple[_N, str]] = []
    for owners in _limiting(options, cluster):
        stating = ((limit, of) for of, item in owners if (limit := stated(item)) is not None)
        if (first := next(stating, None)) is None:
            return None
        limits.append(first)
    return max(limits, key=lambda item: item[0], default=None)


def _limiting(options: JobOptions, cluster: Cluster) -> Iterator[list[tuple[str, Qos | Association]]]:
    """Yield what limits a job under each association that it may be under; the first with a limit counts.

    That is the partition's QOS, then the job's QOS, then the association.
    """
    limits, names = cluster.enforced, [item.name for item in _possible(options, cluster)]
    for item in _mine(options, limits):
        if item.partition not in ("", *names):
            continue
        own = chosen(options, "qos") or item.default_qos
        order = [limits.of_partition.get(names[0], ""), own] if len(names) == 1 else [own]
        if own in limits.qos and "OverPartQOS" in limits.qos[own].flags:
            order.reverse()
        of_qos = [(f"QOS {name}", limits.qos[name]) for name in order if name in limits.qos]
        yield [*of_qos, (f"account {item.account}", item)]


def _mine(options: JobOptions, limits: Enforced) -> list[Association]:
    account = chosen(options, "account")
    return [item for item in limits.associations if account in (None, item.account)]


def _possible(options: JobOptions, cluster: Cluster) -> Sequence[Partition]:
    """Return the partitions that jobs may be in."""
    return meant(cluster.partitions, chosen(options, "partition"))
