from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from orchestrator.strategies import cpf, full, grid, random
from orchestrator.strategies.candidates import nothing_left
from orchestrator.types import Parameter, Point
from tests.strategies.views import Box, after, cost, make_view, rng

SPACE = Box((Parameter("p", tuple(range(1, 8))), Parameter("s", tuple(range(1, 8)))))


def test_cpf_goes_on_with_the_cheapest_points_and_says_what_they_cost() -> None:
    view = make_view(SPACE, cost=lambda point: 36.0 * cost(point))
    view = after(view, cpf.strategy()(view, rng()))
    choices = cpf.strategy()(view, rng())

    left = sorted((point for point in SPACE if point not in view.done), key=view.cost)
    assert [choice.point for choice in choices] == left[:3]
    assert [choice.repetitions for choice in choices] == [2, 2, 2]
    price = 2 * 36.0 * cost(left[0]) / 3600
    assert choices[0].reason == (
        f"cheapest point not measured yet: {price:.3g} core-hours expected for 2 repetitions"
    )


def test_full_holds_the_whole_matrix_in_round_one_in_the_order_of_cost() -> None:
    choices = full.strategy()(make_view(SPACE), rng())

    assert {choice.point for choice in choices} == set(SPACE)
    assert [cost(c.point) for c in choices] == sorted(cost(c.point) for c in choices)


def test_full_bounds_its_first_round() -> None:
    view = make_view(SPACE)
    choices = full.strategy(first_round=20)(view, rng())

    assert len(choices) == 20
    assert len(full.strategy()(after(view, choices), rng())) == view.batch_size


def test_grid_sweeps_in_the_order_of_the_space() -> None:
    measured = dict.fromkeys(list(SPACE)[:47], 1)
    view = make_view(SPACE, done=measured, round=2)
    first = grid.strategy()(view, rng())

    assert [choice.point for choice in first] == [*list(SPACE)[47:], next(iter(SPACE))]
    assert [choice.repetitions for choice in first] == [1, 1, 1]


def test_random_draws_every_open_point_equally_often() -> None:
    space = Box((Parameter("p", (1, 2, 3, 4)),))
    full_point = Point.of(p=2)
    view = make_view(space, done={full_point: 4}, round=2, batch_size=2)
    draw = random.strategy()
    drawn = Counter(choice.point for seed in range(600) for choice in draw(view, np.random.default_rng(seed)))

    assert full_point not in drawn
    assert all(340 < drawn[Point.of(p=p)] < 460 for p in (1, 3, 4))


def test_random_repeats_a_point_up_to_the_maximum() -> None:
    space = Box((Parameter("p", (1, 2)),))
    view = make_view(space, initial_repetitions=1, maximum_repetitions=3)
    while choices := random.strategy()(view, np.random.default_rng(view.round)):
        view = after(view, choices)

    assert set(view.done.values()) == {3}


def test_a_strategy_that_finds_no_run_has_a_reason() -> None:
    space = Box((Parameter("p", (1, 2)),))
    done = dict.fromkeys(space, 1)
    view = make_view(space, done=done, round=2, maximum_repetitions=2)
    assert nothing_left(view).reason == "the strategy has nothing left to measure"
    assert nothing_left(view).for_want_of_budget
    poor = nothing_left(replace(view, budget_left=0.36))
    left, price = "0.0001 core-hours", cost(Point.of(p=1)) / 3600
    assert poor.reason == (
        f"no run fits the {left} that are left; at P(p=1): {price:.3g} core-hours expected for 1 repetition"
    )
    full = nothing_left(replace(view, done=dict.fromkeys(space, 2)))
    allow = "further values of parameters or measure.repetitions.maximum allow more"
    assert full.reason == f"every point has 2 runs; {allow}" and not full.for_want_of_budget
    broken = replace(view, done={Point.of(p=1): 2}, infeasible=frozenset({Point.of(p=2)}))
    assert nothing_left(broken).reason == f"every point has 2 runs or fails; {allow}"
