from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern, WhiteKernel

from orchestrator.models.base import Prediction
from orchestrator.strategies import bayesian, gpr, hybrid
from orchestrator.strategies import surrogate as surrogates
from orchestrator.strategies.base import Strategy, View
from orchestrator.strategies.surrogate import encode, fit
from orchestrator.types import Measurement, Measurements, Parameter, Point
from tests.strategies.views import Box, TrueModel, after, cost, make_view, rng

P = Parameter("p", (4, 8, 16, 32, 64))
S = Parameter("s", (10, 20, 30, 40, 50))
SPACE = Box((P, S))
PLUS = Point.of(p=128, s=60)


def second_round(**options: bool) -> View:
    view = make_view(SPACE, evaluation_point=PLUS)
    return after(view, gpr.strategy(**options)(view, rng()))


@pytest.mark.parametrize(
    ("noise", "repetitions", "expected"),
    [
        (0.0, 1, 1.0 + math.tanh(2.5)),
        (10.0, 1, 1.0),
        (10.0, 3, 2.0),
        (10.0, 5, 4.0),
        (100.0, 1, 1.0 - math.tanh(22.5)),
        (250.0, 1, 1.0 - math.tanh(22.5)),
        (10.0, 0, 1.0),
        (10.0, 14, 2.0**4.5),
    ],
)
def test_weight_of_noise_and_repetitions_is_equation_8_in_percent(
    noise: float, repetitions: int, expected: float
) -> None:
    assert gpr.cost_factor(noise, repetitions) == pytest.approx(expected)


def test_choices_are_the_lowest_weighted_costs_of_equation_7() -> None:
    view = second_round()
    rating = gpr.Rating.of(view, True, 1.0, 1.0)
    points = list(SPACE)
    k = rating.variance(points)
    weighted = {
        point: cost(point) ** 2 * gpr.cost_factor(rating.noise, view.done.get(point, 0)) / k[i] ** 2
        for i, point in enumerate(points)
    }

    chosen = [choice.point for choice in gpr.strategy()(view, rng())]
    assert chosen == sorted(points, key=weighted.__getitem__)[:3]


def test_repetitions_of_measured_points_compete_with_new_points() -> None:
    view = make_view(SPACE, done=dict.fromkeys(list(SPACE)[:-1], 1), evaluation_point=PLUS, round=2)
    choices = gpr.strategy(gp=False)(view, rng())

    assert choices[0].point == Point.of(p=4, s=10)  # a cheap repetition before the costly last new point
    assert choices[0].reason.startswith("repetition 2 of the lowest weighted cost")


def test_without_the_process_only_cost_and_repetitions_rank() -> None:
    choices = gpr.strategy(gp=False)(second_round(), rng())

    assert [choice.point for choice in choices] == sorted(
        SPACE, key=lambda p: cost(p) ** 2 * gpr.cost_factor(2.0, second_round().done.get(p, 0))
    )[:3]
    assert "the process is unsure" not in choices[0].reason


def test_a_point_in_a_gap_is_more_uncertain_than_a_measured_one_and_than_its_neighbour() -> None:
    rating = gpr.Rating.of(second_round(), True, 1.0, 1.0)
    measured, near, far = rating.variance([Point.of(p=4, s=10), Point.of(p=16, s=20), Point.of(p=64, s=50)])

    assert measured < near < far


def scaled(view: View, factor: float) -> View:
    items = tuple(
        Measurement(i.callpath, i.metric, {p: tuple(factor * v for v in r) for p, r in i.values.items()})
        for i in view.measurements.items
    )
    measurements = Measurements(view.measurements.parameters, items)
    return replace(
        view, measurements=measurements, costs=lambda points: [factor * cost(point) for point in points]
    )


@pytest.mark.parametrize("strategy", [gpr.strategy(), hybrid.strategy(), bayesian.strategy()])
def test_the_unit_of_time_does_not_change_the_choice(strategy: Strategy) -> None:
    def propose(view: View) -> list[tuple[Point, int]]:
        return [(choice.point, choice.repetitions) for choice in strategy(view, rng())]

    view = second_round()
    assert propose(scaled(view, 1e-3)) == propose(view) == propose(scaled(view, 1e5))


def test_weights_move_the_trade_off_between_cost_and_uncertainty() -> None:
    view = second_round()
    cheap = gpr.strategy(cost_weight=5.0)(view, rng())[0].point
    telling = gpr.strategy(accuracy_weight=5.0)(view, rng())[0].point
    rating = gpr.Rating.of(view, True, 1.0, 1.0)

    assert cost(cheap) < cost(telling)
    assert rating.variance([cheap])[0] < rating.variance([telling])[0]


def test_one_row_per_point_equals_one_row_per_run_with_a_white_kernel() -> None:
    x = np.array([[0.0], [0.0], [0.5], [1.0], [1.0], [1.0]])
    y = np.array([0.1, -0.1, 0.4, 1.0, 1.1, 0.9])
    kernel = Matern(0.7, "fixed", nu=1.5) + WhiteKernel(0.04, "fixed")
    per_run = GaussianProcessRegressor(kernel).fit(x, y)
    per_point = GaussianProcessRegressor(
        Matern(0.7, "fixed", nu=1.5), alpha=np.array([0.02, 0.04, 0.04 / 3])
    ).fit([[0.0], [0.5], [1.0]], [0.0, 0.4, 1.0])
    new = np.array([[0.25], [2.0]])

    runs, points = (process.predict(new, return_std=True) for process in (per_run, per_point))
    assert points[0] == pytest.approx(runs[0])
    assert points[1] ** 2 == pytest.approx(runs[1] ** 2 - 0.04)


