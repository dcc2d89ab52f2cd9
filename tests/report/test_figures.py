"""Figures show what a model is for, with axes that can be read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

from orchestrator.models.base import Model
from orchestrator.models.pmnf.modeler import modeler
from orchestrator.report import figures
from orchestrator.types import Measurement, Measurements, Point

Truth = Callable[[float, str], float]
KINDS = ("a1", "a2", "a3")
SIZES = (10, 20, 30, 40, 50)


def drawn(truth: Truth, kinds: tuple[str, ...] = KINDS) -> list[tuple[Model, Figure]]:
    """Return models of measurements, each with its figure."""
    values = {Point.of(n=n, k=k): (truth(n, k), 1.01 * truth(n, k)) for k in kinds for n in SIZES}
    measured = Measurement("main", "time", values)
    models = modeler()(Measurements(("n", "k"), (measured,)))
    return [(model, figures.model_figure(model, measured, Point.of(n=60, k="a2"))) for model in models]


def labels(axis: Axis) -> list[str]:
    """Return the labels of the ticks that are seen."""
    low, high = sorted(axis.get_view_interval())
    return [
        tick.label1.get_text()
        for tick in axis.get_major_ticks()
        if low <= tick.get_loc() <= high and tick.label1.get_text()
    ]


def test_a_model_of_a_category_is_drawn_with_the_points_of_its_category() -> None:
    scale = {"a1": 1.0, "a2": 100.0, "a3": 10_000.0}
    found = drawn(lambda n, k: scale[k] * n)
    assert len(found) == 3
    for model, figure in found:
        ((_, kind),) = model.category
        along, parity = figure.axes
        assert f"k={kind}" in along.get_xlabel()
        *points, curve = along.get_lines()
        seen = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in points])
        assert len(seen) == 2 * len(SIZES)
        assert seen.min() == pytest.approx(10 * scale[kind]) and seen.max() <= 51 * scale[kind]
        assert np.isfinite(np.asarray(curve.get_ydata(), dtype=float)).all()
        assert len(np.asarray(parity.get_lines()[0].get_xdata())) == len(SIZES)


@pytest.mark.parametrize(
    "truth",
    [
        lambda n, k: 0.02,
        lambda n, k: 0.021 + 0.0001 * n,
        lambda n, k: 3.0 * n,
        lambda n, k: 0.00021 * n**2,
        lambda n, k: 2e-7 * n**3,
        lambda n, k: 2e-7 * n**6,
        lambda n, k: 1e4 + 0.1 * n,
    ],
)
def test_parity_has_several_labels_that_differ_whatever_its_range(truth: Truth) -> None:
    ((_, figure),) = drawn(truth, ("a2",))
    figures.png(figure)
    parity: Axes = figure.axes[-1]
    for axis in (parity.xaxis, parity.yaxis):
        found = labels(axis)
        assert 2 <= len(found) <= 8 and len(set(found)) == len(found), found
