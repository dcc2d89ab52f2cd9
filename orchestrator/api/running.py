"""Run and rehearse campaigns: the same journal, lock and budget for Python and for the command line."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from orchestrator.api import arguments
from orchestrator.api.campaign_paths import campaign_path
from orchestrator.api.temporary import Temporary
from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign as Rules
from orchestrator.control import session
from orchestrator.control.rehearsal import Options, prepare
from orchestrator.errors import CampaignError, CampaignPaused
from orchestrator.executors.simulated import dataset as measured
from orchestrator.journal.state import State
from orchestrator.report.advice import to_continue

if TYPE_CHECKING:
    from orchestrator.api.campaign import Campaign

Path_ = str | os.PathLike[str]


def run(
    campaign: Path_,
    directory: Path_ | None = None,
    *,
    executor: str | None = None,
    overrides: Mapping[str, object] | None = None,
    progress: bool = False,
) -> Campaign:
    """Start a campaign and run it until it stops; continue the one that its directory already holds.

    Parameters
    ----------
    campaign
        A campaign file; or its name, where it lies below the working directory; or the name of a ready one
        (``"quickstart"``).
    directory
        The campaign directory (default: the campaign's name, in the working directory).
    executor
        Executor to use instead of the campaign's.
    overrides
        Keys of the campaign file with other values: ``{"stop.budget": "2 core-hours"}``.
    progress
        Whether to show what happens on standard error.

    Returns
    -------
    Campaign
        As `orchestrator.load` returns it.

    Raises
    ------
    CampaignError
        Before anything is spent: the file is wrong, or the directory holds another campaign.
    ExecutorError, JournalError
        If nothing can be started, or another controller holds the directory.
    CampaignPaused
        If Slurm, nodes or files fail too often; the same call continues it.
    KeyboardInterrupt
        After an interrupt, once the campaign has stopped in good order; the same call continues it.
    """
    extra = [] if executor is None else [f"executor.name={executor}"]
    where = campaign_path(os.fspath(arguments.path(campaign, "campaign")))
    rules = loader.load(where, [*texts(overrides or {}), *extra])
    return _run(rules, Path(directory or rules.name), progress)


def simulate(
    campaign: Path_,
    directory: Path_ | None = None,
    *,
    dataset: Path_ | None = None,
    truth: Mapping[str, str] | None = None,
    models: Path_ | None = None,
    noise: float | None = None,
    failure_rate: float | None = None,
    fails_where: str | None = None,
    queue_delay: str | None = None,
    overrides: Mapping[str, object] | None = None,
    progress: bool = False,
) -> Campaign:
    """Rehearse a campaign: the same loop on a virtual clock. Nothing is launched and no time passes.

    Without ``dataset``, ``truth`` and ``models`` runs yield what the campaign file states, else what models
    of the campaign's own measurements predict, else ``measure.expected_time``, else an assumed time.

    Parameters
    ----------
    campaign, overrides, progress
        As of `run`.
    directory
        Where to keep the rehearsal; by default it is deleted with the returned object.
    dataset
        A file of measurements to replay.
    truth
        Seconds of call paths in terms of the parameters: ``{"main": "1e-6 * n * log2(p)"}``.
    models
        The directory of an earlier campaign, whose models say what runs yield.
    noise, failure_rate, queue_delay
        Noise of all times that are not replayed, in percent (by default 5; of models, as measured); share of
        attempts that fail (0..1); mean time in the queue (``"2 min"``).
    fails_where
        Where every run fails, which the campaign has to find out: ``"n >= 300"``.

    Raises
    ------
    CampaignError
        If the file is wrong, or what is stated says nothing about this campaign.
    """
    for option, given in (("dataset", dataset), ("models", models)):
        if given is not None:
            arguments.path(given, option)
    if truth is not None:
        arguments.mapping(truth, "truth", "{'main': '1e-6 * n * log2(p)'}", CampaignError)
    stated = {
        "noise": noise,
        "failure_rate": failure_rate,
        "fails_where": fails_where,
        "queue_delay": queue_delay,
    }
    plain = {option: json.loads(_as_json(value, option)) for option, value in stated.items()}
    functions = {path: json.loads(_as_json(text, f"truth: {path}")) for path, text in (truth or {}).items()}
    options = Options(dataset=dataset, truth=functions, models=models, **plain)
    where = campaign_path(os.fspath(arguments.path(campaign, "campaign")))
    rules = prepare(where, texts(overrides or {}), options).campaign
    if directory is not None:
        return _run(rules, Path(directory), progress)
    kept = Temporary(prefix="rehearsal-")
    return _run(rules, kept.path, progress, kept)


def _run(rules: Rules, directory: Path, progress: bool, kept: Temporary | None = None) -> Campaign:
    from orchestrator.api.campaign import Campaign

    state = drive(rules, directory, progress=progress)
    if state.paused is not None:
        raise CampaignPaused(f"paused: {state.paused.detail}. {to_continue(state, directory)}")
    if state.stopped is None:
        raise KeyboardInterrupt(f"the campaign in {directory} was interrupted; the same call continues it")
    return Campaign(directory, kept)


def drive(
    rules: Rules, directory: Path, hooks: session.Hooks = session.UNWATCHED, *, progress: bool
) -> State:
    """Run or continue a campaign until it stops, pauses or is interrupted; return its state.

    Ctrl-C is what interrupts, and a full disk is waited for, whatever the hooks say; with ``progress`` what
    happens is shown on standard error.
    """
    with interruptible() as interrupted:
        hooks = replace(hooks, interrupted=interrupted, patient=True)
        if not progress:
            return session.run(rules, directory, hooks)
        from orchestrator.api.progress import Display

        with Display(rules) as display:
            for line in left_out(rules) if hooks.begin else ():
                display.note(line)
            shown = replace(
                hooks,
                listen=display.update,
                changed=lambda changes: display.note(f"rules changed: {'; '.join(changes)}"),
                remark=display.note,
            )
            return session.run(rules, directory, shown)


def left_out(rules: Rules) -> Iterator[str]:
    """Yield a line for everything that a rehearsal leaves out because its data set does not have it."""
    if rules.replayed is None:
        return
    reason, space = measured.lacking(rules.measure.measured), rules.space.describe()
    missing = space.infeasible.get(reason, 0)
    if missing:
        total = missing + space.feasible
        yield f"left out: {missing} of {total} points of the search space: {reason}"
    point = rules.evaluation_point
    if point is not None and rules.unmeasured()(point.as_dict()) is not None:
        yield f"no validation at {point}: {reason}"


def texts(overrides: Mapping[str, object]) -> list[str]:
    """Return ``key=value`` for each override, the value in YAML (of which JSON is a part).

    Raises
    ------
    CampaignError
        For values that no campaign file can have.
    """
    given = arguments.mapping(overrides, "overrides", "{'stop.budget': '2 core-hours'}", CampaignError)
    return [f"{key}={_as_json(value, f'overrides: {key}')}" for key, value in given.items()]


def _as_json(value: object, what: str) -> str:
    """Return a value as a campaign file could hold it; raise ``CampaignError`` where none could."""
    try:
        return json.dumps(value, default=_plain)
    except (TypeError, ValueError) as error:
        raise CampaignError(f"{what} is {value!r}: {error}; give texts and numbers") from None


def _plain(value: object) -> object:
    """Return a number of numpy, or a path, as JSON knows it."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is nothing that a campaign file can hold")


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Give a function that says whether a signal to stop has come; a second signal ends the program at once.

    The signals are SIGINT, SIGTERM and, where it is not ignored (``nohup``), SIGHUP of a closed terminal.
    Only the main thread can handle signals: in other threads nothing is caught.
    """
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)
        with suppress(OSError):  # the terminal may be gone
            print("\nstopping; again to stop at once", file=sys.stderr)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    hang_up = [signal.SIGHUP] if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN else []
    numbers: Sequence[int] = [signal.SIGINT, signal.SIGTERM, *hang_up]
    previous = {number: signal.signal(number, note) for number in numbers}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
