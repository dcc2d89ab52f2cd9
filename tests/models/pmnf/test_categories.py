"""Categories that share their form, and categories that do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from orchestrator.models import data
from orchestrator.models.base import holds_at
from orchestrator.models.groupwise import locate_groups
from orchestrator.models.noise import locate
from orchestrator.models.pmnf import modeler as pmnf
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.types import Measurement, Measurements, Point, Value

RANKS = (4.0, 8.0, 16.0, 32.0, 64.0)
Truth = Callable[[float], float]
# The same form with coefficients of its own in each category.
SHARED: Mapping[str, Truth] = {
    "a": lambda p: 2.0 + 0.3 * p**1.5,
    "b": lambda p: 9.0 + 0.5 * p**1.5,
    "c": lambda p: 1.0 + 1.2 * p**1.5,
    "d": lambda p: 30.0 + 0.8 * p**1.5,
    "e": lambda p: 5.0 + 0.4 * p**1.5,
}


def point(p: float, layout: str) -> Point:
    values: dict[str, Value] = {"p": p, "layout": layout}
    return Point.of(values)


def measured(
    truths: Mapping[str, Truth], ranks: Mapping[str, Sequence[float]], noise: float = 0.02, seed: int = 1
) -> Measurements:
    rng = np.random.default_rng(seed)
    values = {
        point(p, name): tuple(float(y) for y in truth(p) * (1 + noise * rng.standard_normal(2)))
        for name, truth in truths.items()
        for p in ranks.get(name, RANKS[:3])
    }
    return Measurements(("p", "layout"), (Measurement("main", "time", values),))


def fitted(known: Measurements, **options: Any) -> dict[str, PmnfModel]:
    found = pmnf.modeler(**options)(known)
    return {model.category[0][1]: model for model in found if isinstance(model, PmnfModel)}


def alone(known: Measurements, layout: str) -> PmnfModel:
    """Fit one category without the others."""
    some = {place: runs for place, runs in known.items[0].values.items() if place["layout"] == layout}
    return fitted(Measurements(known.parameters, (Measurement("main", "time", some),)))[layout]


def width(model: PmnfModel, p: float) -> float:
    said = model.predict([point(p, model.category[0][1])])
    return float(np.log(said.high[0] / said.low[0]))


def test_three_points_each_are_enough_for_a_form_that_all_share() -> None:
    known = measured(SHARED, {})
    models = fitted(known)
    truth = {name: truth(64.0) for name, truth in SHARED.items()}
    for name, model in models.items():
        assert model.value([point(64.0, name)])[0] == pytest.approx(truth[name], rel=0.12)
        assert width(model, 64.0) < width(alone(known, name), 64.0)
    assert len({str([term["factors"] for term in model.terms]) for model in models.values()}) == 1
    assert any("the form is that of 5 categories together" in note for note in models["a"].notes)


def test_a_category_with_another_form_keeps_it_and_the_others_still_share_theirs() -> None:
    truths = {**SHARED, "f": lambda p: 3.0 + 2.0 * p**0.25}
    known = measured(truths, dict.fromkeys(truths, RANKS))
    models, own = fitted(known), alone(known, "f")
    assert models["f"].expression == own.expression
    assert models["f"].value([point(128.0, "f")])[0] == pytest.approx(3.0 + 2.0 * 128**0.25, rel=0.1)
    for name, truth in SHARED.items():
        assert models[name].value([point(128.0, name)])[0] == pytest.approx(truth(128.0), rel=0.05)


def test_categories_without_anything_in_common_are_modelled_as_alone() -> None:
    truths: Mapping[str, Truth] = {
        "a": lambda p: 2.0 + 0.3 * p**2,
        "b": lambda p: 9.0 + 5 * p**0.25,
        "c": lambda p: 1.0 + 1.2 * np.log2(p),
    }
    known = measured(truths, dict.fromkeys(truths, RANKS))
    for name, model in fitted(known).items():
        own = alone(known, name).predict([point(128.0, name)])
        said = model.predict([point(128.0, name)])
        assert said.value == pytest.approx(own.value, rel=0.05)
        assert said.low[0] < truths[name](128.0) < said.high[0]


def test_without_categories_call_paths_are_modelled_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    values = {Point.of(p=p): tuple(float(p * (1 + 0.02 * x)) for x in rng.standard_normal(2)) for p in RANKS}
    others = dict(list(values.items())[:4])
    paths = {"a": values, "b": others, "c": values}
    known = Measurements(("p",), tuple(Measurement(name, "time", some) for name, some in paths.items()))
    together = pmnf.modeler()(known)
    monkeypatch.setattr(pmnf, "_TOGETHER", 1)
    apart = pmnf.modeler()(known)
    assert [model.callpath for model in apart] == ["a", "b", "c"]
    far = [Point.of(p=256.0)]
    for one, other in zip(together, apart, strict=True):
        assert one.expression == other.expression
        assert one.predict(far).high == pytest.approx(other.predict(far).high, rel=1e-9)
    groups, _ = data.groups(known)
    for group, located in zip(groups, locate_groups(groups, "auto"), strict=True):
        assert np.array_equal(located.sigma, locate(group.values).sigma)


def test_a_call_path_of_one_category_is_modelled_as_alone() -> None:
    known = measured(SHARED, dict.fromkeys(SHARED, RANKS))
    rare = {point(p, "b"): (3.0 * p, 3.1 * p) for p in RANKS}
    both = Measurements(known.parameters, (*known.items, Measurement("rare", "time", rare)))
    model = next(model for model in pmnf.modeler()(both) if model.callpath == "rare")
    assert model.category == (("layout", "b"),)
    assert model.value([point(128.0, "b")])[0] == pytest.approx(3.05 * 128, rel=0.06)


def test_a_category_that_was_not_measured_has_no_model() -> None:
    models = fitted(measured(SHARED, {})).values()
    assert not any(holds_at(model, point(64.0, "new")) for model in models)
    assert all(np.isnan(model.predict([point(64.0, "new")]).value[0]) for model in models)


def test_a_category_with_one_point_has_the_form_of_the_others_and_its_own_level() -> None:
    truths: Mapping[str, Truth] = {
        name: lambda p, factor=factor: factor * (2.0 + 0.3 * p**1.5)  # type: ignore[misc]
        for name, factor in {"a": 1.0, "b": 3.0, "c": 0.5, "d": 1.7, "few": 4.0}.items()
    }
    known = measured(truths, {**dict.fromkeys(truths, RANKS), "few": RANKS[:1]})
    model, place = fitted(known)["few"], [point(128.0, "few")]
    said, truth = model.predict(place), truths["few"](128.0)
    assert said.value[0] == pytest.approx(truth, rel=0.1)
    assert said.low[0] < truth < said.high[0]
    # How large the share of each term is, one point does not show.
    assert said.high[0] / said.low[0] > 1.3
    assert np.isnan(alone(known, "few").value([point(128.0, "a")])[0])
    assert alone(known, "few").value(place)[0] < truth / 10


def test_points_that_contradict_the_form_of_the_others_are_within_the_intervals() -> None:
    few: Mapping[str, Truth] = {"few": lambda p: 400.0 / p**2}
    truths = {**dict.fromkeys("abcd", SHARED["a"]), **few}
    known = measured(truths, {**dict.fromkeys(truths, RANKS), "few": RANKS[:2]})
    model = fitted(known)["few"]
    assert model.smape > 50
    said = model.predict([point(p, "few") for p in RANKS[:2]])
    for p, low, high in zip(RANKS[:2], said.low, said.high, strict=True):
        assert low < truths["few"](p) < high


def test_growth_along_a_parameter_that_is_constant_in_a_category_is_that_of_the_others() -> None:
    rng = np.random.default_rng(2)
    values: dict[Point, tuple[float, ...]] = {}
    for layout, factor in {"a": 1.0, "b": 2.0, "c": 5.0}.items():
        for p, n in [(4, 10), (4, 20), (4, 40), (4, 80), *((p, 10) for p in (8, 16, 32) if layout != "c")]:
            place: dict[str, Value] = {"n": n, "p": p, "layout": layout}
            runs = factor * (1 + 0.05 * p * n) * (1 + 0.01 * rng.standard_normal(2))
            values[Point.of(place)] = tuple(map(float, runs))
    models = fitted(Measurements(("n", "p", "layout"), (Measurement("main", "time", values),)))
    assert models["c"].parameters == ("n", "p")
    assert not any("has the one value" in note for note in models["c"].notes)
    far: dict[str, Value] = {"n": 100, "p": 64, "layout": "c"}
    assert models["c"].value([Point.of(far)])[0] == pytest.approx(5 * (1 + 0.05 * 6400), rel=0.1)


def test_exact_counts_along_a_parameter_that_is_constant_in_a_category_are_modelled() -> None:
    values: dict[Point, tuple[float, ...]] = {}
    for layout, p, n in [*(("a", p, n) for p in (1, 2, 4) for n in (1, 2, 4)), ("b", 4, 1), ("b", 4, 2)]:
        place: dict[str, Value] = {"n": n, "p": p, "layout": layout}
        values[Point.of(place)] = (3.0 * p * n + 2,) * 2
    models = fitted(Measurements(("n", "p", "layout"), (Measurement("main", "visits", values),)))
    far: dict[str, Value] = {"n": 8, "p": 4, "layout": "b"}
    assert models["b"].value([Point.of(far)])[0] == pytest.approx(3 * 4 * 8 + 2, rel=1e-6)


def test_runs_that_are_only_slowed_down_are_modelled_in_categories_of_different_sizes() -> None:
    rng = np.random.default_rng(3)
    values = {
        point(2.0**k, layout): tuple(float(y) for y in 2.0**k * (1 + rng.exponential(0.2, 8) ** 2))
        for layout, points in {"a": 12, "b": 9}.items()
        for k in range(points)
    }
    models = fitted(Measurements(("p", "layout"), (Measurement("main", "time", values),)))
    assert models["b"].value([point(512.0, "b")])[0] == pytest.approx(512, rel=0.1)


def test_categories_of_one_point_each_remain_constants() -> None:
    models = fitted(measured(SHARED, dict.fromkeys(SHARED, RANKS[:1])))
    assert {len(model.terms) for model in models.values()} == {1}
    assert models["a"].value([point(64.0, "a")])[0] == pytest.approx(SHARED["a"](4.0), rel=0.1)
