"""One modeler for scaling studies and tuning spaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from orchestrator.errors import ModelError
from orchestrator.models import formulas, selection
from orchestrator.models.base import Floats, Model
from orchestrator.models.curves.model import CurveModel
from orchestrator.models.intervals import predictive
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.progress import listening
from orchestrator.models.regression.formula import formula_learner
from orchestrator.models.regression.model import RegressionModel
from orchestrator.models.regression.samples import arranged
from orchestrator.models.selection import modeler
from orchestrator.models.symbolic import Symbolic
from orchestrator.types import Measurement, Measurements, Point

Truth = Callable[[dict[str, float]], float]


def tuning(n: int, seed: int, truth: Truth) -> dict[Point, tuple[float, ...]]:
    """Five parameters, one of them a category, drawn at random, with 3 % noise."""
    rng = np.random.default_rng(seed)
    found: dict[Point, tuple[float, ...]] = {}
    while len(found) < n:
        values = {name: float(np.exp(rng.uniform(0, 5))) for name in "abcd"}
        layout = int(rng.integers(3))
        time = truth({**values, "layout": layout}) * np.exp(rng.normal(0, 0.03))
        found[Point.of({**values, "layout": ("zdg", "gdz", "dgz")[layout]})] = (float(time),)
    return found


def jumps(v: dict[str, float]) -> float:
    """Tiles that do not fit the cache, and a layout that counts where a is large."""
    spill = 2.5 if v["b"] * v["c"] > 800 else 1.0
    return float(
        v["a"] ** 0.9 * v["b"] ** 0.4 * spill * (1 + 2 * v["layout"] * (v["a"] > 30)) / v["d"] ** 0.2
    )


NAMES = (*"abcd", "layout")


@pytest.fixture(scope="module")
def campaign() -> tuple[Measurements, list[Model]]:
    """Three call paths in one campaign: one is learned, one has few points, one is always zero."""
    learned = tuning(120, 1, jumps)
    items = (
        Measurement("few", "time", dict(list(learned.items())[:12])),
        Measurement("jumps", "time", learned),
        Measurement("zero", "time", dict.fromkeys(learned, (0.0,))),
    )
    known = Measurements(NAMES, items)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "_INSIDE", selection._QUICK)  # networks take most of the time
        return known, list(modeler()(known))


@pytest.fixture(scope="module")
def space(campaign: tuple[Measurements, list[Model]]) -> tuple[Measurements, RegressionModel]:
    known, models = campaign
    [model] = (model for model in models if model.callpath == "jumps")
    assert isinstance(model, RegressionModel) and model.category == ()
    return replace(known, items=tuple(item for item in known.items if item.callpath == "jumps")), model


@pytest.mark.slow
def test_a_tuning_space_is_learned_and_its_intervals_hold(
    space: tuple[Measurements, RegressionModel],
) -> None:
    known, model = space
    held = tuning(300, 2, jumps)
    measured = np.array([values[0] for values in held.values()])
    found = predictive(model, list(held))
    formula = np.nansum([item.value(list(held)) for item in formulas.modeler()(known)], axis=0)
    assert np.abs(np.log(found.value / measured)).mean() < 0.9 * np.abs(np.log(formula / measured)).mean()
    low, high = found.of_measured(90)
    assert 0.8 < np.mean((low <= measured) & (measured <= high)) < 0.98


@pytest.mark.slow
def test_the_choice_is_documented(space: tuple[Measurements, RegressionModel]) -> None:
    _, model = space
    compared = model.document()["compared"]
    assert sum(item["weight"] for item in compared) == pytest.approx(1.0)
    assert {"formula", "log-linear trend"} <= {item["name"] for item in compared}
    assert any("left out of fits" in note and "formula" in note for note in model.notes)


def test_a_scaling_study_has_the_models_of_formulas() -> None:
    rng = np.random.default_rng(0)
    values = {
        Point.of(p=p, n=n): tuple(
            float((0.5 + 1e-3 * p**0.5 * n) * np.exp(rng.normal(0, 0.02))) for _ in "12"
        )
        for p, n in product((4, 8, 16, 32, 64), (10, 20, 30, 40, 50))
    }
    known = Measurements(("p", "n"), (Measurement("main", "time", values),))
    [model], [other] = modeler()(known), formulas.modeler()(known)
    assert type(model) is type(other) and model.document() == other.document()


def grid(truth: Callable[[int, int], float], repetitions: int = 3) -> dict[Point, tuple[float, ...]]:
    """A grid of 16 x 16 points with 2 % noise, repeated."""
    rng = np.random.default_rng(0)
    return {
        Point.of(p=p, n=n): tuple(
            float(truth(p, n) * np.exp(rng.normal(0, 0.02))) for _ in range(repetitions)
        )
        for p, n in product(range(2, 34, 2), range(10, 170, 10))
    }


def test_learners_are_not_asked_where_a_formula_leaves_nothing_but_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Comparing them takes half a minute per call path: too long for a thousand that need none."""

    def asked(*_: object) -> RegressionModel:
        raise AssertionError("learners were asked")

    monkeypatch.setattr("orchestrator.models.regression.modeler._fitted", asked)
    law = Measurement("law", "time", grid(lambda p, n: 0.5 + 1e-3 * p**0.5 * n))
    jump = Measurement("jump", "time", grid(lambda p, n: p * n * (3.0 if p * n % 40 < 20 else 1.0)))
    known = Measurements(("p", "n"), (law,))
    [model], [other] = modeler()(known), formulas.modeler()(known)
    assert model.document() == other.document()
    once = Measurement("law", "time", grid(lambda p, n: 0.5 + 1e-3 * p**0.5 * n, repetitions=1))
    for item in (jump, once):  # a formula does not explain it; nobody knows whether it does
        with pytest.raises(AssertionError, match="learners were asked"):
            modeler()(Measurements(("p", "n"), (item,)))
    with pytest.raises(AssertionError, match="learners were asked"):
        modeler(families=["learned"])(known)


