"""Figures show what a model is for."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from orchestrator.models.pmnf.modeler import modeler
from orchestrator.report import figures
from orchestrator.types import Measurement, Measurements, Point

SIZES = (10, 20, 30, 40, 50)
SCALE = {"a1": 1.0, "a2": 100.0, "a3": 10_000.0}


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
