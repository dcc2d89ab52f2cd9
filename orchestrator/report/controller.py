"""Whether a controller is at work in a campaign directory; looks only, and never keeps one from starting."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from orchestrator.journal import events
from orchestrator.journal.file import LOCK_NAME, Entry, holder
from orchestrator.storage import iso

Standing = Literal["at work", "nobody", "unknown"]


@dataclass(slots=True)
class Witness:
    """What a journal tells of its controllers: the last one, and whether it left in good order.

    Attributes
    ----------
    host, pid
        Of the last one; empty and 0 without any.
    began
        When it began its work, in Unix seconds.
    left
        Whether it said that it stopped, or ended the campaign.
    """

    host: str = ""
    pid: int = 0
    began: float = 0.0
    left: bool = True

    def hear(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Pass entries on, and note what they say."""
        for entry in entries:
            match entry.event:
                case events.ControllerStarted(host, pid):
                    self.host, self.pid, self.began, self.left = host, pid, entry.time, False
                case events.ControllerStopped() | events.CampaignStopped():
                    self.left = True
            yield entry


def nobody(since: float | None) -> dict[str, Any]:
    """Return the part of the status that says that the last controller stopped in good order, JSON-ready."""
    return _document("nobody", None, None, since)


def look(directory: Path, witness: Witness, last: float, ended: bool) -> dict[str, Any]:
    """Return who is at work in a campaign directory, JSON-ready.

    Parameters
    ----------
    directory
        The campaign directory.
    witness
        What its journal tells.
    last
        The time of its last entry, in Unix seconds.
    ended
        Whether the campaign is over.
    """
    locked = _locked(directory)
    if locked:
        if (known := holder(directory)) is None:  # it has yet to write its name
            return _document("at work", None, None, None)
        same = known == (witness.host, witness.pid) and not witness.left
        return _document("at work", *known, witness.began if same else None)
    if witness.left:
        return nobody(None if ended else last)
    standing: Standing = "unknown"
    if witness.host == socket.gethostname():  # the locks of other hosts are not seen on every file system
        alive = locked is None and _lives(witness.pid)
        standing = "unknown" if alive else "nobody"
    return _document(standing, witness.host, witness.pid, last)


def _document(standing: Standing, host: str | None, pid: int | None, since: float | None) -> dict[str, Any]:
    return {"state": standing, "host": host, "pid": pid, "since": None if since is None else iso(since)}


def _locked(directory: Path) -> bool | None:
    """Tell whether a controller holds the lock; None where that cannot be seen.

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


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True
