"""Open a campaign directory, take the journal's lock, run the loop: start and resume."""

from __future__ import annotations

import functools
import hashlib
import os
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
    cautions,
    execution,
    existing,
    loop,
    planning,
    priors,
    refusals,
    slurm_preflight,
    store,
    waiting,
)
from orchestrator.control.assembly import Assembly, assemble
from orchestrator.control.disk import Patience
from orchestrator.control.estimation import Granted
from orchestrator.control.keeping import Keeper
from orchestrator.control.notify import Notifier
from orchestrator.control.planning import FirstRound
from orchestrator.control.runtime import Runtime
from orchestrator.errors import CampaignError, ExecutorError
from orchestrator.executors.base import Executor, cluster_name
from orchestrator.executors.slurm import ceilings
from orchestrator.executors.slurm.cluster import Cluster
from orchestrator.executors.slurm.options import job_options
from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.file import holds_campaign
from orchestrator.journal.replay import apply, replay
from orchestrator.journal.state import State
from orchestrator.journal.writer import Boundary, Journal
from orchestrator.report import advice


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Functions that the loop calls: for each entry, for changed rules, for remarks, to ask whether to stop.

    ``boundary`` (see `Journal`) is for tests of crashes. ``again``: continue a campaign that has stopped
    because of failures, or without the points that fail, also with the same rules. ``patient``: wait on a
    full disk instead of stopping. ``begin``: without it, nothing may be begun, as after an interrupt.
    ``cancel_on_interrupt``: an interrupt ends the runs in flight, which are charged.
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


UNWATCHED = Hooks()
"""Nobody listens, nothing interrupts."""


def run(chosen: Campaign, directory: Path, hooks: Hooks = UNWATCHED) -> State:
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
    refusals.refuse_name(directory)
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
        refusals.refuse_runs_without_journal(directory)
    _create(directory)
    patience = Patience(directory, hooks.remark, hooks.interrupted) if hooks.patient else None
    with Journal(directory, hooks.boundary, patience) as journal, Notifier(chosen, directory) as notifier:
        session = _Session(
            built=built,
            directory=directory,
            hooks=hooks,
            cluster=cluster,
            patience=patience,
            journal=journal,
            notifier=notifier,
            keeper=Keeper(directory, journal),
        )
        return session.run(start)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """A campaign and the open journal of its directory, which no other controller can write meanwhile."""

    built: Assembly
    directory: Path
    hooks: Hooks
    cluster: Cluster
    patience: Patience | None
    journal: Journal
    notifier: Notifier
    keeper: Keeper

    def run(self, start: _Start | None) -> State:
        """Begin the campaign, or continue the one that the journal has; return its final state."""
        known = replay(self.notifier.seen(self.keeper.seen(self.journal.entries())))
        priors.refuse_other_copy(self.built.campaign, known)
        changes = _changes(self.built.campaign, known, self.hooks)
        if known.id:  # also where another controller began the campaign meanwhile
            refusals.refuse_copy(known, self.directory)
            refusals.refuse_rules(self.built, known, bool(changes))
            executor = execution.executor(self.built.campaign, self.directory, known.time)
            known, answered = self._until_answered(executor, known, bool(changes))
            if not answered:
                return known
            here = cluster_name(executor)  # known only now that it answers
            refusals.refuse_cluster(known.cluster, here, self.hooks.cluster, self.directory)
            if changes:
                refusals.refuse_launch(self.built, self.cluster)
            new = _change_of_rules(self.built, known) if changes else []
            after = functools.reduce(lambda state, event: apply(state, event, known.time), new, known)
            refusals.refuse_open_runs(self.built, self.directory, executor, after, self.cluster)
        else:
            # Not prepared yet where there is a journal without a complete line.
            start = start or _prepare(self.built, self.directory, self.cluster)
            begun = _begin(self.built, self.directory, start, self.cluster, self.hooks.remark)
            executor, new = start.executor, [begun]
        known = self._record(new, executor, known)
        self._say(changes, known)
        return self._loop(executor, known, bool(changes))

    def _until_answered(self, executor: Executor, known: State, changed: bool) -> tuple[State, bool]:
        """Wait until the executor answers, if it is to do anything: see `waiting.until_answered`."""
        ended = known.stopped is not None and not changed
        if ended or not (self.hooks.begin or known.in_flight):
            return known, True

        def remark(text: str) -> None:
            self.notifier.begin(known)  # so that the outage is notified, too
            self.hooks.remark(text)

        return waiting.until_answered(
            executor, self.journal, known, self._listen, remark, self.hooks.interrupted
        )

    def _record(self, new: Sequence[events.Event], executor: Executor, known: State) -> State:
        """Save the campaign file and journal how the session begins; return the state after that."""
        if new or not (self.directory / loader.CAMPAIGN_FILE).exists():
            existing.save(self.built.campaign, self.directory)
        if not new:
            return known
        return replay(self.keeper.seen(self.journal.append(new, executor.now())), known)

    def _say(self, changes: Sequence[str], known: State) -> None:
        """Tell the user which rules changed, and where the campaign has stopped, how it continues."""
        if changes:
            self.hooks.changed(changes)
        if known.stopped is not None:
            ended = f"{known.stopped.rule} ({known.stopped.detail})"
            self.hooks.remark(f"nothing is begun: the campaign has stopped: {ended}")
            self.hooks.remark(advice.to_continue(known, self.directory))

    def _loop(self, executor: Executor, known: State, changed: bool) -> State:
        """Run the campaign until it stops or pauses, or the user interrupts it."""
        hooks = self.hooks
        granted = _granted(self.built.campaign, self.cluster)
        runtime = Runtime(
            self.built, self.directory, executor, hooks.cancel_on_interrupt, self.patience, granted
        )
        if hooks.begin:  # what they refuse is an error before anything is journaled
            _ = runtime.strategy, runtime.modeler
        models = None
        if changed and _is_validation_open(runtime, known):
            models = runtime.fit(known)
            if (missing := runtime.no_validation(known, models)) is not None:
                hooks.remark(f"validate: true, but {missing}")
        self.notifier.begin(known)
        interrupted = hooks.interrupted if hooks.begin else lambda: True
        return loop.run(runtime, self.journal, known, self._listen, interrupted, models)

    def _listen(self, entry: Entry, now: State) -> None:
        self.hooks.listen(entry, now)
        ended = not self.hooks.begin and isinstance(entry.event, events.ControllerStopped)
        if not ended:  # the campaign had been interrupted before, and whoever ends its runs is there
            self.notifier.listen(entry, now)
        self.keeper.listen(entry, now)