def test_too_few_points_and_identical_times_degrade_to_a_usable_ranking() -> None:
    two = [Point.of(p=4, s=10), Point.of(p=8, s=10)]
    constant = fit((P, S), two, np.zeros(2), np.full(2, 1e-4))
    flat = fit((P, S), list(SPACE)[:6], np.full(6, 3.0), np.zeros(6))

    assert constant.process is None
    for surrogate in (constant, flat):
        mean, deviation = surrogate.predict(encode((P, S), list(SPACE)))
        assert np.isfinite(mean).all()
        assert (deviation >= 0).all()
        assert deviation.max() > 0


def test_numbers_are_encoded_in_the_unit_interval_and_categories_at_distance_one() -> None:
    layout = Parameter("layout", ("DGZ", "GDZ"), categorical=True)
    rows = encode(
        (P, layout), [Point.of(p=4, layout="DGZ"), Point.of(p=64, layout="DGZ"), Point.of(p=16, layout="GDZ")]
    )

    assert rows[:, 0] == pytest.approx([0.0, 1.0, 0.5])
    assert np.linalg.norm(rows[0, 1:] - rows[2, 1:]) == pytest.approx(1.0)
    assert np.linalg.norm(rows[0, 1:] - rows[1, 1:]) == 0.0


def test_hybrid_is_cpf_up_to_the_switch_and_gpr_from_there_on() -> None:
    view = second_round()
    measured = len(view.done)
    before = hybrid.strategy(switch_points=measured + 1)(view, rng())
    behind = hybrid.strategy(switch_points=measured)(view, rng())

    assert all(choice.reason.startswith("cheapest point not measured yet") for choice in before)
    assert list(behind) == list(gpr.strategy()(view, rng()))


def test_bayesian_seeks_where_the_model_is_off() -> None:
    view = make_view(
        SPACE, done=dict.fromkeys(list(SPACE)[::2], 2), evaluation_point=PLUS, round=2, batch_size=2
    )

    class OffAtLargeP(TrueModel):
        def predict(self, points: Sequence[Point]) -> Prediction:
            values = np.array([cost(point) * (1.5 if point["p"] == 64 else 1.0) for point in points])
            return Prediction(values, values, values)

    choices = bayesian.strategy()(replace(view, models=(OffAtLargeP("main->f0"),)), rng())
    assert {choice.point["p"] for choice in choices} <= {32, 64}
    assert "largest expected improvement" in choices[0].reason


def test_expected_improvement_matches_an_integral() -> None:
    mean, deviation, best = np.array([0.2, 0.5, 0.1]), np.array([0.3, 0.1, 0.0]), 0.4
    draws = mean + deviation * rng().standard_normal((400_000, 3))

    expected = np.maximum(draws - best, 0.0).mean(axis=0)
    assert bayesian.expected_improvement(mean, deviation, best) == pytest.approx(expected, abs=2e-3)


def test_points_at_one_place_without_noise_keep_the_kernel_matrix_positive_definite() -> None:
    points = [Point.of(p=4, s=10), Point.of(p=4, s=10.0000001), Point.of(p=8, s=10), Point.of(p=64, s=50)]
    surrogate = fit((P, S), points, np.array([1.0, 1.0, 2.0, 9.0]), np.zeros(4))
    assert surrogate.process is not None
    mean, deviation = surrogate.predict(encode((P, S), points))
    assert mean == pytest.approx([1.0, 1.0, 2.0, 9.0], abs=0.01) and np.isfinite(deviation).all()


def test_a_kernel_matrix_that_is_not_positive_definite_leaves_cost_and_repetitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        raise np.linalg.LinAlgError("not positive definite")

    view = second_round()
    monkeypatch.setattr(GaussianProcessRegressor, "fit", broken)
    with_broken = gpr.strategy()(view, rng())
    without = gpr.strategy(gp=False)(view, rng())
    assert [choice.point for choice in with_broken] == [choice.point for choice in without] != []


def test_a_process_of_very_many_points_is_that_of_some_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel matrix of 100,000 points takes 80 GB; the same points always give the same process."""
    points, noise = list(SPACE), np.full(25, 1e-4)
    targets = np.log([p.number("p") + 2 * p.number("s") for p in points])
    monkeypatch.setattr(surrogates, "_MOST_POINTS", 25)
    every = fit((P, S), points, targets, noise)
    monkeypatch.setattr(surrogates, "_MOST_POINTS", 15)
    some, again = (fit((P, S), points, targets, noise) for _ in range(2))
    assert (len(every.process.X_train_), len(some.process.X_train_)) == (25, 15)
    assert np.array_equal(some.process.X_train_, again.process.X_train_)
    assert np.allclose(some.predict(encode((P, S), points))[0], targets, atol=0.2)
