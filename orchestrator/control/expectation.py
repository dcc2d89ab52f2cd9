"""What a campaign is expected to cost and to find: a rehearsal in this process, for some seconds at most."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from orchestrator.control import rehearsal, session
from orchestrator.control.rehearsal import Options, Rehearsal
from orchestrator.errors import OrchestratorError
from orchestrator.journal.file import Entry
from orchestrator.journal.state import State
from orchestrator.policy.pace import pace

LONGEST = 10.0  # seconds that a rehearsal may take before a campaign
_CALLPATHS = 6  # of an earlier campaign: enough for the uncertainty, which is weighted by time


class _TimeUp(BaseException):
    """The time of a rehearsal is over. No handler of errors catches it."""


class _Latest:
    """The rehearsal that was prepared, and the last state that it came to."""

    def __init__(self) -> None:
        self.rehearsal: Rehearsal | None = None
        self.state = State()

    def listen(self, entry: Entry, state: State) -> None:
        self.state = state


def expect(
    path: Path, overrides: Sequence[str] = (), options: Options | None = None, seconds: float = LONGEST
) -> dict[str, Any]:
    """Return what a campaign is expected to cost and to find, JSON-ready.

    It is the outcome of a rehearsal (`orchestrator.control.rehearsal.outcome`) without ``found``. Further,
    ``complete``: whether the rehearsed campaign stopped in time; ``seconds``: the bound; ``round`` that was
    reached; ``final_uncertainty_percent``: at this pace, if it is not complete. A complete rehearsal is the
    same for the same seed. If nothing can be said, ``reason`` says why, and nothing else is there.

    Parameters
    ----------
    path, overrides, options
        As of `orchestrator.control.rehearsal.prepare`; of an earlier campaign only the call paths that take
        longest are rehearsed.
    seconds
        Wall time after which the rehearsal ends. In the main thread it ends in the middle of a step.
    """
    latest, chosen = _Latest(), replace(options or Options(), callpaths=_CALLPATHS)
    try:
        with TemporaryDirectory(prefix="rehearsal-") as directory:
            _rehearse(latest, (path, [*overrides, "notify=null"], chosen), Path(directory), seconds)
    except OrchestratorError as error:
        return {"reason": str(error)}
    if latest.rehearsal is None or not latest.state.rounds:
        stop = latest.state.stopped
        early = "" if stop is None else f"it stopped before: {stop.rule} ({stop.detail})"
        return {"reason": early or _too_short(seconds)}
    found = rehearsal.outcome(latest.rehearsal, latest.state)
    del found["found"]
    complete = latest.state.stopped is not None
    ahead = pace(latest.state.rounds, latest.state.spent, latest.rehearsal.campaign.stop.budget)
    return {
        **found,
        "complete": complete,
        "seconds": seconds,
        "round": latest.state.round,
        "final_uncertainty_percent": None if complete or ahead.final is None else 100 * ahead.final,
    }


def _too_short(seconds: float) -> str:
    return (
        f"no round of it was complete after {seconds:g} s; orchestrator simulate rehearses without this limit"
    )


def _rehearse(
    latest: _Latest,
    wanted: tuple[Path, Sequence[str], Options],
    directory: Path,
    seconds: float,
) -> None:
    """Rehearse until the campaign stops or the time is over."""
    try:
        with _bounded(seconds) as over, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of models on the way: those of the campaign itself are shown
            latest.rehearsal = rehearsal.prepare(*wanted)
            hooks = session.Hooks(listen=latest.listen, interrupted=over)
            session.run(latest.rehearsal.campaign, directory, hooks)
    except _TimeUp:
        pass


@contextmanager
def _bounded(seconds: float) -> Iterator[Callable[[], bool]]:
    """Raise `_TimeUp` after some seconds, and give a function that says whether they are over.

    Only the main thread can be interrupted within a step.
    """
    end = time.monotonic() + seconds

    def over() -> bool:
        return time.monotonic() >= end

    if threading.current_thread() is not threading.main_thread():
        yield over
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise _TimeUp

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))  # 0 would be never
        yield over
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
