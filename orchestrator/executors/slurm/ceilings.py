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
    possible, limits = meant(cluster.partitions, chosen(options, "partition")), cluster.enforced
    ceilings = [
        *_of_partitions(possible, options, limits),
        *_of_accounting([item.name for item in possible], options, limits),
    ]
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


def _of_partitions(possible: Sequence[Partition], options: JobOptions, limits: Enforced) -> Iterator[Ceiling]:
    times = [item.time for item in possible if item.time is not None]
    if not times or len(times) < len(possible):  # a job starts in whichever partition takes it
        return
    if not lifted("PartitionTimeLimit", options, limits):
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
    names = [item.name for item in meant(cluster.partitions, chosen(options, "partition"))]
    widths: list[Width] = []
    for field, allows in _MOST.items():
        stated = partial(_amount, field=field, kind=kind)
        under = _under_each(options, names, cluster.enforced, stated)
        widths += [Width(amount, of, allows) for amount, of in _highest(under)]
    return min(widths, key=lambda item: item.amount, default=None)


def _amount(item: Qos | Association, field: str, kind: str) -> int | None:
    """Return one amount of a text such as ``cpu=512,node=8``; None where it has no such amount."""
    pairs = (text.partition("=") for text in getattr(item.most, field).split(","))
    return next((int(amount) for name, _, amount in pairs if name == kind and amount.isdecimal()), None)


def _of_accounting(names: Sequence[str], options: JobOptions, limits: Enforced) -> Iterator[Ceiling]:
    """Yield the limit of time by QOS and association."""
    under = _under_each(options, names, limits, lambda item: item.wall)
    yield from (Ceiling(wall, of) for wall, of in _highest(under))


def _highest(under: Sequence[tuple[_N, str] | None]) -> Iterator[tuple[_N, str]]:
    """Yield the highest limit, where all associations that a job may be under have one."""
    stated = [item for item in under if item is not None]
    if stated and len(stated) == len(under):
        yield max(stated, key=lambda item: item[0])


def _under_each(
    options: JobOptions,
    names: Sequence[str],
    limits: Enforced,
    stated: Callable[[Qos | Association], _N | None],
) -> list[tuple[_N, str] | None]:
    """Return a limit, and whose it is, under each association that a job may be under."""
    return [
        _under(item, chosen(options, "qos") or item.default_qos, names, limits, stated)
        for item in _mine(options, limits)
        if item.partition in ("", *names)
    ]


def _mine(options: JobOptions, limits: Enforced) -> list[Association]:
    account = chosen(options, "account")
    return [item for item in limits.associations if account in (None, item.account)]


def _under(
    association: Association,
    qos: str,
    possible: Sequence[str],
    limits: Enforced,
    stated: Callable[[Qos | Association], _N | None],
) -> tuple[_N, str] | None:
    """Return the limit of the first that states one: the partition's QOS, the job's QOS, the association."""
    names = [qos]
    if len(possible) == 1:
        names.insert(0, limits.of_partition.get(possible[0], ""))
    if qos in limits.qos and "OverPartQOS" in limits.qos[qos].flags:
        names.reverse()
    for name in names:
        limit = stated(limits.qos[name]) if name in limits.qos else None
        if limit is not None:
            return limit, f"QOS {name}"
    limit = stated(association)
    return None if limit is None else (limit, f"account {association.account}")
