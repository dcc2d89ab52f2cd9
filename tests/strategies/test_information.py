from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.belief import ModelWithBelief, has_belief
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.pmnf.modeler import modeler
from orchestrator.models.pmnf.posterior import Posterior
from orchestrator.strategies.base import View
from orchestrator.strategies.information import strategy, unseen_terms
from orchestrator.strategies.information.gain import Known, gain, known, learn, run_noise
from orchestrator.strategies.information.stakes import Weighted
from orchestrator.strategies.information.unseen_terms import UnseenTerms
from orchestrator.types import Measurement, Measurements, Parameter, Point
from tests.strategies.views import Box, after, make_view, rng

P = Parameter("p", (4, 8, 16, 32, 64))
S = Parameter("s", (10, 20, 30, 40, 50))
SPACE = Box((P, S))
PLUS = Point.of(p=128, s=60)


def fitted(view: View) -> View:
    return replace(view, models=modeler()(view.measurements))


def second_round(batch_size: int = 3) -> View:
    view = make_view(SPACE, evaluation_point=PLUS, batch_size=batch_size)
    return fitted(after(view, strategy.strategy()(view, rng())))


def lines_done(view: View) -> View:
    """Return the view after the rounds that measure along lines."""
    while "next point of a line" in (choices := strategy.strategy()(view, rng()))[0].reason:
        view = fitted(after(view, choices))
    return view


def two_hypotheses(slope_variance: float = 0.01, noise: float = 0.1, other: float = 2.0) -> PmnfModel:
    """Time 1 + p or 1 + p**other, equally probable, the first with an uncertain slope."""
    covariance = np.zeros((2, 2, 2))
    covariance[0, 1, 1] = slope_variance
    posterior = Posterior(
        weights=np.array([0.5, 0.5]),
        exponents=np.array([[[[1.0, 0.0]]], [[[other, 0.0]]]]),
        coefficients=np.ones((2, 2)),
        covariance=covariance,
        misfit=np.array([0.1, 0.3]),
    )
    return PmnfModel(
        callpath="main",
        metric="time",
        parameters=("p",),
        category=(),
        smape=1.0,
        noise=noise,
        notes=(),
        posterior=posterior,
    )


def believed(model: ModelWithBelief, points: Sequence[Point], done: Mapping[Point, int]) -> Known:
    return known(model, points, UnseenTerms.of(model, done))


def growth(model: ModelWithBelief, points: Sequence[Point], done: Mapping[Point, int]) -> Floats:
    return believed(model, points, done).growth


def test_covariance_is_that_between_and_within_hypotheses() -> None:
    belief = believed(two_hypotheses(), [Point.of(p=1.2), Point.of(p=1.5)], {})
    covariance = belief.factor @ belief.factor.T

    logs = np.log([[2.2, 2.5], [2.44, 3.25]])  # hypotheses x points
    between = np.cov(logs.T, bias=True)
    slope = np.array([1.2 / 2.2, 1.5 / 2.5])  # d log(1 + c p) / dc
    within = 0.5 * 0.01 * np.outer(slope, slope)
    assert covariance == pytest.approx(between + within)
    assert belief.misfit.tolist() == [0.0, 0.0]  # scatter without a correction is taken for noise
    assert belief.noise == pytest.approx(0.1**2)


def test_learning_is_conditioning_a_gaussian_on_a_noisy_value() -> None:
    factor = rng().normal(size=(4, 6))
    before = factor @ factor.T
    learned = learn(factor, 1, 0.5)

    expected = before - np.outer(before[1], before[1]) / (before[1, 1] + 0.5)
    assert learned @ learned.T == pytest.approx(expected)
    assert learn(np.zeros((2, 3)), 0, 0.5) == pytest.approx(np.zeros((2, 3)))


def test_gain_is_the_fall_of_the_variance_at_the_target() -> None:
    factor = rng().normal(size=(4, 6))
    gains = gain(factor[:3], factor[3:], np.full(3, 0.5))

    for row in range(3):
        learned = learn(factor, row, 0.5)
        fall = float(factor[3] @ factor[3] - learned[3] @ learned[3])
        assert gains[row] == pytest.approx(fall)


def test_a_model_without_a_finite_answer_teaches_nothing() -> None:
    factor = np.array([[1.0, 0.0], [np.nan, 1.0], [np.inf, 0.0], [1e200, 0.0]])

    gains = gain(factor, np.array([[1.0, 1.0]]), np.ones(4))
    assert gains[0] == pytest.approx(0.5)
    assert gains[1:].tolist() == [0.0, 0.0, 0.0]


def test_repetitions_lose_their_worth_where_the_misfit_dominates() -> None:
    counts = np.array([0, 1, 2, 9])

    assert run_noise(0.01, np.zeros(4), counts) == pytest.approx(0.01)
    with_misfit = run_noise(0.01, np.full(4, 0.04), counts)
    assert with_misfit[0] == pytest.approx(0.05)
    assert (np.diff(with_misfit) > 0).all()
    # r runs together say as much as their mean does, whose variance is misfit + noise / r
    precisions = 1.0 / run_noise(0.01, np.full(5, 0.04), np.arange(5))
    assert precisions.sum() == pytest.approx(1 / (0.04 + 0.01 / 5))


