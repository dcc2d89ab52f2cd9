"""Open a campaign directory, take the journal's lock, run the loop: start and resume."""

from __future__ import annotations

import functools
import hashlib
import os
import shlex
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator import __version__
from orchestrator.campaign import changes as campaign_changes
from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.control import (
    attempts,
    loop,
    planning,
    preflight,
    priors,
    shapes,
    slurm_preflight,
    store,
    waiting,
)
from orchestrator.control.assembly import Assembly, assemble
from orchestrator.control.disk import Patience
from orchestrator.control.estimation import Granted
from orchestrator.control.execution import executor
from orchestrator.control.keeping import Keeper
from orchestrator.control.notify import Notifier
from orchestrator.control.planning import FirstRound
from orchestrator.control.runtime import Runtime
from orchestrator.errors import CampaignError, ExecutorError, JournalError
from orchestrator.executors.base import Executor, cluster_name
from orchestrator.executors.slurm import ceilings
from orchestrator.executors.slurm.cluster import Cluster
from orchestrator.executors.slurm.options import JobOptions, job_options
from orchestrator.journal import events
from orchestrator.journal.file import (
    FILE_NAME,
    Boundary,
    Entry,
    Journal,
    holds_campaign,
    no_campaign,
    read,
    require_campaign,
    writing,
)
from orchestrator.journal.replay import apply, replay
from orchestrator.journal.state import State, is_rehearsal, validation_run
from orchestrator.models.base import Model
from orchestrator.policy import decide
from orchestrator.report import advice
from orchestrator.storage import write_atomically
from orchestrator.types import Resources
from orchestrator.units import count, format_cost, in_unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Functions that the loop calls: for each entry, for changed rules, for remarks, to ask whether to stop.

    ``boundary`` (see `Journal`) is for tests of crashes. ``again``: continue a campaign that has stopped
    because of failures, or without the points that fail, also with the same rules. ``patient``: wait on a
    full disk instead of stopping. ``begin``: without it, nothing may be begun, as after an interrupt.
    ``cluster``: the name of this one, of which the user says that its runs take the same times as those on
    the one before.
    """

    listen: loop.Listener = lambda entry, state: None
    changed: Callable[[Sequence[str]], None] = lambda changes: None
    remark: Callable[[str], None] = lambda text: None
    interrupted: Callable[[], bool] = lambda: False
    boundary: Boundary | None = None
    cancel_on_interrupt: bool = False
    again: bool = False
    patient: bool = False
    begin: bool = True
    cluster: str = ""


def run(chosen: Campaign, directory: Path, hooks: Hooks) -> State:
    """Start a campaign in ``directory``, or continue the one that is there; return its final state.

    Raises
    ------
    CampaignError
        Before anything is spent: the campaign is impossible, or the directory holds another one.
    ExecutorError
        Before it begins: its executor cannot start anything.
    JournalError
        If another controller holds the directory, or its journal is damaged, or a file cannot be written.
    """
    _refuse_name(directory)
    before = os.umask(0o077)
    os.umask(before | 0o002)  # a script that everybody can write lets everybody act as this user
    try:
        return _run(chosen, directory, hooks)
    finally:
        os.umask(before)


def _run(chosen: Campaign, directory: Path, hooks: Hooks) -> State:
    chosen = priors.informed(chosen, directory)
    built = assemble(chosen)
    cluster = Cluster()  # not asked again in this session
    # Nothing is created for a campaign that cannot begin.
    start = None if holds_campaign(directory) else _prepare(built, directory, cluster)
    if start is not None:
        _refuse_runs_without_journal(directory)
    _create(directory)
    patience = Patience(directory, hooks.remark, hooks.interrupted) if hooks.patient else None
    with Journal(directory, hooks.boundary, patience) as journal, Notifier(chosen, directory) as notifier:
        keeper = Keeper(directory, journal)
        known = replay(notifier.seen(keeper.seen(journal.entries())))
        priors.refuse_other_copy(chosen, known)
        changes = _changes(chosen, known, hooks)

        def listen(entry: Entry, now: State) -> None:
            hooks.listen(entry, now)
            notifier.listen(entry, now)
            keeper.listen(entry, now)

        if known.id:  # also where another controller began the campaign meanwhile
            _refuse_copy(known, directory)
            _refuse_rules(built, known, bool(changes))
            built_executor = executor(chosen, directory, known.time)
            if (changes or known.stopped is None) and (hooks.begin or known.in_flight):
                known, answered = _answered(built_executor, journal, known, listen, notifier, hooks)
                if not answered:
                    return known
            _refuse_cluster(known.cluster, cluster_name(built_executor), hooks.cluster, directory)
            first = _continue(built, directory, known, bool(changes), built_executor, cluster)
        else:
            start = start or _prepare(built, directory, cluster)  # a journal without a complete line
            built_executor, first = start.executor, [_begin(built, directory, start, hooks.remark)]
        if first or not (directory / loader.CAMPAIGN_FILE).exists():
            save(chosen, directory)
        if first:
            known = replay(keeper.seen(journal.append(first, built_executor.now())), known)
        if changes:
            hooks.changed(changes)
        if known.stopped is not None:
            ended = f"{known.stopped.rule} ({known.stopped.detail})"
            hooks.remark(f"nothing is begun: the campaign has stopped: {ended}")
            hooks.remark(advice.to_continue(known, directory))
        granted = _granted(chosen, cluster)
        runtime = Runtime(built, directory, built_executor, hooks.cancel_on_interrupt, patience, granted)
        models = None
        if changes and _is_validation_open(runtime, known):
            models = runtime.fit(known)
            if (missing := _no_validation(runtime, known, models)) is not None:
                hooks.remark(missing)
        notifier.begin(known)
        return loop.run(
            runtime, journal, known, listen, hooks.interrupted if hooks.begin else lambda: True, models
        )


def _answered(
    starter: Executor,
    journal: Journal,
    known: State,
    listen: loop.Listener,
    notifier: Notifier,
    hooks: Hooks,
) -> tuple[State, bool]:
    """Wait until an executor answers, as in `waiting.until_answered`; the outage is notified, too."""

    def remark(text: str) -> None:
        notifier.begin(known)
        hooks.remark(text)

    return waiting.until_answered(starter, journal, known, listen, remark, hooks.interrupted)


@dataclass(frozen=True, slots=True)
class _Start:
    """A campaign that can begin: its executor and its first round."""

    executor: Executor
    plan: FirstRound


def _prepare(built: Assembly, directory: Path, cluster: Cluster) -> _Start:
    """Check that a campaign can begin; raise ``CampaignError`` or ``ExecutorError`` where it cannot."""
    starter = executor(built.campaign, directory, 0.0)
    plan = planning.first_round(built, starter)
    if (why := starter.ready()) is not None:
        raise ExecutorError(f"{why}. Nothing was begun; see: orchestrator doctor")
    refuse_launch(built, cluster)
    refuse_limits(built, plan, cluster)
    return _Start(starter, plan)


def _changes(chosen: Campaign, known: State, hooks: Hooks) -> list[str]:
    """Return in words what differs from the rules so far; nothing for a campaign that has not begun."""
    changes = campaign_changes.changed_rules(chosen, known) if known.id else []
    if hooks.again and campaign_changes.stopped_by_failures(known):
        changes.append("failures are counted from zero, and points that were given up are tried again")
    elif hooks.again and not changes and campaign_changes.left_out(known):
        changes.append("points that were given up or left out are tried again")
    if hooks.begin and known.undecided:
        changes.append("measurements were discarded or restored: what to do next is decided again")
    return changes


def _begin(built: Assembly, directory: Path, start: _Start, remark: Callable[[str], None]) -> events.Event:
    """Return the first event of a campaign; keep what it learned, and say what the user should know."""
    priors.save(built.campaign, directory)
    for text in planning.notes(built.campaign, start.plan):
        remark(f"note: {text}")
    listed = start.executor.name != "simulated"  # rehearsals are no campaigns that one looks for
    if listed and (why := store.add(directory, os.environ)) is not None:
        remark(f"note: {why}")
    return _campaign_started(built, directory, start.plan)


def _continue(
    built: Assembly, directory: Path, known: State, changed: bool, starter: Executor, cluster: Cluster
) -> list[events.Event]:
    """Return the event of a campaign's changed rules, if any.

    Raises ``CampaignError`` where runs cannot start, or Slurm would never start open ones.
    """
    new: list[events.Event] = []
    if changed:
        refuse_launch(built, cluster)
        again = campaign_changes.may_try_again(built.campaign, known)
        elsewhere = campaign_changes.is_elsewhere(built.campaign, known)
        new.append(events.CampaignChanged(dict(built.campaign.raw), again, elsewhere))
        left = campaign_changes.outside(built.campaign, known) if elsewhere else ()
        new += [
            events.RunSkipped(run, "its point is not in the search space any more", unaffordable=False)
            for run in left
        ]
    after = functools.reduce(lambda state, event: apply(state, event, known.time), new, known)
    _refuse_open(built, directory, starter, after, cluster)
    return new


def load(directory: Path, overrides: Sequence[str] = (), starts: bool = False) -> Campaign:
    """Read the campaign that a directory holds; its executable must exist only if a run ``starts``.

    Raises
    ------
    JournalError
        If there is none.
    """
    require(directory)
    return priors.with_copy(loader.of_directory(directory, overrides, starts=starts), directory)


def require(directory: Path) -> None:
    """Raise ``NoCampaign`` unless a directory holds a campaign."""
    require_campaign(directory)
    if not (directory / loader.CAMPAIGN_FILE).exists():
        raise no_campaign(directory, loader.CAMPAIGN_FILE)


def replayed(directory: Path) -> State:
    """Return the state of a campaign without locking it.

    Raises
    ------
    JournalError
        If the directory holds no readable campaign.
    """
    require_campaign(directory)
    return replay(read(directory / FILE_NAME))


def refuse_launch(built: Assembly, cluster: Cluster) -> None:
    """Raise `CampaignError` where runs of the campaign certainly cannot start."""
    chosen = built.campaign
    launcher = preflight.fault(chosen, parallel=not chosen.has_one_rank)
    if launcher is not None:  # of several ranks; a space may have so many points that looking takes a minute
        parallel = any(resources.ranks > 1 for _, resources in shapes.at_points(built))
        launcher = preflight.fault(chosen, parallel)
    if launcher is not None:
        raise CampaignError(f"launcher: {launcher.detail}; {launcher.remedy}. Nothing was begun")
    _refuse(slurm_preflight.start_fault(chosen, shapes.at_points(built), cluster, _refusal))


def _refusal(resources: Resources, options: JobOptions) -> str | None:
    from orchestrator.executors.slurm import sbatch  # brings submitit, for which only Slurm has a use

    return sbatch.refusal(resources, options)


def refuse_limits(built: Assembly, plan: FirstRound, cluster: Cluster) -> None:
    """Raise `CampaignError` where Slurm would never start runs with the time limits of the first round."""
    _refuse(slurm_preflight.limit_fault(built, plan, cluster))


def _refuse_copy(known: State, directory: Path) -> None:
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


def _refuse_cluster(before: str, now: str, meant: str, directory: Path) -> None:
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


def _refuse_open(built: Assembly, directory: Path, starter: Executor, state: State, cluster: Cluster) -> None:
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
    runtime = Runtime(built, directory, starter)
    known = runtime.estimates(state, runtime.fit(state) if state.rounds_completed else ())
    limits = [(run, known.reservation(state, run).limit) for run in waiting]
    _refuse(slurm_preflight.time_fault(built, limits, cluster))


def _refuse(found: preflight.Fault | None) -> None:
    if found is not None:
        raise CampaignError(f"{found.detail}; {found.remedy}. Nothing was begun")


def _granted(chosen: Campaign, cluster: Cluster) -> Granted | None:
    """Return the longest time limits that Slurm grants; None for another executor."""
    options = chosen.executor
    return ceilings.granting(job_options(options.model_dump()), cluster) if options.name == "slurm" else None


def save(chosen: Campaign, directory: Path) -> None:
    """Replace the campaign file of a directory; on a full disk the old one stays."""
    path = directory / loader.CAMPAIGN_FILE
    with writing(path):
        write_atomically(path, loader.dump(chosen))


def _refuse_name(directory: Path) -> None:
    """Raise `CampaignError` where texts that name the directory could not be journaled."""
    try:
        str(directory.absolute()).encode()
    except UnicodeEncodeError as error:
        raise CampaignError(
            f"the directory {os.fsencode(directory)!r} has a name that is not UTF-8: rename it, or give "
            "another --directory"
        ) from error


def _refuse_runs_without_journal(directory: Path) -> None:
    """Raise `CampaignError` where runs are kept of a campaign whose journal is gone."""
    if next((directory / attempts.RUNS).glob("*/*/*"), None) is not None:
        raise CampaignError(
            f"{directory} has runs of a campaign, but {FILE_NAME} is missing: restore it, or give another "
            f"--directory. Outputs and profiles of these runs are still below {directory / attempts.RUNS}"
        )


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


def _create(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o755)
    except OSError as error:
        raise CampaignError(
            f"the directory {directory} cannot be created: {error.strerror}; give another --directory"
        ) from error
    if directory.stat().st_mode & 0o002:
        raise CampaignError(
            f"everybody can write into {directory}, and so decide what is executed there: chmod o-w it, or "
            "give another --directory"
        )


def _is_validation_open(runtime: Runtime, known: State) -> bool:
    """Return whether a campaign that has models is still to make its validation."""
    wanted = runtime.policy.validation_point is not None
    return wanted and known.validation is None and known.rounds_completed > 0


def _no_validation(runtime: Runtime, known: State, models: tuple[Model, ...]) -> str | None:
    """Return why a campaign cannot make the validation that it asks for under its new rules, or None.

    That is no reason to refuse them: models may still change, and the figures at the end decide.
    """
    point, estimates = runtime.policy.validation_point, runtime.estimates(known, models)
    if point is None or decide.kept_for_validation(known, runtime.policy, estimates):
        return None
    need, budget = estimates.least(known, validation_run(known, point)), runtime.policy.budget
    unit = runtime.policy.unit
    return (
        f"validate: true, but as models stand the run at {point} ({decide.occupied(need)}) "
        f"needs {format_cost(need.reserved, unit)}, and {in_unit(budget - known.spent, unit)} of "
        f"{in_unit(budget, unit)} are left: it is not made unless stop.budget is at least "
        f"{format_cost(known.spent + need.reserved, unit)}; nothing is kept back for it"
    )


def _campaign_started(built: Assembly, directory: Path, plan: FirstRound) -> events.Event:
    digest = hashlib.sha256(f"{socket.gethostname()}:{directory.resolve()}:{time.time_ns()}".encode())
    raw = dict(built.campaign.raw)
    learned = built.campaign.learned
    known = {} if learned is None else learned.summary()
    return events.CampaignStarted(digest.hexdigest()[:8], raw, __version__, plan.derived_limit, known)


def _refuse_rules(built: Assembly, known: State, changed: bool) -> None:
    """Raise `CampaignError` where a campaign cannot continue by these rules, whatever Slurm says.

    What is measured may not differ, as such measurements cannot be mixed; the budget may not be less than
    what is spent and reserved; and the machine must hold the runs that are open.
    """
    if (why := campaign_changes.refusal(built.campaign, known)) is not None:
        raise CampaignError(why)
    if changed or known.stopped is None:
        _refuse_machine(built, known)
