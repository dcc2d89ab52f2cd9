"""When Slurm is slow to answer, somebody may want to be told what is waited for.

Where ``slurmctld`` does not answer, every question takes until its time limit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 3.0
"""Seconds without an answer after which somebody is told."""

_COMMANDS = frozenset({"sacct", "sacctmgr", "sbatch", "scancel", "scontrol", "sinfo", "squeue"})
_NAMED = 3  # words of a command
_tell: list[Callable[[str], None]] = []
_told: set[str] = set()


def when_silent(tell: Callable[[str], None]) -> None:
    """Have a function called with a sentence where Slurm is slow to answer, once for each of its commands."""
    _tell[:] = [tell]
    _told.clear()


@contextmanager
def awaited(command: Sequence[str], seconds: float) -> Iterator[None]:
    """Tell what is waited for if the block, which waits for a command, takes long.

    Parameters
    ----------
    command
        If it is none of Slurm's, nobody is told.
    seconds
        After which it is ended.
    """
    name = Path(command[0]).name
    if not _tell or seconds <= PATIENCE or name in _told or name not in _COMMANDS:
        yield
        return
    words = " ".join([name, *command[1:_NAMED]])
    timer = threading.Timer(PATIENCE, _say, [name, words, seconds])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _say(name: str, words: str, seconds: float) -> None:
    if name in _told:  # by another thread
        return
    _told.add(name)
    for tell in _tell:
        tell(f"Slurm has not answered yet ({words}): waiting up to {seconds:g} s for each answer")