def test_the_starting_set_is_six_single_runs_for_two_parameters() -> None:
    choices = strategy.strategy()(make_view(SPACE, evaluation_point=PLUS), rng())

    assert {(c.point["p"], c.point["s"]) for c in choices} == {
        (4, 10),
        (8, 10),
        (16, 10),
        (4, 20),
        (4, 30),
        (8, 20),
    }
    assert {c.repetitions for c in choices} == {1}


def worth(model: ModelWithBelief, points: list[Point], counts: NDArray[np.intp]) -> Floats:
    done = dict(zip(points, map(int, counts), strict=True))
    here = believed(model, points, done)
    return gain(here.factor, believed(model, [PLUS], done).factor, run_noise(here.noise, here.misfit, counts))


def test_a_hypothesis_far_off_counts_as_wrong_and_no_more() -> None:
    belief = believed(two_hypotheses(slope_variance=0.0), [Point.of(p=1000)], {})
    assert belief.factor @ belief.factor.T == pytest.approx(0.3**2)


def test_growth_that_noise_may_hide_matters_far_out_and_less_the_more_was_measured() -> None:
    model = two_hypotheses()
    points = [Point.of(p=2), Point.of(p=64)]
    near, far = growth(model, points, {Point.of(p=2): 1, Point.of(p=4): 1})
    assert 0 < near < 0.02 < far
    assert growth(model, points, {Point.of(p=2): 9, Point.of(p=4): 9})[1] == pytest.approx(far / 3)
    assert growth(model, points, {Point.of(p=32): 1})[1] < far / 10
    assert growth(model, points, {}).tolist() == [0.0, 0.0]


def test_lines_come_first_where_the_budget_holds_them_cheapest_first() -> None:
    view = second_round(batch_size=1)
    lacking = [Point.of(p=4, s=40), Point.of(p=4, s=50), Point.of(p=32, s=10), Point.of(p=64, s=10)]
    view = replace(view, budget_left=2 * sum(map(view.cost, lacking)))
    taken = []
    for _ in lacking:
        (choice,) = strategy.strategy()(view, rng())
        taken.append(choice.point)
        last = choice.reason
        view = fitted(after(view, [choice]))
    assert taken == lacking
    assert last.startswith("next point of a line, the missing one fits the budget (")


def test_lines_that_the_budget_does_not_hold_wait_for_what_teaches_most_per_cost() -> None:
    view = second_round(batch_size=1)
    budgets = (40.0, 1e6)  # the lines lack runs of 38.6 core-seconds
    reasons = [strategy.strategy()(replace(view, budget_left=b), rng())[0].reason for b in budgets]
    assert "most information per cost" in reasons[0]
    assert "the 4 that are missing fit the budget" in reasons[1]


def test_a_single_run_is_the_best_ratio_of_gain_and_cost() -> None:
    view = second_round(batch_size=1)
    models = [model for model in view.models if has_belief(model)]
    points = list(SPACE)
    counts = np.array([view.done.get(point, 0) for point in points])
    costs = np.array([view.cost(point) for point in points])
    more = sum(growth(model, points, view.done) for model in models) / len(models)
    ratio = sum(worth(model, points, counts) for model in models) / (costs * (1 + more))

    beliefs = [Weighted(model, 0.5) for model in models]
    (choice,) = strategy.most_informative(view, beliefs, overhead=0.0)
    assert choice.point == points[int(np.argmax(ratio))]


def test_the_reason_says_what_is_gained() -> None:
    reason = strategy.strategy()(lines_done(second_round()), rng())[0].reason

    assert "most information per cost, lowers the uncertainty at P(p=128, s=60) from" in reason
    before, after_ = (float(part.split(" %")[0]) for part in reason.split(" from ")[1].split(" to "))
    assert 0 < after_ < before
    assert "core-hours expected" in reason


def test_a_batch_counts_on_what_its_first_run_will_show() -> None:
    """One call path is unsure about p, one about s. By themselves the best three runs all vary p."""
    lines = Box((P, S), lambda point: point["p"] == 4 or point["s"] == 10)
    about_p = two_hypotheses(slope_variance=0.0, noise=0.03, other=1.05)
    beliefs = [Weighted(about_p, 0.5), Weighted(replace(about_p, parameters=("s",), noise=0.1), 0.5)]
    view = make_view(lines, evaluation_point=PLUS, batch_size=1, round=2, cost=lambda point: 1.0)
    alone = strategy.most_informative(view, beliefs, overhead=0.0)
    batch = strategy.most_informative(replace(view, batch_size=2), beliefs, overhead=0.0)

    points = list(lines)
    nothing = np.zeros(len(points), int)
    single = sum(b.share * worth(b.model, points, nothing) for b in beliefs)
    best = [points[i] for i in np.argsort(-np.asarray(single))[:3]]
    assert all(point["p"] != 4 for point in best)
    assert batch[0].point == alone[0].point == best[0]
    assert batch[1].point == Point.of(p=4, s=50)


