"""One line for each event that a human wants to follow, while it happens and in the log."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.executors.base import DISK, QUEUE
from orchestrator.journal import events, executables
from orchestrator.journal.references import REASON
from orchestrator.report.wording import about, outage, smape
from orchestrator.types import Run
from orchestrator.units import count, listed, place, uncertainty

_NAMED = 3  # runs that a line names


def describe(event: events.Event, previous: str = "") -> str:
    """Return one line for the events that a human wants to follow, else an empty text.

    ``previous``: the note of the round before, which is not repeated.
    """
    match event:
        case events.RoundProposed(number, runs, reasons):
            where = count(len({run.point for run in runs}), "point")
            note = f"; {event.note}" if event.note not in ("", previous) else ""
            note += "".join(f"; {reason}" for reason in reasons[1:] if reason.startswith(REASON))
            first = f"first: {runs[0]} ({reasons[0]})"
            return f"round {number}: {count(len(runs), 'run')} at {where}; {first}{note}"
        case events.ExecutableReplaced(found):
            what = executables.named(found)
            return f"{what} was replaced: runs that end from now on started another program"
        case events.AttemptFinished(failure=None):
            return ""
        case events.AttemptFinished(cancelled=True):
            return f"cancelled: {event.attempt}: {event.reason}"
        case events.AttemptFinished():
            return f"failed: {event.attempt}: {event.failure}: {event.reason}"
        case events.RunGivenUp(run, reason):
            return f"given up: {run}: {reason}"
        case events.RunSkipped(run, reason):
            return f"skipped: {run}: {reason}"
        case events.RoundCompleted():
            return _round_done(event)
        case events.ModelsAssessed():
            return f"with the measurements that count now: {_quality(event)}"
        case events.StopRuleReached(rule, detail):
            return f"stop rule: {rule} ({detail})"
        case events.CampaignPaused(cause, detail):
            return f"paused: {cause} ({detail}); nothing more is begun until somebody resumes the campaign"
        case events.OutageBegan():
            text = outage(event.what, event.since, event.jobs, event.blocking, event.lasted, event.reason)
            return text if event.repeated or event.what in (DISK, QUEUE) else f"{text} ({event.reason})"
        case events.OutageEnded(what, lasted) if what == QUEUE:
            return f"no job is held up any more, after {about(lasted)}"
        case events.OutageEnded(what, lasted) if what == DISK:
            return f"there is space on the disk again, after {about(lasted)}"
        case events.OutageEnded(what, lasted):
            return f"{what} answers again, after {about(lasted)}"
        case events.ValidationProposed(run):
            return f"validation: {run}"
        case events.StopWithdrawn():
            return "the validation needed less than what was kept back for it: rounds go on with the rest"
        case events.MeasurementsDiscarded(runs, reason):
            return f"discarded: {_listed(runs)}: {reason}"
        case events.MeasurementsRestored(runs, reason):
            return f"restored: {_listed(runs)}" + (f": {reason}" if reason else "")
        case events.RereadCompleted(_, attempts):
            return f"outputs were read again: {count(attempts, 'attempt')} with other values"
    return ""


def _listed(runs: Sequence[Run]) -> str:
    return listed(list(map(str, runs)), _NAMED, rest="more run")


def _round_done(event: events.RoundCompleted) -> str:
    gain = " (no improvement)" if not event.improved and event.measured else ""
    if event.gain == "surprise":
        gain = " (wider than before: the earlier intervals were too narrow)"
    machine = "".join(f"; {kind}: {event.machine[kind]}" for kind in event.news)
    return f"round {event.round} done: {_quality(event)}{gain}{machine}"


def _quality(event: events.RoundCompleted | events.ModelsAssessed) -> str:
    """Return how good models are, in short."""
    fit = "no models yet" if event.smape is None else f"models fit to {smape(event.smape)} % SMAPE"
    where = place(event.targets)
    return fit if event.width is None else f"{fit}, uncertainty {where} {uncertainty(event.width)}"
