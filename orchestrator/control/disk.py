"""A full disk: nothing is begun on it, and what cannot be written waits until there is space again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.executors.attempt.worker import want_of_space
from orchestrator.executors.base import Outage
from orchestrator.storage import free_at, shortage

_TRY = 15.0  # seconds between attempts to write where there seems to be space
_PAUSE = 5.0  # seconds between tries
_TICK = 0.2  # seconds between looks at whether the user interrupts
_REMIND = 3600.0  # seconds between reports


@dataclass(slots=True)
class Disk:
    """Whether there is space in a campaign directory; asked at every poll."""

    directory: Path
    # In seconds: a quota shows only where something is written, which is tried now and then.
    clock: Callable[[], float] = time.monotonic
    _due: float = field(default=-math.inf, init=False)
    _quota: str = field(default="", init=False)

    def outage(self, now: float) -> Outage | None:
        """Return that the file system, or a quota, is full; None where that is not known."""
        if full := shortage(self.directory):
            return Outage(now, full, blocking=True)
        if self.clock() >= self._due:
            self._due = self.clock() + _TRY
            self._quota = want_of_space(self.directory)
        return Outage(now, f"{self._quota} at {self.directory}", blocking=True) if self._quota else None


@dataclass(slots=True)
class Patience:
    """Waits after a write that failed for want of space: the call returns whether to try again."""

    directory: Path
    remark: Callable[[str], None]  # tells the user, when a wait begins and then every hour
    interrupted: Callable[[], bool]  # whether the user does not want to wait
    said: float = field(default=-math.inf, init=False)

    def __call__(self, error: OSError) -> bool:
        """Wait a little; return false where the user interrupts."""
        if time.monotonic() - self.said >= _REMIND:
            self.said = time.monotonic()
            self.remark(
                f"{error.strerror} ({free_at(self.directory)}): nothing is begun until there is; free some "
                "(df -h), files (df -i) or quota"
            )
        ends = time.monotonic() + _PAUSE
        while time.monotonic() < ends:
            if self.interrupted():
                return False
            time.sleep(_TICK)
        return True
