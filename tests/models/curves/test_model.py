"""Models of curves: described at little cost, kept in little space."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from orchestrator.models.base import Floats
from orchestrator.models.curves.explanations import Explanations
from orchestrator.models.curves.model import CurveModel
from orchestrator.models.curves.modeler import modeler
from orchestrator.types import Measurement, Measurements, Point

POINTS = [Point.of({"p": p, "n": n}) for p in (4, 8, 16, 32, 64) for n in (10, 20, 30)]


@pytest.fixture
def model() -> CurveModel:
    values = {point: (0.3 + 2e-3 * point.number("p") ** 0.5 * point.number("n"),) for point in POINTS}
    known = Measurements(("p", "n"), (Measurement("main", "time", values),))
    (found,) = modeler()(known)
    assert isinstance(found, CurveModel)
    return found


def test_the_power_law_is_found_once(model: CurveModel, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Floats] = []
    mean = Explanations.mean

    def counted(self: Explanations, x: Floats) -> Floats:
        asked.append(x)
        return mean(self, x)

    monkeypatch.setattr(Explanations, "mean", counted)
    first = model.document()
    model.terms[0]["coefficient"] = 0.0  # what a reader changes is the reader's
    assert model.document() == first
    assert model.expression == model.normal_form == first["expression"]
    assert len(asked) == 1
    assert copy.deepcopy(model).expression == first["expression"]


def test_a_pickled_model_has_nothing_that_follows_from_the_rest(model: CurveModel) -> None:
    fresh = len(pickle.dumps(model))
    before, text = model.predict(POINTS), model.expression
    assert len(pickle.dumps(model)) == fresh
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(POINTS).value, before.value)
    assert again.expression == text


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_parameters_hardly_matters(seed: int) -> None:
    """A walk in one parameter, a power of another one; draws that prefer one of them would move the ends."""
    rng = np.random.default_rng(seed)
    walk = dict(zip((4, 8, 16, 32, 64), np.cumsum(rng.normal(0.5, 0.4, 5)), strict=True))
    values = {
        point: (float(np.exp(walk[int(point.number("p"))] + rng.normal(0, 0.02)) * point.number("n") ** 1.3),)
        for point in POINTS
    }
    far = Point.of({"p": 256, "n": 60})
    ends = []
    for names in (("p", "n"), ("n", "p")):
        (found,) = modeler()(Measurements(names, (Measurement("main", "time", values),)))
        predicted = found.predict([far])
        ends.append(np.log([predicted.value[0], predicted.low[0], predicted.high[0]]))
    np.testing.assert_allclose(ends[0], ends[1], atol=0.02)


def test_the_interval_rises_beyond_the_range_and_the_prediction_does_not(
    model: CurveModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = [Point.of({"p": 1024, "n": 30})]
    before = model.predict(far)
    monkeypatch.setattr(Explanations, "risen", lambda self, x: np.zeros(()))
    without = model.predict(far)
    np.testing.assert_array_equal(before.value, without.value)
    assert before.high > 1.05 * without.high
    assert before.low >= without.low
