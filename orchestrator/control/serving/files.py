"""The files of failed attempts, as text. Nothing else in a campaign directory is ever opened for a reader.

An address is compared with the attempts that the journal knows, never used as a path. A symbolic link below
the campaign directory is not followed: a program that is measured may have left one that points anywhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from orchestrator.control.attempts import RUNS
from orchestrator.journal.state import RunState, RunStatus, State
from orchestrator.types import Attempt

NAMES = ("stderr", "stdout", "run.sh")
"""The files of an attempt that are shown, where they are there."""
MOST = 1 << 20
"""Bytes of a file that are shown: its last ones, where programs say why they end."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def failed_attempt(state: State, identity: str) -> Attempt | None:
    """Return the failed attempt of that id, as ``p=64,s=20/time-1/attempt-2``; None if there is none."""
    for run, item in state.runs.items():
        if identity.startswith(f"{run.id}/"):
            attempts = (Attempt(run, number) for number in _failed(item))
            return next((attempt for attempt in attempts if attempt.id == identity), None)
    return None


def _failed(item: RunState) -> Iterator[int]:
    """Yield the numbers of the attempts that are settled and measured nothing."""
    settled = item.attempts - (item.status is RunStatus.IN_FLIGHT)
    return (number for number in range(1, settled + 1) if number != item.accepted)


def sizes(directory: Path, attempt: Attempt) -> Mapping[str, int]:
    """Return the files of an attempt that can be shown, with their bytes."""
    shown = {}
    for name in NAMES:
        try:
            with _opened(directory, attempt, name) as file:
                shown[name] = os.fstat(file.fileno()).st_size
        except OSError:
            continue
    return shown


def text(directory: Path, attempt: Attempt, name: str) -> str:
    """Return a file of an attempt, or the end of one that is longer than `MOST`.

    Raises
    ------
    OSError
        If it is none of `NAMES`, is not there, is not a plain file, or cannot be read.
    """
    if name not in NAMES:
        raise FileNotFoundError(name)
    with _opened(directory, attempt, name) as file:
        left_out = max(0, os.fstat(file.fileno()).st_size - MOST)
        file.seek(left_out)
        content = file.read(MOST).decode(errors="replace")
    return f"[the first {left_out} bytes are not shown]\n{content}" if left_out else content


@contextmanager
def _opened(directory: Path, attempt: Attempt, name: str) -> Iterator[BinaryIO]:
    """Open a plain file of an attempt; raise `OSError` where any part of its path is a symbolic link."""
    with ExitStack() as stack:
        folder = os.open(directory, _FOLDER)  # the user named it: it may be a link
        stack.callback(os.close, folder)
        for part in (RUNS, *attempt.id.split("/")):
            folder = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            stack.callback(os.close, folder)
        file = stack.enter_context(os.fdopen(os.open(name, _FILE, dir_fd=folder), "rb"))
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise FileNotFoundError(name)
        yield file
