"""Predictive distributions: intervals of any level, of the mean and of further runs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from orchestrator import registry
from orchestrator.errors import CampaignError
from orchestrator.models.intervals import Predictive, checked_levels, predictive
from orchestrator.types import Measurement, Measurements, Point
from tests.models.nearest import modeler as nearest


def normal(noise: float, shared: float = 0.0, spread: float = 0.02) -> Predictive:
    return Predictive(
        value=np.array([100.0]),
        weights=np.ones(1),
        mean=np.log([[100.0]]),
        spread=np.array([[spread]]),
        noise=noise,
        shared=shared,
    )


def log_width(interval: tuple[np.ndarray, np.ndarray]) -> float:
    return float(np.log(interval[1] / interval[0])[0])


@pytest.mark.parametrize(("level", "deviations"), [(50, 0.6745), (90, 1.6449), (95, 1.96)])
def test_a_normal_distribution_has_the_quantiles_of_tables(level: float, deviations: float) -> None:
    assert log_width(normal(0.1).of_mean(level)) == pytest.approx(2 * deviations * 0.02, rel=1e-3)


def test_single_runs_add_their_noise_and_many_runs_only_what_they_share() -> None:
    unit = log_width(normal(0.0, spread=1.0).of_mean(90))
    one, many = (normal(0.05, 0.03).of_measured(90, runs) for runs in (1, 10**9))
    assert log_width(one) / unit == pytest.approx(np.hypot(0.02, 0.05), rel=1e-3)
    assert log_width(many) / unit == pytest.approx(np.hypot(0.02, 0.03), rel=1e-3)


def test_noise_never_narrows_the_interval_of_two_very_different_explanations() -> None:
    two = Predictive(
        value=np.array([100.0]),
        weights=np.array([0.3, 0.7]),
        mean=np.log([[1.0], [100.0]]),
        spread=np.full((2, 1), 0.01),
        noise=1.0,
    )
    (low, high), (lower, higher) = two.of_mean(50), two.of_measured(50)
    assert lower <= low < 2 and higher >= high


def test_a_value_outside_of_the_distribution_is_inside_of_every_interval() -> None:
    odd = Predictive(
        value=np.array([150.0, np.nan]),
        weights=np.ones(1),
        mean=np.log([[100.0, 100.0]]),
        spread=np.full((1, 2), 0.01),
        noise=0.0,
    )
    low, high = odd.of_mean(50)
    assert low[0] < 100 and high[0] == 150
    assert np.isnan(low[1]) and np.isnan(high[1])


@pytest.mark.parametrize("level", [0.9, 0, -50, 100, 101, float("nan"), float("inf")])
def test_impossible_levels_are_refused_with_the_remedy(level: float) -> None:
    with pytest.raises(CampaignError, match="percentages from 1 to below 100, such as 90"):
        checked_levels([50, level])


def test_levels_keep_their_order_each_once() -> None:
    assert checked_levels([95, 50, 95]) == (95, 50)
    with pytest.raises(CampaignError, match="no level"):
        checked_levels([])


def test_a_model_that_only_predicts_has_the_lognormal_distribution_of_its_interval() -> None:
    values = {Point.of(p=p): (float(p), 1.1 * p) for p in (8, 16, 32)}
    (model,) = nearest()(Measurements(("p",), (Measurement("main", "time", values),)))
    point = [Point.of(p=20)]
    known, predicted = predictive(model, point), model.predict(point)
    low, high = known.of_mean(90)
    assert low == pytest.approx(predicted.low) and high == pytest.approx(predicted.high)
    assert log_width(known.of_mean(50)) < log_width(known.of_mean(90)) < log_width(known.of_mean(99))


def jobs(seed: int, shared: float = 0.05, own: float = 0.01) -> dict[Point, np.ndarray]:
    """Return three repetitions in each of two jobs, at twelve points and one that is never fitted."""
    rng = np.random.default_rng(seed)
    points = [Point.of(p=p, n=n) for p, n in product((8, 16, 32, 64), (10, 20, 30))]
    return {
        point: point.number("p") ** 0.5
        * point.number("n")
        * np.exp(np.repeat(rng.normal(0, shared, 2), 3) + rng.normal(0, own, 6))
        for point in points
    }


@pytest.mark.parametrize("name", ["pmnf", "curves", "auto"])
def test_what_jobs_share_does_not_average_out(name: str) -> None:
    found = jobs(6)
    item = Measurement(
        "main",
        "time",
        {point: tuple(map(float, values)) for point, values in found.items()},
        dict.fromkeys(found, ("a", "a", "a", "b", "b", "b")),
    )
    (model,) = registry.load("model", name)()(Measurements(("p", "n"), (item,)))
    known = predictive(model, [Point.of(p=32, n=20)])
    assert known.noise == pytest.approx(np.hypot(0.05, 0.01), rel=0.4)
    assert 0.9 * known.noise < known.shared < known.noise
    many = np.log(np.divide(*reversed(known.of_measured(90, 10**6))))[0]
    assert many > 0.8 * np.log(np.divide(*reversed(known.of_measured(90))))[0]


def test_intervals_hold_the_truth_and_further_runs_as_often_as_they_say() -> None:
    rng, noise, truths = np.random.default_rng(11), 0.05, 150
    points = [Point.of(p=p) for p in (8, 16, 32, 64, 128)]
    held = dict.fromkeys(product(("mean", "measured"), (50, 80, 95)), 0)
    items = [
        Measurement(
            f"f{k}",
            "time",
            {q: tuple(map(float, q.number("p") ** 0.5 * np.exp(rng.normal(0, noise, 3)))) for q in points},
        )
        for k in range(truths)
    ]
    there = [Point.of(p=32)]
    for model in registry.load("model", "pmnf")()(Measurements(("p",), tuple(items))):
        known = predictive(model, there)
        run = 32**0.5 * np.exp(rng.normal(0, noise))
        for level in (50, 80, 95):
            low, high = known.of_mean(level)
            held["mean", level] += int(low[0] <= 32**0.5 <= high[0])
            low, high = known.of_measured(level)
            held["measured", level] += int(low[0] <= run <= high[0])
    for (_, level), count in held.items():
        assert 100 * count / truths == pytest.approx(level, abs=13)
