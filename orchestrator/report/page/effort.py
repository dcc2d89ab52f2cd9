"""Effort: measured times against counts, and the waiting time that counts do not explain."""

from __future__ import annotations

from typing import Any

import numpy as np

from orchestrator.models import Explained, explained
from orchestrator.models.base import Model
from orchestrator.models.effort import BLOCKS, CALLS, Effort, assign, total
from orchestrator.models.mpi_costs import RECEIVED, SENT
from orchestrator.report.page.callpaths import CallPaths
from orchestrator.report.page.encoding import place
from orchestrator.report.page.subject import TIME, Subject
from orchestrator.types import Point
from orchestrator.units import plain

_MOST = 200  # call paths, largest first
_COUNTED = (BLOCKS, SENT, RECEIVED, *CALLS)
# A gap is more than noise from so many standard deviations of a single run on; chosen by hand.
_BEYOND_NOISE = 2.0


def document(subject: Subject, paths: CallPaths) -> dict[str, Any] | None:
    """Return times against counts and waiting times; None where nothing was counted."""
    timed = list(dict.fromkeys(model.callpath for model in paths.models if model.metric == TIME))[:_MOST]
    found, _ = assign(subject.known, timed)
    ids = {callpath: k for k, callpath in reversed(list(enumerate(m.callpath for m in paths.models)))}
    pairs = ((callpath, _pairs(subject, found[callpath])) for callpath in timed if callpath in found)
    entries = [{"id": ids[callpath], "pairs": both} for callpath, both in pairs if both]
    return {"callpaths": entries, "waiting": waiting(subject, paths)} if entries else None


def _pairs(subject: Subject, counted: Effort) -> list[dict[str, Any]]:
    """Return the mean time and the mean counts at every point that has both."""
    totals = {
        metric: total([metrics[metric] for metrics in counted.counts.values() if metric in metrics])
        for metric in _COUNTED
        if any(metric in metrics for metrics in counted.counts.values())
    }
    times = subject.measured[counted.callpath, TIME].values
    return [
        {
            "point": place(point),
            "seconds": float(np.mean(values)),
            "counts": {
                metric: float(np.mean(count[point])) for metric, count in totals.items() if count.get(point)
            },
        }
        for point, values in times.items()
        if values and any(count.get(point) for count in totals.values())
    ]


def waiting(subject: Subject, paths: CallPaths) -> list[dict[str, Any]]:
    """Return the waiting time of call paths at measured points and at P₊, the longest there first.

    Times that include those of other call paths are left out: their counts do not.
    """
    there = paths.grid.default
    timed = {
        (model.callpath, model.category): (k, model)
        for k, model in enumerate(paths.models)
        if model.metric == TIME and not (subject.includes and model.callpath in subject.children)
    }
    entries = []
    for found in explained(subject.known, paths.models, [there]):
        k, model = timed.get((found.callpath, found.category), timed.get((found.callpath, ()), (None, None)))
        if k is not None and model is not None:
            entries.append(_entry(k, model, found, there))
    return sorted(entries, key=lambda entry: -max(row["waiting"] for row in entry["rows"]))[:_MOST]


def _entry(k: int, model: Model, found: Explained, there: Point) -> dict[str, Any]:
    measured = zip(found.points, found.seconds.tolist(), found.explained.tolist(), strict=True)
    rows = [_row(point, seconds, part, model, False) for point, seconds, part in measured]
    if there in found.beyond:
        seconds = float(model.value([there])[0])
        if np.isfinite(seconds) and seconds > 0:
            rows.append(_row(there, seconds, min(found.beyond[there], seconds), model, True))
    return {"id": k, "counts": list(found.counts), "noise": model.noise, "rows": rows, "text": _text(rows)}


def _row(point: Point, seconds: float, part: float, model: Model, is_predicted: bool) -> dict[str, Any]:
    share = 1 - part / seconds
    return {
        "point": place(point),
        "seconds": seconds,
        "explained": part,
        "waiting": seconds - part,
        "share": share,
        "clear": share > _BEYOND_NOISE * model.noise,
        "predicted": is_predicted,
    }


def _text(rows: list[dict[str, Any]]) -> str:
    """Return what the waiting times of a call path say."""
    measured = [row for row in rows if not row["predicted"]]
    clear = [row for row in measured if row["clear"]]
    worst = max(clear or measured, key=lambda row: float(row["waiting"]))
    where = Point.of(worst["point"])
    if not worst["clear"]:
        text = "Counts explain the measured times within their noise"
    else:
        text = (
            f"At {where} counts explain {plain(worst['explained'], 3)} s of {plain(worst['seconds'], 3)} s: "
            f"{100 * worst['share']:.0f} % is waiting, or a cost that counts do not show"
        )
    ahead = next((row for row in rows if row["predicted"]), None)
    if ahead is None:
        return f"{text}."
    word = "still " if ahead["clear"] and worst["clear"] else ""
    return (
        f"{text}. At {Point.of(ahead['point'])}, by the models, it is {word}"
        f"{plain(ahead['waiting'], 3)} s of {plain(ahead['seconds'], 3)} s ({100 * ahead['share']:.0f} %)."
    )
