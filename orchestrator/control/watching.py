"""A campaign as the live view needs it: a line of the journal is read once, the rest if it changed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from orchestrator.control import overview
from orchestrator.journal.measurements import Collector
from orchestrator.journal.snapshot import Followed
from orchestrator.journal.state import State, is_rehearsal
from orchestrator.report import models_document, status, watch_document
from orchestrator.report.controller import JOURNALED
from orchestrator.report.log import LOG
from orchestrator.storage import file_identity
from orchestrator.types import Parameter


class Watch:
    """Follows a campaign directory.

    Parameters
    ----------
    directory
        The campaign directory; it may vanish and come back.
    """

    def __init__(self, directory: Path):
        self._directory = directory
        self._state = Followed(directory, JOURNALED)
        self._log = Followed(directory, LOG)
        self._records = watch_document.InFlightRecords(directory)
        self._collector: tuple[object, Collector] | None = None
        self._basis: object = None  # of the status that was made last
        self._status: dict[str, Any] = {}

    def document(self) -> dict[str, Any]:
        """Return what `watch_document.document` says, as it is now.

        Raises
        ------
        JournalError
            If the directory is gone, or its journal is damaged; a later call may succeed again.
        """
        now, running = overview.seen(self._directory, self._state)
        self._log.refresh()
        published = file_identity(self._directory / models_document.FILE_NAME)
        basis = now.id, self._state.position, running["state"], published
        if basis != self._basis:
            self._status, self._basis = self._status_of(now, running), basis
        events = self._log.value.lines
        return watch_document.document(now, self._status, events, self._records, _clock(now))

    def _status_of(self, now: State, running: dict[str, Any]) -> dict[str, Any]:
        values = now.id, now.rereads, now.discards  # runs of earlier rounds change with these only
        if self._collector is None or self._collector[0] != values:
            names = [Parameter(name, ()) for name in now.campaign["parameters"]]
            self._collector = values, Collector(names)
        published = models_document.published(self._directory, now)
        return status.combined(now, self._collector[1].measurements(now), published, running)


def _clock(now: State) -> float:
    """Return the time by the campaign's clock: a rehearsal has a virtual one."""
    return now.time if is_rehearsal(now.campaign) else time.time()
