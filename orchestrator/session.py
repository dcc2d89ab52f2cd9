"""Open a campaign directory, take the journal's lock, run the loop: start and resume."""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator import (
    __version__,
    assembly,
    campaign,
    events,
    journal,
    loop,
    planning,
    plugins,
    provenance,
    state,
)
from orchestrator.assembly import Assembly
from orchestrator.campaign import Campaign
from orchestrator.errors import CampaignError, ExecutorError, JournalError
from orchestrator.journal import Boundary, Entry, Journal
from orchestrator.notify import Notifier
from orchestrator.planning import FirstRound
from orchestrator.state import State

CAMPAIGN_FILE = "campaign.yaml"

# Sections that may change between a stop and a resume: how far to go and where, not what is measured.
_CHANGEABLE = frozenset(
    {"stop", "executor", "retries", "strategy", "model", "validate", "version_arguments", "notify", "site"}
)


@dataclass(frozen=True, slots=True)
class Hooks:
    """Who listens to entries, who may interrupt; ``boundary`` (see `Journal`) is for tests of crashes."""

    listen: loop.Listener = lambda entry, state: None
    interrupted: Callable[[], bool] = lambda: False
    boundary: Boundary | None = None
    cancel_on_interrupt: bool = False


def holds_campaign(directory: Path) -> bool:
    """Tell whether a directory holds a campaign that was begun."""
    path = directory / journal.FILE_NAME
    return path.exists() and path.stat().st_size > 0


def run(chosen: Campaign, directory: Path, hooks: Hooks) -> State:
    """Start a campaign in ``directory``, or continue the one that is there; return its final state.

    Raises
    ------
    CampaignError
        Before anything is spent: the campaign is impossible, or the directory holds another one.
    ExecutorError
        Before it begins: its executor cannot start anything.
    JournalError
        If another controller holds the directory, or its journal is damaged.
    """
    before = os.umask(0o077)
    os.umask(before | 0o002)  # what everybody could write, everybody could have executed as this user
    try:
        return _run(chosen, directory, hooks)
    finally:
        os.umask(before)


def _run(chosen: Campaign, directory: Path, hooks: Hooks) -> State:
    built = assembly.assemble(chosen)
    plan = None
    if not holds_campaign(directory):  # nothing is created for a campaign that cannot begin
        starter = plugins.executor(chosen, directory, 0.0)
        plan = planning.first_round(built, starter)
        if (why := starter.ready()) is not None:
            raise ExecutorError(f"{why}. Nothing was begun; see: orchestrator doctor")
    _create(directory)
    with Journal(directory, hooks.boundary) as opened, Notifier(chosen, directory) as notifier:
        known = state.replay(notifier.seen(opened.entries()))
        executor = plugins.executor(chosen, directory, known.time)
        if known.id:
            first = _changed(built, known)
        else:
            first = [_begun(built, directory, plan or planning.first_round(built, executor))]
        if first:
            (directory / CAMPAIGN_FILE).write_text(campaign.dump(chosen))
            known = state.replay(opened.append(first, executor.now()), known)
        parts = assembly.parts(built, directory, executor)
        parts = replace(
            parts, cancel_on_interrupt=hooks.cancel_on_interrupt, provenance=provenance.gather(chosen)
        )
        notifier.begin(known)

        def listen(entry: Entry, now: State) -> None:
            hooks.listen(entry, now)
            notifier.listen(entry, now)

        return loop.run(parts, opened, known, listen, hooks.interrupted)


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
            f"{directory} holds no campaign (no {journal.FILE_NAME} with {CAMPAIGN_FILE}): "
            "start one with: orchestrator run CAMPAIGN.yaml --directory DIR"
        )
    return campaign.load(path, overrides, starts=starts)


def replayed(directory: Path) -> State:
    """Return the state of a campaign without locking it.

    Raises
    ------
    JournalError
        If the directory holds no readable campaign.
    """
    require_campaign(directory)
    return state.replay(journal.read(directory / journal.FILE_NAME))


def require_campaign(directory: Path) -> None:
    """Raise `JournalError` unless a campaign was begun in a directory."""
    if not holds_campaign(directory):
        raise JournalError(f"{directory} holds no campaign: {journal.FILE_NAME} is missing or empty")


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


def _changed(built: Assembly, known: State) -> list[events.Event]:
    """Return the event of changed rules, if any.

    Raises
    ------
    CampaignError
        If what is measured differs: such measurements cannot be mixed.
    """
    new, old = built.campaign.raw, campaign.normalised(known.campaign)
    forbidden = forbidden_changes(built.campaign, known)
    if forbidden:
        raise CampaignError(
            f"the directory holds a campaign with other {', '.join(forbidden)}: measurements cannot be "
            f"mixed. Use another --directory; only {', '.join(sorted(_CHANGEABLE))} may change on the way"
        )
    changed = any(new.get(key) != old.get(key) for key in {*new, *old})
    return [events.CampaignChanged(dict(new))] if changed else []


def forbidden_changes(chosen: Campaign, known: State) -> list[str]:
    """Return the sections in which ``chosen`` differs from a begun campaign, and must not."""
    new, old = chosen.raw, campaign.normalised(known.campaign)
    return sorted(key for key in {*new, *old} - _CHANGEABLE if new.get(key) != old.get(key))
