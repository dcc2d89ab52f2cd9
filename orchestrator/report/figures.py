"""Figures of models against what was measured, for Python and notebooks."""

from __future__ import annotations

import io
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from orchestrator.models.base import Category, Model, holds_at, unit_of
from orchestrator.types import Measurement, Point, Value

_CURVE = 60  # points of a curve
_WIDE = 32.0  # largest to smallest value, from which on an axis is logarithmic
_SHORT = 1e3  # the same, up to which its labels are close
_ROOM = 80  # characters of a line above or below a figure


def png(figure: Figure) -> bytes:
    """Return a figure as PNG."""
    FigureCanvasAgg(figure)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=110, metadata={"Software": None})
    return stream.getvalue()


def literal(text: str) -> str:
    """Return text that a figure shows as it is: names may have dollars, which would enclose a formula."""
    return text.replace("$", r"\$")


def label_logarithmic(axis: Axis) -> None:
    """Label a logarithmic axis at 1, 2 and 5 times the powers of ten, of which it may have only two."""
    axis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def draw(
    model: Model, measured: Measurement, name: str, at: Point | None = None, axes: Axes | None = None
) -> Axes:
    """Draw the measurements, a model and its 90 % interval along a numeric parameter.

    Parameters
    ----------
    model, measured
        The model and what it was fitted to.
    name
        The parameter. The others keep the values at which most points were measured.
    at
        A point up to which to draw; the others keep its values instead. Only what was measured at these is
        shown.
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
    _draw_along(axes, name, model, measured, at)
    axes.set_ylabel(literal(with_seconds(measured.metric)))
    axes.set_title(literal(wrapped(f"{measured.callpath}: {model.expression}")), fontsize="small")
    return axes


def wrapped(text: str) -> str:
    """Return a text in lines that a figure of the usual size has room for."""
    return "\n".join(textwrap.wrap(text, _ROOM, break_on_hyphens=False)) or text


def with_seconds(metric: str) -> str:
    """Return what an axis of a metric says: ``time [s]``."""
    return f"{metric} [s]" if unit_of(metric) == "s" else metric


def _draw_along(place: Axes, name: str, model: Model, measured: Measurement, at: Point | None) -> None:
    points = list(measured.values)
    rest = _best_rest(name, points) if at is None else _rest(name, at, model.category)
    for point in (point for point in points if _rest(name, point) == rest):
        values = measured.values[point]
        place.plot([point.number(name)] * len(values), values, "o", markersize=3, color="C0", alpha=0.6)
    ends = [point.number(name) for point in points if at is not None or _rest(name, point) == rest]
    ends += [] if at is None else [at.number(name)]
    low, high = min(ends), max(ends)
    if low > 0 and high / low >= _WIDE:
        place.set_xscale("log")
        if high / low <= _SHORT:
            label_logarithmic(place.xaxis)
        xs = np.geomspace(low, high, _CURVE)
    else:
        xs = np.linspace(low, high, _CURVE)
    xs = np.unique([low, high, *xs[1:-1], *ends])  # where runs are, the line is the model, and no chord
    curve = [Point.of({**rest, name: float(x)}) for x in xs]
    with np.errstate(all="ignore"):  # far out, there may be no number to draw
        predicted = model.predict(curve)
    place.plot(xs, predicted.value, color="C1", linewidth=1.3)
    place.fill_between(xs, predicted.low, predicted.high, color="C1", alpha=0.2, linewidth=0)
    others = ", ".join(f"{key}={value}" for key, value in rest.items())
    place.set_xlabel(literal(wrapped(f"{name}  ({others})" if others else name)), fontsize="small")
    place.set_ylim(0, 1.05 * place.get_ylim()[1])  # values that hardly differ have next to no margin


def _rest(name: str, point: Point, category: Category = ()) -> dict[str, Value]:
    """Return the values of all parameters but one; a category has its own."""
    return {key: value for key, value in {**point.as_dict(), **dict(category)}.items() if key != name}


def _best_rest(name: str, points: Sequence[Point]) -> dict[str, Value]:
    """Return the values of the other parameters on the line along one that has the most points."""
    counts = Counter(tuple(_rest(name, point).items()) for point in points)
    return dict(counts.most_common(1)[0][0])
