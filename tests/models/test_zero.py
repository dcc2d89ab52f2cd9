"""What is always zero: one model for all families, with every ability of theirs."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator import registry
from orchestrator.models.belief import has_belief
from orchestrator.models.intervals import predictive
from orchestrator.models.symbolic import terms_of
from orchestrator.types import Measurement, Measurements, Point

INSIDE, FAR = Point.of(p=4), Point.of(p=128)


@pytest.mark.parametrize("family", ["auto", "curves", "pmnf", "swc"])
def test_every_family_says_zero_of_zeros(family: str) -> None:
    values = {Point.of(p=p): (0.0, 0.0) for p in (2, 4, 8)}
    (model,) = registry.load("model", family)()(Measurements(("p",), (Measurement("f", "time", values),)))
    said = model.predict([INSIDE, FAR])
    for numbers in (
        said.value,
        said.low,
        said.high,
        model.value([INSIDE, FAR]),
        model.expected([INSIDE, FAR]),
    ):
        assert np.array_equal(numbers, [0.0, 0.0])
    assert predictive(model, [FAR]).value[0] == 0
    assert (model.expression, model.parameters) == ("0", ())
    assert "every value is zero" in model.notes
    assert model.document()["normal_form"] == "0"
    assert terms_of(model) == [{"coefficient": 0.0, "factors": []}]
    assert has_belief(model)
    assert np.exp(model.belief([FAR]).mean)[0, 0] < 1e-300


def test_zero_holds_in_its_category_only() -> None:
    one, two = (
        {Point.of(p=p, solver=name): (value,) for p in (2, 4, 8)} for name, value in (("a", 0.0), ("b", 1.0))
    )
    known = Measurements(("p", "solver"), (Measurement("f", "time", {**one, **two}),))
    zero = registry.load("model", "auto")()(known)[0]
    said = zero.value([Point.of(p=128, solver="a"), Point.of(p=128, solver="b")])
    assert said[0] == 0
    assert np.isnan(said[1])
