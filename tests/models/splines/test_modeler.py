"""The modeler of splines: its options, what its models say, and bad measurements."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from orchestrator.errors import ModelError
from orchestrator.models.base import Model
from orchestrator.models.splines.model import SplineModel
from orchestrator.models.splines.modeler import modeler
from orchestrator.types import Measurement, Measurements, Point


def measured(count: int, seed: int = 0, noise: float = 0.02) -> dict[Point, tuple[float, ...]]:
    rng = np.random.default_rng(seed)
    found: dict[Point, tuple[float, ...]] = {}
    for _ in range(count):
        m, n = np.exp(rng.uniform(3, 8, 2)).round()
        solver = ("cg", "lu")[rng.integers(2)]
        time = 1e-6 * m * n * (1 + 50 / m) * (1.5 if solver == "lu" else 1)
        found[Point.of(m=m, n=n, solver=solver)] = (float(time * np.exp(rng.normal(0, noise))),)
    return found


def models(values: dict[Point, tuple[float, ...]], **options: Any) -> tuple[Model, ...]:
    return modeler(**options)(Measurements(("m", "n", "solver"), (Measurement("main", "time", values),)))


def error(model: Model) -> float:
    held = measured(100, seed=9, noise=0.0)
    return float(np.abs(np.log(model.value(list(held)) / [value for (value,) in held.values()])).mean())


def test_a_model_has_its_formula_knots_and_tests_in_json() -> None:
    [model] = models(measured(150), sampling="plain", response="log")
    assert isinstance(model, SplineModel)
    found = json.loads(json.dumps(model.document(), allow_nan=False))
    assert found["formula"].count("max(log(m)") >= 3
    assert len(found["knots"]["m"]) == 4 or len(found["knots"]["n"]) == 4
    assert all(20 < knot < 3000 for knot in found["knots"]["m"])
    terms = {item["term"]: item for item in found["significance"]}
    assert {"m", "n", "solver", "bends of m"} <= set(terms)
    assert terms["solver"]["p"] < 1e-6 and terms["solver"]["freedom"][0] == 1
    assert [item["name"] for item in found["compared"]]
    (note,) = (note for note in model.notes if note.startswith("terms that matter (F tests): "))
    assert "; solver (F " in note and ", by chance < 1e-14 %)" in note
    assert model.expression.startswith("exp(rcs(log(m), ")
    assert error(model) < 0.05


def test_responses_and_samplings_are_compared_and_can_be_given() -> None:
    [chosen] = models(measured(150))
    assert isinstance(chosen, SplineModel)
    names = {item["name"] for item in chosen.reasons}
    assert {"splines, sqrt response, stratified", "splines, log response, regional"} <= names
    [given] = models(measured(150), response="log", sampling="stratified")
    assert isinstance(given, SplineModel)
    names = {item["name"] for item in given.reasons}
    assert names == {"splines, log response, stratified", "log-linear trend"}


def test_where_the_trend_is_better_the_model_is_the_trend_and_says_so() -> None:
    power: dict[Point, tuple[float, ...]] = {p: (p.number("m") * p.number("n"),) for p in measured(100)}
    [model] = models(power, response="sqrt", sampling="plain")
    assert model.expression == "log-linear trend"
    assert any("splines 0." in note and "trend 0.000" in note for note in model.notes)


def test_interactions_are_those_that_are_given() -> None:
    [model] = models(measured(150), interactions=[["n", "m"], ["solver", "n"]], sampling="plain")
    assert isinstance(model, SplineModel)
    assert model.expression.endswith("+ log(m):log(n) + log(n):solver)")
    [model] = models(measured(150), interactions="none", sampling="plain")
    assert ":" not in model.expression


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"response": "cube"}, "response is 'cube': use one of auto, log, sqrt"),
        ({"sampling": "all"}, "sampling is 'all': use one of auto, plain, stratified, regional"),
        ({"interactions": "m:n"}, r"interactions has 'm:n': use auto, none, or pairs .* \[\[m, n\]\]"),
        ({"interactions": ["m", "n"]}, "interactions has 'm'"),
        ({"interactions": [["m", "m"]]}, "interactions has "),
        ({"interactions": [["m", "n", "k"]]}, "interactions has "),
        ({"interactions": 3}, "interactions has 3"),
        ({"knots": 2}, "knots is 2: use auto, 0 for straight lines, or 3 to 7"),
        ({"knots": 8}, "knots is 8"),
        ({"knots": True}, "knots is True"),
        ({"aggregate": "most"}, "aggregate is 'most'"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        modeler(**options)


def test_interactions_of_what_does_not_vary_are_refused() -> None:
    with pytest.raises(ModelError, match="main: interactions: 'q' does not vary; parameters that do: m, n"):
        models(measured(50), interactions=[["m", "q"]])


def test_too_few_points_say_so() -> None:
    [model] = models(measured(4))
    assert any("too few" in note for note in model.notes)
    assert np.isfinite(model.value([Point.of(m=100, n=100, solver="cg")])[0])


def test_a_constant_response_is_constant() -> None:
    [model] = models(dict.fromkeys(measured(60), (2.0,)))
    prediction = model.predict(list(measured(20, seed=3)))
    assert prediction.value == pytest.approx(2.0)


def test_zero_negative_and_unknown_values_are_left_out_with_a_note() -> None:
    values = measured(100)
    poor = list(values)[:3]
    values |= {poor[0]: (0.0,), poor[1]: (-1.0,), poor[2]: (float("nan"),)}
    [model] = models(values)
    assert any("left out" in note for note in model.notes)
    assert error(model) < 0.1
    with pytest.raises(ModelError):
        models(dict.fromkeys(values, (-1.0,)))


def test_an_unseen_category_has_no_prediction_even_where_the_trend_is_best() -> None:
    power: dict[Point, tuple[float, ...]] = {p: (p.number("m") * p.number("n"),) for p in measured(100)}
    for values in (measured(100), power):
        [model] = models(values)
        found = model.predict([Point.of(m=100, n=100, solver="qr"), Point.of(m=100, n=100, solver="cg")])
        assert np.isnan(found.value).tolist() == [True, False]


def test_a_category_with_one_point_does_not_spoil_the_others() -> None:
    values = measured(80) | {Point.of(m=100, n=100, solver="rare"): (5.0,)}
    [model] = models(values)
    assert error(model) < 0.1
    assert np.isfinite(model.value([Point.of(m=200, n=100, solver="rare")])[0])


def test_repetitions_that_agree_give_the_same_as_one() -> None:
    values = measured(60)
    [once], [thrice] = models(values), models({point: value * 3 for point, value in values.items()})
    points = list(measured(20, seed=3))
    assert thrice.value(points) == pytest.approx(once.value(points))
