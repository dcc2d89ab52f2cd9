"""Points drawn from spaces of any size, and the strategies that draw them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pytest
from numpy.typing import NDArray

from orchestrator.errors import CampaignError
from orchestrator.models.belief import LogBelief
from orchestrator.strategies import active, sample
from orchestrator.strategies.base import View
from orchestrator.strategies.drawing import Law, is_wide
from orchestrator.types import Measurement, Measurements, Parameter, Point, Value
from tests.strategies.views import Box, TrueModel, after, cost, make_view

WIDE = Parameter("n", tuple(range(1, 1001)))
LAYOUT = Parameter("layout", ("DGZ", "ZGD", "GZD"), categorical=True)
LEVEL = Parameter("level", (0, 1, 2, 3))


@dataclass(frozen=True)
class Vast:
    """A space of 10^9 points that fails when somebody walks it."""

    parameters: tuple[Parameter, ...] = tuple(Parameter(name, tuple(range(1, 1001))) for name in "abc")
    divisor: int = 1

    def __iter__(self) -> Iterator[Point]:
        raise AssertionError("a space of 10^9 points was walked")

    def within(self, fixed: Mapping[str, Value]) -> Iterator[Point]:
        raise AssertionError("a space of 10^9 points was walked")

    def __contains__(self, point: object) -> bool:
        return isinstance(point, Point) and point.number("a") % self.divisor == 0


def vast_view(divisor: int = 1, **options: object) -> View:
    view = make_view(Box((LEVEL,)), batch_size=20, initial_repetitions=1, maximum_repetitions=1)
    return replace(view, space=Vast(divisor=divisor), **options)  # type: ignore[arg-type]


def test_wide_positive_ranges_are_drawn_log_uniformly_and_others_uniformly() -> None:
    law = Law.of([WIDE, LAYOUT, LEVEL], (), ())
    drawn = list(islice(law.points(Box((WIDE, LAYOUT, LEVEL)), np.random.default_rng(1)), 500))

    assert law.logarithmic == ("n",)
    decades = Counter(len(str(point["n"])) for point in drawn)
    assert decades[2] > 0.25 * len(drawn) and decades[1] > 0.15 * len(drawn)  # uniform: 9 % and 1 %
    for name in ("layout", "level"):
        shares = Counter(point[name] for point in drawn)
        assert min(shares.values()) > 0.7 * len(drawn) / len(shares)


def test_the_user_says_what_is_uniform_and_what_log_uniform() -> None:
    parameters = [WIDE, Parameter("ncrit", (32, 64, 128, 256))]
    assert Law.of(parameters, (), ()).logarithmic == ("n",)
    assert Law.of(parameters, ("n",), ("ncrit",)).logarithmic == ("ncrit",)
    drawn = islice(Law.of([WIDE], ("n",), ()).points(Box((WIDE,)), np.random.default_rng(1)), 100)
    assert sum(point.number("n") > 500 for point in drawn) > 30


@pytest.mark.parametrize(
    ("uniform", "log", "message"),
    [
        (("m",), (), "strategy.uniform: unknown parameter 'm'"),
        ((), ("lvel",), "strategy.log: unknown parameter 'lvel'; did you mean 'level'"),
        ((), ("level",), "level has values that are no positive numbers"),
        ((), ("layout",), "layout has values that are no positive numbers"),
        (("n",), ("n",), "n is under strategy.uniform, too"),
    ],
)
def test_mistakes_in_the_options_are_named(uniform: Sequence[str], log: Sequence[str], message: str) -> None:
    with pytest.raises(CampaignError, match=message):
        Law.of([WIDE, LAYOUT, LEVEL], uniform, log)


def test_ranges_of_less_than_a_decade_and_with_zero_are_not_wide() -> None:
    assert is_wide(Parameter("n", (8, 128)))
    assert not is_wide(Parameter("dset", (8, 64)))
    assert not is_wide(Parameter("legendre", (0, 1, 50)))


def test_powers_are_equally_likely() -> None:
    powers = Parameter("p", (1, 2, 4, 8, 16, 32, 64))
    [weights] = Law.of([powers], (), ()).weights
    assert weights == pytest.approx(np.full(7, 1 / 7))


def test_every_point_of_a_small_space_is_drawn_once() -> None:
    space = Box((LAYOUT, LEVEL), lambda point: point["level"] != 2)
    drawn = list(Law.of(space.parameters, (), ()).points(space, np.random.default_rng(1)))
    assert sorted(drawn, key=str) == sorted(space, key=str)


@pytest.mark.parametrize("name", ["sample", "active"])
@pytest.mark.parametrize("divisor", [1, 100])
def test_a_space_of_a_billion_points_is_never_walked(name: str, divisor: int) -> None:
    strategy = {"sample": sample.strategy, "active": active.strategy}[name](start=30)  # type: ignore[operator]
    view = vast_view(divisor)
    space = view.space
    for _ in range(3):
        choices = strategy(view, np.random.default_rng(view.round))
        assert len(choices) == (30 if view.round == 1 else 20)
        assert all(choice.point in space for choice in choices)
        view = replace(after(view, choices), models=(TrueModel("main->f0"),))


def test_a_space_without_points_ends_the_draws() -> None:
    assert list(sample.strategy()(vast_view(10**6), np.random.default_rng(1))) == []


def with_runs(view: View, values: Mapping[Point, tuple[float, ...]]) -> View:
    known = Measurements(tuple(p.name for p in view.space.parameters), (Measurement("main", "time", values),))
    return replace(view, measurements=known, done={p: len(runs) for p, runs in values.items()}, round=2)


def test_points_are_repeated_until_their_times_hardly_vary() -> None:
    points = [Point.of(level=level) for level in range(4)]
    view = make_view(Box((LEVEL,)), batch_size=4, maximum_repetitions=9, initial_repetitions=1)
    values = {
        points[0]: (1.0, 1.001),  # settled
        points[1]: (1.0, 1.2, 1.1, 1.0),  # half of four runs more
        points[2]: (1.0,),  # one run says nothing
    }
    choices = sample.strategy()(with_runs(view, values), np.random.default_rng(1))

    again = {choice.point: choice.repetitions for choice in choices}
    assert again == {points[1]: 2, points[2]: 1, points[3]: 1}
    assert "8.91 % is the coefficient of variation, 1 % wanted" in choices[0].reason


def test_repetitions_end_at_the_most_runs() -> None:
    points = [Point.of(level=level) for level in range(4)]
    view = make_view(Box((LEVEL,)), batch_size=4, maximum_repetitions=9, initial_repetitions=1)
    values = dict.fromkeys(points, (1.0, 2.0, 3.0))
    assert list(sample.strategy(runs=3)(with_runs(view, values), np.random.default_rng(1))) == []
    assert list(sample.strategy(variation=0.6)(with_runs(view, values), np.random.default_rng(1))) == []
    choices = sample.strategy(runs=4)(with_runs(view, values), np.random.default_rng(1))
    assert [choice.repetitions for choice in choices] == [1, 1, 1, 1]


@dataclass(frozen=True)
class Doubtful(TrueModel):
    """Refits that disagree where ``n`` is above 500: the error of a local field."""

    def belief(self, points: Sequence[Point]) -> LogBelief:
        value = np.log([cost(point) for point in points])
        off = np.array([0.5 if point.number("n") > 500 else 0.001 for point in points])
        shape = (2, len(points))
        return LogBelief(
            weights=np.array([0.5, 0.5]),
            mean=np.stack([value + off, value - off]),
            factor=np.zeros((2, 0, len(points))),
            rough=np.zeros(shape),
            noise=0.01,
        )


@dataclass(frozen=True)
class Wide(TrueModel):
    """A model with intervals only, wide where ``n`` is above 500."""

    def predict(self, points: Sequence[Point]):  # type: ignore[no-untyped-def]
        found = super().predict(points)
        width = np.array([3.0 if point.number("n") > 500 else 1.001 for point in points])
        return replace(found, low=found.value / width, high=found.value * width)


def chosen(view: View) -> NDArray[np.float64]:
    choices = active.strategy(start=2)(view, np.random.default_rng(1))
    return np.array([choice.point.number("n") for choice in choices])


@pytest.mark.parametrize("model", [Doubtful("main->f0"), Wide("main->f0")])
def test_active_measures_where_the_models_are_unsure(model: TrueModel) -> None:
    space = Box((WIDE, LEVEL))
    done = {Point.of(n=n, level=level): 1 for n in (10, 990) for level in (0, 3)}
    view = make_view(
        space, done=done, models=(model,), batch_size=10, maximum_repetitions=1, round=2, cost=lambda p: 1.0
    )
    assert (chosen(view) > 500).mean() > 0.8


def wide_view() -> View:
    """Two measured points of many, where the models are unsure; each run costs 1."""
    return make_view(
        Box((WIDE, LEVEL)),
        done={Point.of(n=10, level=0): 1, Point.of(n=990, level=3): 1},
        models=(Wide("main->f0"),),
        maximum_repetitions=1,
        round=2,
        cost=lambda p: 1.0,
    )


def test_active_prefers_cheap_runs_that_teach_as_much() -> None:
    view = replace(wide_view(), batch_size=10, budget_left=1000.0)
    priced = replace(view, costs=lambda points: [100.0 if p["level"] == 3 else 1.0 for p in points])
    choices = active.strategy(start=2)(priced, np.random.default_rng(1))
    assert sum(choice.point["level"] == 3 for choice in choices) <= 2


def test_a_batch_is_chosen_jointly() -> None:
    """A run lowers what its neighbours would teach, so a batch is spread over what is not known."""
    view = make_view(
        Box((Parameter("n", tuple(range(501, 1501))), Parameter("k", tuple(range(1, 101))))),
        done={Point.of(n=501, k=1): 1, Point.of(n=1500, k=100): 1},
        models=(Wide("main->f0"),),
        batch_size=10,
        maximum_repetitions=1,
        round=2,
        cost=lambda p: 1.0,
    )
    choices = active.strategy(start=2)(view, np.random.default_rng(1))
    spread = np.ptp([np.log(choice.point.number("k")) for choice in choices])
    assert spread > 0.5 * np.log(100)


def test_a_round_is_larger_where_its_runs_are_nearly_free() -> None:
    view = replace(wide_view(), batch_size=4)
    sizes = [
        len(active.strategy(start=2)(replace(view, budget_left=budget), np.random.default_rng(1)))
        for budget in (100.0, 1000.0, 1e6, math.inf)
    ]
    assert sizes == [4, 10, 32, 4]
    relative = replace(view, budget_left=1e6, cost_is_relative=True)
    assert len(active.strategy(start=2)(relative, np.random.default_rng(1))) == 4


def test_active_measures_categories_without_a_model() -> None:
    space = Box((WIDE, LAYOUT))
    done = {Point.of(n=n, layout="DGZ"): 1 for n in (10, 990)}
    model = TrueModel("main->f0", category=(("layout", "DGZ"),))
    view = make_view(
        space, done=done, models=(model,), batch_size=9, maximum_repetitions=1, round=2, cost=lambda p: 1.0
    )
    choices = active.strategy(start=2)(view, np.random.default_rng(1))
    others = [choice for choice in choices if choice.point["layout"] != "DGZ"]
    assert len(others) >= 5
    assert any("no model is for its categories yet" in choice.reason for choice in others)


def test_active_draws_until_it_has_its_first_points() -> None:
    view = vast_view()
    first = active.strategy()(view, np.random.default_rng(1))
    assert len(first) == 8 * 3
    few = replace(after(view, first[:5]), models=(TrueModel("main->f0"),))
    again = active.strategy()(few, np.random.default_rng(2))
    assert len(again) == 20 and all("drawn at random" in choice.reason for choice in again)