@pytest.mark.parametrize("budget", [40.0, 100.0, 1000.0])
def test_a_batch_leaves_most_of_the_budget_to_what_it_teaches(budget: float) -> None:
    view = replace(second_round(batch_size=8), budget_left=budget, cost_is_relative=False)
    choices = strategy.strategy()(view, rng())
    spent = sum(view.cost(choice.point) * choice.repetitions for choice in choices)
    runs = sum(choice.repetitions for choice in choices)
    assert runs >= 1
    assert runs == 1 or spent <= 0.1 * budget * 1.05  # of what costs are expected, with unseen growth


def test_a_fixed_price_of_a_run_moves_the_choice_to_fewer_larger_runs() -> None:
    view = lines_done(second_round(batch_size=1))
    cheap = strategy.strategy(overhead=0.0)(view, rng())[0]
    large = strategy.strategy(overhead=1e3)(view, rng())[0]

    assert view.cost(large.point) > view.cost(cheap.point)


def test_call_paths_count_by_their_share() -> None:
    """One call path is unsure about p, the other about s: the larger share decides which line is extended."""
    view = make_view(SPACE, evaluation_point=PLUS, batch_size=1, round=2, cost=lambda point: 1.0)
    p_model = replace(two_hypotheses(other=1.05), callpath="f")
    s_model = replace(p_model, callpath="g", parameters=("s",))

    def choice(p_share: float) -> Point:
        beliefs = [Weighted(p_model, p_share), Weighted(s_model, 1.0 - p_share)]
        return strategy.most_informative(view, beliefs, overhead=0.0)[0].point

    assert choice(1.0)["p"] == 64
    assert choice(0.0)["s"] == 50


def test_without_a_posterior_it_chooses_as_gpr_does() -> None:
    view = replace(second_round(), models=())

    assert "lowest weighted cost" in strategy.strategy()(view, rng())[0].reason


def test_without_an_evaluation_point_the_upper_corners_count() -> None:
    layout = Parameter("layout", ("DGZ", "GDZ"), categorical=True)
    view = make_view(Box((P, layout, S)))

    assert strategy.targets(view) == [
        Point.of(p=64, layout="DGZ", s=50),
        Point.of(p=64, layout="GDZ", s=50),
    ]


def test_only_the_category_of_the_evaluation_point_is_worth_a_run() -> None:
    layout = Parameter("layout", ("DGZ", "GDZ"), categorical=True)
    space = Box((P, S, layout))
    view = make_view(space, evaluation_point=Point.of(p=128, s=60, layout="GDZ"), batch_size=5)
    view = fitted(after(view, strategy.strategy()(view, rng())))
    assert {choice.point["layout"] for choice in strategy.strategy()(view, rng())} == {"GDZ"}
    choices = strategy.strategy()(lines_done(view), rng())
    assert {choice.point["layout"] for choice in choices} == {"GDZ"}
    assert all("uncertainty at P(p=128, s=60, layout=GDZ)" in choice.reason for choice in choices)


def test_it_learns_the_truth_for_less_than_the_cheapest_points_do() -> None:
    def truth(point: Point, noise: np.random.Generator) -> float:
        p, s = point.number("p"), point.number("s")
        return float((5.0 + 0.01 * p**1.5 * s) * (1 + 0.05 * noise.uniform(-1, 1)))

    view = make_view(SPACE, evaluation_point=PLUS, batch_size=2, budget_left=2000.0, maximum_repetitions=10)
    noise = np.random.default_rng(3)
    times: dict[Point, tuple[float, ...]] = {}
    propose = strategy.strategy()
    while choices := propose(view, rng()):
        for choice in choices:
            new = tuple(truth(choice.point, noise) for _ in range(choice.repetitions))
            times[choice.point] = times.get(choice.point, ()) + new
        measurements = Measurements(("p", "s"), (Measurement("main", "time", dict(times)),))
        view = fitted(replace(after(view, choices), measurements=measurements))

    prediction = view.models[0].predict([PLUS])
    exact = 5.0 + 0.01 * 128**1.5 * 60
    assert prediction.value[0] == pytest.approx(exact, rel=0.05)
    assert prediction.low[0] <= exact <= prediction.high[0]


def test_terms_that_were_not_seen_are_as_large_however_many_points_are_looked_at_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view = second_round()
    model = next(item for item in view.models if has_belief(item))
    at_once = UnseenTerms.of(model, view.done)
    monkeypatch.setattr(unseen_terms, "_AT_ONCE", 1)  # one point after the other
    assert UnseenTerms.of(model, view.done).log_size == pytest.approx(at_once.log_size, rel=1e-12)
    assert len(view.done) > 3 and np.ptp(at_once.log_size) > 1
