"""One suite over every registered strategy."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator import registry
from orchestrator.errors import ModelError
from orchestrator.models.base import Model
from orchestrator.models.pmnf.modeler import modeler
from orchestrator.strategies.base import Strategy, View
from orchestrator.strategies.information.price import ROUND_SHARE
from orchestrator.types import Measurements, Parameter, Point
from tests.strategies.views import Box, TrueModel, after, cost, everything, make_view, numbers

every_strategy = pytest.mark.parametrize("name", registry.names("strategy"))

CONSTRAINTS: list[Callable[[Point], bool]] = [
    everything,
    lambda point: sum(numbers(point)) % 3 != 0,  # holes
    lambda point: 4 <= cost(point) <= 60,  # a band
    lambda point: abs(numbers(point)[0] - numbers(point)[-1]) <= 4,  # a diagonal strip
    lambda point: False,
]


MODELS = (TrueModel("main->f0"), TrueModel("main->f1", 1.3))


@st.composite
def views(draw: st.DrawFn) -> View:
    values = st.lists(st.sampled_from([1, 2, 3, 4, 6, 8, 12, 16]), min_size=1, max_size=6, unique=True)
    count = draw(st.integers(1, 3))
    parameters = [Parameter("pst"[i], tuple(sorted(draw(values)))) for i in range(count)]
    if draw(st.booleans()):
        parameters.append(Parameter("layout", ("DGZ", "ZGD"), categorical=True))
    space = Box(tuple(parameters), draw(st.sampled_from(CONSTRAINTS)))
    points = list(space)
    maximum = draw(st.integers(1, 4))
    some = st.lists(st.sampled_from(points), max_size=12, unique=True) if points else st.just([])
    done = {point: draw(st.integers(1, maximum)) for point in draw(some)}
    plus = {p.name: p.values[0] if p.categorical else 2 * float(p.values[-1]) for p in parameters}
    view = make_view(
        space,
        done=done,
        evaluation_point=draw(st.sampled_from([None, Point.of(plus)])),
        infeasible=frozenset(draw(some)[:4]),
        budget_left=draw(st.sampled_from([0.0, 3.0, 40.0, 1000.0, float("inf")])),
        batch_size=draw(st.integers(1, 5)),
        initial_repetitions=draw(st.integers(1, maximum)),
        maximum_repetitions=maximum,
        models=draw(st.sampled_from([(), (TrueModel("main->f0"),), MODELS])),
        round=draw(st.integers(1, 3)),
        cost_is_relative=draw(st.booleans()),
    )
    return replace(view, models=fitted(view.measurements)) if draw(st.booleans()) else view


def fitted(measurements: Measurements) -> tuple[Model, ...]:
    try:
        return modeler()(measurements)
    except ModelError:
        return ()


def make(name: str) -> Strategy:
    strategy: Strategy = registry.load("strategy", name)()
    return strategy


def grid(*sizes: int) -> Box:
    names = "abcdefgh"
    return Box(tuple(Parameter(names[i], tuple(range(1, n + 1))) for i, n in enumerate(sizes)))


@every_strategy
@settings(max_examples=40, deadline=None)
@given(view=views())
def test_a_proposal_keeps_every_promise(name: str, view: View) -> None:
    choices = make(name)(view, np.random.default_rng([1, view.round]))

    points = [choice.point for choice in choices]
    assert len(points) == len(set(points))
    assert view.evaluation_point not in points
    assert not view.infeasible.intersection(points)
    assert all(point in view.space for point in points)
    for choice in choices:
        assert choice.repetitions >= 1
        assert view.done.get(choice.point, 0) + choice.repetitions <= view.maximum_repetitions
        assert any(character.isdigit() for character in choice.reason)
    costs = [choice.repetitions * view.cost(choice.point) for choice in choices]
    if view.round > 1 and len(points) > view.batch_size:
        assert name == "active" and sum(costs) - max(costs) < ROUND_SHARE * view.budget_left
    if not view.cost_is_relative:
        assert sum(costs) <= view.budget_left * (1 + 1e-9)


@every_strategy
@settings(max_examples=20, deadline=None)
@given(view=views())
def test_the_same_view_and_seed_give_the_same_proposal(name: str, view: View) -> None:
    first, second = (make(name)(view, np.random.default_rng([7, view.round])) for _ in range(2))

    assert list(first) == list(second)


@every_strategy
def test_the_evaluation_point_is_not_proposed_even_when_the_space_holds_it(name: str) -> None:
    view = make_view(grid(3, 3), evaluation_point=Point.of(a=1, b=1))
    while choices := make(name)(view, np.random.default_rng(view.round)):
        assert view.evaluation_point not in [choice.point for choice in choices]
        view = after(view, choices)


@every_strategy
@pytest.mark.parametrize("budget", [30.0, 100.0])
def test_rounds_end_with_the_budget(name: str, budget: float) -> None:
    view = make_view(grid(6, 6), evaluation_point=Point.of(a=8, b=8), budget_left=budget)
    while choices := make(name)(view, np.random.default_rng(view.round)):
        view = after(view, choices)

    assert 0 <= view.budget_left < max(cost(point) for point in view.space) * view.initial_repetitions


@every_strategy
def test_rounds_end_when_everything_is_measured(name: str) -> None:
    view = make_view(grid(5, 4), evaluation_point=Point.of(a=8, b=8), maximum_repetitions=2)
    runs = 0
    while choices := make(name)(view, np.random.default_rng(view.round)):
        runs += sum(choice.repetitions for choice in choices)
        view = after(view, choices)

    assert 0 < runs <= 2 * 20


@pytest.mark.parametrize("name", ["full", "cpf", "grid"])
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_exhaustive_strategies_cover_the_space(name: str, constraint: Callable[[Point], bool]) -> None:
    space = replace(grid(6, 5), allowed=constraint)
    view = make_view(space)
    while choices := make(name)(view, np.random.default_rng(view.round)):
        view = after(view, choices)

    wanted = view.maximum_repetitions if name == "grid" else view.initial_repetitions
    assert view.done.keys() == set(space)
    assert all(repetitions >= wanted for repetitions in view.done.values())


@every_strategy
def test_a_point_that_fails_is_not_proposed_again(name: str) -> None:
    view = make_view(grid(5, 5), evaluation_point=Point.of(a=8, b=8))
    failed: set[Point] = set()
    while choices := make(name)(view, np.random.default_rng(view.round)):
        assert not failed.intersection(choice.point for choice in choices)
        view = after(view, choices)
        failed.add(choices[0].point)
        view = replace(view, infeasible=frozenset(failed))


@pytest.mark.slow
@every_strategy
def test_a_large_space_is_walked_not_stored(name: str) -> None:
    space = grid(50, 50, 10)
    view = make_view(space, evaluation_point=Point.of(a=200, b=200, c=20), budget_left=1e5)
    view = after(view, make(name)(view, np.random.default_rng(0)))
    tracemalloc.start()
    try:
        choices = make(name)(view, np.random.default_rng(1))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert choices
    assert peak < 5.5e6  # a list of all its points takes 6.9e6 beside what the strategy needs
