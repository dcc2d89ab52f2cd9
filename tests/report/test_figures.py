"""Figures show what a model is for."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from orchestrator.models.pmnf.modeler import modeler
from orchestrator.report import figures
from orchestrator.types import Measurement, Measurements, Point

SIZES = (10, 20, 30, 40, 50)
SCALE = {"a1": 1.0, "a2": 100.0, "a3": 10_000.0}


def test_a_logarithmic_axis_has_labels_between_the_powers_of_ten() -> None:
    axes = Figure().add_subplot()
    axes.plot([1, 60], [1, 2])
    axes.set_xscale("log")
    figures.label_logarithmic(axes.xaxis)
    low, high = axes.get_xlim()
    labels = [label.get_text() for label in axes.get_xticklabels()]
    shown = [text for text, at in zip(labels, axes.get_xticks(), strict=True) if low <= at <= high]
    assert shown == ["1", "2", "5", "10", "20", "50"]


def test_a_point_says_where_the_curve_is_drawn_and_which_runs_are_shown() -> None:
    measured = Measurement(
        "main", "time", {Point.of(n=n, p=p): (n * p,) for n in SIZES for p in (1, 2, 4, 8)}
    )
    [model] = modeler()(Measurements(("n", "p"), (measured,)))
    axes = Figure().add_subplot()
    figures.draw(model, measured, "n", Point.of(n=100, p=2), axes)
    *runs, curve = axes.get_lines()
    seen = sorted(float(value) for line in runs for value in np.asarray(line.get_ydata()))
    assert seen == [2.0 * n for n in SIZES], "runs with other values of p are not on this curve"
    assert np.asarray(curve.get_xdata())[-1] == 100
    assert np.asarray(curve.get_ydata(), dtype=float)[-1] == pytest.approx(200, rel=0.01)
    assert axes.get_xlabel() == "n  (p=2)"
    axes = Figure().add_subplot()
    figures.draw(model, measured, "n", Point.of(n=100, p=64), axes)
    [curve] = axes.get_lines()
    assert np.asarray(curve.get_ydata(), dtype=float)[-1] == pytest.approx(6400, rel=0.01)
    assert np.asarray(curve.get_xdata())[0] == 10, "without runs there, over all that was measured"


def test_a_curve_over_a_wide_range_is_the_model_where_runs_are() -> None:
    values = {Point.of(p=p): (100 / p,) for p in (4, 8, 16, 32, 64, 128)}
    measured = Measurement("main", "time", values)
    [model] = modeler()(Measurements(("p",), (measured,)))
    axes = figures.draw(model, measured, "p", Point.of(p=4096), Figure().add_subplot())
    line = axes.get_lines()[-1]
    drawn = np.interp(8, np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float))
    assert drawn == pytest.approx(100 / 8, rel=0.01)
    assert axes.get_xscale() == "log"
    assert figures.draw(model, measured, "p", None, Figure().add_subplot()).get_xscale() == "log"
    near = {point: runs for point, runs in values.items() if point.number("p") <= 32}
    few = Measurement("main", "time", near)
    assert figures.draw(model, few, "p", None, Figure().add_subplot()).get_xscale() == "linear"


def test_a_model_of_a_category_is_drawn_with_the_points_of_its_category() -> None:
    values = {Point.of(n=n, k=k): (SCALE[k] * n, 1.01 * SCALE[k] * n) for k in SCALE for n in SIZES}
    measured = Measurement("main", "time", values)
    models = modeler()(Measurements(("n", "k"), (measured,)))
    assert len(models) == len(SCALE)
    for model in models:
        ((_, kind),) = model.category
        axes = Figure().add_subplot()
        figures.draw(model, measured, "n", Point.of(n=60, k="a2"), axes)
        assert f"k={kind}" in axes.get_xlabel()
        *points, curve = axes.get_lines()
        seen = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in points])
        assert len(seen) == 2 * len(SIZES)
        assert seen.min() == pytest.approx(10 * SCALE[kind]) and seen.max() <= 51 * SCALE[kind]
        assert np.isfinite(np.asarray(curve.get_ydata(), dtype=float)).all()


def test_long_names_stay_within_a_figure() -> None:
    path = "main->" + "std::vector<Field<double>>::operator()(unsigned long const&)" * 3
    measured = Measurement(path, "time", {Point.of(n=n): (float(n),) for n in SIZES})
    [model] = modeler()(Measurements(("n",), (measured,)))
    figure = Figure(layout="constrained")
    axes = figures.draw(model, measured, "n", axes=figure.add_subplot())
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    assert axes.get_title().replace("\n", "").replace(" ", "").startswith(path.replace(" ", ""))
    assert axes.title.get_window_extent().x0 >= 0
    assert axes.title.get_window_extent().x1 <= figure.bbox.x1
