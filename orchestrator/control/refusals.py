"""Why a campaign cannot begin, or continue, in a directory on this machine; raised before anything changes.

`orchestrator.control.session` asks these in order. What fails later, while the campaign runs, costs a run.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from orchestrator.campaign import changes as campaign_changes
from orchestrator.control import attempts, preflight, shapes, slurm_preflight
from orchestrator.control.assembly import Assembly
from orchestrator.control.planning import FirstRound
from orchestrator.control.runtime import Runtime
from orchestrator.errors import CampaignError, JournalError
from orchestrator.executors.base import Executor
from orchestrator.executors.slurm.cluster import Cluster
from orchestrator.executors.slurm.options import JobOptions
from orchestrator.journal import events
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.journal.state import State, is_rehearsal
from orchestrator.types import Resources
from orchestrator.units import count


def refuse_name(directory: Path) -> None:
    """Raise `CampaignError` where texts that name the directory could not be journaled."""
    try:
        str(directory.absolute()).encode()
    except UnicodeEncodeError as error:
        raise CampaignError(
            f"the directory {os.fsencode(directory)!r} has a name that is not UTF-8: rename it, or give "
            "another --directory"
        ) from error


def refuse_runs_without_journal(directory: Path) -> None:
    """Raise `CampaignError` where runs are kept of a campaign whose journal is gone."""
    if next((directory / attempts.RUNS).glob("*/*/*"), None) is not None:
        raise CampaignError(
            f"{directory} has runs of a campaign, but {FILE_NAME} is missing: restore it, or give another "
            f"--directory. Outputs and profiles of these runs are still below {directory / attempts.RUNS}"
        )


def refuse_launch(built: Assembly, cluster: Cluster) -> None:
    """Raise `CampaignError` where runs of the campaign certainly cannot start."""
    chosen = built.campaign
    launcher = preflight.fault(chosen, parallel=not chosen.has_one_rank)
    if launcher is not None:  # of several ranks; a space may have so many points that looking takes a minute
        parallel = any(resources.ranks > 1 for _, resources in shapes.at_points(built))
        launcher = preflight.fault(chosen, parallel)
    _refuse(launcher)
    _refuse(slurm_preflight.start_fault(chosen, shapes.at_points(built), cluster, _refusal))


def _refusal(resources: Resources, options: JobOptions) -> str | None:
    from orchestrator.executors.slurm import sbatch  # brings submitit, for which only Slurm has a use

    return sbatch.refusal(resources, options)


def refuse_limits(built: Assembly, plan: FirstRound, cluster: Cluster) -> None:
    """Raise `CampaignError` where Slurm would never start runs with the time limits of the first round."""
    _refuse(slurm_preflight.limit_fault(built, plan, cluster))


def refuse_copy(known: State, directory: Path) -> None:
    """Raise `CampaignError` in a copy of a campaign whose attempts are in flight.

    They belong to the original, and write there. A directory that was moved is no copy: nothing is left of
    it where it was.
    """
    original = Path(known.directory)
    if not known.directory or not known.in_flight or is_rehearsal(known.campaign):
        return
    try:
        # Not samefile: the same file system may be mounted twice.
        same = original.stat().st_ino == directory.stat().st_ino
        first = next(read(original / FILE_NAME)).event
    except (OSError, JournalError, StopIteration):
        return
    if same or not isinstance(first, events.CampaignStarted) or first.id != known.id:
        return
    number = count(len(known.in_flight), "attempt")
    raise CampaignError(
        f"{directory} is a copy of {original}, and {number} in flight can only be found there: resume the "
        "original, and copy it again when nothing is in flight; or remove the original if this copy is to "
        "replace it. Nothing was changed"
    )


def refuse_cluster(before: str, now: str, meant: str, directory: Path) -> None:
    """Raise `CampaignError` on another cluster than before, as far as both are known, or than is ``meant``.

    It does not know the jobs that are out, and its nodes take other times, unless the user says otherwise.
    """
    if meant and meant != now:
        raise CampaignError(
            f"--cluster {meant}: here is {f'the cluster {now}' if now else 'no cluster'}. Nothing was changed"
        )
    if before and now and before != now and not meant:
        raise CampaignError(
            f"the runs of this campaign are those of the cluster {before}, and here is the cluster {now}: "
            f"measurements cannot be mixed. Resume it on {before}, or begin another campaign: orchestrator "
            "run CAMPAIGN.yaml --directory DIR; with priors.campaigns in its file it begins with what this "
            f"one has learned. If {before} was only renamed, or has the same nodes: orchestrator resume "
            f"{shlex.quote(str(directory))} --cluster {shlex.quote(now)}. Nothing was changed"
        )


def refuse_rules(built: Assembly, known: State, changed: bool) -> None:
    """Raise `CampaignError` where a campaign cannot continue by these rules, whatever Slurm says.

    What is measured may not differ, as such measurements cannot be mixed; the budget may not be less than
    what is spent and reserved; and the machine must hold the runs that are open.
    """
    if (why := campaign_changes.refusal(built.campaign, known)) is not None:
        raise CampaignError(why)
    if changed or known.stopped is None:
        _refuse_machine(built, known)


def _refuse_machine(built: Assembly, known: State) -> None:
    """Raise `CampaignError` where the machine cannot hold a run that is open."""
    begun = [attempt.run for attempt in (*known.in_flight, *known.unconfirmed)]
    for run in (*begun, *known.failed, *known.waiting):
        try:
            built.resources(run.point)
        except ValueError as error:
            raise CampaignError(
                f"{run} is not settled, and the machine cannot hold it: {error}. Nothing was changed"
            ) from error


def refuse_open_runs(
    built: Assembly, directory: Path, executor: Executor, state: State, cluster: Cluster
) -> None:
    """Raise `CampaignError` where Slurm would never start the runs that are open.

    Limits that the user has not stated are lowered to what is granted.
    """
    waiting, chosen = (*state.failed, *state.waiting), built.campaign
    if chosen.executor.name != "slurm" or chosen.measure.time_limit is None:
        return
    if state.stopped is not None or not waiting:
        return
    most = [
        (run, chosen.slowdown(run.kind) * limit)
        for run in waiting
        if (limit := chosen.time_limit(run.point)) is not None
    ]
    # No attempt gets more, so that no models need be fitted.
    if slurm_preflight.time_fault(built, most, cluster) is None:
        return
    runtime = Runtime(built, directory, executor)
    known = runtime.estimates(state, runtime.fit(state) if state.rounds_completed else ())
    limits = [(run, known.reservation(state, run).limit) for run in waiting]
    _refuse(slurm_preflight.time_fault(built, limits, cluster))


def _refuse(fault: preflight.Fault | None) -> None:
    if fault is not None:
        raise CampaignError(f"{fault.detail}; {fault.remedy}. Nothing was begun")
