"""What a campaign is expected to cost and to find: a rehearsal in a process of its own, for some seconds."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from orchestrator.models import compiling
from orchestrator.policy.pace import pace

LONGEST = 10.0  # seconds that a rehearsal may take before a campaign
COMPILING = 60.0  # seconds more where the modeler is compiled first, which happens once per installation
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
        Wall time after which the process of the rehearsal is ended, whatever it does. Where it has to compile
        the modeler, it gets `COMPILING` more.
    """
    chosen = replace(options or Options(), callpaths=_CALLPATHS)
    # A step, such as a fit of many parameters, can take longer than the bound. Only a process can be ended
    # within it without harm.
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    with TemporaryDirectory(prefix="rehearsal-") as directory:
        wanted = (path, (*overrides, "notify=null"), chosen)
        child = context.Process(target=rehearse, args=(sender, wanted, Path(directory)), daemon=True)
        child.start()
        sender.close()
        heard = Heard(time.monotonic() + seconds)
        try:
            heard.listen(receiver)
            if heard.ended:
                child.join(_left(heard.until))  # for its exit code
        finally:
            child.kill()
            child.join()
    if heard.latest is None:
        return {"reason": _crashed(child.exitcode) if heard.ended else _too_short(seconds)}
    return heard.latest if "reason" in heard.latest else {**heard.latest, "seconds": seconds}


@dataclass
class Heard:
    """What the process of a rehearsal has sent."""

    until: float  # the instant after which nobody listens
    latest: dict[str, Any] | None = None
    ended: bool = False  # whether the process ended before

    def listen(self, receiver: Connection) -> None:
        """Keep the last message that arrives in time; one that the modeler is compiled gives more time."""
        while receiver.poll(_left(self.until)):
            try:
                message = receiver.recv()
            except EOFError:
                self.ended = True
                return
            if message is None:
                self.until += COMPILING
                compiling.begins()
            else:
                self.latest = message


def _left(end: float) -> float:
    return max(end - time.monotonic(), 0.0)


def rehearse(sender: Connection, wanted: tuple[Path, Sequence[str], Options], directory: Path) -> None:
    """Rehearse a campaign in a directory; send what is expected after every round, and at the end.

    None says that the modeler is compiled first.
    """
    compiling.when_compiling(lambda: sender.send(None))
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
