"""Whether Slurm would ever start the runs of a campaign: faults that are certain before the first run.

What Slurm does not say is no fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import SlurmOptions
from orchestrator.control.assembly import Assembly
from orchestrator.control.planning import FirstRound
from orchestrator.control.preflight import Fault
from orchestrator.executors.slurm.ceilings import Width, ceiling, chosen, lifted, widest
from orchestrator.executors.slurm.cluster import Cluster
from orchestrator.executors.slurm.options import JobOptions, job_options, minutes
from orchestrator.executors.slurm.partitions import Partition, meant
from orchestrator.types import Point, Resources, Run
from orchestrator.units import count, format_duration

Refusal = Callable[[Resources, JobOptions], str | None]
"""Asks Slurm why it would take no job with these resources and options."""


@dataclass(frozen=True, slots=True)
class _Jobs:
    """Jobs of the same partition, account and so on: their options, and what each size of them needs."""

    options: JobOptions
    sizes: list[Resources]


def start_fault(
    campaign: Campaign, runs: Iterable[tuple[Point, Resources]], cluster: Cluster, refusal: Refusal
) -> Fault | None:
    """Return a fault where Slurm would reject runs, never start them, or charge more than is known.

    Parameters
    ----------
    campaign
        The campaign; only on Slurm there is anything to look at.
    runs
        Points with their resources.
    cluster
        Where runs are to start.
    refusal
        Asked for the smallest run of every partition.
    """
    options = campaign.executor
    if not isinstance(options, SlurmOptions):
        return None
    points = _first_points(runs)
    jobs = _by_options(options, points)
    return (
        _node_fault(options, points, cluster)
        or _submission_fault(jobs, refusal)
        or _size_fault(jobs, points, cluster)
    )


def size_fault(campaign: Campaign, runs: Iterable[tuple[Point, Resources]], cluster: Cluster) -> Fault | None:
    """Return a fault where a run needs more than its partition ever has, or than accounting ever allows.

    Parameters are those of `start_fault`, which looks at this, too.
    """
    options = campaign.executor
    if not isinstance(options, SlurmOptions):
        return None
    points = _first_points(runs)
    return _size_fault(_by_options(options, points), points, cluster)


def uncounted_threads(options: SlurmOptions, possible: Sequence[Partition]) -> tuple[int, str] | None:
    """Return the hardware threads of a core that Slurm charges and the campaign does not count, and a text.

    None where the campaign counts all.

    Parameters
    ----------
    options
        Of the campaign.
    possible
        Partitions that its jobs may be in.
    """
    widest = max(possible, key=lambda item: item.threads, default=None)
    if widest is None or widest.threads <= options.threads_per_core:
        return None
    return widest.threads, (
        f"Slurm counts {widest.threads} hardware threads for each core of {widest.name} and charges whole "
        "cores: more than what is reserved"
    )


def notes(campaign: Campaign, cluster: Cluster) -> list[str]:
    """Return what the user of Slurm should know before the first run; nothing for other executors."""
    options = campaign.executor
    if not isinstance(options, SlurmOptions):
        return []
    jobs = job_options(options.model_dump())
    names = ",".join(jobs.partitions()) or chosen(jobs, "partition")
    possible = meant(cluster.partitions, names)
    if (uncounted := uncounted_threads(options, possible)) is None:
        return []
    threads, text = uncounted
    return [f"{text} before the first run is charged; set executor.threads_per_core: {threads}"]


def limit_fault(built: Assembly, plan: FirstRound, cluster: Cluster) -> Fault | None:
    """Return a fault where Slurm would never start runs with the time limits of the first round."""
    runs = list(zip(plan.runs, plan.limits, strict=True))
    point = built.campaign.evaluation_point
    if plan.validation is not None and point is not None:
        runs.append((Run(point), plan.validation.limit))
    return time_fault(built, runs, cluster)


def time_fault(built: Assembly, runs: Iterable[tuple[Run, float]], cluster: Cluster) -> Fault | None:
    """Return a fault where the time limit of a run is more than Slurm allows a job: it would never start.

    Parameters
    ----------
    built
        The campaign; only on Slurm there is anything to look at.
    runs
        Runs with their time limits in seconds.
    cluster
        Where runs are to start.
    """
    options = built.campaign.executor
    if not isinstance(options, SlurmOptions):
        return None
    longest: dict[Resources, tuple[float, Run]] = {}
    for run, limit in runs:
        resources = built.resources(run.point)
        if resources not in longest or limit > longest[resources][0]:
            longest[resources] = limit, run
    for jobs in _by_options(options, longest):
        limit, run = max((longest[size] for size in jobs.sizes), key=lambda item: item[0])
        most = ceiling(jobs.options, cluster)
        if most is not None and not most.holds(limit):
            return Fault(
                f"{run.point} {run.kind} may take {format_duration(limit)}, for which its job needs "
                f"{minutes(limit)} min, and {most.of} allows {format_duration(most.seconds)}: "
                "such runs never start",
                most.remedy(built.campaign.slowdown(run.kind)),
            )
    return None


def _first_points(runs: Iterable[tuple[Point, Resources]]) -> dict[Resources, Point]:
    """Return the first point of each size of runs."""
    points: dict[Resources, Point] = {}
    for point, resources in runs:
        points.setdefault(resources, point)
    return points


def _by_options(options: SlurmOptions, sizes: Iterable[Resources]) -> list[_Jobs]:
    """Group sizes of runs by the options of their jobs, which are those of the partition for the size."""
    whole = job_options(options.model_dump())
    jobs: dict[tuple[str | None, ...], _Jobs] = {}
    for item in sizes:
        own = whole.fitting(item)
        jobs.setdefault(tuple(own.named().values()), _Jobs(own, [])).sizes.append(item)
    return list(jobs.values())


def _node_fault(options: SlurmOptions, points: Mapping[Resources, Point], cluster: Cluster) -> Fault | None:
    """Return a fault where a node's size is not known, and decides whether runs start or what they cost.

    Without ``executor.cores_per_node`` a run that states no nodes goes to one node, whatever its size. Where
    whole nodes are charged, it decides what a run costs.
    """
    if options.cores_per_node or options.by_size:
        return None
    widest = max(points, key=_cores, default=Resources(ranks=1))
    candidates = [item for item in meant(cluster.partitions, options.partition) if item.cores]
    largest = max(candidates, key=_most_cores, default=None)
    if largest is None:
        return None
    remedy = f"set executor.cores_per_node: {largest.cores[-1]}"
    if _cores(widest) > _most_cores(largest):
        return Fault(_no_node_holds(points[widest], widest, largest), remedy)
    if options.exclusive or options.billing == "nodes":
        word = "exclusive" if options.exclusive else "billing: nodes"
        return Fault(
            f"executor.{word}: whole nodes are charged, and executor.cores_per_node is not set. A node of "
            f"partition {largest.name} has {largest.cores[-1]} cores; only those of the ranks are reserved",
            remedy,
        )
    return None


def _no_node_holds(point: Point, resources: Resources, largest: Partition) -> str:
    where, cores = f"nodes of partition {largest.name} have {largest.cores[-1]}", f"{_cores(resources)} cores"
    if resources.nodes > 1:
        return f"{point} needs {cores} on each of {resources.nodes} nodes, {where}: Slurm would reject it"
    return (
        f"executor.cores_per_node is not set, so every run goes to one node; {point} needs {cores}, "
        f"{where}: Slurm would reject it"
    )


def _submission_fault(every: Sequence[_Jobs], refusal: Refusal) -> Fault | None:
    """Return a fault where Slurm has no such partition, account or the like: it would reject every run."""
    for jobs in every:
        why = refusal(min(jobs.sizes, key=lambda item: item.ranks * item.threads), jobs.options)
        if why is not None:
            stated = jobs.options.named().items()
            named = ", ".join(f"executor.{name}={value}" for name, value in stated if value is not None)
            detail = f"Slurm would reject every run{f' with {named}' if named else ''}: {why}"
            return Fault(detail, "correct the options below executor; orchestrator doctor checks each")
    return None


def _size_fault(every: Sequence[_Jobs], points: Mapping[Resources, Point], cluster: Cluster) -> Fault | None:
    """Return a fault where a run needs more than its partition ever has, or than accounting ever allows."""
    for jobs in every:
        partitions = meant(cluster.partitions, chosen(jobs.options, "partition"))
        if partitions and all(item.cores for item in partitions):
            for size in jobs.sizes:
                fault = _too_large(points[size], size, partitions, jobs.options, cluster)
                if fault is not None:
                    return fault
        for kind, unit, needed in (("cpu", "CPU", _cpus), ("node", "node", _nodes)):
            fault = _not_allowed(jobs, points, widest(jobs.options, cluster, kind), unit, needed)
            if fault is not None:
                return fault
    return None


def _not_allowed(
    jobs: _Jobs,
    points: Mapping[Resources, Point],
    most: Width | None,
    unit: str,
    needed: Callable[[Resources, JobOptions], int],
) -> Fault | None:
    """Return a fault where the largest of these jobs needs more of a unit than accounting allows."""
    largest = max(jobs.sizes, key=lambda size: needed(size, jobs.options))
    if most is None or needed(largest, jobs.options) <= most.amount:
        return None
    return Fault(
        f"{points[largest]} needs {count(needed(largest, jobs.options), unit)}, and {most.of} {most.allows} "
        f"{most.amount}: such runs never start",
        f"set another executor.{most.of.split()[0].lower()}, or exclude such points by constraints",
    )


def _cpus(size: Resources, options: JobOptions) -> int:
    """Return the CPUs that Slurm allocates at least; of hardware threads it may allocate more."""
    return size.cores if options.exclusive else size.ranks * size.threads


def _nodes(size: Resources, options: JobOptions) -> int:
    return size.nodes


def _too_large(
    point: Point, size: Resources, partitions: Sequence[Partition], options: JobOptions, cluster: Cluster
) -> Fault | None:
    """Return a fault where none of the partitions that a run may be in ever has what it needs."""
    names = " and ".join(item.name for item in partitions)
    large = [item for item in partitions if _cores(size) <= _most_cores(item)]
    if not large:
        cores = max(item.cores[-1] for item in partitions)
        return Fault(
            f"{point} needs {_cores(size)} cores of a node, and nodes of partition {names} have {cores}: "
            "such runs never start",
            f"correct executor.cores_per_node ({cores}) or resources, or set another executor.partition",
        )
    nodes = max(item.most_nodes for item in large)
    if size.nodes > nodes and lifted("PartitionMaxNodes", options, cluster.enforced):
        nodes = max(item.nodes for item in large)
    if size.nodes > nodes:
        return Fault(
            f"{point} needs {count(size.nodes, 'node')}, and a job in partition {names} gets at most "
            f"{nodes}: such runs never start",
            "set another executor.partition, or exclude such points by constraints",
        )
    return None


def _cores(resources: Resources) -> int:
    """Return the cores that a run needs of each of its nodes."""
    return resources.ranks_per_node * resources.threads


def _most_cores(partition: Partition) -> int:
    """Return as what the largest node of a partition counts for Slurm, which may count hardware threads."""
    return partition.cores[-1] * partition.threads
