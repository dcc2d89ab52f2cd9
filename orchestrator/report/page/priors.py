"""How priors changed models: the same call paths modelled without and with them, and what the notes say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from orchestrator.models.base import Model, holds_at, key_of
from orchestrator.models.effort import EFFORT
from orchestrator.models.symbolic import terms_of
from orchestrator.report.models_document import band_at, number
from orchestrator.report.page import growth
from orchestrator.report.page.callpaths import CallPaths, curves
from orchestrator.report.page.subject import Subject
from orchestrator.types import Measurements, Point
from orchestrator.units import plain

COUNTING = "swc"  # the modeler that takes counts as priors
_MOST = 100  # call paths, largest first
_SAME_TEXT = "no change worth mentioning"
_WITHOUT = "no effort was counted"  # how notes on call paths without a prior begin
# Relative difference of predictions and of widths of intervals below which they are called equal.
_SAME = 0.02


def document(subject: Subject, paths: CallPaths) -> dict[str, Any] | None:
    """Return the models without and with priors; None where no prior was used.

    Those that changed come first, largest first; those that nothing is said about are left out.
    """
    without = {key_of(model): model for model in subject.unaided}
    there = paths.grid.default
    rows = [
        _row(k, without[key_of(model)], model, there, paths)
        for k, model in enumerate(paths.models)
        if key_of(model) in without
    ]
    shown = [row for row in rows if row["text"] != _SAME_TEXT or any(map(_is_reason, row["why"]))][:_MOST]
    shown.sort(key=lambda row: bool(row["text"] == _SAME_TEXT))
    return {"sources": list(subject.priors), "callpaths": shown} if shown else None


def _is_reason(note: str) -> bool:
    """Return whether a note says more than that there was no prior for a call path."""
    return not note.startswith(_WITHOUT)


def _row(k: int, without: Model, aided: Model, there: Point, paths: CallPaths) -> dict[str, Any]:
    point = there if holds_at(aided, there) else Point.of({**there.as_dict(), **dict(aided.category)})
    before, after = _side(without, point, paths), _side(aided, point, paths)
    return {
        "id": k,
        "without": {**before, "curves": curves(without, paths.lines)},
        "with": after,
        "text": _text(before, after, point),
        # What only the model with priors says is about them.
        "why": [note for note in aided.notes if note not in without.notes],
    }


def _side(model: Model, point: Point, paths: CallPaths) -> dict[str, Any]:
    values = np.empty(0) if terms_of(model) else model.value(paths.grid.points())
    return {
        "expression": model.expression,
        "growth": growth.described(model, paths.grid, values),
        **band_at(model.predict([point]), 0),
        "smape": number(model.smape),
        "noise": number(model.noise),
    }


def _text(before: Mapping[str, Any], after: Mapping[str, Any], point: Point) -> str:
    """Return what changed: the growth, the prediction, the width of its interval."""
    parts = []
    if _growths(before) != _growths(after):
        parts.append(f"growth {_growths(after)} instead of {_growths(before)}")
    if before["value"] and after["value"]:
        factor = after["value"] / before["value"]
        if abs(factor - 1) > _SAME:
            parts.append(f"prediction at {point} {_percent(factor)}")
    widths = [_width(side) for side in (before, after)]
    if widths[0] and widths[1] is not None and abs(widths[1] / widths[0] - 1) > _SAME:
        parts.append(f"interval there {plain(widths[1] / widths[0], 2)} times as wide")
    return "; ".join(parts) or _SAME_TEXT


def _growths(side: Mapping[str, Any]) -> str:
    grows = [item["text"] for item in side["growth"] if item["text"] != "constant"]
    return " * ".join(grows) or "constant"


def _percent(factor: float) -> str:
    percent = 100 * (factor - 1)
    return f"{plain(abs(percent), 2)} % {'higher' if percent > 0 else 'lower'}"


def _width(side: Mapping[str, Any]) -> float | None:
    """Return the width of the interval relative to the prediction."""
    low, high, value = side["low"], side["high"], side["value"]
    return None if None in (low, high) or not value else float((high - low) / value)


def largest(known: Measurements) -> Measurements:
    """Return the measurements of call paths that are worth modelling again without priors: no counts."""
    items = [item for item in known.items if item.metric not in EFFORT]
    items.sort(key=lambda item: -sum(map(sum, item.values.values())))
    return replace(known, items=tuple(items[:_MOST]))


def sources(campaigns: Sequence[str], counted: bool) -> tuple[str, ...]:
    """Return in words where priors come from: names of earlier campaigns, and counts of effort."""
    earlier = [f"the earlier campaign {name}" for name in campaigns]
    return (*(["counted effort"] if counted else []), *earlier)
