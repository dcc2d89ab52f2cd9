"""What a campaign is expected to cost and to find: a rehearsal in a process of its own, for some seconds."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from orchestrator.control import outcome, rehearsal, session
from orchestrator.control.rehearsal import Options, Rehearsal
from orchestrator.errors import OrchestratorError
from orchestrator.journal.codec import Entry
from orchestrator.journal.events import RoundCompleted
from orchestrator.journal.state import State
from orchestrator.policy.pace import pace

LONGEST = 10.0  # seconds that a rehearsal may take before a campaign
_CALLPATHS = 6  # of an earlier campaign: enough for the uncertainty, which is weighted by time


def expect(
    path: Path, overrides: Sequence[str] = (), options: Options | None = None, seconds: float = LONGEST
) -> dict[str, Any]:
    """Return what a campaign is expected to cost and to find, JSON-ready.

    It is the outcome of a rehearsal (`orchestrator.control.outcome.document`) without ``found``. Further,
    ``complete``: whether the rehearsed campaign stopped in time; ``seconds``: the bound; ``round`` that was
    reached; ``final_uncertainty_percent``: at this pace, if it is not complete. A complete rehearsal is the
    same for the same seed. If nothing can be said, ``reason`` says why, and nothing else is there.

    Parameters
    ----------
    path, overrides, options
        As of `orchestrator.control.rehearsal.prepare`; of an earlier campaign only the call paths that take
        longest are rehearsed.
    seconds
        Wall time after which the process of the rehearsal is ended, whatever it does.
    """
    chosen = replace(options or Options(), callpaths=_CALLPATHS)
    # A step, such as the first fit after an installation, can take longer than the bound. Only a process can
    # be ended within it without harm.
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    with TemporaryDirectory(prefix="rehearsal-") as directory:
        wanted = (path, (*overrides, "notify=null"), chosen)
        child = context.Process(target=rehearse, args=(sender, wanted, Path(directory)), daemon=True)
        child.start()
        sender.close()
        end = time.monotonic() + seconds
        try:
            latest, ended = _last(receiver, end)
            if ended:
                child.join(_left(end))  # for its exit code
        finally:
            child.kill()
            child.join()
    if latest is None:
        return {"reason": _crashed(child.exitcode) if ended else _too_short(seconds)}
    return latest if "reason" in latest else {**latest, "seconds": seconds}


def _last(receiver: Connection, end: float) -> tuple[dict[str, Any] | None, bool]:
    """Return the last message that arrives before an instant, and whether the sender ended before."""
    latest: dict[str, Any] | None = None
    while receiver.poll(_left(end)):
        try:
            latest = receiver.recv()
        except EOFError:
            return latest, True
    return latest, False


def _left(end: float) -> float:
    return max(end - time.monotonic(), 0.0)


def rehearse(sender: Connection, wanted: tuple[Path, Sequence[str], Options], directory: Path) -> None:
    """Rehearse a campaign in a directory; send what is expected after every round, and at the end."""
    warnings.simplefilter("ignore")  # of models on the way: those of the campaign itself are shown
    try:
        prepared = rehearsal.prepare(*wanted)

        def listen(entry: Entry, state: State) -> None:
            if isinstance(entry.event, RoundCompleted):
                sender.send(_expected(prepared, state))

        state = session.run(prepared.campaign, directory, session.Hooks(listen=listen))
        sender.send(_expected(prepared, state))
    except OrchestratorError as error:
        sender.send({"reason": str(error)})


def _expected(prepared: Rehearsal, state: State) -> dict[str, Any]:
    """Return what a rehearsal has come to."""
    if not state.rounds and state.stopped is not None:
        return {"reason": f"it stopped before: {state.stopped.rule} ({state.stopped.detail})"}
    reached = outcome.document(prepared, state)
    del reached["found"]
    complete = state.stopped is not None
    ahead = pace(state.rounds, state.spent, prepared.campaign.stop.budget)
    return {
        **reached,
        "complete": complete,
        "round": state.round,
        "final_uncertainty_percent": None if complete or ahead.final is None else 100 * ahead.final,
    }


def _crashed(code: int | None) -> str:
    return f"its process ended with exit code {code}; orchestrator simulate shows what is wrong"


def _too_short(seconds: float) -> str:
    return (
        f"no round of it was complete after {seconds:g} s; orchestrator simulate rehearses without this limit"
    )
