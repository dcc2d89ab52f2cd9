"""The longest job that Slurm would ever start: by its partition, its QOS and the user's association.

A job that asks for more is refused, or stays queued for ever: which of both depends on the site. What Slurm
does not say is taken to be no limit.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from orchestrator.executors.attempt.worker import OVERRUN
from orchestrator.executors.slurm.cluster import Association, Cluster, Enforced
from orchestrator.executors.slurm.options import START_UP, JobOptions, minutes
from orchestrator.executors.slurm.partitions import Partition, meant
from orchestrator.types import Resources
from orchestrator.units import format_duration

_ASK_AGAIN = 600.0  # seconds until Slurm is asked again for limits that it did not say


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
    found = [
        *_of_partitions(possible, options, limits),
        *_of_accounting([item.name for item in possible], options, limits),
    ]
    return min(found, key=lambda item: item.seconds, default=None)


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


def _of_accounting(names: Sequence[str], options: JobOptions, limits: Enforced) -> Iterator[Ceiling]:
    """Yield the limit by QOS and association, where all associations that a job may be under have one."""
    found = [
        _under(item, chosen(options, "qos") or item.default_qos, names, limits)
        for item in _mine(options, limits)
        if item.partition in ("", *names)
    ]
    stated = [item for item in found if item is not None]
    if stated and len(stated) == len(found):
        yield max(stated, key=lambda item: item.seconds)


def _mine(options: JobOptions, limits: Enforced) -> list[Association]:
    account = chosen(options, "account")
    return [item for item in limits.associations if account in (None, item.account)]


def _under(association: Association, qos: str, possible: Sequence[str], limits: Enforced) -> Ceiling | None:
    """Return the limit of the first that states one: the partition's QOS, the job's QOS, the association."""
    names = [qos]
    if len(possible) == 1:
        names.insert(0, limits.of_partition.get(possible[0], ""))
    if qos in limits.qos and "OverPartQOS" in limits.qos[qos].flags:
        names.reverse()
    for name in names:
        wall = limits.qos[name].wall if name in limits.qos else None
        if wall is not None:
            return Ceiling(wall, f"QOS {name}")
    return None if association.wall is None else Ceiling(association.wall, f"account {association.account}")
