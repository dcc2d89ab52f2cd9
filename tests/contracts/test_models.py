"""One suite over every registered modeler."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from orchestrator import registry
from orchestrator.errors import ModelError
from orchestrator.models.base import Model, Modeler
from orchestrator.models.symbolic import terms_of
from orchestrator.types import Measurement, Measurements, Point

every_modeler = pytest.mark.parametrize("name", registry.names("model"))

RANKS = (8, 16, 32, 64, 128)
SIZES = (10, 20, 30, 40, 50)
FAR = [Point.of(p=256, n=60), Point.of(p=4096, n=200), Point.of(p=8, n=10)]


def load(name: str) -> Modeler:
    modeler: Modeler = registry.load("model", name)()
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


def fitted(name: str) -> dict[tuple[str, str], Model]:
    return {(m.callpath, m.metric): m for m in load(name)(campaign())}


@every_modeler
def test_one_model_per_callpath_and_metric(name: str) -> None:
    models = load(name)(campaign())
    assert [(m.callpath, m.metric) for m in models] == [(i.callpath, i.metric) for i in campaign().items]


@every_modeler
def test_predictions_are_near_the_truth_with_the_interval_around_them(name: str) -> None:
    prediction = fitted(name)["main->solve", "time"].predict([Point.of(p=256, n=60)])
    assert prediction.value[0] == pytest.approx(0.5 + 1e-3 * 16 * 60, rel=0.1)
    assert prediction.low[0] <= prediction.value[0] <= prediction.high[0]
    assert prediction.low[0] < prediction.high[0]


@every_modeler
def test_predictions_are_finite_positive_and_as_many_as_points(name: str) -> None:
    for model in load(name)(campaign()):
        prediction = model.predict(FAR)
        for array in (prediction.value, prediction.low, prediction.high):
            assert array.shape == (len(FAR),)
            assert np.all(np.isfinite(array)) and np.all(array > 0)
        assert np.all(prediction.low <= prediction.value) and np.all(prediction.value <= prediction.high)
        assert model.predict([]).value.shape == (0,)


@every_modeler
def test_constant_code_has_a_constant_model(name: str) -> None:
    constant = fitted(name)["main->init", "time"].predict(FAR[:1])
    assert constant.value[0] == pytest.approx(3.0, rel=0.05)


@every_modeler
def test_terms_are_json_ready_and_agree_with_the_normal_form(name: str) -> None:
    for model in load(name)(campaign()):
        terms: list[dict[str, Any]] = json.loads(json.dumps(terms_of(model)))
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
            text = eval(model.document()["normal_form"], {"log2": np.log2}, point.as_dict())
            assert text == pytest.approx(total, rel=5e-3)


@every_modeler
def test_models_are_frozen_and_describe_their_fit(name: str) -> None:
    for model in load(name)(campaign()):
        assert 0 <= model.smape <= 200
        assert isinstance(model.notes, tuple)
        with pytest.raises(dataclasses.FrozenInstanceError):
            object.__getattribute__(model, "__setattr__")("callpath", "other")


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
    models = load(name)(Measurements(("p", "n"), (*campaign().items, broken)))
    assert "broken" not in {m.callpath for m in models}


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
def test_unknown_options_are_refused(name: str) -> None:
    with pytest.raises(TypeError):
        registry.load("model", name)(surely_not_an_option=1)
