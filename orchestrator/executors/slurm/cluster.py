"""What Slurm reports of itself: its settings, its partitions, and what accounting grants this user."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from orchestrator.executors.slurm.commands import answer
from orchestrator.executors.slurm.partitions import Partition, parse_time, partitions

_CONFIGURATION = ("scontrol", "show", "config")
_PARTITIONS = ("scontrol", "--all", "--oneliner", "show", "partition")  # hidden ones, too
_SHOW = ("sacctmgr", "--noheader", "--parsable2", "show")
_QOS = (
    "format=Name,MaxWall,Flags,MaxSubmitJobsPerUser,GrpSubmitJobs,MaxTRES,MaxTRESPerUser,MaxTRESPerAccount,"
    "GrpTRES"
)
_ASSOCIATIONS = (
    "format=Account,Partition,QOS,DefaultQOS,MaxJobs,MaxSubmitJobs,GrpSubmitJobs,MaxWall,MaxTRES,GrpTRES"
)
_NO_ACCOUNTING = ("", "(null)", "accounting_storage/none")
_NORMAL = "normal"  # the QOS of jobs that name none, where no other is their default

Ask = Callable[[Sequence[str]], str | None]
"""Returns what a command prints; None where it fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Most:
    """The most of each resource, as Slurm prints it, such as ``cpu=512,node=8``. Empty: no such limit.

    For a job, and for all jobs at once of a user, of an account, and of whoever else is limited together.
    """

    job: str = ""
    user: str = ""
    account: str = ""
    together: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Qos:
    """A QOS: the longest job in seconds, its flags, the most jobs queued or running. None: no such limit.

    ``submitted`` limits each user, ``submitted_by_all`` all users together, ``most`` what jobs may occupy.
    """

    wall: float | None
    flags: frozenset[str]
    submitted: int | None = None
    submitted_by_all: int | None = None
    most: Most = field(default_factory=Most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """What the user may do under one account. None: no such limit."""

    # account, partition: of the jobs that it is about; all partitions if ``partition`` is empty.
    account: str
    partition: str
    qos: tuple[str, ...]  # that jobs may have
    default_qos: str  # of jobs that name none; empty where that is not known
    jobs: int | None  # the most that run at once
    # submitted, submitted_by_all: the most that are queued or running: of this user, and of all users of the
    # account.
    submitted: int | None
    submitted_by_all: int | None
    wall: float | None  # of the longest job, in seconds
    most: Most = field(default_factory=Most)  # what jobs may occupy


@dataclass(frozen=True, slots=True, kw_only=True)
class Enforced:
    """What accounting limits; empty where it limits nothing, or does not say so."""

    qos: Mapping[str, Qos] = field(default_factory=dict)  # by name
    associations: tuple[Association, ...] = ()  # of the user
    of_partition: Mapping[str, str] = field(default_factory=dict)  # the QOS of partitions that have one


class Cluster:
    """The Slurm that this machine belongs to.

    Slurm is asked when an answer is first needed, and not again: whoever needs what holds later makes another
    object.

    Parameters
    ----------
    ask
        Asks Slurm.

    Attributes
    ----------
    complete
        Whether every question so far was answered.
    """

    def __init__(self, ask: Ask = answer) -> None:
        self.complete = True
        self._answer = ask

    def _ask(self, command: Sequence[str]) -> str | None:
        found = self._answer(command)
        self.complete &= found is not None
        return found

    @cached_property
    def configuration(self) -> Mapping[str, str]:
        """Return the settings by name; empty where Slurm's controller does not answer."""
        return parse_configuration(self._ask(_CONFIGURATION) or "")

    @cached_property
    def partitions(self) -> tuple[Partition, ...]:
        """Return the partitions; empty where Slurm does not say."""
        return partitions(self._ask)

    @cached_property
    def partition_settings(self) -> Mapping[str, Mapping[str, str]]:
        """Return the settings of partitions by name; empty where Slurm does not say."""
        return parse_partition_settings(self._ask(_PARTITIONS) or "")

    @property
    def accounting(self) -> bool:
        """Whether there is a database of finished jobs."""
        return self.configuration.get("AccountingStorageType", "") not in _NO_ACCOUNTING

    @cached_property
    def associations(self) -> tuple[Association, ...] | None:
        """Return what the user may do, by account; None without accounting, or where it does not answer."""
        if not self.accounting:
            return None
        query = [*_SHOW, "associations", f"user={getpass.getuser()}"]
        if name := self.configuration.get("ClusterName"):  # the database may serve other clusters, too
            query.append(f"cluster={name}")
        text = self._ask([*query, _ASSOCIATIONS])
        return None if text is None else parse_associations(text)

    @cached_property
    def qos(self) -> Mapping[str, Qos] | None:
        """Return every QOS by name; None without accounting, or where it does not answer."""
        if self.associations is None:  # the next question would take as long
            return None
        text = self._ask([*_SHOW, "qos", _QOS])
        return None if text is None else parse_qos(text)

    @cached_property
    def enforced(self) -> Enforced:
        """Return what limits jobs."""
        kept = set(self.configuration.get("AccountingStorageEnforce", "").split(","))
        if not kept & {"limits", "safe"} or self.associations is None or self.qos is None:
            return Enforced()
        of_partition = {name: row.get("QoS", "N/A") for name, row in self.partition_settings.items()}
        return Enforced(
            qos=self.qos,
            associations=self.associations,
            of_partition={name: qos for name, qos in of_partition.items() if qos != "N/A"},
        )


def parse_configuration(text: str) -> dict[str, str]:
    """Read the ``Name = value`` lines of ``scontrol show config``."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}


def parse_partition_settings(text: str) -> dict[str, dict[str, str]]:
    """Read lines of ``scontrol --oneliner show partition``."""
    rows = (dict(word.partition("=")[::2] for word in line.split()) for line in text.splitlines())
    return {row["PartitionName"]: row for row in rows if "PartitionName" in row}


def parse_qos(text: str) -> dict[str, Qos]:
    """Read lines of ``sacctmgr show qos``; those with other fields than asked for say nothing."""
    rows = (line.split("|") for line in text.splitlines())
    return {
        row[0]: Qos(
            wall=parse_time(row[1]),
            flags=frozenset(row[2].split(",")),
            submitted=_limit(row[3]),
            submitted_by_all=_limit(row[4]),
            most=Most(job=row[5], user=row[6], account=row[7], together=row[8]),
        )
        for row in rows
        if len(row) == 9
    }


def parse_associations(text: str) -> tuple[Association, ...]:
    """Read lines of ``sacctmgr show associations``; those with other fields than asked for say nothing."""
    associations = []
    for line in text.splitlines():
        fields = line.split("|")
        if len(fields) == 10:
            account, partition, qos, default, jobs, submitted, by_all, wall, of_job, together = fields
            names = tuple(filter(None, qos.split(",")))
            associations.append(
                Association(
                    account=account,
                    partition=partition,
                    qos=names,
                    default_qos=default or _default(names),
                    jobs=_limit(jobs),
                    submitted=_limit(submitted),
                    submitted_by_all=_limit(by_all),
                    wall=parse_time(wall),
                    most=Most(job=of_job, together=together),
                )
            )
    return tuple(associations)


def _default(allowed: Sequence[str]) -> str:
    """Return the QOS of a job that names none, where no default is stated; empty if that is not known."""
    return allowed[0] if len(allowed) == 1 else _NORMAL if _NORMAL in allowed else ""


def _limit(text: str) -> int | None:
    return int(text) if text.isdecimal() else None
