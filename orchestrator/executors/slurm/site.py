"""Those settings of a Slurm that decide how jobs are submitted, followed and charged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.executors.slurm.ceilings import chosen
from orchestrator.executors.slurm.cluster import Ask, Association, Cluster, Qos
from orchestrator.executors.slurm.options import JobOptions

_DEFAULT_ARRAY = 1001  # Slurm's own default of MaxArraySize


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Settings of a Slurm; the defaults are Slurm's own."""

    cluster: str = ""  # its name; empty where it is not known
    accounting: bool = True  # whether there is a ``slurmdbd`` for ``sacct`` to ask
    over_time_limit: float = 0.0  # minutes that a job may exceed its limit
    remembered: float = 300.0  # seconds for which ``squeue`` still shows a job that has ended (``MinJobAge``)
    array_size: int = _DEFAULT_ARRAY  # most elements of an array
    # Most jobs, queued or running, that this user may have; None without such a limit.
    submit_limit: int | None = None


def read_site(ask: Ask, job: JobOptions) -> Site | None:
    """Ask Slurm now; return None if its controller does not answer, or prints something else.

    Parameters
    ----------
    ask
        Asks Slurm.
    job
        Of the campaign: limits of other accounts, QOS and partitions do not matter.
    """
    cluster = Cluster(ask)
    configuration = cluster.configuration
    if "KillWait" not in configuration:  # other output must not pass for a site without accounting
        return None
    names = job.partitions() or tuple(filter(None, (chosen(job, "partition") or "").split(",")))
    over_time = over_time_limits(cluster.partition_settings, names)
    if not cluster.complete:  # a partition that is not known must not pass for one that ends jobs in time
        return None
    return Site(
        cluster=configuration.get("ClusterName", ""),
        accounting=cluster.accounting,
        over_time_limit=max([_number(configuration.get("OverTimeLimit"), 0.0), *over_time]),
        remembered=_number(configuration.get("MinJobAge"), 300.0),
        array_size=max(1, int(_number(configuration.get("MaxArraySize"), _DEFAULT_ARRAY))),
        submit_limit=min(_submit_limits(cluster, job), default=None),
    )


def over_time_limits(settings: Mapping[str, Mapping[str, str]], names: Sequence[str]) -> list[float]:
    """Return what these partitions state, in minutes.

    Without ``names`` those that are the default count. A partition without a limit of its own has that of the
    cluster.
    """
    chosen = [
        row for name, row in settings.items() if (name in names if names else row.get("Default") == "YES")
    ]
    return [_number(row.get("OverTimeLimit"), 0.0) for row in chosen]


def _submit_limits(cluster: Cluster, job: JobOptions) -> Iterator[int]:
    """Yield what limits the number of jobs; where nothing is known, ``sbatch`` refuses what is too much."""
    account, qos = chosen(job, "account"), chosen(job, "qos")
    limiting: list[Association | Qos] = [
        item for item in cluster.associations or () if account in (None, item.account)
    ]
    if qos is not None and cluster.qos is not None and qos in cluster.qos:
        limiting.append(cluster.qos[qos])
    for item in limiting:
        yield from (most for most in (item.submitted, item.submitted_by_all) if most is not None)


def _number(text: str | None, default: float) -> float:
    """Return the number of ``30 sec``; the default for UNLIMITED and for a missing entry."""
    found = re.match(r"\d+", text or "")
    return float(found[0]) if found else default