def test_families_are_compared_for_the_largest_of_many_call_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing takes many seconds per call path: of hundreds, those count that take most of the time."""
    monkeypatch.setattr(selection, "_MOST_COMPARED", 2)
    small, large = (
        {point: (scale * values[0],) for point, values in grid(lambda p, n: p * n, repetitions=1).items()}
        for scale in (1e-3, 1.0)
    )
    items = [Measurement(name, "time", small) for name in ("a", "b")]
    items += [Measurement(name, "time", large) for name in ("c", "d")]
    items.append(Measurement("a", "bytes", small))
    known = Measurements(("p", "n"), tuple(items))
    told: list[tuple[str, int, int]] = []
    with listening(lambda *how_far: told.append(how_far)):
        models = modeler(families=["formulas", "splines"])(known)
    notes = {(model.callpath, model.metric): "; ".join(model.notes) for model in models}
    for label in (("c", "time"), ("d", "time"), ("a", "bytes")):
        assert "left out of fits" in notes[label]
    for label in (("a", "time"), ("b", "time")):
        assert "not compared with learners: of 5 call paths, the 3 largest are" in notes[label]
    assert told == [("comparing families of models", done, 3) for done in range(4)]


@pytest.mark.slow
def test_few_points_that_scatter_are_learned_and_formulas_have_a_say_beyond() -> None:
    rng = np.random.default_rng(5)

    def ridged(m: float, n: float) -> float:
        return float(1e-6 * m * n * (1 + 0.8 * np.sin(3 * np.log(m)) ** 2) * (1.5 if n > 300 else 1.0))

    def drawn(number: int, low: float, high: float) -> list[Point]:
        return [
            Point.of(m=float(m), n=float(n))
            for m, n in np.exp(rng.uniform(np.log(low), np.log(high), (number, 2)))
        ]

    def truth(points: list[Point]) -> Floats:
        return np.array([ridged(float(point["m"]), float(point["n"])) for point in points])

    measured = drawn(100, 10, 1000)
    times = truth(measured) * np.exp(rng.normal(0, 0.03, 100))
    known = Measurements(
        ("m", "n"),
        (Measurement("f", "time", {p: (float(t),) for p, t in zip(measured, times, strict=True)}),),
    )
    [model], [form] = modeler()(known), formulas.modeler()(known)
    assert isinstance(model, RegressionModel) and model.beside is not None
    within, beyond = drawn(60, 10, 1000), drawn(60, 1500, 4000)
    errors = [np.abs(np.log(item.value(within) / truth(within))).mean() for item in (model, form)]
    assert errors[0] < 0.8 * errors[1]
    whole = replace(model, outside={k: replace(item, share=1.0) for k, item in model.outside.items()})
    logs = [np.log(item.value(beyond)) for item in (whole, replace(whole, beside=None), form)]
    np.testing.assert_allclose(logs[0], (logs[1] + logs[2]) / 2, rtol=1e-6)
    found = model.predict(beyond)
    assert np.mean((found.low <= truth(beyond)) & (truth(beyond) <= found.high)) > 0.8
    assert any("beyond the measured range" in note for note in model.notes)


def test_a_formula_wins_where_it_is_as_good_and_says_why() -> None:
    """One parameter with 220 values of an exact law: nothing to learn."""
    values = {Point.of(n=n): (float(2.0 + 0.5 * n * np.log2(n)),) for n in range(2, 222)}
    [model] = modeler()(Measurements(("n",), (Measurement("main", "time", values),)))
    assert isinstance(model, Symbolic) and isinstance(model, PmnfModel | CurveModel)
    assert model.value([Point.of(n=4096)])[0] == pytest.approx(2.0 + 0.5 * 4096 * 12, rel=0.01)
    assert any(note.endswith("formula 0.000") or "formula 0.000," in note for note in model.notes)


@pytest.mark.slow
def test_call_paths_are_chosen_for_one_by_one(campaign: tuple[Measurements, list[Model]]) -> None:
    known, models = campaign
    assert list(dict.fromkeys(model.callpath for model in models)) == ["few", "jumps", "zero"]
    assert any("left out of fits" in note for m in models if m.callpath == "jumps" for note in m.notes)
    assert not any("left out of fits" in note for m in models if m.callpath == "few" for note in m.notes)
    points = list(known.items[1].values)[:9]
    zeros = [m.value([point])[0] for m in models if m.callpath == "zero" for point in points]
    assert {value for value in zeros if np.isfinite(value)} == {0.0}


def test_only_families_that_are_named_take_part() -> None:
    values = tuning(110, 4, jumps)
    known = Measurements(NAMES, (Measurement("main", "time", values),))
    [model] = modeler(families=["splines"])(known)
    assert isinstance(model, RegressionModel)
    names = {item["name"] for item in model.document()["compared"]}
    assert any(name.startswith("splines") for name in names)
    assert all(name.startswith(("splines", "log-linear trend")) for name in names)


def test_small_networks_and_splines_take_part_by_default() -> None:
    values = tuning(110, 4, jumps)
    [series], _ = arranged(Measurements(NAMES, (Measurement("main", "time", values),)), "auto")
    formula = formula_learner(formulas.modeler())
    tried = [learner.name for learner in selection.inside(selection.FAMILIES, formula, series.samples)]
    assert len(tried) == len(set(tried))
    assert sum(name.startswith("splines") for name in tried) == 5
    assert sum(name.startswith("rprop") for name in tried) == 2
    few = [item.name for item in selection.inside(("cpr", "learned"), formula, series.samples)]
    assert set(few) < set(tried) and not any(name.startswith(("splines", "rprop")) for name in few)


@pytest.mark.parametrize(
    ("families", "message"),
    [
        ("tensors", "families is 'tensors': use one of formulas, cpr, learned, rprop, splines, speedup"),
        (["cpr", "x"], "families is 'x'"),
        ([], "families names none: use all, or some of formulas"),
    ],
)
def test_unknown_families_are_named(families: str | list[str], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        modeler(families=families)
