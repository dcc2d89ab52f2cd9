"""Figures of speedup and efficiency over processes, and of what a faster run costs."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from orchestrator.models.base import Model
from orchestrator.models.scaling import Band, Curve, Study, curve, relative
from orchestrator.report.figures import set_ticks
from orchestrator.types import Measurement, Point, format_value

_MEASURED, _MODEL, _IDEAL = "C0", "C1", "black"
_PLAIN = FuncFormatter(lambda value, _: f"{value:g}")


def speedup_figure(model: Model, measured: Measurement, study: Study, point: Point, target: float) -> Figure:
    """Draw speedup, efficiency, and time against core-hours, up to a point.

    Parameters
    ----------
    model, measured
        The model, of times, and what it was fitted to.
    study
        How runs are compared.
    point
        The problem, and the processes up to which to draw.
    target
        Efficiency as a share, drawn as a line.
    """
    figure = Figure(figsize=(9.3, 2.8), layout="constrained")
    first, second, third = figure.subplots(1, 3)
    draw_speedup(first, model, measured, study, point)
    found = curve(model, study, study.path(point))
    _draw_efficiency(second, found, _measured(measured, study, point), study, target)
    _draw_cost(third, found)
    return figure


def draw_speedup(axes: Axes, model: Model, measured: Measurement, study: Study, point: Point) -> None:
    """Draw the speedup with its 90 % interval, measured ones as dots, and the ideal as a dashed line."""
    found = curve(model, study, study.path(point))
    _draw_band(axes, found.processes, found.speedup)
    known = _measured(measured, study, point)
    axes.plot(list(known), list(known.values()), "o", markersize=3, color=_MEASURED)
    ideal = found.processes / _start(study, point)
    axes.plot(found.processes, ideal, color=_IDEAL, linestyle="--", linewidth=0.8)
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(_PLAIN)
    _label(axes, study, point, "speedup")


def _draw_efficiency(
    axes: Axes, found: Curve, known: dict[float, float], study: Study, target: float
) -> None:
    _draw_band(axes, found.processes, found.efficiency)
    shares = [speedup * _start(study, found.points[0]) / n for n, speedup in known.items()]
    axes.plot(list(known), shares, "o", markersize=3, color=_MEASURED)
    axes.axhline(target, color=_IDEAL, linestyle=":", linewidth=0.8)
    axes.set_ylim(0, max(1.1, min(2.0, float(np.nanmax(found.efficiency.high)))))
    _label(axes, study, found.points[-1], "efficiency")


def _draw_cost(axes: Axes, found: Curve) -> None:
    axes.plot(found.core_hours.value, found.seconds.value, "o-", markersize=3, color=_MODEL, linewidth=1.3)
    for n, x, y in zip(found.processes, found.core_hours.value, found.seconds.value, strict=True):
        axes.annotate(f"{n:g}", (x, y), fontsize="x-small", xytext=(2, 2), textcoords="offset points")
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis, values in ((axes.xaxis, found.core_hours.value), (axes.yaxis, found.seconds.value)):
        set_ticks(axis, float(np.nanmin(values)), float(np.nanmax(values)))
    axes.set_xlabel("core-hours of a run, with N", fontsize="small")
    axes.set_ylabel("time [s]", fontsize="small")


def _draw_band(axes: Axes, n: np.ndarray[tuple[int], np.dtype[np.float64]], band: Band) -> None:
    axes.plot(n, band.value, color=_MODEL, linewidth=1.3)
    axes.fill_between(n, band.low, band.high, color=_MODEL, alpha=0.2, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(_PLAIN)


def _start(study: Study, point: Point) -> float:
    return study.number(study.reference(point))


def _label(axes: Axes, study: Study, point: Point, what: str) -> None:
    rest = ", ".join(f"{name}={format_value(value)}" for name, value in point.items if name != study.along)
    axes.set_xlabel(f"N = {study.processes.text}" + (f"  ({rest})" if rest else ""), fontsize="small")
    axes.set_ylabel(what, fontsize="small")
    axes.tick_params(labelsize="small")


def _measured(item: Measurement, study: Study, point: Point) -> dict[float, float]:
    """Return measured speedups by N."""
    return {study.number(there): speedup for there, speedup in relative(item, study, point).items()}
