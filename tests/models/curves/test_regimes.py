"""Regimes: changes are found where there are some, told so, continued, and harmless elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest

from orchestrator.models.base import Floats
from orchestrator.models.curves.design import Design
from orchestrator.models.curves.model import CurveModel
from orchestrator.models.curves.regimes import Change, Regimes, fit
from orchestrator.models.curves.saturation import Saturation, features
from orchestrator.models.selection import modeler
from orchestrator.types import Measurement, Measurements, Point
from tests.models.curves.known import grid

RANKS, SIZES = (16, 32, 64, 128, 256), (10, 20, 30, 40, 50)
FAR = Point.of(p=512, n=60)
Truth = Callable[[float, float], float]


def regimes(points: Floats, log_value: Floats, counting: Sequence[int] = ()) -> Regimes:
    found = fit(Design.of(points, np.full(len(points), 2.0)), log_value[None], counting)
    assert found is not None
    return found[0]


def models(truths: Sequence[Truth], noise: float, seed: int = 0) -> list[CurveModel]:
    rng = np.random.default_rng(seed)
    measured = [
        Measurement(
            f"f{k}",
            "time",
            {
                Point.of(p=p, n=n): tuple((truth(p, n) * np.exp(rng.normal(0, noise, 3))).tolist())
                for p, n in product(RANKS, SIZES)
            },
        )
        for k, truth in enumerate(truths)
    ]
    found = modeler()(Measurements(("p", "n"), tuple(measured)))
    return [item for item in found if isinstance(item, CurveModel)]


def step(p: float, n: float) -> float:
    return 0.01 * n * (1.0 if p < 128 else 1.7)


def saturation(p: float, n: float) -> float:
    return float(0.01 * n * min(p, 64) ** 0.8)


def stairs(p: float, n: float) -> float:
    return float(0.01 * n * 2 ** (np.log2(p) // 2))


def drawn_step(rng: np.random.Generator) -> Truth:
    a, b, place, height = rng.uniform(0, 0.8), rng.uniform(0.5, 2), rng.choice([64, 128]), rng.normal(0, 0.5)
    return lambda p, n: float(0.01 * p**a * n**b * (np.exp(height) if p >= place else 1.0))


def test_a_change_has_two_measured_values_on_each_side() -> None:
    found = regimes(grid(RANKS, SIZES), np.zeros(25))
    assert {item.place for item in found.changes if item} == {(0, 64), (0, 128), (1, 30), (1, 40)}
    assert {item.place for item in found.changes if isinstance(item, Change) and item.hinge} == {
        (0, 64),
        (1, 30),
    }
    assert found.changes[0] is None
    assert found.weights.sum() == pytest.approx(1.0)


def test_of_many_values_few_are_tried() -> None:
    many = np.geomspace(1, 1000, 60)[:, None]
    found = regimes(many, np.zeros(60))
    assert len({item.place for item in found.changes if item}) == 8


@pytest.mark.parametrize(
    "points", [grid((0, 1, 2, 4, 8, 16, 32)), grid((1, 2, 4)), grid((1, 2), (1, 2)), np.empty((1, 0))]
)
def test_without_logarithms_or_enough_values_there_are_none(points: Floats) -> None:
    assert fit(Design.of(points, np.ones(len(points))), np.ones((1, len(points)))) is None


def test_an_exact_change_is_fitted_exactly_and_continued() -> None:
    points = grid(RANKS, SIZES)
    log_value = np.log([0.01 * n * min(p, 64) ** 0.5 * (1.0 if p < 64 else 1.7) for p, n in points])
    found = regimes(points, log_value)
    new = np.array([[512.0, 60.0]])
    errors = np.abs(found.at(points)[0] - log_value).max(axis=1)
    law = int(errors.argmin())
    best = found.changes[law]
    assert isinstance(best, Change)
    assert errors[law] < 1e-12
    assert (best.place, best.step, best.hinge) == ((0, 64), True, True)
    assert found.at(new)[0][law] == pytest.approx(np.log(0.017 * 60 * 8))
    above, below = (found.terms(law, ("p", "n"), above=side)[0] for side in (True, False))
    assert [f["exponent"] for f in below["factors"]] == [0.5, 1.0]
    assert [f["exponent"] for f in above["factors"] if f["parameter"] == "n"] == [1.0]
    assert below["coefficient"] == pytest.approx(0.01)
    assert above["coefficient"] == pytest.approx(0.017 * 8)


def test_slopes_by_coefficients_are_those_of_the_logarithm() -> None:
    points = grid(RANKS, SIZES)
    found = regimes(points, np.sin(np.arange(25.0)))
    value, slopes = found.at(points)
    assert np.einsum("kc,kcn->kn", found.fitted, slopes) == pytest.approx(value)


@pytest.mark.parametrize(("truth", "place"), [(step, "p = 128"), (saturation, "p = 64")])
def test_a_change_is_found_told_and_continued(truth: Truth, place: str) -> None:
    (model,) = models([truth], noise=0.01)
    said = model.predict([FAR])
    assert said.value[0] == pytest.approx(truth(512, 60), rel=0.03)
    assert said.low[0] < truth(512, 60) < said.high[0]
    assert said.high[0] / said.low[0] < 1.2
    assert re.fullmatch(rf"{place.replace('=', '<')}: .+, else .+", model.expression)
    assert f"changes at {place}" in model.notes[-1]
    (term,) = model.terms
    leading = {item["parameter"]: item["exponent"] for item in term["factors"]}
    assert leading.get("p", 0.0) == pytest.approx(0.0, abs=0.02)
    assert leading["n"] == pytest.approx(1.0, abs=0.02)


def test_the_note_says_how_large_a_step_and_how_a_slope_changes() -> None:
    stepped, saturated = models([step, saturation], noise=0.005)
    assert "(a step of x1.7)" in stepped.notes[-1]
    assert re.search(r"\(from p\*\*0\.(79|8)\d* to ", saturated.notes[-1])


@pytest.mark.parametrize("noise", [0.005, 0.03, 0.1])
def test_smooth_functions_change_nowhere(noise: float) -> None:
    truths: list[Truth] = [
        lambda p, n: 0.5 + 1e-3 * p**0.5 * n,
        lambda p, n: 0.5 + 1e-3 * n * np.log2(p) + 1e-4 * p * n,
        lambda p, n: 2 + 1e-2 * n**2,
        lambda p, n: 1e-2 * n**1.07 * p**0.13,
        lambda p, n: 3.0,
    ]
    for model in models(truths, noise):
        assert "else" not in model.expression
        assert model.explained is not None
        if model.share > 0.5:
            assert model.explained.odds[1:].sum() < 0.05


def test_a_staircase_is_no_two_regimes() -> None:
    """It goes on, so neither of two power laws is continued."""
    (model,) = models([stairs], noise=0.02)
    assert "else" not in model.expression
    said = model.predict([FAR])
    assert said.low[0] < stairs(512, 60) < said.high[0]


def test_intervals_of_drawn_steps_hold_one_step_beyond() -> None:
    rng = np.random.default_rng(7)
    truths = [drawn_step(rng) for _ in range(40)]
    found = models(truths, noise=0.02, seed=3)
    held, errors = [], []
    for model in found:
        truth = truths[int(model.callpath[1:])](512, 60)
        said = model.predict([FAR])
        held.append(said.low[0] <= truth <= said.high[0])
        errors.append(abs(np.log(said.value[0] / truth)))
    assert len(found) > 30
    assert np.mean(held) >= 0.85
    assert np.mean(errors) < 0.04


def amdahl(p: float, n: float) -> float:
    """Work n**2, of which the part that does not scale grows as n."""
    return float(1e-3 * n**2 * (1 / p + 1 / (4 * n)))


def test_saturating_speedups_are_tried_where_a_parameter_counts_processes() -> None:
    points = grid(RANKS, SIZES)
    log_value = np.log([amdahl(p, n) for p, n in points])
    found = regimes(points, log_value, (0,))
    saturated = [k for k, item in enumerate(found.changes) if isinstance(item, Saturation)]
    assert len(saturated) == 24
    assert found.weights[saturated].sum() == pytest.approx(0.25)
    assert found.weights.sum() == pytest.approx(1.0)
    far = np.array([[1024.0, 60.0]])
    errors = np.abs(found.at(points)[0] - log_value).max(axis=1)
    best = found.changes[int(errors.argmin())]
    assert isinstance(best, Saturation) and best.power == 1.0
    assert found.at(far)[0][errors.argmin()] == pytest.approx(np.log(amdahl(1024, 60)), abs=0.05)
    assert np.abs(found.at(far)[0][0] - np.log(amdahl(1024, 60))) > 0.2


@pytest.mark.parametrize("points", [grid((16, 32, 64), SIZES), grid(RANKS[:4], (10,))[:, :1]])
def test_few_processes_or_points_show_no_saturation(points: Floats) -> None:
    found = fit(Design.of(points, np.full(len(points), 2.0)), np.zeros((1, len(points))), (0,)) or ()
    assert not any(isinstance(law, Saturation) for item in found for law in item.changes)


def test_several_counts_and_sizes_are_written_as_products() -> None:
    item = Saturation(counting=(0, 1), sizes=(2, 3), scale=3.456, power=0.5)
    assert item.text(("nodes", "ppn", "n", "m")) == "(1 + nodes * ppn / (3.46 * (n * m)**0.5))"
    [[_, factor]] = features([item], np.log([[2.0, 3.0, 4.0, 9.0]]))
    assert factor == pytest.approx(np.log1p(6 / (3.456 * 6)))


def scaled(names: tuple[str, str], **options: object) -> CurveModel:
    """The model of a program of strong scaling with 3 % noise, which is no sum of a few terms."""
    rng = np.random.default_rng(3)
    values = {
        Point.of({names[0]: p, names[1]: n}): tuple(
            (0.01 * n**1.37 / p**0.9 * (1 + p / 6 / n**0.5) ** 1.3 * np.exp(rng.normal(0, 0.03, 2))).tolist()
        )
        for p, n in product((4, 8, 16, 32, 64), SIZES)
    }
    [model] = modeler(**options)(Measurements(names, (Measurement("main", "time", values),)))  # type: ignore[arg-type]
    assert isinstance(model, CurveModel)
    return model


def test_a_saturating_speedup_is_predicted_and_told() -> None:
    model = scaled(("p", "n"))
    [note] = [note for note in model.notes if "saturates" in note]
    assert "(1 + p / (" in note and "* n**0.5)" in note
    truth = 0.01 * 60**1.37 / 256**0.9 * (1 + 256 / 6 / 60**0.5) ** 1.3
    far = Point.of(p=256, n=60)
    error = abs(np.log(model.value([far])[0] / truth))
    assert error < 0.1
    without = scaled(("p", "n"), families=["formulas", "cpr", "learned"])
    assert abs(np.log(without.value([far])[0] / truth)) > 2 * error
    # The expression is a power law, and agrees with its terms.
    assert model.expression.startswith(f"{model.terms[0]['coefficient']:.4g}"[:5])


def test_without_a_name_that_counts_processes_no_speedup_saturates() -> None:
    assert not any("saturates" in note for note in scaled(("x", "n")).notes)
