"""Whether a controller is running in a campaign directory. Looking never keeps a controller from starting."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.forms import form_of
from orchestrator.journal.replay import apply
from orchestrator.journal.snapshot import Fold
from orchestrator.journal.state import State
from orchestrator.journal.writer import LOCK_NAME, holder
from orchestrator.storage import iso

Standing = Literal["at work", "nobody", "unknown"]
_REFITS = (
    events.RoundCompleted,
    events.ModelsAssessed,
    events.CampaignChanged,
    events.CampaignStopped,
    events.RereadCompleted,
    events.MeasurementsDiscarded,
    events.MeasurementsRestored,
)


@dataclass(slots=True, kw_only=True)
class ControllerHistory:
    """What a journal says about its controllers: the last one, and whether it stopped in good order."""

    # host, pid: of the last controller; empty and 0 without any.
    host: str = ""
    pid: int = 0
    began: float = 0.0  # when that controller started, in Unix seconds
    stopped: bool = True  # whether that controller recorded that it stopped, or ended the campaign
    # Sequence number of the last entry after which a controller may have published other models.
    refitted: int = 0

    def observe(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Pass entries on, and note what they say about controllers."""
        for entry in entries:
            self.take(entry)
            yield entry

    def take(self, entry: Entry) -> None:
        """Note what an entry says about controllers."""
        if isinstance(entry.event, _REFITS):
            self.refitted = entry.sequence
        match entry.event:
            case events.ControllerStarted(host=host, pid=pid):
                self.host, self.pid, self.began, self.stopped = host, pid, entry.time, False
            case events.ControllerStopped() | events.CampaignStopped():
                self.stopped = True


class Journaled(NamedTuple):
    """The state of a campaign, and what its journal says about controllers."""

    state: State
    controllers: ControllerHistory


def _take(known: Journaled, entry: Entry) -> Journaled:
    known.controllers.take(entry)
    return Journaled(apply(known.state, entry.event, entry.time), known.controllers)


JOURNALED = Fold("state", lambda: Journaled(State(), ControllerHistory()), _take, form_of(Journaled))


def no_controller(since: float | None) -> dict[str, Any]:
    """Return the part of the status that says that the last controller stopped in good order, JSON-ready."""
    return _document("nobody", None, None, since)


def look(directory: Path, history: ControllerHistory, last: float, ended: bool) -> dict[str, Any]:
    """Return which controller is running in a campaign directory, JSON-ready.

    Parameters
    ----------
    directory
        The campaign directory.
    history
        What its journal says about controllers.
    last
        The time of its last entry, in Unix seconds.
    ended
        Whether the campaign is over.
    """
    locked = is_locked(directory)
    if locked:
        if (known := holder(directory)) is None:  # it has not written its name yet
            return _document("at work", None, None, None)
        same = known == (history.host, history.pid) and not history.stopped
        return _document("at work", *known, history.began if same else None)
    if history.stopped:
        return no_controller(None if ended else last)
    standing: Standing = "unknown"
    import socket

    if history.host == socket.gethostname():  # the locks of other hosts are not seen on every file system
        alive = locked is None and _exists(history.pid)
        standing = "unknown" if alive else "nobody"
    return _document(standing, history.host, history.pid, last)


def _document(standing: Standing, host: str | None, pid: int | None, since: float | None) -> dict[str, Any]:
    return {"state": standing, "host": host, "pid": pid, "since": None if since is None else iso(since)}


def is_locked(directory: Path) -> bool | None:
    """Return whether a controller holds the lock; None where that cannot be seen.

    The lock is tried as one of many readers, and released at once: readers do not hinder each other, and a
    controller that starts in these microseconds tries again for two seconds.
    """
    try:
        descriptor = os.open(directory / LOCK_NAME, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    with closing(os.fdopen(descriptor)):  # closing releases
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return None
    return False


def _exists(pid: int) -> bool:
    """Return whether there is a process of that number on this host."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # the process of another user
        return True
    return True
