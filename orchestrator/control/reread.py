"""Read kept outputs and profiles of a campaign again, by changed patterns: as events of its journal.

Either every accepted attempt can be read, or nothing changes: values that were read by different rules are
never mixed. Attempts that could not be read before become measurements, if they can be now. Of discarded
runs those that can be read are, so that they can be restored.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from orchestrator import __version__
from orchestrator.campaign import loader
from orchestrator.campaign.changes import read_keys, starts_alike, without
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.yaml import dump
from orchestrator.control import existing
from orchestrator.control.assembly import Assembly, assemble
from orchestrator.control.attempts import RUNS, measured
from orchestrator.errors import CampaignError, ReadError
from orchestrator.executors.attempt.record import readable_record
from orchestrator.journal import events
from orchestrator.journal.attempt_end import origin, standalone_duration
from orchestrator.journal.codec import Entry
from orchestrator.journal.differences import differences
from orchestrator.journal.replay import replay
from orchestrator.journal.state import READ_AGAIN, UNREADABLE, RunStatus, State
from orchestrator.journal.writer import Boundary, Journal
from orchestrator.types import Attempt, FailureClass, Run


@dataclass(frozen=True, kw_only=True)
class Reread:
    """What was read: how many attempts, with how many other values.

    ``changes``: rules that differ, as ``key: before -> after``. ``recovered``: attempts that could not be
    read before. ``unreadable``: attempts, with the reason, that still cannot be read, or cannot any more; in
    the second case (``refused``) nothing was changed.
    """

    read: int
    changed: int
    recovered: int
    changes: tuple[str, ...]
    unreadable: Mapping[str, str]
    refused: bool


def rules(directory: Path, file: Path | None, overrides: Sequence[str]) -> Campaign:
    """Return the campaign of a directory with what another campaign file says of how outputs are read.

    Raises
    ------
    CampaignError
        For an invalid file or override.
    JournalError
        If the directory holds no campaign.
    """
    kept = existing.load(directory, () if file else overrides)
    if file is None:
        return kept
    new, raw = loader.load(file, starts=False).raw, dict(kept.raw)
    if new["application"] != raw["application"]:
        raise CampaignError(
            f"{file} is a campaign of {new['application']}, and {directory} holds one of "
            f"{raw['application']}: name the file that the directory was begun with"
        )
    for section, keys in read_keys(raw, new).items():
        if raw.get(section) is not None and new.get(section) is not None:
            raw[section] = {**raw[section], **{key: new[section][key] for key in keys}}
    return loader.loads(dump(raw), str(file), directory.absolute(), overrides, starts=False, saved=True)


def reread(directory: Path, chosen: Campaign, boundary: Boundary | None = None) -> Reread:
    """Read every accepted or unreadable attempt of a campaign again, and journal what differs.

    Parameters
    ----------
    directory
        The campaign directory; no controller may be running.
    chosen
        The campaign with the rules to read by.
    boundary
        See `Journal`; for tests of crashes.

    Raises
    ------
    CampaignError
        If other rules differ than those that say what is read, and for a rehearsal.
    JournalError
        If a controller is running, or the journal cannot be read or written.
    """
    built = assemble(chosen)
    with Journal(directory, boundary) as journal:
        entries = list(journal.entries())
        known = replay(entries)
        if (why := _refusal(chosen, known)) is not None:
            raise CampaignError(why)
        new, unreadable, read, discarded = _read(built, directory, known, entries)
        lost = {attempt for attempt in unreadable if _counts(known, attempt)}
        differences = tuple(_differences(chosen, known))
        recovered = sum(item.recovered for item in new)
        result = Reread(
            read=read,
            changed=len(new) - recovered,
            recovered=recovered,
            changes=differences,
            unreadable={attempt.id: reason for attempt, reason in unreadable.items()},
            refused=bool(lost),
        )
        stale = any(known.discarded[run].rereads != known.rereads for run in discarded)
        if lost or not (new or differences or stale):
            return result
        # The file first: after a crash in between, this can be repeated with the rules of the directory.
        existing.save(chosen, directory)
        done = events.RereadCompleted(dict(chosen.raw), len(new), discarded)
        journal.append([events.RereadBegan(__version__), *new, done], max(known.time, time.time()))
        return result


def _refusal(chosen: Campaign, known: State) -> str | None:
    if not known.id:
        return "the directory holds no campaign that has begun"
    new, old = chosen.raw, loader.normalised(known.campaign)
    if "simulated" in (new["executor"]["name"], old["executor"]["name"]):
        return "a rehearsal leaves no outputs that could be read again"
    keys = read_keys(old, new)
    other = differences(*(without(raw, ("site",), keys) for raw in (old, new)))
    if other:
        names = [f"{section}.{key}" for section, keys in read_keys().items() for key in keys]
        return (
            f"{'; '.join(other)}: reading again changes only {', '.join(names)}. For other rules: "
            "orchestrator resume DIR --set ..., or run with the changed campaign file. Nothing was changed"
        )
    return None


def _differences(chosen: Campaign, known: State) -> list[str]:
    return differences(loader.normalised(known.campaign), chosen.raw)


def _is_accepted(known: State, attempt: Attempt) -> bool:
    item = known.runs[attempt.run]
    return item.status in READ_AGAIN and item.accepted == attempt.number


def _counts(known: State, attempt: Attempt) -> bool:
    """Return whether an attempt is accepted, and its run not discarded."""
    return _is_accepted(known, attempt) and known.runs[attempt.run].status is RunStatus.MEASURED


def _read(
    built: Assembly, directory: Path, known: State, entries: Sequence[Entry]
) -> tuple[list[events.AttemptReread], dict[Attempt, str], int, tuple[Run, ...]]:
    """Return the attempts with other values, those that cannot be read, how many could, discarded runs."""
    new: list[events.AttemptReread] = []
    unreadable: dict[Attempt, str] = {}
    discarded: list[Run] = []
    read = 0
    for ended in _settled(entries, known, directory, built.campaign):
        attempt = ended.event.attempt
        try:
            samples = measured(built, directory / RUNS / attempt.id, attempt.run.kind)
        except ReadError as error:
            unreadable[attempt] = str(error)
            continue
        read += 1
        if known.runs[attempt.run].status is RunStatus.DISCARDED:
            discarded.append(attempt.run)
        if not _is_accepted(known, attempt):
            new.append(_recovered(ended, samples, known))
        elif _plain(samples) != _plain(known.runs[attempt.run].samples):
            new.append(events.AttemptReread(attempt=attempt, samples=samples))
    return new, unreadable, read, tuple(discarded)


def _plain(samples: events.Samples) -> dict[str, dict[str, float]]:
    return {metric: dict(by_path) for metric, by_path in samples.items()}


class _Ended(NamedTuple):
    """How an attempt ended, the name of its shared job (or empty), and the round in which it ended."""

    event: events.AttemptFinished
    pack: str
    round: int


def _settled(entries: Sequence[Entry], known: State, directory: Path, campaign: Campaign) -> Iterator[_Ended]:
    """Yield the accepted attempts, and the last of each other run whose output may be read now.

    Attempts from before the template was corrected, which started otherwise, are no measurements.
    """
    raw: Mapping[str, Any] = {}
    rules: dict[Attempt, Mapping[str, Any]] = {}
    packs: dict[Attempt, str] = {}
    ended: dict[Attempt, _Ended] = {}
    number = 0
    for entry in entries:
        match entry.event:
            case events.RoundProposed(round=number):
                pass
            case events.CampaignStarted(campaign=raw) | events.CampaignChanged(campaign=raw):
                pass
            case events.AttemptIntended(attempt=attempt, pack=pack):
                packs[attempt], rules[attempt] = pack, raw
            case events.AttemptFinished(attempt=attempt) as event:
                ended[attempt] = _Ended(event, packs[attempt], number)
    last = {
        attempt.run: attempt
        for attempt, item in ended.items()
        if known.runs[attempt.run].status in UNREADABLE
        and _may_be_read(item.event, directory, campaign.measure.exit_codes)
        and starts_alike(campaign, rules[attempt], attempt.run.point)
    }
    for attempt, item in ended.items():
        if _is_accepted(known, attempt) or last.get(attempt.run) == attempt:
            yield item


def _may_be_read(ended: events.AttemptFinished, directory: Path, exit_codes: Container[int]) -> bool:
    """Return whether an attempt failed by what it printed, or by an exit code that now counts as right."""
    if ended.failure is FailureClass.APPLICATION:
        record, _ = readable_record(directory / RUNS / ended.attempt.id)
        return record is not None and record.exit_code in exit_codes
    return ended.failure is FailureClass.PARSE


def _recovered(ended: _Ended, samples: events.Samples, known: State) -> events.AttemptReread:
    """Return what a run is if an attempt that could not be read counts: as if it had been read at once."""
    finished, pack, number = ended
    return events.AttemptReread(
        attempt=finished.attempt,
        samples=samples,
        recovered=True,
        elapsed=standalone_duration(finished, pack, known),
        node=finished.host if finished.nodes == 1 else "",
        packed=bool(pack),
        began=finished.started,
        load=finished.load,
        origin=origin(finished, pack, number),
    )
