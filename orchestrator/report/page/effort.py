"""Effort: measured times against counts, and what the counts did to the models."""

from __future__ import annotations

from typing import Any

import numpy as np

from orchestrator.models import effort
from orchestrator.models.mpi_costs import RECEIVED, SENT
from orchestrator.report.page.callpaths import CallPaths
from orchestrator.report.page.encoding import place
from orchestrator.report.page.subject import TIME, Subject

_MOST = 200  # call paths, largest first
_COUNTED = (effort.BLOCKS, SENT, RECEIVED, *effort.CALLS)


def document(subject: Subject, paths: CallPaths) -> dict[str, Any] | None:
    """Return times against counts of the call paths that have both; None where nothing was counted."""
    timed = [model.callpath for model in paths.models if model.metric == TIME]
    found, _ = effort.assign(subject.known, timed)
    ids = {callpath: k for k, callpath in reversed(list(enumerate(m.callpath for m in paths.models)))}
    entries: list[dict[str, Any]] = []
    for callpath in dict.fromkeys(timed):
        if callpath in found and len(entries) < _MOST:
            pairs = _pairs(subject, found[callpath])
            if pairs:
                entries.append({"id": ids[callpath], "pairs": pairs, "waiting": None})
    if not entries:
        return None
    return {"callpaths": entries, "priors": _priors(paths)}


def _pairs(subject: Subject, counted: effort.Effort) -> list[dict[str, Any]]:
    """Return the mean time and the mean counts at every point that has both."""
    totals = {
        metric: effort.total([metrics[metric] for metrics in counted.counts.values() if metric in metrics])
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


def _priors(paths: CallPaths) -> list[dict[str, str]]:
    """Return what models say of their priors."""
    return [
        {"callpath": model.callpath, "text": note}
        for model in paths.models
        for note in model.notes
        if "prior" in note
    ]
