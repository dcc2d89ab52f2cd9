"""Campaigns in child processes that end themselves with SIGKILL at a chosen point of the journal."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from orchestrator.campaign import loader
from orchestrator.control import session
from orchestrator.journal.codec import Entry, encode
from orchestrator.journal.file import FILE_NAME
from orchestrator.journal.writer import Boundary


def campaign_in_child(text: str, directory: Path, moment: str = "", append: int = 0) -> int:
    """Run a campaign in a forked child; SIGKILL it ``before``, ``torn`` in or ``after`` the n-th append.

    Returns the child's exit code, negative for a signal. ``append`` counts from 1; 0 never kills.
    """
    gc.freeze()  # else a collection in the child copies all memory
    child = os.fork()
    if child == 0:
        code = 70
        try:
            chosen = loader.loads(text, "test.yaml", Path.cwd())
            state = session.run(chosen, directory, session.Hooks(boundary=_killer(directory, moment, append)))
            code = 0 if state.stopped is not None else 3
        finally:
            os._exit(code)
    gc.unfreeze()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _killer(directory: Path, moment: str, append: int) -> Boundary:
    seen = {"before": 0, "after": 0}

    def boundary(now: str, entries: Sequence[Entry]) -> None:
        seen[now] += 1
        if seen[now] != append:
            return
        if now == "before" and moment == "torn":
            line = encode(entries[0])
            with (directory / FILE_NAME).open("ab") as file:
                file.write(line[: len(line) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        if now == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    return boundary


def appends(directory: Path) -> int:
    """Return the number of lines of a journal: an upper bound of its appends."""
    return len((directory / FILE_NAME).read_bytes().splitlines())
