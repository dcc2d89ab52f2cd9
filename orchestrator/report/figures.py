"""Figures of a campaign: what it spent, and every model against what was measured. They read state only."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from orchestrator.cost import core_hours
from orchestrator.models.base import Model
from orchestrator.types import Measurement, Point

_CURVE = 60  # points of a curve


def png(figure: Figure) -> bytes:
    """Return a figure as PNG."""
    FigureCanvasAgg(figure)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=110, metadata={"Software": None})
    return stream.getvalue()


def ledger(
    times: Sequence[float], spent: Sequence[float], reserved: Sequence[float], budget: float
) -> Figure:
    """Draw core-hours spent and reserved over time, below the budget.

    Parameters
    ----------
    times
        Unix seconds, one per entry of the journal.
    spent, reserved
        Core-seconds after each entry.
    budget
        Core-seconds.
    """
    figure = Figure(figsize=(7, 2.6), layout="constrained")
    axes = figure.add_subplot()
    minutes = (np.asarray(times) - times[0]) / 60
    used = np.asarray(spent) / 3600
    axes.fill_between(minutes, used, step="post", alpha=0.5, label="spent")
    upper = used + np.asarray(reserved) / 3600
    axes.fill_between(minutes, used, upper, step="post", alpha=0.3, label="reserved")
    axes.axhline(core_hours(budget), color="black", linestyle="--", linewidth=1, label="budget")
    axes.set_xlabel("minutes since the start")
    axes.set_ylabel("core-hours")
    axes.legend(loc="lower right", fontsize="small")
    return figure


def model_figure(model: Model, measured: Measurement, beyond: Point | None) -> Figure:
    """Draw a model with its intervals along every numeric parameter, up to P₊, and parity of all points.

    Along a parameter the others keep the values at which most points were measured.
    """
    points = list(measured.values)
    names = [name for name, value in points[0].items if not isinstance(value, str)]
    figure = Figure(figsize=(3.1 * (len(names) + 1), 2.7), layout="constrained")
    axes = figure.subplots(1, len(names) + 1, squeeze=False)[0]
    for place, name in zip(axes, names, strict=False):
        _draw_along(place, name, model, measured, beyond)
    axes[0].set_ylabel(
        f"{measured.metric} [s]" if measured.metric in ("time", "elapsed") else measured.metric
    )
    _draw_parity(axes[-1], model, measured)
    return figure


def _draw_along(place: Axes, name: str, model: Model, measured: Measurement, beyond: Point | None) -> None:
    line = _best_line(name, list(measured.values))
    for point in line:
        values = measured.values[point]
        place.plot([point.number(name)] * len(values), values, "o", markersize=3, color="C0", alpha=0.6)
    low = min(point.number(name) for point in line)
    high = max(point.number(name) for point in line)
    high = max(high, beyond.number(name)) if beyond is not None else high
    xs = np.linspace(low, high, _CURVE) if high > low else np.array([low])
    curve = [Point.of({**line[0].as_dict(), name: float(x)}) for x in xs]
    predicted = model.predict(curve)
    place.plot(xs, predicted.value, color="C1", linewidth=1.3)
    place.fill_between(xs, predicted.low, predicted.high, color="C1", alpha=0.2, linewidth=0)
    rest = ", ".join(f"{key}={value}" for key, value in line[0].items if key != name)
    place.set_xlabel(f"{name}  ({rest})" if rest else name, fontsize="small")
    place.set_ylim(bottom=0)


def _best_line(name: str, points: Sequence[Point]) -> list[Point]:
    """Return the points of the line along a parameter that has the most of them."""

    def others(point: Point) -> tuple[tuple[str, object], ...]:
        return tuple((key, value) for key, value in point.items if key != name)

    counts = Counter(others(point) for point in points)
    chosen = max(counts, key=lambda rest: counts[rest])
    return sorted((p for p in points if others(p) == chosen), key=lambda point: point.number(name))


def _draw_parity(place: Axes, model: Model, measured: Measurement) -> None:
    points = list(measured.values)
    means = np.array([float(np.mean(measured.values[point])) for point in points])
    predicted = model.predict(points).value
    positive = (means > 0) & (predicted > 0)
    if not positive.any():
        place.set_visible(False)
        return
    place.loglog(means[positive], predicted[positive], "o", markersize=3, color="C0")
    bounds = [min(means[positive].min(), predicted[positive].min()), max(means.max(), predicted.max())]
    place.plot(bounds, bounds, color="black", linewidth=0.8)
    for axis in (place.xaxis, place.yaxis):
        axis.set_minor_formatter(NullFormatter())  # labels of narrow ranges would overlap
    place.set_xlabel("measured (mean)", fontsize="small")
    place.set_ylabel("model", fontsize="small")
