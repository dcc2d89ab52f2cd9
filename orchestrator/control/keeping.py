"""A controller leaves snapshots of its journal for those who look at the campaign; it never reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.snapshot import WORTH, save
from orchestrator.journal.state import State
from orchestrator.journal.writer import Journal
from orchestrator.report.controller import JOURNALED, ControllerHistory, Journaled
from orchestrator.report.log import LOG, Log

# Share by which the journal has grown: all snapshots of a campaign cost what is in it, few times.
_GROWTH = 0.25
_ENDS = (events.ControllerStopped, events.CampaignStopped)


class Keeper:
    """Follows what a controller journals, and writes snapshots after rounds and at the end.

    A snapshot that cannot be written is left out: whoever looks then reads more of the journal.
    """

    def __init__(self, directory: Path, journal: Journal):
        self._directory, self._journal = directory, journal
        self._controllers, self._log = ControllerHistory(), Log()
        self._saved = 0  # entries in the last snapshot

    def seen(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Pass entries on that are journaled already."""
        for entry in self._controllers.observe(entries):
            self._log.take(entry)
            yield entry

    def listen(self, entry: Entry, now: State) -> None:
        """Take note of a new entry and the state after it."""
        self._controllers.take(entry)
        self._log.take(entry)
        end = isinstance(entry.event, _ENDS)
        new = entry.sequence - self._saved
        due = end or (isinstance(entry.event, events.RoundCompleted) and new > _GROWTH * self._saved)
        position = self._journal.position
        if due and new >= WORTH and position.entries == entry.sequence:
            save(self._directory, JOURNALED, Journaled(now, self._controllers), position)
            save(self._directory, LOG, self._log, position)
            self._saved = entry.sequence
