"""One suite over every registered modeler."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from orchestrator import registry
from orchestrator.errors import ModelError
from orchestrator.models.base import Model, Modeler, holds_at
from orchestrator.models.belief import has_belief
from orchestrator.models.intervals import predictive
from orchestrator.models.symbolic import Symbolic
from orchestrator.types import Measurement, Measurements, Parameter, Point
from tests.strategies.views import Box, after, make_view

# The families of the package, and one that only predicts: alone, and with a belief from refits.
OPTIONS: dict[str, dict[str, int]] = {"nearest": {}, "nearest-refitted": {"refits": 20}}
# Families that have to know which parameter counts processes.
COUNTING = {"speedup"}
every_modeler = pytest.mark.parametrize("name", (*registry.names("model"), *OPTIONS))

RANKS = (8, 16, 32, 64, 128)
SIZES = (10, 20, 30, 40, 50)
FAR = [Point.of(p=256, n=60), Point.of(p=4096, n=200), Point.of(p=8, n=10)]


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OPTIONS:
        monkeypatch.setitem(registry.TABLES["model"], name, "tests.models.nearest:modeler")


def load(name: str, first: str = "") -> Modeler:
    """Return a modeler; the ``first`` parameter counts processes for families that must know it."""
    counting = {"processes": first} if first and name in COUNTING else {}
    modeler: Modeler = registry.load("model", name)(**OPTIONS.get(name, {}), **counting)
    return modeler


def measure(
    truth: Callable[..., float], seed: int = 0, noise: float = 0.02
) -> dict[Point, tuple[float, ...]]:
    rng = np.random.default_rng(seed)
    return {
        Point.of(p=p, n=n): tuple(float(truth(p, n) * np.exp(rng.normal(0, noise))) for _ in range(3))
        for p, n in product(RANKS, SIZES)
    }


def campaign() -> Measurements:
    items = [
        Measurement("main->solve", "time", measure(lambda p, n: 0.5 + 1e-3 * p**0.5 * n, 1)),
        Measurement("main->init", "time", measure(lambda p, n: 3.0, 2)),
        Measurement("main->solve", "bytes_sent", measure(lambda p, n: 8.0 * n**2, 3, 0.0)),
    ]
    return Measurements(("p", "n"), tuple(items))


@cache  # learners take seconds
def fitted(name: str) -> dict[tuple[str, str], Model]:
    return {(m.callpath, m.metric): m for m in load(name)(campaign())}


@every_modeler
def test_one_model_per_callpath_and_metric(name: str) -> None:
    models = tuple(fitted(name).values())
    assert [(m.callpath, m.metric) for m in models] == [(i.callpath, i.metric) for i in campaign().items]


@every_modeler
def test_predictions_are_near_the_truth_with_the_interval_around_them(name: str) -> None:
    model = fitted(name)["main->solve", "time"]
    prediction = model.predict([Point.of(p=64, n=30), Point.of(p=256, n=60)])
    assert prediction.value[0] == pytest.approx(0.5 + 1e-3 * 8 * 30, rel=0.1)
    if isinstance(model, Symbolic):  # terms continue beyond the measured points
        assert prediction.value[1] == pytest.approx(0.5 + 1e-3 * 16 * 60, rel=0.1)
    assert np.all((prediction.low < prediction.high) & np.isfinite(prediction.high))
    assert np.all((prediction.low <= prediction.value) & (prediction.value <= prediction.high))
    assert np.all((prediction.value / 3 < prediction.low) & (prediction.high < 3 * prediction.value))
    assert prediction.unit == "s"


@every_modeler
def test_values_and_means_are_those_of_predictions(name: str) -> None:
    for model in fitted(name).values():
        prediction = model.predict(FAR)
        assert model.value(FAR) == pytest.approx(prediction.value)
        mean = model.expected(FAR)
        assert np.all((mean > prediction.low / 2) & (mean < 2 * prediction.high))


@every_modeler
def test_a_model_says_what_it_is_for_as_json(name: str) -> None:
    for model in fitted(name).values():
        found = json.loads(json.dumps(model.document(), allow_nan=False))
        assert (found["callpath"], found["metric"]) == (model.callpath, model.metric)
        assert found["expression"] == model.expression and "\n" not in model.expression
        assert found["notes"] == list(model.notes) and found["smape"] == pytest.approx(model.smape)
        assert (found["terms"] == []) == (not isinstance(model, Symbolic))
        assert set(model.parameters) <= {"p", "n"}
        assert 0 <= model.noise < 1


@every_modeler
def test_categories_are_told_apart(name: str) -> None:
    values = {
        Point.of(p=p, solver=solver): (factor * p, 1.01 * factor * p)
        for p, (solver, factor) in product(RANKS, {"cg": 1.0, "lu": 5.0}.items())
    }
    models = load(name)(Measurements(("p", "solver"), (Measurement("main", "time", values),)))
    for solver, time in (("cg", 32.0), ("lu", 160.0)):
        point = Point.of(p=32, solver=solver)
        here = [model for model in models if holds_at(model, point)]
        assert len(here) == 1
        assert here[0].value([point])[0] == pytest.approx(time, rel=0.05)
        for model in models:
            assert (model in here) == bool(np.isfinite(model.predict([point]).value[0]))


@every_modeler
def test_a_belief_has_the_covariances_of_log_values(name: str) -> None:
    for model in fitted(name).values():
        if not has_belief(model):
            assert name == "nearest"
            continue
        belief = model.belief(FAR)
        assert belief.weights.sum() == pytest.approx(1.0)
        assert belief.mean.shape == belief.rough.shape == (len(belief.weights), len(FAR))
        assert belief.factor.shape[::2] == (len(belief.weights), len(FAR))
        assert belief.noise == pytest.approx(model.noise)
        assert model.belief(FAR[:1]).weights == pytest.approx(belief.weights)
        together = np.array([belief.covariance(k) for k in range(len(FAR))])
        assert together == pytest.approx(together.T)
        assert np.diag(together) == pytest.approx(belief.variance)
        assert np.linalg.eigvalsh(together).min() >= -1e-9
        assert np.exp(belief.centre) == pytest.approx(model.value(FAR), rel=0.5)


@every_modeler
def test_information_per_cost_chooses_with_any_family_and_says_how(name: str) -> None:
    plus = Point.of(a=8, b=8)
    space = Box(tuple(Parameter(letter, (1, 2, 3, 4, 6)) for letter in "ab"))
    view = make_view(space, evaluation_point=plus)
    propose = registry.load("strategy", "information")()
    view = after(view, propose(view, np.random.default_rng(0)))
    view = replace(view, models=load(name, "a")(view.measurements), budget_left=6.0, batch_size=2)
    choices = propose(view, np.random.default_rng(0))
    assert choices
    believing = all(has_belief(model) for model in view.models)
    assert believing == (name != "nearest")
    for choice in choices:
        if believing:
            assert "most information per cost" in choice.reason
        else:
            assert "no covariances between points, which information per cost needs" in choice.reason
            assert "lowest weighted cost" in choice.reason


@every_modeler
def test_predictions_are_finite_positive_and_as_many_as_points(name: str) -> None:
    for model in fitted(name).values():
        prediction = model.predict(FAR)
        for array in (prediction.value, prediction.low, prediction.high):
            assert array.shape == (len(FAR),)
            assert np.all(np.isfinite(array)) and np.all(array > 0)
        assert np.all(prediction.low <= prediction.value) and np.all(prediction.value <= prediction.high)
        assert model.predict([]).value.shape == (0,)


@every_modeler
def test_intervals_of_all_levels_agree(name: str) -> None:
    for model in fitted(name).values():
        known, predicted = predictive(model, FAR), model.predict(FAR)
        mean = {level: known.of_mean(level) for level in (50, 80, 90, 95)}
        measured = {level: known.of_measured(level) for level in (50, 80, 90, 95)}
        assert known.value == pytest.approx(predicted.value)
        assert mean[90][0] == pytest.approx(predicted.low)
        assert mean[90][1] == pytest.approx(predicted.high)
        for intervals in (mean, measured):
            for inner, outer in pairwise(intervals.values()):
                assert np.all((outer[0] <= inner[0]) & (inner[1] <= outer[1]))
        for level, (low, high) in mean.items():
            assert np.all((measured[level][0] <= low) & (high <= measured[level][1]))
            assert np.all((low <= known.value) & (known.value <= high))
        noise = np.exp(1.6 * model.noise)  # half the width of 90 % of single runs, a little less
        assert np.all(measured[90][1] / measured[90][0] > noise)


@every_modeler
def test_constant_code_has_a_constant_model(name: str) -> None:
    constant = fitted(name)["main->init", "time"].predict(FAR[:1])
    assert constant.value[0] == pytest.approx(3.0, rel=0.05)


@every_modeler
def test_terms_are_json_ready_and_agree_with_the_normal_form(name: str) -> None:
    for model in fitted(name).values():
        if not isinstance(model, Symbolic):
            continue
        terms: list[dict[str, Any]] = json.loads(json.dumps(model.terms))
        assert terms
        for point in FAR:
            total = sum(
                term["coefficient"]
                * np.prod(
                    [
                        point.number(f["parameter"]) ** f["exponent"]
                        * np.log2(point.number(f["parameter"])) ** f["log_exponent"]
                        for f in term["factors"]
                    ]
                )
                for term in terms
            )
            text = eval(model.normal_form, {"log2": np.log2}, point.as_dict())
            assert text == pytest.approx(total, rel=5e-3)


@every_modeler
def test_models_are_frozen_and_describe_their_fit(name: str) -> None:
    for model in fitted(name).values():
        assert 0 <= model.smape <= 200
        assert isinstance(model.notes, tuple)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(model, dataclasses.fields(model)[0].name, "other")  # type: ignore[arg-type]


@every_modeler
def test_order_of_points_does_not_matter(name: str) -> None:
    items = [
        Measurement(item.callpath, item.metric, dict(reversed(list(item.values.items()))))
        for item in campaign().items
    ]
    turned = {(m.callpath, m.metric): m for m in load(name)(Measurements(("p", "n"), tuple(items)))}
    for key, model in fitted(name).items():
        assert turned[key].predict(FAR).value == pytest.approx(model.predict(FAR).value, rel=1e-6)


@every_modeler
def test_unusable_callpaths_are_left_out(name: str) -> None:
    broken = Measurement("broken", "time", {p: (float("nan"),) for p in measure(lambda p, n: 1.0)})
    usable = Measurement("usable", "time", {Point.of(p=p, n=10): (3.0, 3.1) for p in RANKS})
    models = load(name)(Measurements(("p", "n"), (usable, broken)))
    assert {m.callpath for m in models} == {"usable"}


@every_modeler
def test_nothing_usable_is_a_model_error(name: str) -> None:
    broken = Measurement("broken", "time", {Point.of(p=2, n=1): (float("nan"),), Point.of(p=4, n=1): (-1.0,)})
    with pytest.raises(ModelError):
        load(name)(Measurements(("p", "n"), (broken,)))


@every_modeler
def test_few_points_still_give_a_model(name: str) -> None:
    values = {Point.of(p=8, n=10): (1.0, 1.1), Point.of(p=16, n=10): (1.4, 1.5)}
    (model,) = load(name)(Measurements(("p", "n"), (Measurement("main", "time", values),)))
    assert np.all(np.isfinite(model.predict(FAR).value))


@every_modeler
def test_values_that_cannot_be_used_are_left_out_with_a_note(name: str) -> None:
    values: dict[Point, tuple[float, ...]] = {
        Point.of(p=p, n=n): (float(p * n), -1.0 if n == 10 else 1.01 * p * n)
        for p, n in product(RANKS, (10, 20, 30))
    }
    values |= {Point.of(p=8, n=40): (0.0,), Point.of(p=16, n=40): (float("nan"),)}
    (model,) = load(name)(Measurements(("p", "n"), (Measurement("main", "time", values),)))
    assert model.value([Point.of(p=32, n=20)])[0] == pytest.approx(640.0, rel=0.1)
    assert name in OPTIONS or any("left out" in note for note in model.notes)


@every_modeler
def test_fewer_points_than_parameters_still_give_a_number(name: str) -> None:
    """And so fewer than there are cells, terms or neighbours."""
    values = {Point.of(a=k, b=5 - k, c=k % 2 + 1, d=k * k): (float(k),) for k in (1, 2, 3)}
    (model,) = load(name, "a")(Measurements(tuple("abcd"), (Measurement("main", "time", values),)))
    prediction = model.predict([*values, Point.of(a=9, b=9, c=9, d=9)])
    assert np.isfinite(prediction.value).all() and np.all(prediction.value > 0)
    assert np.all((prediction.low <= prediction.value) & (prediction.value <= prediction.high))


@every_modeler
def test_an_unknown_category_has_no_prediction(name: str) -> None:
    values = {
        Point.of(p=p, solver=solver): (float(p), 1.01 * p) for p, solver in product(RANKS, ("cg", "lu"))
    }
    models = load(name)(Measurements(("p", "solver"), (Measurement("main", "time", values),)))
    unknown = [Point.of(p=32, solver="qr")]
    if name not in OPTIONS:
        for model in models:
            found = model.predict(unknown)
            assert np.isnan([found.value, found.low, found.high, model.value(unknown)]).all()


@every_modeler
def test_unknown_options_are_refused(name: str) -> None:
    with pytest.raises(TypeError):
        registry.load("model", name)(surely_not_an_option=1)
