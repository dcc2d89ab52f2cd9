"""Noise: how far repetitions are apart, per point, per node and over time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from orchestrator.journal.state import State
from orchestrator.policy import machine
from orchestrator.report.models_document import number
from orchestrator.report.page.encoding import place
from orchestrator.report.page.subject import Subject
from orchestrator.types import Point

_FEWEST = 2  # values at a point that show noise


def of_measurements(subject: Subject) -> dict[str, Any] | None:
    """Return the noise of the largest call path; None without repetitions."""
    items = [item for item in subject.known.items if item.metric == subject.metric]
    if not items:
        return None
    largest = max(items, key=lambda item: sum(map(sum, item.values.values())))
    points = list(_points(largest.values.items()))
    if not points:
        return None
    return {"of": largest.callpath, "points": points, "nodes": [], "hours": [], "drift": None}


def of_state(state: State) -> dict[str, Any] | None:
    """Return the noise of the timed runs of a campaign; None without repetitions."""
    by_point: dict[Point, list[tuple[str, float | None, float]]] = {}
    for run, item in machine.timed(state):
        seconds = machine.duration(item)
        if seconds > 0:
            by_point.setdefault(run.point, []).append((item.node, item.began, seconds))
    repeated = {point: values for point, values in by_point.items() if len(values) >= _FEWEST}
    if not repeated:
        return None
    start = state.started or 0.0
    ratios = [
        (node, began, seconds / float(np.median([value for *_, value in values])))
        for values in repeated.values()
        for node, began, seconds in values
    ]
    return {
        "of": "the largest time of each run",
        "points": list(_points((point, [s for *_, s in values]) for point, values in repeated.items())),
        "nodes": list(_nodes((node, ratio) for node, _, ratio in ratios if node)),
        "hours": [
            {"t": began - start, "ratio": ratio, "node": node or None}
            for node, began, ratio in sorted(ratios, key=lambda item: item[1] or 0.0)
            if began is not None
        ],
        "drift": state.machine.get("drift"),
    }


def _points(values: Iterable[tuple[Point, Iterable[float]]]) -> Iterable[dict[str, Any]]:
    """Yield the relative standard deviation of the values of every point that has several."""
    for point, found in values:
        array = np.array([value for value in found if np.isfinite(value)])
        if len(array) >= _FEWEST and array.mean() > 0:
            percent = 100 * float(array.std(ddof=1)) / float(array.mean())
            yield {"point": place(point), "percent": number(percent), "runs": len(array)}


def _nodes(ratios: Iterable[tuple[str, float]]) -> Iterable[dict[str, Any]]:
    """Yield how runs on a node compare with the median of their points."""
    by_node: dict[str, list[float]] = {}
    for node, ratio in ratios:
        by_node.setdefault(node, []).append(ratio)
    for node, own in sorted(by_node.items()):
        spread = 100 * float(np.std(own, ddof=1)) if len(own) >= _FEWEST else None
        yield {
            "node": node,
            "percent": spread,
            "median_ratio": float(np.median(own)),
            "runs": len(own),
        }