@dataclass(frozen=True, slots=True)
class _Start:
    """A campaign that can begin: its executor and its first round."""

    executor: Executor
    plan: FirstRound


def _prepare(built: Assembly, directory: Path, cluster: Cluster) -> _Start:
    """Check that a campaign can begin; raise ``CampaignError`` or ``ExecutorError`` where it cannot."""
    executor = execution.executor(built.campaign, directory, 0.0)
    plan = planning.first_round(built, executor)
    if (why := executor.ready()) is not None:
        raise ExecutorError(f"{why}. Nothing was begun; see: orchestrator doctor")
    refusals.refuse_launch(built, cluster)
    refusals.refuse_limits(built, plan, cluster)
    return _Start(executor, plan)


def _changes(chosen: Campaign, known: State, hooks: Hooks) -> list[str]:
    """Return in words what differs from the rules so far; nothing for a campaign that has not begun."""
    changes = campaign_changes.changed_rules(chosen, known) if known.id else []
    if hooks.again and campaign_changes.stopped_by_failures(known):
        changes.append("failures are counted from zero, and points that were given up are tried again")
    elif hooks.again and not changes and campaign_changes.left_out(known):
        changes.append("points that were given up or left out are tried again")
    if hooks.begin and known.undecided:
        changes.append(f"{advice.OTHER_VALUES}: what to do next is decided again")
    return changes


def _begin(
    built: Assembly, directory: Path, start: _Start, cluster: Cluster, remark: Callable[[str], None]
) -> events.Event:
    """Return the first event of a campaign; keep what it learned, and say what the user should know."""
    priors.save(built.campaign, directory)
    for text in (
        *cautions.notes(built.campaign, start.plan),
        *slurm_preflight.notes(built.campaign, cluster),
    ):
        remark(f"note: {text}")
    listed = start.executor.name != "simulated"  # rehearsals are no campaigns that one looks for
    if listed and (why := store.add(directory, os.environ)) is not None:
        remark(f"note: {why}")
    return _campaign_started(built, directory, start.plan)


def _change_of_rules(built: Assembly, known: State) -> list[events.Event]:
    """Return what is journaled of a campaign that continues by other rules."""
    again = campaign_changes.may_try_again(built.campaign, known)
    elsewhere = campaign_changes.is_elsewhere(built.campaign, known)
    left = campaign_changes.outside(built.campaign, known) if elsewhere else ()
    return [
        events.CampaignChanged(dict(built.campaign.raw), again, elsewhere),
        *(
            events.RunSkipped(run, "its point is not in the search space any more", unaffordable=False)
            for run in left
        ),
    ]


def _granted(chosen: Campaign, cluster: Cluster) -> Granted | None:
    """Return the longest time limits that Slurm grants; None for another executor."""
    options = chosen.executor
    return ceilings.granting(job_options(options.model_dump()), cluster) if options.name == "slurm" else None


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


def _campaign_started(built: Assembly, directory: Path, plan: FirstRound) -> events.Event:
    digest = hashlib.sha256(f"{socket.gethostname()}:{directory.resolve()}:{time.time_ns()}".encode())
    raw = dict(built.campaign.raw)
    learned = built.campaign.learned
    known = {} if learned is None else learned.summary()
    return events.CampaignStarted(
        id=digest.hexdigest()[:8],
        campaign=raw,
        version=__version__,
        time_limit=plan.derived_limit,
        priors=known,
    )
