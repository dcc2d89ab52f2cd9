"""Speedup and efficiency of models as JSON and as text: curves, and the processes beyond which they fall."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from orchestrator.models.base import Model, holds_at
from orchestrator.models.scaling import Curve, Limit, Study, curve_and_limit, has_speedup
from orchestrator.report.models_document import band_at, label, number
from orchestrator.report.tables import interval, titled
from orchestrator.types import Point, assigned

DEFAULT_TARGET = 0.5
"""Efficiency below which more processes are mostly wasted, where nothing else is asked for."""


def describe(model: Model, study: Study, points: Sequence[Point], target: float) -> list[dict[str, Any]]:
    """Return the speedups of a model, JSON-ready, for the problem of every point for which it holds.

    Parameters
    ----------
    model
        Of any family; without a metric in seconds there are none.
    study
        How runs are compared.
    points
        Up to which curves go.
    target
        Efficiency as a share.
    """
    if not has_speedup(model):
        return []
    return [_described(model, study, point, target) for point in points if holds_at(model, point)]


def _described(model: Model, study: Study, point: Point, target: float) -> dict[str, Any]:
    curve, limited = curve_and_limit(model, study, point, target)
    return {
        "point": point.as_dict(),
        "processes": study.processes.text,
        "along": study.along,
        "scaling": "weak" if study.weak else "strong",
        "reference": study.reference(point).as_dict(),
        "curve": list(_rows(curve)),
        "limit": _limit(limited),
        "fastest": _fastest(curve),
    }


def _rows(curve: Curve) -> Iterator[dict[str, Any]]:
    bands = {
        "seconds": curve.seconds,
        "speedup": curve.speedup,
        "efficiency": curve.efficiency,
        "core_hours": curve.core_hours,
    }
    for k, point in enumerate(curve.points):
        yield {
            "point": point.as_dict(),
            "processes": number(float(curve.processes[k])),
            **{name: band_at(band, k) for name, band in bands.items()},
        }


def _limit(limit: Limit) -> dict[str, Any]:
    return {
        "efficiency": limit.target,
        "processes": limit.processes,
        "already": limit.already,
        "low": limit.low,
        "high": limit.high,
        "searched": limit.searched,
        "measured": limit.measured,
    }


def _fastest(curve: Curve) -> dict[str, Any] | None:
    """Return where the predicted time is least, if that is before the end of the curve."""
    if not np.isfinite(curve.seconds.value).all():
        return None
    place = int(np.argmin(curve.seconds.value))
    if place == len(curve.points) - 1:
        return None
    return {"processes": float(curve.processes[place]), "seconds": band_at(curve.seconds, place)}


def table(described: Mapping[str, Any], speedup: Mapping[str, Any]) -> Table:
    """Return a table of one of the speedups of a described model."""
    rest = assigned(item for item in speedup["point"].items() if item[0] != speedup["along"])
    title = f"{label(described)} {described['metric']}" + (f" ({rest})" if rest else "")
    result = titled(title, figures=("N", "time s", "speedup", "efficiency %", "core-hours"))
    for row in speedup["curve"]:
        percent = {key: None if value is None else 100 * value for key, value in row["efficiency"].items()}
        cells = (row["seconds"], row["speedup"], percent, row["core_hours"])
        result.add_row(*map(Text, (f"{row['processes']:g}", *map(interval, cells))))
    return result


def sentences(described: Mapping[str, Any], speedup: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a speedup says: beyond which N efficiency is too low, and where the time is least."""
    name, limited = label(described), speedup["limit"]
    what = f"{name}: efficiency is below {100 * limited['efficiency']:g} %"
    if limited["processes"] is None:
        beyond = limited["searched"] > limited["measured"]
        measured = f" by the model; measured was up to N = {limited['measured']:g}" if beyond else ""
        yield f"{what} nowhere up to N = {limited['searched']:g}{measured}"
    elif limited["already"]:
        yield f"{what} on all N from {limited['processes']:g} on"
    else:
        low, high = (
            f"more than {limited['searched']:g}" if limited[end] is None else f"{limited[end]:g}"
            for end in ("low", "high")
        )
        beyond = "; beyond what was measured" if limited["processes"] > limited["measured"] else ""
        yield f"{what} beyond N = {limited['processes']:g} [{low}, {high}]{beyond}"
    if speedup["fastest"] is not None:
        least = speedup["fastest"]
        yield f"{name}: the time is least on N = {least['processes']:g}: {interval(least['seconds'])} s"
