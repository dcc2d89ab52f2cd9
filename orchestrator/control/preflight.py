"""Whether the runs of a campaign can start at all: faults that are certain before the first run."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import SlurmOptions
from orchestrator.control import preloading
from orchestrator.errors import OrchestratorError
from orchestrator.executors.slurm.ceilings import ceiling, chosen, lifted
from orchestrator.executors.slurm.cluster import Cluster
from orchestrator.executors.slurm.options import JobOptions, job_options, minutes
from orchestrator.executors.slurm.partitions import Partition, meant
from orchestrator.launch import mpi, script
from orchestrator.types import Point, Resources, Run
from orchestrator.units import count, format_duration

_NAMES = {"openmpi": "Open MPI", "mpich": "MPICH (or derived)"}
_WORDS = ("time", "command", "builtin", "eval", "exec")  # words of the shell, no programs
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*")


@dataclass(frozen=True, slots=True)
class Fault:
    """Why the launcher cannot work, and what to do."""

    detail: str
    remedy: str


def fault(campaign: Campaign, ranks: int, which: Callable[[str], str | None] = shutil.which) -> Fault | None:
    """Return what certainly prevents runs, or None.

    Parameters
    ----------
    campaign
        The campaign; with a simulated executor nothing is launched.
    ranks
        The most ranks that a run has: with one rank, the launcher's MPI does not matter.
    which
        Finds a program on PATH.
    """
    if campaign.executor.name == "simulated":
        return None
    unmeasurable = _unmeasurable(campaign)
    if unmeasurable is not None:
        return unmeasurable
    program = _program(campaign.executor.launcher)
    if program is not None and which(program) is None:
        return _absent(program) if _nothing_loads_it(campaign, program) else None
    return _mpi_mismatch(campaign, program, which) if ranks > 1 else None


def node_fault(campaign: Campaign, runs: Iterable[tuple[Point, Resources]], cluster: Cluster) -> Fault | None:
    """Return a fault where Slurm would reject runs, or charge more than is known, for want of a node's size.

    Without ``executor.cores_per_node`` a run that states no nodes goes to one node, whatever its size. Where
    whole nodes are charged, it decides what a run costs.

    Parameters
    ----------
    campaign
        The campaign.
    runs
        Points with their resources.
    cluster
        Asked only if the answer matters.
    """
    options = campaign.executor
    if not isinstance(options, SlurmOptions) or options.cores_per_node or options.by_size:
        return None
    sizes = [(item.ranks_per_node * item.threads, item.nodes, point) for point, item in runs]
    need, nodes, point = max(sizes, key=lambda size: size[0], default=(0, 1, None))
    whole = options.exclusive or options.billing == "nodes"
    if need <= 1 and not whole:
        return None
    candidates = [item for item in meant(cluster.partitions, options.partition) if item.cores]
    largest = max(candidates, key=lambda item: item.cores[-1] * item.threads, default=None)
    if largest is None:
        return None
    remedy = f"set executor.cores_per_node: {largest.cores[-1]}"
    if need > largest.cores[-1] * largest.threads:
        return Fault(_no_node_holds(point, need, nodes, largest), remedy)
    if whole:
        word = "exclusive" if options.exclusive else "billing: nodes"
        return Fault(
            f"executor.{word}: whole nodes are charged, and executor.cores_per_node is not set. A node of "
            f"partition {largest.name} has {largest.cores[-1]} cores; only those of the ranks are reserved",
            remedy,
        )
    return None


def size_fault(
    campaign: Campaign,
    runs: Iterable[tuple[Point, Resources]],
    cluster: Cluster,
) -> Fault | None:
    """Return a fault where a run needs more nodes, or more cores of a node, than its partition ever has.

    Parameters
    ----------
    campaign
        The campaign.
    runs
        Points with their resources.
    cluster
        Where runs are to start.
    """
    if not isinstance(campaign.executor, SlurmOptions):
        return None
    options = job_options(campaign.executor.model_dump())
    every: dict[tuple[int, int, int], tuple[Point, Resources]] = {}
    for point, item in runs:
        every.setdefault((item.nodes, item.ranks_per_node * item.threads, item.ranks), (point, item))
    for point, item in every.values():
        own = options.fitting(item)
        partitions = meant(cluster.partitions, chosen(own, "partition"))
        if not partitions or not all(partition.cores for partition in partitions):
            continue
        need = item.ranks_per_node * item.threads
        large = [partition for partition in partitions if need <= partition.cores[-1] * partition.threads]
        names = " and ".join(partition.name for partition in partitions)
        if not large:
            cores = max(partition.cores[-1] for partition in partitions)
            return Fault(
                f"{point} needs {need} cores of a node, and nodes of partition {names} have {cores}: "
                "such runs never start",
                f"correct executor.cores_per_node ({cores}) or resources, or set another executor.partition",
            )
        nodes = max(partition.most_nodes for partition in large)
        if item.nodes > nodes and lifted("PartitionMaxNodes", own, cluster.enforced):
            nodes = max(partition.nodes for partition in large)
        if item.nodes > nodes:
            return Fault(
                f"{point} needs {count(item.nodes, 'node')}, and a job in partition {names} gets at most "
                f"{nodes}: such runs never start",
                "set another executor.partition, or exclude such points by constraints",
            )
    return None


def time_fault(
    campaign: Campaign,
    runs: Iterable[tuple[Run, Resources, float]],
    cluster: Cluster,
) -> Fault | None:
    """Return a fault where the time limit of a run is more than Slurm allows a job: it would never start.

    Parameters
    ----------
    campaign
        The campaign.
    runs
        Runs with their resources and time limits in seconds.
    cluster
        Where runs are to start.
    """
    if not isinstance(campaign.executor, SlurmOptions):
        return None
    options = job_options(campaign.executor.model_dump())
    longest: dict[tuple[str | None, ...], tuple[float, Run, JobOptions]] = {}
    for run, item, limit in runs:
        own = options.fitting(item)
        key = tuple(own.named().values())
        longest[key] = max(longest.get(key, (0.0, run, own)), (limit, run, own), key=lambda entry: entry[0])
    for limit, run, own in longest.values():
        most = ceiling(own, cluster)
        if most is not None and not most.holds(limit):
            return Fault(
                f"{run.point} {run.kind} may take {format_duration(limit)}, for which its job needs "
                f"{minutes(limit)} min, and {most.of} allows {format_duration(most.seconds)}: "
                "such runs never start",
                most.remedy(campaign.slowdown(run.kind)),
            )
    return None


def submission_fault(
    campaign: Campaign, runs: Iterable[Resources], refusal: Callable[[Resources, JobOptions], str | None]
) -> Fault | None:
    """Return a fault where Slurm has no such partition, account or the like: it would reject every run.

    Parameters
    ----------
    campaign
        The campaign.
    runs
        What its runs need. The smallest run of every partition is asked for.
    refusal
        Asks Slurm why it would take no job with these resources and options.
    """
    if not isinstance(campaign.executor, SlurmOptions):
        return None
    options = job_options(campaign.executor.model_dump())
    smallest: dict[tuple[str | None, ...], Resources] = {}
    for item in sorted(runs, key=lambda item: item.ranks * item.threads):
        smallest.setdefault(tuple(options.fitting(item).named().values()), item)
    for item in smallest.values():
        why = refusal(item, options)
        if why is not None:
            stated = options.fitting(item).named().items()
            named = ", ".join(f"executor.{name}={value}" for name, value in stated if value is not None)
            detail = f"Slurm would reject every run{f' with {named}' if named else ''}: {why}"
            return Fault(detail, "correct the options below executor; orchestrator doctor checks each")
    return None


def _no_node_holds(point: Point | None, need: int, nodes: int, largest: Partition) -> str:
    where, cores = f"nodes of partition {largest.name} have {largest.cores[-1]}", f"{need} cores"
    if nodes > 1:
        return f"{point} needs {cores} on each of {nodes} nodes, {where}: Slurm would reject it"
    return (
        f"executor.cores_per_node is not set, so every run goes to one node; {point} needs {cores}, "
        f"{where}: Slurm would reject it"
    )


def most_ranks(resources: Iterable[Resources]) -> int:
    """Return 1 where no run has several ranks, else a number above 1."""
    return next((item.ranks for item in resources if item.ranks > 1), 1)


def _unmeasurable(campaign: Campaign) -> Fault | None:
    """Return a fault where what the profiler needs in the program cannot be built."""
    try:
        preloading.libraries(campaign.measure.profiler, campaign.executable)
    except OrchestratorError as error:
        detail, _, remedy = str(error).partition(": ")
        return Fault(f"measure.profiler {campaign.measure.profiler}: {detail}", remedy or "use another")
    return None


def _program(pattern: str | None) -> str | None:
    """Return the program that a configured launcher begins with, None without one."""
    if pattern is None or pattern.strip() in script.NO_LAUNCHER:
        return None
    words = shlex.split(pattern)
    if words and words[0].rpartition("/")[2] == "env":
        words = list(itertools.dropwhile(_ASSIGNMENT.fullmatch, words[1:]))
    return words[0] if words and words[0] not in _WORDS and not words[0].startswith("-") else None


def _nothing_loads_it(campaign: Campaign, program: str) -> bool:
    """Whether a program that is not on PATH here is certainly missing in a run, too."""
    options = campaign.executor
    variables = {*options.environment, *(campaign.program.environment if campaign.program else ())}
    relative = os.sep in program and not os.path.isabs(program)  # noqa: PTH117 (no path is meant)
    loads = options.prologue or options.modules or options.template is not None or "PATH" in variables
    return options.name == "local" and not loads and not relative


def _absent(program: str) -> Fault:
    return Fault(
        f"{program} of executor.launcher is not on PATH here, and nothing loads it: every run would fail",
        "correct executor.launcher, remove it to have one found, or load it in executor.modules or "
        "executor.prologue",
    )


def _mpi_mismatch(
    campaign: Campaign, program: str | None, which: Callable[[str], str | None]
) -> Fault | None:
    """Return a fault where the launcher and a program certainly belong to different MPI libraries."""
    effort = campaign.measure.effort
    for executable in (campaign.executable, *([effort.executable] if effort is not None else [])):
        linked = mpi.linked_mpi(executable)
        path, kind = _launcher(campaign, program, executable, which)
        if linked in _NAMES and kind in _NAMES and linked != kind:
            return Fault(
                f"{path} is of {_NAMES[kind]}, {executable} is linked with {_NAMES[linked]}: every rank "
                "would run alone, as a program of one rank",
                f"put the mpiexec of {_NAMES[linked]} on PATH or into executor.launcher, or rebuild it",
            )
    return None


def _launcher(
    campaign: Campaign, program: str | None, executable: str, which: Callable[[str], str | None]
) -> tuple[str, str]:
    """Return the path of the launcher of an executable, and its MPI; both empty where that is not certain."""
    options = campaign.executor
    if program is None:
        none = options.launcher is not None or (options.mpi is not None and options.name == "slurm")
        found = mpi.Launcher(kind="none") if none else mpi.detect(executable, options.name)
        return found.path, found.kind
    path = which(program) or ""
    certain = os.path.isabs(program) or not (options.prologue or options.modules)  # noqa: PTH117
    if not certain or path.rpartition("/")[2] == "srun":
        return "", ""
    return path, mpi.flavour_of(path)
