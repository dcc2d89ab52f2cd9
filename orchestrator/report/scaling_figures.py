"""Figures of speedup over processes."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from orchestrator.models.base import Floats, Model
from orchestrator.models.scaling import Band, Study, curve, relative
from orchestrator.report.figures import literal, wrapped
from orchestrator.types import Measurement, Point, assigned

_MEASURED, _MODEL, _IDEAL = "C0", "C1", "black"
_PLAIN = FuncFormatter(lambda value, _: f"{value:g}")


def draw_speedup(axes: Axes, model: Model, measured: Measurement, study: Study, point: Point) -> None:
    """Draw the speedup with its 90 % interval, measured ones as dots, and the ideal as a dashed line."""
    drawn = curve(model, study, study.path(point))
    _draw_band(axes, drawn.processes, drawn.speedup)
    known = {study.number(there): speedup for there, speedup in relative(measured, study, point).items()}
    axes.plot(list(known), list(known.values()), "o", markersize=3, color=_MEASURED)
    ideal = drawn.processes / study.number(study.reference(point))
    axes.plot(drawn.processes, ideal, color=_IDEAL, linestyle="--", linewidth=0.8)
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(_PLAIN)
    _label(axes, study, point)
    axes.set_title(literal(wrapped(measured.callpath)), fontsize="small")


def _draw_band(axes: Axes, n: Floats, band: Band) -> None:
    axes.plot(n, band.value, color=_MODEL, linewidth=1.3)
    axes.fill_between(n, band.low, band.high, color=_MODEL, alpha=0.2, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(_PLAIN)


def _label(axes: Axes, study: Study, point: Point) -> None:
    rest = assigned(item for item in point.items if item[0] != study.along)
    where = f"N = {study.processes.text}" + (f"  ({rest})" if rest else "")
    axes.set_xlabel(literal(wrapped(where)), fontsize="small")
    axes.set_ylabel("speedup", fontsize="small")
    axes.tick_params(labelsize="small")
