"""Whether processes that a test started have ended."""

from __future__ import annotations

import time
from pathlib import Path


def is_running(pid: int) -> bool:
    """Return whether a process still executes: neither gone nor waiting to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:  # it went before the file was opened, or while it was read
        return False


def wait_until_dead(*pids: int, seconds: float = 30) -> None:
    """Wait until all these processes have ended; fail if one still runs after `seconds`."""
    deadline = time.monotonic() + seconds
    while running := [pid for pid in pids if is_running(pid)]:
        assert time.monotonic() < deadline, f"still running: {running}"
        time.sleep(0.01)
