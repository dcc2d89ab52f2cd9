"""What models say at values of parameters that were never varied."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator import registry
from orchestrator.models.base import Model, Modeler
from orchestrator.models.belief import has_belief
from orchestrator.models.intervals import predictive
from orchestrator.types import Measurement, Measurements, Point

SIZES = [10.0 * 2**k for k in range(8)]


def fitted(modeler: str, measurements: Measurements) -> tuple[Model, ...]:
    built: Modeler = registry.build("model", modeler, {})
    return built(measurements)


def measured() -> Measurements:
    """Return times proportional to n at 4 processes only, beside a call path that was measured at others."""
    rng = np.random.default_rng(3)

    def times(p: float, n: float) -> tuple[float, ...]:
        return tuple(n / p * rng.normal(1, 0.02, 3))

    everywhere = {Point.of(p=p, n=n): times(p, n) for p in (2.0, 4.0, 8.0) for n in SIZES}
    once = {Point.of(p=4.0, n=n): times(4.0, n) for n in SIZES}
    return Measurements(
        ("p", "n"), (Measurement("all", "time", everywhere), Measurement("once", "time", once))
    )


def model_of(modeler: str, callpath: str) -> Model:
    return next(model for model in fitted(modeler, measured()) if model.callpath == callpath)


@pytest.mark.parametrize("modeler", ["auto", "pmnf", "curves", "splines", "cpr"])
def test_intervals_at_other_values_are_wide_and_at_the_measured_one_are_not(modeler: str) -> None:
    model = model_of(modeler, "once")
    found = model.predict([Point.of(p=4.0, n=320.0), Point.of(p=64.0, n=320.0), Point.of(p=0.25, n=320.0)])
    assert found.high[0] / found.low[0] < 1.5
    assert np.allclose(found.value, found.value[0])
    for k in (1, 2):  # 16 times as many, and as few
        assert found.low[k] < found.value[k] / 10
        assert found.high[k] > found.value[k] * 10
    assert any("p has the one value 4" in note for note in model.notes)


def test_intervals_grow_with_the_distance() -> None:
    points = [Point.of(p=p, n=320.0) for p in (4.0, 5.0, 8.0, 64.0)]
    spread = predictive(model_of("auto", "once"), points).spread.max(axis=0)
    assert (np.diff(spread) > 0.1).all()


@pytest.mark.parametrize("value", [0.0, -2.0])
def test_values_without_a_logarithm_are_as_unknown(value: float) -> None:
    points = [Point.of(p=4.0, n=320.0), Point.of(p=value, n=320.0)]
    spread = predictive(model_of("auto", "once"), points).spread.max(axis=0)
    assert spread[1] > spread[0] + 0.5


@pytest.mark.parametrize("modeler", ["auto", "pmnf", "curves"])
def test_a_run_at_another_value_says_something_of_the_others(modeler: str) -> None:
    model = model_of(modeler, "once")
    assert has_belief(model)
    there = [Point.of(p=p, n=320.0) for p in (64.0, 4.0, 8.0, 1.0)]
    found = model.belief(there)
    to = found.covariance(0) / np.sqrt(found.variance * found.variance[0])
    assert found.variance[0] > 1
    assert to[2] > 0.9 > 0.5 > abs(to[1])
    assert to[3] < -0.9  # if time rises with the number of processes, it falls to the other side


def test_what_varies_is_as_certain_as_before() -> None:
    found = model_of("auto", "all").predict([Point.of(p=16.0, n=320.0)])
    assert found.high[0] / found.low[0] < 1.2


def test_laws_that_are_divided_out_keep_what_was_not_varied() -> None:
    irregular = {2.0: 17.0, 3.0: 5.0, 5.0: 29.0, 8.0: 3.0, 13.0: 31.0}
    counts = {Point.of(p=4.0, n=n, k=k): (n * value,) * 2 for n in SIZES for k, value in irregular.items()}
    (model,) = fitted("auto", Measurements(("p", "n", "k"), (Measurement("f", "visits", counts),)))
    here, there = (model.predict([Point.of(p=p, n=20.0, k=5.0)]) for p in (4.0, 64.0))
    assert here.low[0] == pytest.approx(here.high[0])
    assert there.high[0] / there.low[0] > 100
