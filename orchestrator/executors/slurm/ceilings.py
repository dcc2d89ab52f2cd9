"""The longest job that Slurm would ever start: by its partition, its QOS and the user's association.

A job that asks for more is refused, or stays queued for ever: which of both depends on the site. What Slurm
does not say is taken to be no limit.
"""

from __future__ import annotations

import functools
import getpass
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.executors.attempt.worker import OVERRUN
from orchestrator.executors.slurm.commands import answer, parse_configuration
from orchestrator.executors.slurm.options import START_UP, JobOptions, minutes
from orchestrator.executors.slurm.partitions import Partition, meant, parse_time, partitions
from orchestrator.types import Resources
from orchestrator.units import format_duration

_SHOW = ("sacctmgr", "--noheader", "--parsable2", "show")
_NORMAL = "normal"  # the QOS of jobs that name none, where no other is their default


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Qos:
    """A QOS: the longest job in seconds (None: no limit of its own), and its flags."""

    wall: float | None
    flags: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """What limits a user under one account; in all partitions if ``partition`` is empty."""

    account: str
    partition: str
    qos: str
    wall: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Enforced:
    """What accounting limits; empty where it limits nothing, or does not say so.

    Attributes
    ----------
    qos
        By name.
    associations
        Of the user.
    of_partition
        The QOS of partitions that have one.
    """

    qos: Mapping[str, Qos] = field(default_factory=dict)
    associations: tuple[Association, ...] = ()
    of_partition: Mapping[str, str] = field(default_factory=dict)


def enforced(ask: Callable[[Sequence[str]], str | None] = answer) -> Enforced:
    """Ask Slurm for the limits of accounting; ``ask`` returns what a command prints, None if it fails."""
    configuration = parse_configuration(ask(["scontrol", "show", "config"]) or "")
    if not {"limits", "safe"} & set(configuration.get("AccountingStorageEnforce", "").split(",")):
        return Enforced()
    known = ask([*_SHOW, "qos", "format=Name,MaxWall,Flags"])
    if known is None:  # the next question would take as long
        return Enforced()
    mine = ["associations", f"user={getpass.getuser()}", f"cluster={configuration.get('ClusterName', '')}"]
    return Enforced(
        qos=parse_qos(known),
        associations=parse_associations(
            ask([*_SHOW, *mine, "format=Account,Partition,QOS,DefaultQOS,MaxWall"]) or ""
        ),
        of_partition=parse_partition_qos(ask(["scontrol", "--oneliner", "show", "partition"]) or ""),
    )


def parse_qos(text: str) -> dict[str, Qos]:
    """Read lines of ``sacctmgr show qos format=Name,MaxWall,Flags``."""
    rows = (line.split("|") for line in text.splitlines())
    return {
        row[0]: Qos(wall=parse_time(row[1]), flags=frozenset(row[2].split(",")))
        for row in rows
        if len(row) == 3
    }


def parse_associations(text: str) -> tuple[Association, ...]:
    """Read lines of ``sacctmgr show associations format=Account,Partition,QOS,DefaultQOS,MaxWall``."""
    rows = (line.split("|") for line in text.splitlines())
    return tuple(
        Association(account=row[0], partition=row[1], qos=_default(row[2], row[3]), wall=parse_time(row[4]))
        for row in rows
        if len(row) == 5
    )


def _default(allowed: str, stated: str) -> str:
    """Return the QOS of a job that names none; empty where that is not known."""
    names = allowed.split(",")
    return stated or (names[0] if len(names) == 1 else _NORMAL if _NORMAL in names else "")


def parse_partition_qos(text: str) -> dict[str, str]:
    """Read lines of ``scontrol --oneliner show partition``: the QOS of each partition that has one."""
    rows = (dict(word.partition("=")[::2] for word in line.split()) for line in text.splitlines())
    return {
        row["PartitionName"]: row["QoS"]
        for row in rows
        if "PartitionName" in row and row.get("QoS", "N/A") != "N/A"
    }


def chosen(options: JobOptions, name: str) -> str | None:
    """Return an option by its key; where the campaign leaves it out, that of the user's environment."""
    stated: str | None = getattr(options, name)
    return stated if stated is not None else os.environ.get(f"SBATCH_{name.upper()}") or None


def ceiling(options: JobOptions, known: Sequence[Partition], limits: Enforced) -> Ceiling | None:
    """Return the longest job with these options that starts at all; None where nothing is known to limit it.

    Parameters
    ----------
    options
        Of jobs of one size.
    known
        The partitions of the cluster.
    limits
        What accounting limits.
    """
    possible = meant(known, chosen(options, "partition"))
    found = [
        *_of_partitions(possible, options, limits),
        *_of_accounting([item.name for item in possible], options, limits),
    ]
    return min(found, key=lambda item: item.seconds, default=None)


def granting(options: JobOptions) -> Callable[[Resources], tuple[float, str]]:
    """Return the longest time limit of a run with some resources, and by what; Slurm is asked once."""
    known, limits = functools.cache(partitions), functools.cache(enforced)

    @functools.cache
    def granted(resources: Resources) -> tuple[float, str]:
        most = ceiling(options.fitting(resources), known(), limits())
        return (math.inf, "") if most is None else (max(most.limit, 0.0), most.of)

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
    names = {qos or "", *(item.qos for item in _mine(options, limits)), *limits.of_partition.values()}
    return any(name in limits.qos and flag in limits.qos[name].flags for name in names)


def _of_accounting(names: Sequence[str], options: JobOptions, limits: Enforced) -> Iterator[Ceiling]:
    """Yield the limit by QOS and association, where all associations that a job may be under have one."""
    found = [
        _under(item, chosen(options, "qos") or item.qos, names, limits)
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
