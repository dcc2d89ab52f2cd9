"""The campaigns that are served: found below folders, followed by their journals, described as rows."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.control.overview import status_in
from orchestrator.control.serving import files
from orchestrator.errors import JournalError
from orchestrator.journal.file import FILE_NAME, holds_campaign, no_campaign
from orchestrator.journal.snapshot import Followed
from orchestrator.journal.state import State
from orchestrator.report import controller, models_document, status
from orchestrator.report.controller import JOURNALED
from orchestrator.report.status_text import standing
from orchestrator.resources import core_hours
from orchestrator.storage import file_identity, iso
from orchestrator.types import Attempt
from orchestrator.units import campaign_budget, campaign_unit, hours_in, uncertainty

Row = Mapping[str, Any]
"""A campaign in the list, JSON-ready."""
_LEVELS = ("*/", "*/*/")  # folders below a given one that are searched for campaigns


class ServedCampaign:
    """One campaign: its journal as followed so far, and its row.

    Attributes
    ----------
    key
        Names the campaign in addresses: letters and digits that depend on the path alone, and never the
        other way round. So no part of an address is ever used as a path.
    directory
        The campaign directory.
    row
        As of the last `look`; replaced as a whole, so other threads may read it.
    milestone
        Version of the models: the last entry after which there may be other ones.
    """

    def __init__(self, directory: Path):
        self.directory = directory
        self.key = hashlib.sha256(str(directory).encode(errors="surrogateescape")).hexdigest()[:16]
        self.row: Row = {"key": self.key, "campaign": directory.name, "state": "unread", "version": 0}
        self.milestone = 0
        self._journal = Followed(directory, JOURNALED, leave=False)  # nothing is written
        self._running: dict[str, Any] = {}
        self._document: tuple[object, dict[str, Any]] | None = None
        self._lock = threading.Lock()  # a document is made while another thread reads the journal on

    def look(self) -> bool:
        """Read what the journal has more than before; return whether the row changed."""
        with self._lock:
            try:
                advanced = self._journal.refresh()
                running = self._controller()
                if not advanced and running == self._running:
                    return False
                self._running = running
                new = self._described()
            except JournalError as error:
                new = {"state": "unreadable", "error": str(error), "version": -1}
            new = {
                "key": self.key,
                "campaign": self.directory.name,
                "directory": printable(str(self.directory)),
                "error": None,
                **new,
            }
            changed = new != self.row
            self.row, self.milestone = new, self._journal.value.controllers.refitted
            return changed

    def _controller(self) -> dict[str, Any]:
        now = self._journal.value.state
        return controller.look(
            self.directory, self._journal.value.controllers, now.time, now.stopped is not None
        )

    def _described(self) -> dict[str, Any]:
        now = self._journal.value.state
        if not now.id:
            raise no_campaign(self.directory)
        row, unit, counts = status.in_list(now), campaign_unit(now.campaign), status.counts(now)
        return {
            **row,
            "campaign": now.campaign["name"],
            "standing": standing({"state": row["state"], "controller": self._running}),
            "round": now.round,
            "reserved": core_hours(now.reserved),
            "cost": f"{hours_in(row['spent'], unit)} of {hours_in(row['budget'], unit)} {unit}",
            "share": min(1.0, (now.spent + now.reserved) / campaign_budget(now.campaign)),
            "measured": counts["measured"],
            "in_flight": counts["in flight"],
            "given_up": counts["given up"],
            "uncertainty": None if now.uncertainty is None else uncertainty(now.uncertainty),
            "version": self._journal.position.offset,
        }

    def failed_attempt(self, identity: str) -> Attempt | None:
        """Return the failed attempt of an id; None if this campaign has none of that id."""
        return files.failed_attempt(self._journal.value.state, identity)

    def document(self) -> dict[str, Any]:
        """Return the document of ``orchestrator status``, without ever fitting a model.

        Models are those that the controller published last, of earlier runs perhaps: then the entry
        ``models_note`` says so. ``in_flight`` has the attempts that were begun and are not settled.
        """
        with self._lock:
            now = self._journal.value.state
            published = file_identity(self.directory / models_document.FILE_NAME)
            basis = (self._journal.position.offset, self._running, published)
            if self._document is None or self._document[0] != basis:
                if not now.id:
                    raise no_campaign(self.directory)
                status = status_in(self.directory, (now, self._running))
                outdated, what = status["models_outdated"], "The models" if status["models"] else "No models"
                note = None if outdated is None else f"{what}: {outdated}."
                self._document = basis, {**status, "models_note": note, "in_flight": _in_flight(now)}
            return self._document[1]


def _in_flight(now: State) -> list[dict[str, Any]]:
    """Return the attempts in flight, those first that were begun first."""
    return [
        {
            "run": attempt.run.id,
            "attempt": attempt.number,
            "state": "running" if item.running else "begun",
            "since": iso(item.since),
        }
        for attempt, item in sorted(now.in_flight.items(), key=lambda pair: (pair[1].since, pair[0].run.id))
    ]


def printable(text: str) -> str:
    """Return a text that every encoding of Unicode holds; bytes of paths that are no text become marks."""
    return text.encode(errors="replace").decode(errors="replace")


class Board:
    """All campaigns of the given directories, those that are begun later included.

    Parameters
    ----------
    directories
        Campaign directories, or folders with campaigns up to two levels below.
    """

    def __init__(self, directories: Iterable[Path]):
        self._roots = [path.absolute() for path in directories]
        self.campaigns: Mapping[str, ServedCampaign] = {}

    def find(self) -> None:
        """Look for campaigns that were begun or deleted since the last call."""
        campaigns = {}
        for directory in dict.fromkeys(path for root in self._roots for path in _below(root)):
            known = ServedCampaign(directory)
            campaigns[known.key] = self.campaigns.get(known.key, known)
        self.campaigns = campaigns

    def look(self) -> bool:
        """Read what journals have more than before; return whether any row changed."""
        changed = [campaign.look() for campaign in list(self.campaigns.values())]
        return any(changed)

    def rows(self) -> Sequence[Row]:
        """Return the rows: running campaigns first, then those with the latest events."""
        rows = [campaign.row for campaign in self.campaigns.values()]
        rows.sort(key=lambda row: str(row.get("last", "")), reverse=True)
        return sorted(rows, key=lambda row: row["state"] not in ("running", "stopping", "paused"))


def _below(root: Path) -> Iterator[Path]:
    """Yield the campaign directories of a folder: itself, or those below it."""
    try:
        if holds_campaign(root):
            yield root
            return
        for level in _LEVELS:
            for path in sorted(root.glob(f"{level}{FILE_NAME}")):
                if holds_campaign(path.parent):
                    yield path.parent
    except OSError:  # a folder that was deleted, or that may not be read
        return
