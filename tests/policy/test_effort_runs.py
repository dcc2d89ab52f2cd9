"""Where effort is counted next: until counts are predicted, cheapest points first, within a budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from orchestrator import registry
from orchestrator.control import settle
from orchestrator.journal import events
from orchestrator.journal.replay import apply
from orchestrator.journal.state import State
from orchestrator.models.effort import CountCheck
from orchestrator.models.swc.count_check import check_counts
from orchestrator.policy import effort_runs
from orchestrator.strategies.base import Choice
from orchestrator.strategies.candidates import initial_runs
from orchestrator.types import Attempt, Measurement, Measurements, Parameter, Point, Run, Value
from tests.journal.attempts import attempt_finished, attempt_intended
from tests.strategies.views import Box, make_view

SPACE = (Parameter("p", (2, 4, 8, 16, 32)), Parameter("n", (10, 20, 30, 40, 50)))
BLANK = State()
OPEN: effort_runs.EffortChecks = {(): CountCheck(False, "counts are not predicted")}
SETTLED: effort_runs.EffortChecks = {(): CountCheck(True, "counts are predicted")}
MODELER = registry.load("model", "swc")()


def at(p: Value, n: Value) -> Point:
    return Point.of(p=p, n=n)


def costs(points: Sequence[Point]) -> list[float]:
    return [point.number("p") * point.number("n") for point in points]


def rule(always: bool = False, ranks: Callable[[Point], bool] = lambda point: True) -> effort_runs.Rules:
    return effort_runs.Rules(repetitions=1, always=always, parameters=SPACE, parallel=ranks)


def measured(state: State, run: Run, seconds: float) -> State:
    state = apply(state, attempt_intended(Attempt(run)), 1.0)
    samples = {"time": {"main": 1.0}} if run.kind == "time" else {"basic_blocks": {"main": 1.0}}
    return apply(state, attempt_finished(Attempt(run), seconds, samples=samples), 2.0)


def after(
    choices: list[Choice], plan: effort_runs.Plan, state: State = BLANK, slowdown: float = 1.0
) -> State:
    """Return the state after a round in which all went well."""
    state = apply(state, settle.round_of(state.round + 1, choices, state, plan), 1.0)
    for run in state.queue:
        state = measured(state, run, costs([run.point])[0] * (slowdown if run.kind == "effort" else 1.0))
    return state


def chosen(*points: Point) -> list[Choice]:
    return [Choice(point, 1, "why") for point in points]


ALL = chosen(*(at(p, n) for p in SPACE[0].values for n in SPACE[1].values))


def test_the_first_round_counts_the_cheapest_points_that_a_model_needs() -> None:
    plan = effort_runs.plan(rule(), ALL, State(), {}, costs)
    lines = {at(2, n) for n in (10, 20, 30, 40)} | {at(p, 10) for p in (2, 4, 8, 16)}
    assert set(plan.wanted) - lines == {at(4, 20), at(4, 30)} and lines <= set(plan.wanted)
    assert effort_runs.plan(rule(always=True), ALL, State(), {}, costs).wanted == {c.point: 1 for c in ALL}


def test_one_cheap_point_with_several_ranks_is_counted_twice() -> None:
    plan = effort_runs.plan(rule(ranks=lambda point: point.number("p") > 2), ALL, State(), {}, costs)
    assert [point for point, number in plan.wanted.items() if number == 2] == [at(4, 10)]
    later = effort_runs.plan(rule(), chosen(at(32, 50)), after(ALL, plan), OPEN, costs)
    assert set(later.wanted.values()) == {1}


def test_nothing_is_counted_once_counts_are_predicted_and_the_round_says_why() -> None:
    state = after(ALL[:4], effort_runs.plan(rule(), ALL[:4], State(), {}, costs))
    plan = effort_runs.plan(rule(), chosen(at(32, 50)), state, SETTLED, costs)
    assert not plan.wanted and plan.note == "no further effort runs: counts are predicted"
    proposed = settle.round_of(2, chosen(at(32, 50)), state, plan)
    assert [run.kind for run in proposed.runs] == ["time"] and apply(state, proposed, 3.0).note == plan.note
    assert not effort_runs.plan(rule(), [], state, OPEN, costs).wanted  # the campaign is over


def test_points_timed_before_are_counted_before_more_expensive_new_ones() -> None:
    first = chosen(at(2, 10), at(4, 20))
    state = after(first, effort_runs.Plan({at(2, 10): 1}, "why"))
    plan = effort_runs.plan(rule(), chosen(at(32, 50)), state, OPEN, costs)
    assert [point for point, number in plan.wanted.items() if number == 1] == [at(4, 20)]
    runs = settle.round_of(2, chosen(at(32, 50)), state, plan).runs
    assert Run(at(4, 20), "effort", 1) in runs and Run(at(4, 20), "time", 2) not in runs


def test_counting_never_costs_more_than_timing() -> None:
    """A slow effort build is learnt from the runs that are finished."""
    state = after(chosen(at(2, 10)), effort_runs.Plan({at(2, 10): 2}, "why"), slowdown=3.0)
    assert effort_runs.slowdown(state) == 3.0 and effort_runs.slowdown(State()) == 2.0
    # 20 s timed and 120 s counted: 2 * 20 s more counting wait until there is as much timing.
    new = chosen(at(2, 20))
    plan = effort_runs.plan(rule(), new, state, OPEN, costs)
    assert not plan.wanted and "more effort runs would cost more than the timed runs" in plan.note
    expensive = effort_runs.plan(rule(), chosen(at(2, 20), at(32, 50)), state, OPEN, costs)
    assert list(expensive.wanted) == [at(2, 20)]


def test_strategies_know_what_a_first_run_brings_along() -> None:
    price = effort_runs.first_costs(rule(), State(), OPEN, costs)
    assert list(price([at(4, 20)])) == [160.0]
    assert list(effort_runs.first_costs(rule(), State(), SETTLED, costs)([at(4, 20)])) == [0.0]
    poor = after(chosen(at(2, 10)), effort_runs.Plan({at(2, 10): 1}, "why"), slowdown=3.0)
    assert list(effort_runs.first_costs(rule(), poor, OPEN, costs)([at(4, 20)])) == [
        0.0
    ]  # it would not be counted
    view = make_view(Box(SPACE), done={at(2, 10): 1}, initial_repetitions=3)
    view = replace(view, costs=costs, first=price)
    assert initial_runs(view, at(4, 20)).seconds == 3 * 80 + 160
    assert initial_runs(view, at(2, 10)).seconds == 2 * 20


def known(count: Callable[[float, float], float], points: list[Point], share: float = 1.0) -> Measurements:
    blocks = {p: (count(p.number("p"), p.number("n")),) for p in points}
    items = [
        Measurement("main", "time", dict.fromkeys(points, (share,))),
        Measurement("rest", "time", dict.fromkeys(points, (1.0 - share,))),
        Measurement("main", "basic_blocks", blocks),
    ]
    return Measurements(("p", "n"), tuple(items))


STAR = [*(at(2, n) for n in (10, 20, 30, 40)), *(at(p, 10) for p in (4, 8, 16)), at(4, 20), at(4, 30)]


def test_effort_models_are_settled_when_they_predict_the_furthest_counts() -> None:
    check = check_counts(known(lambda p, n: 7 * n**2 * p, STAR), SPACE, MODELER)[()]
    assert check.settled
    assert check.reason == "counts are predicted within 0.01 % from those at cheaper points", "no rounding"


@pytest.mark.parametrize(
    "count",
    [
        lambda p, n: 7 * n**2 * p * (1.3 if n == 40 else 1),
        lambda p, n: 7 * n**2 * p * (1.3 if p == 16 else 1),
        lambda p, n: 7 * n**2 * p * (1.3 if (p, n) == (4, 30) else 1),
    ],
)
def test_what_is_not_predicted_leaves_them_unsettled(count: Callable[[float, float], float]) -> None:
    check = check_counts(known(count, STAR), SPACE, MODELER)[()]
    assert not check.settled and "% only, mostly because of main" in check.reason
    assert check_counts(known(count, STAR, share=0.01), SPACE, MODELER)[()].settled  # it takes no time


def test_too_little_counted_leaves_them_unsettled() -> None:
    flat = [at(2, n) for n in (10, 20, 30, 40)]
    check = check_counts(known(lambda p, n: n, flat), SPACE, MODELER)[()]
    assert not check.settled and check.reason == "only 1 of 5 values of p were counted"
    cross = [point for point in STAR if point["p"] == 2 or point["n"] == 10]
    check = check_counts(known(lambda p, n: n, cross), SPACE, MODELER)[()]
    assert not check.settled and "more than one parameter" in check.reason


def test_counts_that_are_not_reproducible_do_not_count() -> None:
    base = known(lambda p, n: 5 * n, STAR)
    wild = {p: ((100.0 * k, 150.0 * k) if k == 1 else (100.0 * k,)) for k, p in enumerate(STAR, start=1)}
    polling = Measurement("rest", "basic_blocks", wild)
    times = Measurement("rest", "time", dict.fromkeys(STAR, (5.0,)))
    items = (*(item for item in base.items if item.callpath == "main"), times, polling)
    assert check_counts(Measurements(("p", "n"), items), SPACE, MODELER)[()].settled


def test_a_point_whose_count_was_discarded_is_counted_again_as_a_further_run() -> None:
    points = ALL[:4]
    state = after(points, effort_runs.plan(rule(), points, State(), {}, costs))
    run = next(run for run in state.runs if run.kind == "effort" and run.point == at(2, 40))
    choices = [Choice(run.point, 5, "timing may cost as much")]
    assert run.point not in effort_runs.plan(rule(), choices, state, OPEN, costs).wanted
    gone = apply(state, events.MeasurementsDiscarded((run,), "wrong input"), 3.0)
    plan = effort_runs.plan(rule(), choices, gone, OPEN, costs)
    assert run.point in plan.wanted
    proposed = settle.round_of(2, choices, gone, plan).runs
    assert replace(run, repetition=2) in proposed and run not in proposed
