"""Open a campaign directory, take the journal's lock, run the loop: start and resume."""

from __future__ import annotations

import hashlib
import itertools
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator import __version__
from orchestrator.campaign import changes as campaign_changes
from orchestrator.campaign import loader
from orchestrator.campaign.model import Campaign
from orchestrator.control import loop, planning, preflight, provenance, runtime
from orchestrator.control.notify import Notifier
from orchestrator.control.planning import FirstRound
from orchestrator.control.runtime import Assembly
from orchestrator.errors import CampaignError, ExecutorError, JournalError, JournalWriteError
from orchestrator.executors.base import Executor
from orchestrator.journal import events
from orchestrator.journal.file import (
    FILE_NAME,
    FULL,
    Boundary,
    Entry,
    Journal,
    holds_campaign,
    read,
    require_campaign,
)
from orchestrator.journal.state import State, replay
from orchestrator.models.base import Model
from orchestrator.report import models_document

CAMPAIGN_FILE = "campaign.yaml"


@dataclass(frozen=True, slots=True)
class Hooks:
    """Who listens to entries and to changes of rules, who may interrupt.

    ``boundary`` (see `Journal`) is for tests of crashes.
    """

    listen: loop.Listener = lambda entry, state: None
    changed: Callable[[Sequence[str]], None] = lambda changes: None
    interrupted: Callable[[], bool] = lambda: False
    boundary: Boundary | None = None
    cancel_on_interrupt: bool = False


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
    os.umask(before | 0o002)  # what everybody could write, everybody could have executed as this user
    try:
        return _run(chosen, directory, hooks)
    finally:
        os.umask(before)


def _run(chosen: Campaign, directory: Path, hooks: Hooks) -> State:
    built = runtime.assemble(chosen)
    # Nothing is created for a campaign that cannot begin.
    plan = None if holds_campaign(directory) else _planned(built, directory)
    _create(directory)
    with Journal(directory, hooks.boundary) as opened, Notifier(chosen, directory) as notifier:
        known = replay(notifier.seen(opened.entries()))
        executor = runtime.executor(chosen, directory, known.time)
        changes = campaign_changes.changed_rules(chosen, known) if known.id else []
        if known.id:
            first = _changed(built, known, bool(changes))
        else:
            first = [_begun(built, directory, plan or planning.first_round(built, executor))]
        if first or not (directory / CAMPAIGN_FILE).exists():
            _write(chosen, directory / CAMPAIGN_FILE)
        if first:
            known = replay(opened.append(first, executor.now()), known)
        if changes:
            hooks.changed(changes)
        parts = _parts(built, directory, executor, hooks)
        notifier.begin(known)

        def listen(entry: Entry, now: State) -> None:
            hooks.listen(entry, now)
            notifier.listen(entry, now)

        return loop.run(parts, opened, known, listen, hooks.interrupted)


def _planned(built: Assembly, directory: Path) -> FirstRound:
    """Return the first round of a campaign that can begin."""
    starter = runtime.executor(built.campaign, directory, 0.0)
    plan = planning.first_round(built, starter)
    if (why := starter.ready()) is not None:
        raise ExecutorError(f"{why}. Nothing was begun; see: orchestrator doctor")
    _refuse_launcher(built)
    return plan


def load(directory: Path, overrides: Sequence[str] = (), starts: bool = False) -> Campaign:
    """Read the campaign that a directory holds; its executable must exist only if something ``starts``.

    Raises
    ------
    JournalError
        If there is none.
    """
    path = directory / CAMPAIGN_FILE
    if not holds_campaign(directory) or not path.exists():
        raise JournalError(
            f"{directory} holds no campaign (no {FILE_NAME} with {CAMPAIGN_FILE}): "
            "start one with: orchestrator run CAMPAIGN.yaml --directory DIR"
        )
    return loader.load(path, overrides, starts=starts, saved=True)


def replayed(directory: Path) -> State:
    """Return the state of a campaign without locking it.

    Raises
    ------
    JournalError
        If the directory holds no readable campaign.
    """
    require_campaign(directory)
    return replay(read(directory / FILE_NAME))


def _refuse_launcher(built: Assembly) -> None:
    """Raise `CampaignError` where the launcher certainly cannot start the campaign's programs."""
    chosen, points = built.campaign, iter(built.space)
    if chosen.validate and chosen.evaluation_point is not None:
        points = itertools.chain([chosen.evaluation_point], points)
    ranks = preflight.most_ranks(map(built.resources, points))
    fault = preflight.fault(chosen, ranks)
    if fault is not None:
        raise CampaignError(f"launcher: {fault.detail}; {fault.remedy}. Nothing was begun")


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Stop, resumably and with the name of the file, where it cannot be written."""
    try:
        yield
    except OSError as error:
        remedy = "free some space" if error.errno in FULL else "mend that"
        raise JournalWriteError(
            f"cannot write {path}: {error.strerror}. The campaign has stopped, nothing is lost: {remedy}, "
            "then resume it"
        ) from error


def _write(chosen: Campaign, path: Path) -> None:
    """Replace the campaign file atomically: on a full disk the old one stays."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with _naming(path):
        try:
            temporary.write_text(loader.dump(chosen))
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def _parts(built: Assembly, directory: Path, executor: Executor, hooks: Hooks) -> loop.Parts:
    parts = runtime.parts(built, directory, executor)

    def publish(now: State, models: tuple[Model, ...]) -> None:
        with _naming(directory / models_document.FILE_NAME):
            parts.publish(now, models)

    return replace(
        parts,
        publish=publish,
        cancel_on_interrupt=hooks.cancel_on_interrupt,
        provenance=provenance.gather(built.campaign),
    )


def _refuse_name(directory: Path) -> None:
    """Raise `CampaignError` where texts that name the directory could not be journaled."""
    try:
        str(directory.absolute()).encode()
    except UnicodeEncodeError as error:
        raise CampaignError(
            f"the directory {os.fsencode(directory)!r} has a name that is not UTF-8: rename it, or give "
            "another --directory"
        ) from error


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


def _begun(built: Assembly, directory: Path, plan: FirstRound) -> events.Event:
    digest = hashlib.sha256(f"{socket.gethostname()}:{directory.resolve()}:{time.time_ns()}".encode())
    raw = dict(built.campaign.raw)
    return events.CampaignStarted(digest.hexdigest()[:8], raw, __version__, plan.derived_limit)


def _changed(built: Assembly, known: State, changed: bool) -> list[events.Event]:
    """Return the event of changed rules, if any.

    Raises
    ------
    CampaignError
        If what is measured differs, as such measurements cannot be mixed; if the budget is less than what is
        spent and reserved; or if the new launcher or machine cannot work.
    """
    if (why := campaign_changes.refusal(built.campaign, known)) is not None:
        raise CampaignError(why)
    if changed or known.stopped is None:
        _refuse_machine(built, known)
    if not changed:
        return []
    _refuse_launcher(built)
    anew = campaign_changes.may_try_again(built.campaign, known)
    return [events.CampaignChanged(dict(built.campaign.raw), anew)]
