"""Which rounds are worth making: prices, repetitions, process counts, and why nothing is proposed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.expressions import parse
from orchestrator.models import uncertainty
from orchestrator.models.belief import ModelWithBelief, has_belief
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.space import SearchSpace
from orchestrator.strategies.base import Choice, Nothing, View
from orchestrator.strategies.information import ending, price, strategy
from orchestrator.strategies.information.beyond import values_beyond
from orchestrator.strategies.information.price import Price, needless
from orchestrator.strategies.information.stakes import Stakes, Weighted
from orchestrator.types import Parameter, Point, Value
from tests.strategies.test_information import PLUS, SPACE, lines_done, second_round, two_hypotheses
from tests.strategies.views import Box, cost, make_view, rng

LINE = Box((Parameter("p", (4, 8, 16, 32, 64)), Parameter("s", (10,))))


def at(p: float) -> Point:
    return Point.of(p=p, s=10)


def unsure(noise: float, other: float) -> PmnfModel:
    """Time 1 + p or 1 + p**other, and nothing else is unknown."""
    model = two_hypotheses(slope_variance=0.0, noise=noise, other=other)
    return replace(model, posterior=replace(model.posterior, misfit=np.zeros(2)))


def cores(points: Sequence[Point]) -> list[float]:
    return [point.number("p") for point in points]


def view_of(
    done: Mapping[int, int],
    *,
    budget: float = 1000.0,
    plus: float = 128,
    costs: Callable[[Point], float] = lambda point: 1.0,
    batch_size: int = 1,
    model: PmnfModel | None = None,
) -> View:
    """Return a view of one parameter p, where some points have runs already."""
    view = make_view(
        LINE,
        done={at(p): runs for p, runs in done.items()},
        evaluation_point=Point.of(p=plus, s=20),
        batch_size=batch_size,
        budget_left=budget,
        maximum_repetitions=10,
        round=2,
        cost=costs,
    )
    return replace(view, cores=cores, models=() if model is None else (model,))


def chosen(view: View, model: ModelWithBelief) -> Sequence[Choice]:
    return strategy.most_informative(view, [Weighted(model, 1.0)], overhead=0.0)


def test_a_nearly_free_run_that_teaches_little_is_not_preferred() -> None:
    """By the ratio of gain and cost alone, the run that costs nothing is the best."""
    model = unsure(noise=0.1, other=1.05)

    def costs(point: Point) -> float:
        return 1e-6 if point["p"] == 4 else point.number("p") / 64

    nothing_known_of_budget = view_of({}, budget=float("inf"), costs=costs)
    assert chosen(nothing_known_of_budget, model)[0].point == at(4)
    assert chosen(view_of({}, budget=1000.0, costs=costs), model)[0].point == at(64)


def test_the_price_of_a_round_is_a_share_of_what_is_left_for_all_its_runs() -> None:
    one, four = (Price.of(view_of({}, budget=100.0, batch_size=n), overhead=0.0) for n in (1, 4))
    assert one.per_run == pytest.approx(100 * price.ROUND_SHARE) == pytest.approx(4 * four.per_run)
    assert Price.of(view_of({}, budget=100.0), overhead=50.0).per_run == 50.0
    guessed = replace(view_of({}), cost_is_relative=True)
    assert Price.of(guessed, overhead=0.0) == Price(0.0, float("inf"), 0.0)


@given(st.floats(0, 1), st.floats(1e-6, 1), st.floats(1e-6, 1e3), st.floats(1.0, 10.0))
def test_what_is_worth_its_price_stays_so_if_it_teaches_more_or_costs_less(
    gain: float, total: float, seconds: float, factor: float
) -> None:
    prices = Price(1.0, 100.0, 0.001)

    def worth(g: float, s: float) -> bool:
        return bool(prices.worth(np.array([g]), total, np.array([s]))[0])

    assert not worth(0.0, seconds)
    if worth(gain, seconds):
        assert worth(gain * factor, seconds) and worth(gain, seconds / factor)


def test_no_further_repetition_where_the_mean_is_known_far_better_than_the_model() -> None:
    counts = np.array([0, 1, 10, 11, 100])
    assert needless(counts, np.full(5, 0.01), 0.01).tolist() == [False, False, False, True, True]
    assert not needless(counts, np.zeros(5), 0.01).any()


def test_a_point_is_not_repeated_beyond_what_noise_warrants() -> None:
    """The hypotheses miss the point at p=4 by far more than its runs scatter."""
    model = two_hypotheses(slope_variance=0.0, noise=0.02, other=2.0)
    for runs in (1, 3, 9):
        assert all(choice.point != at(4) for choice in chosen(view_of({4: runs}), model))


@pytest.mark.parametrize(
    ("done", "plus", "budget", "p"),
    [
        ({4: 5, 8: 1}, 128, 1000.0, 64),  # the most there are
        ({4: 5, 8: 1}, 32, 1000.0, 32),  # as many as at the evaluation point, not more
        ({4: 5, 8: 1}, 128, 70.0, 32),  # a run with 64 would take more than half of the budget
        ({4: 5, 32: 1}, 32, 1000.0, None),  # made already
        ({4: 4, 8: 1}, 128, 1000.0, None),  # no point has many runs
    ],
)
def test_the_process_count_of_the_evaluation_point_comes_before_many_repetitions(
    done: dict[int, int], plus: int, budget: float, p: int | None
) -> None:
    """Small runs are cheap and would be chosen for their price."""
    model = unsure(noise=0.3, other=1.3)
    view = view_of(done, plus=plus, budget=budget, costs=lambda point: point.number("p") ** 3 / 64**3 * 64)
    first = chosen(view, model)[0]
    assert ("no run has as many cores yet" in first.reason) == (p is not None)
    if p is not None:
        assert first.point == at(p)


def test_no_point_has_ten_runs_before_the_largest_process_count_has_one() -> None:
    model = unsure(noise=0.3, other=1.3)
    view = view_of({4: 1}, batch_size=8, costs=lambda point: point.number("p") ** 3 / 64**3 * 64)
    for _ in range(6):
        choices = chosen(view, model)
        done = dict(view.done)
        for choice in choices:
            done[choice.point] = done.get(choice.point, 0) + choice.repetitions
        view = replace(view, done=done)
        if done.get(at(64)):
            break
        assert max(done.values()) < 10
    assert view.done[at(64)]


def test_exhausted_names_the_next_useful_run_and_its_price() -> None:
    view = replace(lines_done(second_round()), budget_left=0.5)
    found = strategy.strategy()(view, rng())
    assert isinstance(found, Nothing) and not found and found.rule == "exhausted"
    assert "no run is safe to fit the 0.000139 core-hours that are left;" in found.reason
    assert f"the next useful run, at {found.useful}," in found.reason
    assert "core-hours expected" in found.reason
    width = uncertainty.at(view.models, PLUS).width
    assert width is not None and f"from {100 * width:.3g} % to" in found.reason


def test_exhausted_says_what_is_kept_back_of_the_budget() -> None:
    """Most of the budget may be unspent when nothing fits beside the validation."""
    view = replace(lines_done(second_round()), budget_left=0.5, kept=3600.0)
    found = strategy.strategy()(view, rng())
    assert isinstance(found, Nothing)
    assert "the 0.000139 core-hours that are left beside 1 core-hours for the validation;" in found.reason


def test_a_run_that_is_too_expensive_is_not_called_converged() -> None:
    """Runs that fit teach nothing at their price; the one that would help does not fit."""
    model = unsure(noise=0.1, other=1.05)
    done = {4: 10, 8: 10, 16: 10, 32: 10, 64: 1}
    view = view_of(done, budget=10.0, costs=lambda point: 100.0 if point["p"] == 64 else 9.9)
    found = chosen(view, model)
    assert isinstance(found, Nothing) and found.rule == "exhausted"
    assert "at P(p=64, s=10)" in found.reason and "0.0278 core-hours expected" in found.reason


def test_converged_where_no_run_at_any_price_would_narrow_the_intervals() -> None:
    """What remains at the evaluation point is scatter around every model, which no run elsewhere lowers."""
    model = two_hypotheses(slope_variance=0.0, noise=0.05, other=1.0)  # both hypotheses are the same
    found = chosen(view_of(dict.fromkeys((4, 8, 16, 32, 64), 9), model=model), model)
    assert isinstance(found, Nothing) and found.rule == "converged"
    assert "what is left is scatter around every model" in found.reason


def test_a_campaign_does_not_end_while_noise_is_a_guess() -> None:
    """Every point was measured once: what the model does not fit may be noise."""
    model = two_hypotheses(slope_variance=0.0, noise=0.05, other=1.0)
    once = view_of(dict.fromkeys((4, 8, 16, 32, 64), 1), model=model)
    found = chosen(once, model)
    assert len(found) == 4 and all(choice.repetitions == 1 for choice in found)
    assert all("repetition 2" in choice.reason for choice in found)
    assert {at(4), at(64)} <= {choice.point for choice in found}
    reference = view_of({**dict.fromkeys((8, 16, 32, 64), 1), 4: 9}, model=model)
    assert {choice.point for choice in chosen(reference, model)} == {at(p) for p in (8, 16, 32, 64)}
    twice = view_of(dict.fromkeys((4, 8, 16, 32, 64), 2), model=model)
    assert isinstance(chosen(twice, model), Nothing)
    assert isinstance(chosen(replace(once, budget_left=0.5), model), Nothing)


def test_models_of_other_categories_say_nothing_of_the_evaluation_point() -> None:
    model = replace(two_hypotheses(), category=(("layout", "ZGD"),))
    points = [Point.of(p=p, s=10, layout="ZGD") for p in (4, 8, 16)]
    view = make_view(
        Box((Parameter("p", (4, 8, 16)), Parameter("s", (10,)), Parameter("layout", ("DGZ", "ZGD"), True))),
        done=dict.fromkeys(points, 2),
        evaluation_point=Point.of(p=64, s=10, layout="DGZ"),
        round=2,
    )
    found = strategy.strategy()(replace(view, models=(model,)), rng())
    assert found and not isinstance(found, Nothing)


def test_when_every_point_has_its_repetitions_nothing_is_left() -> None:
    found = chosen(view_of(dict.fromkeys((4, 8, 16, 32, 64), 10)), two_hypotheses())
    assert isinstance(found, Nothing)
    assert (found.rule, found.reason) == (
        "exhausted",
        "every point has its maximum of repetitions, or was given up",
    )


def test_reasons_begin_with_the_uncertainty_of_the_models() -> None:
    view = lines_done(second_round())
    models = [model for model in view.models if has_belief(model)]
    assert models
    width = uncertainty.at(view.models, PLUS).width
    assert width is not None
    first = strategy.strategy()(view, rng())[0]
    assert f"lowers the uncertainty at P(p=128, s=60) from {100 * width:.3g} % to " in first.reason


def test_reasons_word_a_wide_uncertainty_as_all_others_do() -> None:
    stakes = Stakes(
        models=(),
        hidden=(),
        goals=(),
        aims=(PLUS,),
        price=Price.of(lines_done(second_round()), 0.0),
        total=1.0,
        fixed=0.0,
        width=57.6,
    )
    assert stakes.effect(1.0, 1 / 16).endswith(" from 57.6 times the value to 14.4 times the value")
    small = replace(stakes, width=0.0872)
    assert small.effect(1.0, 0.99999) == f"hardly lowers the uncertainty at {PLUS} (8.72 %)"


def test_nothing_is_an_empty_proposal() -> None:
    empty = Nothing("exhausted", "why")
    assert list(empty) == [] and len(empty) == 0 and not empty
    with pytest.raises(IndexError):
        empty[0]


def test_a_larger_budget_allows_what_a_smaller_one_could_not_use() -> None:
    """The same view, with a budget that holds the next useful run, proposes something."""
    view = lines_done(second_round())
    least = min(cost(point) for point in SPACE)
    assert isinstance(strategy.strategy()(replace(view, budget_left=least / 2), rng()), Nothing)
    assert strategy.strategy()(replace(view, budget_left=1e6), rng())


def test_wide_intervals_that_no_run_in_the_space_narrows_are_not_called_converged() -> None:
    """Hypotheses that differ at the evaluation point only: wider ranges of the parameters would help."""
    model = two_hypotheses(slope_variance=0.0, noise=0.5, other=1.3)
    model = replace(model, posterior=replace(model.posterior, misfit=np.full(2, 1e-3)))
    tiny = Box((Parameter("p", (1,)), Parameter("s", (10,))))  # both say 2 at p=1
    view = replace(view_of({}, model=model), space=tiny, done={Point.of(p=1, s=10): 5})
    found = chosen(view, model)
    assert isinstance(found, Nothing) and found.rule == "exhausted"
    assert "wider ranges of the parameters may help; the best run, at P(p=1, s=10)" in found.reason


@pytest.mark.parametrize(("budget", "p"), [(1000.0, 16), (0.5, 16)])
def test_the_run_that_wider_ranges_would_allow_is_named_with_its_cost(budget: float, p: int) -> None:
    """It keeps to the constraints, and is not larger than it must be; nor is it hidden for its cost."""
    model = two_hypotheses(slope_variance=0.0, noise=0.5, other=1.3)
    model = replace(model, posterior=replace(model.posterior, misfit=np.full(2, 1e-3)))
    space = SearchSpace((Parameter("p", (1, 2, 4)), Parameter("s", (10,))), [parse("p != 8 and s < 20")])
    view = view_of({}, model=model, budget=budget, costs=lambda point: point.number("p") / 16)
    view = replace(view, space=space, done=dict.fromkeys(space, 5))
    stakes = Stakes.of(view, [Weighted(model, 1.0)], strategy.targets(view), overhead=0.0)
    found = ending.nothing(view, stakes)
    assert (
        f"worth its cost; wider ranges of the parameters may help: a run at P(p={p}, s=10) lowers"
        in found.reason
    )
    assert " expected for 1 repetition); the best run, at P(p=4, s=10), lowers" in found.reason
    full = ending.nothing(replace(view, maximum_repetitions=5), stakes)
    assert "every point has its maximum of repetitions, or was given up; wider ranges" in full.reason
    assert f"may help: a run at P(p={p}, s=10) lowers" in full.reason
    assert found.useful == full.useful == Point.of(p=p, s=10)


def test_wider_ranges_that_cost_more_than_they_teach_are_not_advised() -> None:
    model = two_hypotheses(slope_variance=0.0, noise=0.5, other=1.3)
    space = SearchSpace((Parameter("p", (1, 2, 4)), Parameter("s", (10,))))
    view = view_of({}, model=model, budget=1.0, costs=lambda point: 1.0 if point in space else 1e9)
    view = replace(view, space=space, done=dict.fromkeys(space, 10))
    stakes = Stakes.of(view, [Weighted(model, 1.0)], strategy.targets(view), overhead=0.0)
    reason = ending.nothing(view, stakes).reason
    assert reason.endswith("; no run in wider ranges, up to the evaluation point, is worth its cost either")


@pytest.mark.parametrize(
    ("values", "aim", "expected"),
    [
        ((1, 2, 4), 32, (8, 16, 32)),
        ((1, 2, 4), 1024, (32, 128, 1024)),
        ((10, 20, 30), 60, (40, 50, 60)),
        ((10, 20, 30), 35, (35,)),
        ((8, 27, 64), 216, (152, 216)),
        ((1, 2, 4), 4, ()),
        ((1, 2, 4), 3, ()),
        ((8, 4, 2), 0.5, (1, 0.5)),
        ((0, 5), 20, (10, 15, 20)),
        ((5,), 20, (20,)),
        (("a", "b"), "b", ()),
    ],
)
def test_ranges_are_continued_as_their_values_go_on(
    values: tuple[Value, ...], aim: Value, expected: tuple[Value, ...]
) -> None:
    parameter = Parameter("x", values, categorical=isinstance(aim, str))
    assert values_beyond(parameter, aim) == expected
