"""All checks of `orchestrator doctor`, in groups and in order."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import SlurmOptions
from orchestrator.control import assembly
from orchestrator.control.planning import FirstRound
from orchestrator.doctor import (
    campaign,
    executor_section,
    installation,
    launch_script,
    machine,
    slurm,
    trial_run,
)
from orchestrator.doctor.check import Check, failed, needed, ok
from orchestrator.doctor.examined import Examined
from orchestrator.doctor.probe import Probe
from orchestrator.errors import CampaignError
from orchestrator.executors.attempt.processes import cpu_times
from orchestrator.executors.slurm.cluster import Cluster
from orchestrator.launch.mpi import detect
from orchestrator.types import Resources

_LOOK = 0.5  # seconds over which the load of the machine is measured


@dataclass(frozen=True, slots=True)
class Group:
    """Checks that belong together."""

    title: str
    checks: tuple[Check, ...]


def examine(
    load: Callable[[], Campaign] | None,
    directory: Path | None,
    probe: Probe,
    interrupted: Callable[[], bool] | None,
) -> Iterator[Group]:
    """Yield the results group by group, as they come.

    Parameters
    ----------
    load
        Reads the campaign, if one is to be checked; raises ``CampaignError``.
    directory
        Its directory; by default ``./NAME``.
    probe
        How to look at the machine.
    interrupted
        If given, the smallest point of the campaign is run once at the end (and charged), unless a check
        failed. It returns True when the user interrupts.
    """
    yield Group("installation", tuple(installation.checks()))
    yield Group("this machine", tuple(_machine(probe)))
    found, cluster = slurm.examine(probe)
    chosen, loaded = _load(load)
    on_cluster = chosen is not None and chosen.executor.name == "slurm"
    yield Group("Slurm", tuple(needed(found) if on_cluster else found))
    if loaded is None:
        return
    if chosen is None:
        yield Group("campaign", tuple(needed([loaded])))
        return
    examined = _assembled(chosen, directory or Path(chosen.name))
    checks = [loaded, *([examined] if isinstance(examined, Check) else campaign.checks(examined, probe))]
    if chosen.executor.name != "simulated":
        checks += launch_script.checks(chosen.executor, probe)
    if cluster is not None and on_cluster and isinstance(examined, Examined):
        checks += _on_slurm(examined, cluster, probe)
    group = Group(f"campaign {chosen.name}", tuple(needed(checks)))
    yield group
    unusable = on_cluster and cluster is None
    if interrupted is not None and not unusable and not prevented([group]):
        run = trial_run.checks(chosen, directory or Path(chosen.name), probe, interrupted)
        yield Group("one run", tuple(needed(run)))


def prevented(groups: Sequence[Group]) -> list[Check]:
    """Return the checks that prevent a run."""
    return [check for group in groups for check in group.checks if check.prevents]


def _machine(probe: Probe) -> Iterator[Check]:
    usable = os.sched_getaffinity(0)
    yield machine.cores(len(usable), os.cpu_count())
    before = cpu_times()
    time.sleep(_LOOK)
    yield machine.load(before, cpu_times(), _LOOK, usable)
    yield from machine.mpi(detect("", "local"), probe)
    yield from machine.compilers(probe)
    yield machine.scorep(probe)


def _load(load: Callable[[], Campaign] | None) -> tuple[Campaign | None, Check | None]:
    if load is None:
        return None, None
    try:
        chosen = load()
    except CampaignError as error:
        return None, failed("campaign file", str(error), "correct the file")
    detail = f"{chosen.application} on the {chosen.executor.name} executor, strategy {chosen.strategy.name}"
    if chosen.site:
        detail += f", site {chosen.site}"
    return chosen, ok("campaign file", detail)


def _assembled(chosen: Campaign, directory: Path) -> Examined | Check:
    try:
        return Examined(assembly.assemble(chosen), directory)
    except CampaignError as error:
        return failed("search space", str(error), "change the campaign file")


def _on_slurm(examined: Examined, cluster: Cluster, probe: Probe) -> list[Check]:
    section, plan = examined.built.campaign.executor, examined.first_round
    if not isinstance(section, SlurmOptions):
        return []
    longest = max(plan.limits) if isinstance(plan, FirstRound) else None
    found = list(executor_section.of_jobs(section, probe))
    for options, runs in _sizes(section, examined.sizes):
        largest = max(runs, key=lambda item: item.cores)
        found += executor_section.of_size(options, cluster, largest, longest)
        gpus = max(item.gpus_per_node for item in runs)
        asking = options.model_copy(update={"gpus_per_node": gpus or None})
        found += executor_section.of_partition(asking, cluster, probe)
    found += executor_section.never_started(examined, cluster)
    return list(dict.fromkeys(found))  # several sizes of runs share an account, say


def _sizes(
    options: SlurmOptions, every: Collection[Resources]
) -> Iterator[tuple[SlurmOptions, list[Resources]]]:
    """Yield the options for every size of runs that there is, with what these runs occupy."""
    if not options.by_size:
        yield options, list(every)
    least = 0.0
    for item in options.by_size:
        most = item.up_to or math.inf
        fitting = [runs for runs in every if least < runs.ranks * runs.threads <= most]
        least = most
        if fitting:
            given = item.model_dump(exclude={"up_to"})
            own = {key: value for key, value in given.items() if value is not None}
            yield options.model_copy(update={**own, "by_size": ()}), fitting
