"""The fastest configuration of a campaign without an evaluation point: measured, and predicted.

The time of a run is that of its outermost call paths: of the whole program, where that is one of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from orchestrator.control.assembly import Assembly
from orchestrator.journal.state import State
from orchestrator.models.base import Floats, Model
from orchestrator.models.callpaths import SEPARATOR
from orchestrator.readers.base import EXCLUSIVE
from orchestrator.report.models_document import number
from orchestrator.types import ROOTS, Measurements, Point

SHOWN = 5  # measured configurations
_CANDIDATES = 2000  # points of the space at which the models are asked
_TIME = "time"


def fastest(
    assembly: Assembly, models: Sequence[Model], known: Measurements, state: State
) -> dict[str, Any] | None:
    """Return the fastest configurations, JSON-ready; None with an evaluation point or without times.

    Parameters
    ----------
    assembly, models, known
        The campaign, its models, and what was measured.
    state
        Its state: where the program does not run, no configuration is the fastest.

    Returns
    -------
    dict
        ``measured``: the fastest ones, each with ``point``, ``seconds`` (the mean of its ``runs``), and what
        the models give there: ``predicted``, ``low``, ``high``. ``predicted``: the point with the lowest
        prediction among ``candidates``, which are random points and the measured ones listed; None without
        models. ``alike``: how many others of these the models cannot tell from it (``points``), as their
        intervals begin where its interval has not ended, and which values all of these have (``common``).
        ``points``: how many were measured. ``callpaths``: whose times were added.
    """
    if assembly.campaign.evaluation_point is not None:
        return None
    paths = counted(assembly, known)
    times = totals(known, paths)
    if not times:
        return None
    best = sorted(times, key=lambda point: times[point][0])[:SHOWN]
    drawn = (point for point in assembly.drawn(state) if point not in state.infeasible)
    points = list(dict.fromkeys([*best, *itertools.islice(drawn, _CANDIDATES)]))  # the best ones first
    value, low, high = _predicted(models, paths, points)
    rows = [
        {
            "point": point.as_dict(),
            "seconds": times[point][0] if point in times else None,
            "runs": times[point][1] if point in times else 0,
            "predicted": number(float(value[index])),
            "low": number(float(low[index])),
            "high": number(float(high[index])),
        }
        for index, point in enumerate(points)
    ]
    usable = np.where(np.isfinite(value) & (value > 0), value, np.inf)
    lowest = int(np.argmin(usable))
    alike = np.isfinite(usable) & (low <= high[lowest])
    return {
        "measured": rows[: len(best)],
        "predicted": rows[lowest] if np.isfinite(usable[lowest]) else None,
        "alike": _alike([point for point, is_one in zip(points, alike, strict=True) if is_one]),
        "points": len(times),
        "candidates": len(points),
        "callpaths": list(paths),
    }


def _alike(points: Sequence[Point]) -> dict[str, Any]:
    """Return how many points there are beside the first one, and which values they share."""
    common = set.intersection(*(set(point.items) for point in points)) if points else set()
    first = points[0].items if points else ()
    return {
        "points": max(0, len(points) - 1),
        "common": {name: value for name, value in first if (name, value) in common},
    }


def counted(assembly: Assembly, known: Measurements) -> tuple[str, ...]:
    """Return the call paths whose times add up to that of a run."""
    measure = assembly.campaign.measure
    paths = [item.callpath for item in known.items if item.metric == _TIME and item.values]
    if measure.profiler in EXCLUSIVE and not measure.inclusive:
        return tuple(paths)
    outermost = [path for path in paths if not any(path.startswith(one + SEPARATOR) for one in paths)]
    return tuple([path for path in paths if path in ROOTS][:1] or outermost)


def totals(known: Measurements, paths: Sequence[str]) -> dict[Point, tuple[float, int]]:
    """Return the mean time of a run (s) and the number of runs at every measured point."""
    items = [item for item in known.items if item.metric == _TIME and item.callpath in paths]
    times: dict[Point, tuple[float, int]] = {}
    for item in items:
        for point, values in item.values.items():
            if values:
                seconds, runs = times.get(point, (0.0, 0))
                times[point] = seconds + sum(values) / len(values), max(runs, len(values))
    return times


def _predicted(
    models: Sequence[Model], paths: Sequence[str], points: Sequence[Point]
) -> tuple[Floats, Floats, Floats]:
    """Return predicted times of runs, and sums of the ends of their intervals; NaN where one is missing."""
    total = np.zeros((3, len(points)))
    for path in paths:
        here = np.full((3, len(points)), np.nan)
        for model in models:
            if (model.callpath, model.metric) == (path, _TIME):
                found = model.predict(points)
                own = np.array([found.value, found.low, found.high])
                here = np.where(np.isfinite(found.value), own, here)
        total += here
    return (total[0], total[1], total[2])
