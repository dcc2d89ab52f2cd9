"""What the modeler adds to the procedure: intervals, notes, and what it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest

from orchestrator.errors import ModelError
from orchestrator.models.base import Model
from orchestrator.models.extrap.modeler import modeler
from orchestrator.models.sums import with_sums
from orchestrator.types import Measurement, Measurements, Point

PAIRS = list(product((8, 16, 32, 64, 128), (10, 20, 30, 40, 50)))


def fit(values: Mapping[Point, tuple[float, ...]], **options: str) -> Model:
    names = next(iter(values)).as_dict()
    [model] = modeler(**options)(Measurements(tuple(names), (Measurement("main", "time", dict(values)),)))
    return model


def test_intervals_hold_as_often_as_they_say_where_the_form_is_clear() -> None:
    far, held = Point.of(p=256, n=60), 0
    truth = 0.5 + 1e-3 * 256 * 60
    for seed in range(200):
        rng = np.random.default_rng(seed)
        model = fit(
            {
                Point.of(p=p, n=n): tuple((0.5 + 1e-3 * p * n) * (1 + 0.02 * rng.normal(size=3)))
                for p, n in PAIRS
            }
        )
        found = model.predict([far])
        held += bool(found.low[0] <= truth <= found.high[0])
    assert 0.75 <= held / 200 <= 0.97  # the form is not always the true one


def test_repetitions_are_aggregated_as_told() -> None:
    values = {Point.of(p=p): (1.0 * p, 2.0 * p, 6.0 * p) for p in (2, 4, 8, 16, 32)}
    expected = {"mean": 3, "median": 2, "min": 1, "max": 6}
    for aggregate, factor in expected.items():
        assert fit(values, aggregate=aggregate).value([Point.of(p=4)])[0] == pytest.approx(4 * factor)


def test_predictions_stay_positive_where_the_function_does_not() -> None:
    model = fit({Point.of(p=p): (1.0 - 0.09 * np.sqrt(p),) for p in (1, 4, 16, 36, 64)})
    assert any("negative" in note for note in model.notes)
    prediction = model.predict([Point.of(p=400)])
    assert 0 < prediction.low[0] <= prediction.value[0] <= prediction.high[0]
    assert prediction.value[0] < 1e-3


def test_what_extra_p_lacks_is_noted() -> None:
    few = fit({Point.of(p=p): (float(p),) for p in (2, 4, 8)})
    assert any("3 values of p on a line: Extra-P asks for 5" in note for note in few.notes)
    diagonal = fit({Point.of(p=k, n=k): (float(k),) for k in (1, 2, 3, 4, 5, 6)})
    assert any("takes the model not to depend on p" in note for note in diagonal.notes)
    assert diagonal.value([Point.of(p=9, n=9)])[0] == pytest.approx(3.5)


def test_parameters_below_zero_and_unknown_aggregates_are_refused() -> None:
    with pytest.raises(ModelError, match=r"p is -2.*shift or rescale"):
        fit({Point.of(p=p): (1.0,) for p in (-2, 1, 2, 3, 4)})
    with pytest.raises(ModelError, match=r"aggregate is 'auto': use one of mean, median, min, max"):
        modeler(aggregate="auto")


def test_no_model_becomes_the_sum_of_others() -> None:
    parts = {
        "main->solve": {Point.of(p=p): (2.0 * p,) for p in (2, 4, 8, 16, 32)},
        "main->init": {Point.of(p=p): (5.0,) for p in (2, 4, 8, 16, 32)},
    }
    whole = {point: (times[0] + 5.0,) for point, times in parts["main->solve"].items()}
    items = tuple(Measurement(name, "time", values) for name, values in {"main": whole, **parts}.items())
    known = Measurements(("p",), items)
    assert [type(model) for model in with_sums(modeler())(known)] == [type(m) for m in modeler()(known)]
