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
