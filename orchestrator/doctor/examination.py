"""All checks in their order, in groups."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator import assembly, planning
from orchestrator.campaign import Campaign
from orchestrator.doctor import campaign, installation, machine, on_slurm, slurm
from orchestrator.doctor.check import Check, Probe, failed, needed, ok
from orchestrator.errors import CampaignError, OrchestratorError
from orchestrator.launchers import detect


@dataclass(frozen=True, slots=True)
class Group:
    """Checks that belong together."""

    title: str
    checks: tuple[Check, ...]


def examine(load: Callable[[], Campaign] | None, directory: Path | None, probe: Probe) -> Iterator[Group]:
    """Yield the results group by group, as they come.

    Parameters
    ----------
    load
        Reads the campaign, if one is to be checked; raises ``CampaignError``.
    directory
        Its directory; by default ``./NAME``.
    probe
        How to look at the machine.
    """
    yield Group("installation", tuple(installation.checks()))
    yield Group("this machine", tuple(_machine(probe)))
    found, cluster = slurm.examine(probe, getpass.getuser())
    chosen, loaded = _load(load)
    on_cluster = chosen is not None and chosen.executor.name == "slurm"
    yield Group("Slurm", tuple(needed(found) if on_cluster else found))
    if loaded is None:
        return
    if chosen is None:
        yield Group("campaign", tuple(needed([loaded])))
        return
    checks = [loaded, *campaign.checks(chosen, directory or Path(chosen.name), probe)]
    if cluster is not None and on_cluster:
        checks += _on_slurm(chosen, cluster)
    yield Group(f"campaign {chosen.name}", tuple(needed(checks)))


def prevented(groups: Sequence[Group]) -> list[Check]:
    """Return the checks that stand in the way."""
    return [check for group in groups for check in group.checks if check.prevents]


def _machine(probe: Probe) -> Iterator[Check]:
    yield machine.cores(len(os.sched_getaffinity(0)), os.cpu_count())
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
    return chosen, ok("campaign file", detail)


def _on_slurm(chosen: Campaign, cluster: slurm.Cluster) -> list[Check]:
    try:
        built = assembly.assemble(chosen)
    except CampaignError:  # reported by `campaign.checks`
        return []
    try:
        executor = assembly.executor(chosen, Path(chosen.name), 0.0)
        longest: float | None = max(planning.first_round(built, executor).limits)
    except OrchestratorError:  # likewise
        longest = None
    return list(on_slurm.checks(chosen.executor, cluster, campaign.largest_run(built), longest))
