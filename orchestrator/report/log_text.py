"""What happened in a campaign (see `orchestrator.report.log`) as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from orchestrator.report.wording import REHEARSAL, moment, since_start
from orchestrator.units import count, hours_in, without_controls

_DISCARDED = " (their cost counts, what they measured does not)"
_KEPT = 3  # lines about failures of one kind in a row; the rest is only counted
_MANY = {
    "failure": "failed attempts",
    "cancelled": "cancelled attempts",
    "given up": "runs given up",
    "skipped": "runs skipped",
}


def render(history: Mapping[str, Any], everything: bool = False) -> str:
    """Return the text, with times of this machine's time zone; of a rehearsal, with those since its start.

    Parameters
    ----------
    history
        From `log.document`.
    everything
        Whether to show every failure and skipped run, instead of a few of each and their number.
    """
    running = (
        f"; controller {history['controller']} is running, unless it was killed"
        if history["controller"]
        else ""
    )
    idle = not history["controller"] and history["state"] in ("running", "stopping")
    state = "interrupted" if idle else history["state"]
    lines = [
        f"campaign {history['campaign']} ({history['id']}): {state}{running}",
        *_period(history),
        "",
        *_spent(history),
        *_unused("given up", history["given_up"], everything),
        *_unused("discarded", history["discarded"], everything, _DISCARDED),
        "",
        "what happened",
        *_events(history["events"], everything, history["started"] if history["virtual"] else None),
    ]
    return "\n".join(map(without_controls, lines))


def _period(history: Mapping[str, Any]) -> Iterator[str]:
    """Yield from when to when there are entries."""
    if history["virtual"]:
        yield REHEARSAL
        yield f"over {since_start(history['last'], history['started'])} of that clock"
        return
    zone = datetime.fromisoformat(history["last"]).astimezone().tzname()
    yield f"from {moment(history['started'])} to {moment(history['last'])} ({zone})"


def _spent(history: Mapping[str, Any]) -> Iterator[str]:
    spent, attempts, unit = history["spent"], history["attempts"], history["spent"]["shown_in"]
    rows = [("accepted", spent["accepted"], attempts.get("accepted", 0))]
    rows += [(f"failed: {name}", cost, attempts[name]) for name, cost in spent["failed"].items()]
    if number := attempts.get("cancelled", 0):
        rows.append(("cancelled", spent["cancelled"], number))
    yield f"spent: {hours_in(spent['total'], unit)} of {hours_in(spent['budget'], unit)} {unit}"
    for name, cost, number in rows:
        yield f"  {name:<24} {hours_in(cost, unit):>10}  {count(number, 'attempt')}"
    if attempts["in flight"]:
        flying = count(attempts["in flight"], "attempt")
        yield f"  {'reserved, in flight':<24} {hours_in(spent['reserved'], unit):>10}  {flying}"
    reference = history["reference"]
    if reference["runs"]:
        yield f"  of this {hours_in(reference['cost'], unit)} for {count(reference['runs'], 'reference run')}"
    if spent["estimated"]:
        most = hours_in(spent["estimated"], unit)
        yield f"  at most {most} of it is an upper bound: not every end was observed"
    for host, there in history["hosts"].items():
        yield f"  on {host} {there['failed']} of {count(there['attempts'], 'attempt')} failed"


def _unused(
    what: str, items: Sequence[Mapping[str, Any]], everything: bool, remark: str = ""
) -> Iterator[str]:
    """Yield the runs that models do not see, each with its reason."""
    if not items:
        return
    yield ""
    yield f"{what}: {count(len(items), 'run')}{remark}"
    shown = items if everything else items[: 4 * _KEPT]
    yield from (f"  {item['run']}: {item['reason']}" for item in shown)
    if len(items) > len(shown):
        yield f"  ... and {len(items) - len(shown)} more; all of them: --all"


def _events(items: Sequence[Mapping[str, str]], everything: bool, start: str | None) -> Iterator[str]:
    """Yield what happened, each with its time; with a ``start``, of a rehearsal, with that since then."""
    stamps = [moment(item["time"]) if start is None else since_start(item["time"], start) for item in items]
    wide = max(map(len, stamps), default=0)
    timed = list(zip(stamps, items, strict=True))
    for failures, group in groupby(timed, key=lambda pair: pair[1]["kind"] in _MANY):
        seen: Counter[str] = Counter()
        last = ""
        for stamp, item in group:
            seen[item["kind"]] += 1
            last = stamp if start is not None else stamp[11:]
            if everything or not failures or seen[item["kind"]] <= _KEPT:
                yield f"  {stamp:>{wide}}  {item['text']}"
        more = {kind: number - _KEPT for kind, number in seen.items() if number > _KEPT}
        if failures and more and not everything:
            counted = ", ".join(f"{number} more {_MANY[kind]}" for kind, number in more.items())
            yield f"  {'':<{wide}}  ... until {last}: {counted}; all of them: --all"
