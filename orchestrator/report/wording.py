"""How figures are worded for humans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from orchestrator.executors.base import DISK, QUEUE
from orchestrator.units import count, format_duration, listed, place, uncertainty

_LONG_OUTAGE = 1800.0  # seconds
_LONG = 600.0  # seconds; to the minute is exact enough
_NAMED = 3  # runs that a line names
_EPOCH = "1970-01-01T00:00:00+00:00"


def point_of(run: str) -> str:
    """Return the point of a run's id as people read it: ids are names of folders, with letters encoded."""
    key = run.partition("/")[0]
    readable = unquote(key) if "~" not in key else key  # what was cut may end in a letter
    return readable if readable.isprintable() else key


def measure(targets: int) -> str:
    """Return what an uncertainty is, in short: see `orchestrator.models.uncertainty`."""
    median = f", the median of {targets} random points" if targets else ""
    return f"mean width of the 90 % intervals{median}"


def uncertainty_line(share: float, targets: int) -> str:
    """Return the uncertainty after the last round, and what it is."""
    return f"uncertainty {place(targets)}: {uncertainty(share)} ({measure(targets)})"


def smape(value: float | None) -> str:
    """Return a SMAPE in percent; a dash where there is none."""
    return "-" if value is None else f"{value:.2f}"


def moment(text: str) -> str:
    """Return an instant (ISO 8601) in this machine's time zone."""
    return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def rehearsed(seconds: float) -> str:
    """Return when something happened in a rehearsal, whose clock begins at zero."""
    return f"rehearsal, after {about(seconds)}"


def clock(seconds: float) -> str:
    """Return seconds since the start as hours, minutes and seconds: ``0:23:10``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


REHEARSAL = "rehearsal: no program was run; times are of a virtual clock"
"""What is said of a campaign of which nothing else would show that it was only rehearsed."""


def since_start(text: str, start: str) -> str:
    """Return how long after a start (both ISO 8601) an instant is, to the second: ``0:23:10``."""
    passed = datetime.fromisoformat(text) - datetime.fromisoformat(start)
    return clock(passed.total_seconds())


def instant(text: str, virtual: bool) -> str:
    """Return an instant (ISO 8601); of a rehearsal, whose clock begins at zero, how long after its start."""
    return since_start(text, _EPOCH) if virtual else moment(text)


def last_event(text: str, virtual: bool) -> str:
    """Return when the last event of a campaign was (ISO 8601); of a rehearsal, how long after its start."""
    if virtual:
        return rehearsed(datetime.fromisoformat(text).timestamp())
    return moment(text)


def outage(what: str, since: float, jobs: int, blocking: bool, lasted: float, reason: str) -> str:
    """Return in one line that a service does not answer, that no job begins, or that the disk is full.

    Parameters
    ----------
    what, since, lasted
        Its name; since when it does not answer, in Unix seconds; for how many seconds so far.
    jobs, blocking
        How many jobs are out, and whether nothing is submitted meanwhile.
    reason
        Why no job begins, or what is free; not told of a service.
    """
    clock = datetime.fromtimestamp(since).astimezone().strftime("%H:%M")
    long = f" ({about(lasted)} ago)" if lasted >= _LONG_OUTAGE else ""
    if what == QUEUE:
        return f"all jobs have waited since {clock}{long}: {reason}"
    if what == DISK:
        return f"the disk has been full since {clock}{long} ({reason}); nothing is begun until there is space"
    out = f"{count(jobs, 'job')} {'is' if jobs == 1 else 'are'} out"
    effect = "nothing is submitted" if blocking else "charges remain upper bounds"
    return f"{what} has not answered since {clock}{long}; {out}; {effect}"


def about(seconds: float) -> str:
    """Return an expected duration, to the minute where it is long: ``2 h 10 min``, ``40 s``."""
    unit = 60 if seconds >= _LONG else 1
    return format_duration(unit * round(seconds / unit))


def discarded_lines(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return how many runs were discarded for which reason, and which."""
    runs: dict[str, list[str]] = {}
    for item in items:
        runs.setdefault(item["reason"], []).append(item["run"])
    lines = []
    for reason, names in runs.items():
        lines.append(f"discarded: {count(len(names), 'run')}: {reason} ({listed(names, _NAMED, ' ')})")
    return lines
