"""The answer of a report: how long a run takes at P₊, how certain that is, what it costs, what dominates.

The cost is that of the whole run with its launch where a model says how long that lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from orchestrator.journal.measurements import ELAPSED
from orchestrator.models.base import holds_at
from orchestrator.report.models_document import number
from orchestrator.report.page.callpaths import CallPaths
from orchestrator.report.page.encoding import place
from orchestrator.report.page.subject import Subject
from orchestrator.report.page.validation import Checked
from orchestrator.types import Point
from orchestrator.units import CostUnit, count, per_unit, plain

_MOST_PARTS = 8
_DIGITS = 4  # of figures in the sentence
_LEAST_SHARE = 0.01  # of parts that the sentence names

Cores = Callable[[Point], float | None]


def answer(
    subject: Subject,
    paths: CallPaths,
    cores: Cores,
    *,
    note: str = "",
    checked: Checked | None = None,
    unit: CostUnit = "core-hours",
) -> dict[str, Any] | None:
    """Return the predicted time of a run at P₊, or else at the largest measured values; None without times.

    Parameters
    ----------
    subject, paths
        Measurements, and the models with their predictions.
    cores
        How many cores a run at a point is charged for; None where nothing says so.
    note
        What this number of cores assumes.
    checked
        A run there that was measured to check the models.
    unit
        In which the sentence names the cost; the document has core-hours.
    """
    there = paths.grid.default
    models = _at(paths, subject.whole, subject.metric, there)
    if subject.metric is None or not models:
        return None
    # The ends are added, too: as if all models erred to one side.
    value, low, high = (sum(ends) for ends in zip(*map(paths.at_default, models), strict=True))
    if not np.isfinite(value):
        return None
    launched = _launched(subject, paths, there, (value, low, high))
    cost = _cost(launched or {"value": value, "low": low, "high": high}, cores(there), note)
    parts = _parts(subject, paths, there, value)
    described = {
        "point": place(there),
        "is_evaluation_point": subject.point is not None,
        "is_fastest": subject.point is None and subject.fastest is not None,
        "metric": subject.metric,
        "unit": subject.unit(subject.metric),
        "callpath": subject.whole[0] if len(subject.whole) == 1 else count(len(models), "call path"),
        "value": value,
        "low": low,
        "high": high,
        "interval": "90 %",
        "summed": len(models),
        "launched": launched,
        "cost": cost,
        "checked": None if checked is None else checked.document(),
        "parts": parts[:_MOST_PARTS],
        "overlap": subject.overlap,
    }
    return {**described, "sentence": sentence(described, there, len(parts), unit)}


def _launched(
    subject: Subject, paths: CallPaths, there: Point, program: Sequence[float]
) -> dict[str, Any] | None:
    """Return how long a whole run lasts with its launch; None where that is no other question, or unknown.

    That is at least as long as the ``program`` in it, of which other models may say more, where every
    measured run was. ``modeled`` is then what the model of whole runs says.
    """
    if subject.metric == ELAPSED:
        return None
    measured = [item.callpath for item in subject.known.items if item.metric == ELAPSED]
    ends = [paths.at_default(k) for k in _at(paths, measured, ELAPSED, there)]
    if len(ends) != 1 or not np.isfinite(ends[0][0]):
        return None
    own = [float(end) for end in ends[0]]
    known = [max(pair) for pair in zip(own, program, strict=True)] if subject.is_within_runs else own
    modeled = {"modeled": number(own[0])} if known[0] > own[0] else {}
    return {**dict(zip(("value", "low", "high"), map(number, known), strict=True)), **modeled}


def _cost(seconds: Mapping[str, float | None], cores: float | None, note: str) -> dict[str, Any] | None:
    """Return the core-hours of a run that takes so long; None where nothing says how many cores it has."""
    if cores is None:
        return None
    hours, low, high = (
        None if end is None else number(end * cores / 3600)
        for end in (seconds[key] for key in ("value", "low", "high"))
    )
    return {"core_hours": hours, "low": low, "high": high, "cores": cores, "note": note}


def _at(paths: CallPaths, callpaths: Sequence[str], metric: str | None, there: Point) -> list[int]:
    """Return the numbers of the models of call paths that hold at a point."""
    return [k for k in paths.ids(callpaths, metric) if holds_at(paths.models[k], there)]


def _parts(subject: Subject, paths: CallPaths, there: Point, total: float) -> list[dict[str, Any]]:
    """Return what the whole is made of, largest first, each with its share."""
    rows = []
    for k in _at(paths, subject.parts, subject.metric, there):
        value, low, high = paths.at_default(k)
        if np.isfinite(value) and value > 0:
            share = value / total if total > 0 else None
            ends = {"value": value, "low": low, "high": high}
            rows.append({"id": k, "callpath": paths.models[k].callpath, "share": share, **ends})
    return sorted(rows, key=lambda row: -float(row["value"] or 0.0))


def _with_launch(launched: Mapping[str, Any]) -> str:
    if "modeled" in launched:
        return f"at least as long (the model of whole runs says {plain(launched['modeled'], _DIGITS)} s)"
    return f"{plain(launched['value'], _DIGITS)} s"


def sentence(described: dict[str, Any], there: Point, parts: int, cost_unit: CostUnit) -> str:
    """Return the answer in words."""
    figures = [plain(described[key], _DIGITS) for key in ("value", "low", "high")]
    unit = described["unit"]
    text = (
        f"At {there} a run takes {figures[0]} {unit} by the models "
        f"(90 % interval {figures[1]} to {figures[2]} {unit})"
    )
    if described["launched"] is not None:
        text += f"; with its launch it takes {_with_launch(described['launched'])}"
    if described["cost"] is not None:
        hours, cores, note = (described["cost"][key] for key in ("core_hours", "cores", "note"))
        amount = plain(3600 * hours / per_unit(cost_unit), 3)
        text += f", which costs {amount} {cost_unit} on {count(int(cores), 'core')}"
        text += f" ({note})" if note else ""
    text += "."
    if described["is_fastest"]:
        text += " That is the fastest measured configuration."
    elif not described["is_evaluation_point"]:
        text += " No evaluation point was named: these are the largest measured values."
    if described["summed"] > 1:
        text += (
            f" That is the sum of {described['summed']} call paths; the ends of their intervals were added, "
            "as if all models erred to the same side."
        )
    shown = [row for row in described["parts"] if row["share"] is not None and row["share"] >= _LEAST_SHARE]
    largest = shown[:2] if parts > 1 else []
    if largest:
        named = " and ".join(f"{row['callpath']} ({100 * row['share']:.0f} %)" for row in largest)
        text += f" The largest {'parts are' if len(largest) > 1 else 'part is'} {named}."
    return text
