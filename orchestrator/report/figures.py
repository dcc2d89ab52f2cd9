"""Figures of models against what was measured, for Python and notebooks."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from orchestrator.models.base import Model, holds_at
from orchestrator.types import Measurement, Point

_CURVE = 60  # points of a curve


def png(figure: Figure) -> bytes:
    """Return a figure as PNG."""
    FigureCanvasAgg(figure)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=110, metadata={"Software": None})
    return stream.getvalue()


def literal(text: str) -> str:
    """Return text that a figure shows as it is: names may have dollars, which would enclose a formula."""
    return text.replace("$", r"\$")


def draw(
    model: Model, measured: Measurement, name: str, beyond: Point | None = None, axes: Axes | None = None
) -> Axes:
    """Draw the measurements, a model and its 90 % interval along a numeric parameter.

    Parameters
    ----------
    model, measured
        The model and what it was fitted to.
    name
        The parameter. The others keep the values at which most points were measured.
    beyond
        A point up to which to draw.
    axes
        Where to draw; by default on a new figure of ``matplotlib.pyplot``.
    """
    if axes is None:
        from matplotlib import pyplot

        axes = pyplot.subplots(layout="constrained")[1]
    measured = replace(
        measured,
        values={point: values for point, values in measured.values.items() if holds_at(model, point)},
    )
    _draw_along(axes, name, model, measured, beyond)
    axes.set_ylabel(literal(_unit(measured)))
    axes.set_title(literal(f"{measured.callpath}: {model.expression}"), fontsize="small")
    return axes


def _unit(measured: Measurement) -> str:
    return f"{measured.metric} [s]" if measured.metric in ("time", "elapsed") else measured.metric


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
    place.set_xlabel(literal(f"{name}  ({rest})" if rest else name), fontsize="small")
    place.set_ylim(0, 1.05 * place.get_ylim()[1])  # values that hardly differ have next to no margin


def _best_line(name: str, points: Sequence[Point]) -> list[Point]:
    """Return the points of the line along a parameter that has the most of them."""

    def others(point: Point) -> tuple[tuple[str, object], ...]:
        return tuple((key, value) for key, value in point.items if key != name)

    counts = Counter(others(point) for point in points)
    chosen = max(counts, key=lambda rest: counts[rest])
    return sorted((p for p in points if others(p) == chosen), key=lambda point: point.number(name))
