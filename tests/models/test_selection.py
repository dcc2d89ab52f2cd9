"""Formulas and curves together: each where it is right, and both where that is not known."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from orchestrator.models.curves.model import CurveModel
from orchestrator.models.curves.modeler import modeler as curves
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.pmnf.modeler import modeler as pmnf
from orchestrator.models.selection import Blend, modeler
from orchestrator.types import Measurement, Measurements, Point

RANKS, SIZES = (4, 8, 16, 32, 64), (10, 20, 30, 40, 50)
FAR = Point.of(p=128, n=60)


def measured(truth: Callable[[float, float], float], noise: float = 0.02, seed: int = 0) -> Measurements:
    rng = np.random.default_rng(seed)
    values = {
        Point.of(p=p, n=n): tuple(float(truth(p, n) * np.exp(rng.normal(0, noise))) for _ in range(3))
        for p, n in product(RANKS, SIZES)
    }
    return Measurements(("p", "n"), (Measurement("main", "time", values),))


def test_a_formula_that_explains_the_measurements_is_the_model_alone() -> None:
    (model,) = modeler()(measured(lambda p, n: 0.5 + 1e-3 * p**0.5 * n))
    assert isinstance(model, PmnfModel)


def steps(p: float, n: float) -> float:
    """Time that jumps where a message no longer fits a buffer, then stays."""
    return float((1.0 if p < 16 else 3.1) * (1.0 if n < 25 else 1.7) * (1.3 if p == 64 and n < 35 else 1.0))


def test_steps_are_followed_by_curves_and_the_interval_holds() -> None:
    (model,) = modeler()(measured(steps))
    assert not isinstance(model, PmnfModel)
    predicted = model.predict([FAR])
    assert predicted.low[0] < steps(128, 60) < predicted.high[0]
    (formula,) = pmnf()(measured(steps))
    inside = [Point.of(p=p, n=n) for p, n in product(RANKS, SIZES)]
    truth = np.array([steps(point.number("p"), point.number("n")) for point in inside])
    own, other = (np.abs(np.log(item.value(inside) / truth)).mean() for item in (model, formula))
    assert own < other / 2


def test_a_blend_lies_between_its_parts_and_says_how_probable_they_are() -> None:
    known = measured(lambda p, n: 0.5 + 1e-3 * p**0.5 * n)
    (form,) = modeler()(known)
    (curve,) = curves()(known)
    assert isinstance(form, PmnfModel)
    assert isinstance(curve, CurveModel)
    blend = Blend(form=form, curve=curve, share=0.7)
    values = [model.value([FAR])[0] for model in (form, blend, curve)]
    assert values[1] == pytest.approx(values[0] ** 0.7 * values[2] ** 0.3)
    assert blend.belief([FAR]).weights.sum() == pytest.approx(1.0)
    assert blend.document()["probability_of_formula"] == 0.7
    assert any("with probability 0.7" in note for note in blend.notes)
    low, high = blend.predict([FAR]).low[0], blend.predict([FAR]).high[0]
    assert low < blend.value([FAR])[0] < high
