"""Time limits from models; nodes that fail or are slow; the rate of failures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.campaign import loader
from orchestrator.control import assembly
from orchestrator.journal import events, nodes
from orchestrator.journal.replay import apply
from orchestrator.journal.state import RunState, State, StopReason
from orchestrator.policy import decide
from orchestrator.policy.actions import Action
from orchestrator.policy.limits import (
    MORE_MEMORY,
    RAISE,
    SHORTEST,
    WIDEST,
    likely_longest,
    limit_for,
    memory_for,
)
from orchestrator.policy.rules import Policy
from orchestrator.report import status
from orchestrator.types import Attempt, FailureClass, Measurements, Point, Run
from tests.journal.attempts import attempt_finished, attempt_intended
from tests.policy.known import estimates

POINT = Point.of(p=1)

# Seconds that an attempt took, its host, and what else is known of its end.
Outcome = tuple[float, str, Mapping[str, Any]]


@given(
    st.floats(1, 1e5),
    st.one_of(st.none(), st.floats(1, 10)),
    st.one_of(st.none(), st.floats(0, 1e6), st.just(math.inf), st.just(math.nan)),
    st.floats(0, 1e5),
)
def test_a_limit_never_exceeds_the_stated_one(
    stated: float, margin: float | None, longest: float | None, last: float
) -> None:
    for failures in ((), (FailureClass.TIMEOUT,)):
        run = RunState(failures=failures, limit=last)
        limit = limit_for(stated=stated, derived=None, margin=margin, longest=longest, run=run)
        assert 0 < limit <= stated
        assert margin is not None or limit == stated


FRESH = RunState()
TIMED_OUT = RunState(failures=(FailureClass.TIMEOUT,), limit=500.0)


def limit(longest: float | None, run: RunState = FRESH, stated: float | None = 600.0) -> float:
    derived = 600.0 if stated is None else None
    return limit_for(stated=stated, derived=derived, margin=2.0, longest=longest, run=run)


def ended(state: State, attempt: Attempt, seconds: float, failure: FailureClass | None = None) -> State:
    """The state after an attempt that took some seconds, which were its limit, too."""
    begin = events.AttemptIntended(attempt=attempt, name=attempt.id, cores=1, limit=seconds, reserved=seconds)
    end = events.AttemptFinished(attempt=attempt, elapsed=seconds, cost=seconds, failure=failure)
    return apply(apply(state, begin, 0.0), end, 1.0)


def test_a_repetition_gets_the_time_that_all_earlier_ones_took_whatever_models_say() -> None:
    runs = [Run(POINT, "time", k) for k in (1, 2, 3)]
    state = apply(State(), events.RoundProposed(1, tuple(runs), ("",) * 3), 0.0)
    known = estimates(600.0, longest=2.0, margin=2.0)
    assert known.reservation(state, runs[0]).limit == SHORTEST
    state = ended(state, Attempt(runs[0]), 90.0)
    assert known.reservation(state, runs[1]).limit == 180
    assert known.least(state, runs[1]).limit == 90
    state = ended(state, Attempt(runs[1]), 25.0)  # the first one was disturbed
    assert known.reservation(state, runs[2]).limit == 50
    assert known.fitting(state, runs[2], 24.0) is None


@pytest.mark.parametrize("validation", [False, True])
@pytest.mark.parametrize(
    ("changed", "first"),
    [({}, 40.0), ({"executor": {"name": "slurm"}}, 10.0), ({"executable": "/new"}, 10.0)],
)
def test_a_run_that_may_be_tried_again_does_not_begin_with_limits_that_it_reached(
    changed: Mapping[str, Any], first: float, validation: bool
) -> None:
    run = Run(POINT)
    begun = events.ValidationProposed(run) if validation else events.RoundProposed(1, (run,), ("",))
    state = apply(State(campaign={"executor": {"name": "local"}, "executable": "/old"}), begun, 0.0)
    for number, seconds in enumerate((10.0, 20.0), start=1):
        attempt = Attempt(run, number)
        state = ended(state, attempt, seconds, FailureClass.TIMEOUT)
    assert limit(0.5, state.runs[run], stated=None) == 40
    state = apply(state, events.RunGivenUp(run, "late"), 2.0)
    state = apply(state, events.CampaignChanged({**state.campaign, **changed}, anew=True), 3.0)
    state = apply(state, begun, 4.0)
    assert limit(0.5, state.runs[run], stated=None) == first
    assert limit(0.5, state.runs[run], stated=30.0) == min(first, 30)
    assert state.runs[run].timed_out == (not changed)


def test_a_limit_follows_the_model_and_rises_after_a_timeout() -> None:
    assert limit(50.0) == 100
    assert limit(0.01) == SHORTEST
    assert limit(0.01, stated=3.0) == 3
    assert limit(None) == limit(math.inf) == 600
    assert limit(50.0, TIMED_OUT._replace(limit=100.0)) == RAISE * 100
    assert limit(50.0, TIMED_OUT) == 600


def test_a_limit_derived_from_the_budget_does_not_bind_what_is_known_to_be_longer() -> None:
    assert limit(None, stated=None) == 600
    assert limit(1000.0, stated=None) == 2000
    assert limit(50.0, TIMED_OUT, stated=None) == RAISE * 500
    equal = limit_for(stated=None, derived=600.0, margin=None, longest=50.0, run=TIMED_OUT)
    assert equal == RAISE * 500, "also where all limits are equal"


def test_an_interval_of_a_model_that_knows_nothing_makes_no_limit_of_days() -> None:
    assert likely_longest(10.0, 12.0) == 12
    assert likely_longest(10.0, 1e6) == WIDEST * 10


def after(outcomes: Sequence[Outcome], apart: float = 0.0) -> State:
    """Return the state after attempts that took so long on that host, and ended so many seconds apart."""
    now = State(id="x")
    runs = tuple(Run(POINT, "time", k) for k in range(1, len(outcomes) + 1))
    now = apply(now, events.RoundProposed(1, runs, tuple("" for _ in runs)), 0.0)
    for number, (run, (elapsed, host, more)) in enumerate(zip(runs, outcomes, strict=True)):
        one = Attempt(run)
        begun = number * apart
        now = apply(now, attempt_intended(one, 100.0, name=one.id), begun)
        done = attempt_finished(one, elapsed, host=host)
        now = apply(now, replace(done, **more), begun)
    return now


def test_a_node_that_is_slow_twice_is_excluded() -> None:
    good: list[Outcome] = [(10.0, "n1", {}), (10.2, "n2", {})]
    once = after([*good, (30.0, "bad", {})])
    assert list(once.marks) == ["bad"] and "30 s, elsewhere 10.1 s" in once.marks["bad"][0]
    assert nodes.excluded(once.marks) == ()
    assert nodes.excluded(after([*good, (30.0, "bad", {}), (31.0, "bad", {})]).marks) == ("bad",)


def test_a_node_is_not_called_slow_without_comparison() -> None:
    assert not after([(10.0, "n1", {}), (30.0, "n2", {})]).marks
    assert not after([(0.1, "n1", {}), (0.1, "n2", {}), (0.9, "n3", {})]).marks  # less than a second more
    assert not after([(10.0, "n1", {}), (10.0, "n1", {}), (30.0, "n1", {})]).marks  # on the same node
    assert not after([(10.0, "n1", {}), (10.0, "n2", {}), (30.0, "n3", {"nodes": 2})]).marks


def test_a_node_that_fails_twice_is_excluded() -> None:
    failed = {"failure": FailureClass.INFRASTRUCTURE, "reason": "Slurm: NODE_FAIL", "blamed": ("n7",)}
    assert nodes.excluded(after([(1.0, "", failed)]).marks) == ()
    at_once = after([(1.0, "", failed)] * 2)
    assert len(at_once.marks["n7"]) == 1, "one failure ended both"
    assert nodes.excluded(after([(1.0, "", failed)] * 2, apart=nodes.SAME + 1).marks) == ("n7",)


@pytest.mark.parametrize(("failing", "rule"), [(14, None), (15, "failure_rate")])
def test_a_campaign_stops_when_most_attempts_fail(failing: int, rule: str | None) -> None:
    failed = {"failure": FailureClass.APPLICATION, "reason": "exit code 1"}
    now = after([(1.0, "n1", failed)] * failing + [(1.0, "n1", {})] * (20 - failing))
    policy = Policy(budget=1e6, patience=3, failures=99, max_pending=1, retries={}, failure_rate=0.75)
    [first, *_] = decide.next_actions(now, policy, 0.0, estimates())
    assert (first.rule if isinstance(first, events.StopRuleReached) else None) == rule


def test_a_charge_that_accounting_confirms_later_replaces_the_estimate() -> None:
    [one] = [Attempt(Run(POINT))]
    now = after([(5.0, "n1", {"estimated": True, "cost": 100.0})])
    assert now.spent == 100 and set(now.unconfirmed) == {one}
    now = apply(now, events.AttemptCharged(one, 7.0, 7.0), 0.0)
    assert now.spent == 7 and now.runs[one.run].cost == 7 and not now.unconfirmed
    with pytest.raises(ValueError, match="charged again"):
        apply(now, events.AttemptCharged(one, 7.0, 7.0), 0.0)


def test_the_end_waits_for_charges_but_not_for_ever() -> None:
    now = after([(5.0, "n1", {"estimated": True, "cost": 100.0})])
    now = now._replace(rounds_completed=1, stopping=StopReason("exhausted", "over"))
    policy = Policy(budget=1e6, patience=3, failures=9, max_pending=1, retries={})

    def actions(later: float) -> list[Action]:
        return decide.next_actions(now, policy, later, estimates())

    assert actions(decide.CONFIRMATION - 1) == []
    assert actions(decide.CONFIRMATION + 1) == [events.CampaignStopped("exhausted", "over")]


def lacking(memory: int, measured: bool, campaign: Mapping[str, Any]) -> State:
    """Return the state after a run failed so often for want of memory, and maybe was measured then."""
    run = Run(POINT)
    state = apply(
        State(campaign=campaign), events.RoundProposed(1, (run, Run(POINT, "time", 2)), ("", "")), 0.0
    )
    for number in range(1, memory + 1 + measured):
        attempt, fails = Attempt(run, number), number <= memory
        state = apply(state, attempt_intended(attempt, 9.0, memory=memory_for(state, run)), 0.0)
        failure = FailureClass.MEMORY if fails else None
        state = apply(state, attempt_finished(attempt, failure=failure), 0.0)
    return state


def test_a_run_without_enough_memory_asks_for_more_each_time() -> None:
    assert memory_for(lacking(0, False, {}), Run(POINT)) == 1
    assert memory_for(lacking(2, False, {}), Run(POINT)) == MORE_MEMORY**2
    assert memory_for(lacking(2, False, {}), Run(POINT, "time", 2)) == 1  # what would suffice is not known


def test_repetitions_ask_for_the_memory_with_which_the_first_one_was_measured() -> None:
    """Else each of them fails as often as that one did."""
    stated = {"executor": {"name": "slurm", "sbatch": {"mem": "100M"}}, "stop": {}}
    state = lacking(2, True, stated)
    assert memory_for(state, Run(POINT, "time", 2)) == MORE_MEMORY**2
    assert memory_for(lacking(0, True, stated), Run(POINT, "time", 2)) == 1
    same = apply(state, events.CampaignChanged(stated, False, False), 0.0)
    assert memory_for(same, Run(POINT, "time", 2)) == MORE_MEMORY**2
    more = {**stated, "executor": {"name": "slurm", "sbatch": {"mem": "300M"}}}
    assert (
        memory_for(apply(state, events.CampaignChanged(more, False, False), 0.0), Run(POINT, "time", 2)) == 1
    )


def test_larger_runs_ask_for_the_memory_that_smaller_ones_took() -> None:
    """Else each of them fails as often as the first one did."""
    small, state = Point.of(p=2, n=8, solver="cg"), State(campaign={"executor": {"name": "slurm"}})
    others = {
        Point.of(p=2, n=16, solver="cg"): MORE_MEMORY,
        Point.of(p=4, n=8, solver="cg"): MORE_MEMORY,
        Point.of(p=4, n=4, solver="cg"): 1,
        Point.of(p=2, n=16, solver="lu"): 1,
    }
    counted = Run(Point.of(p=2, n=16, solver="cg"), "effort")
    runs = (Run(small), *map(Run, others), counted)
    state = apply(state, events.RoundProposed(1, runs, ("",) * len(runs)), 0.0)
    for number, failure in ((1, FailureClass.MEMORY), (2, None)):
        attempt = Attempt(runs[0], number)
        state = apply(state, attempt_intended(attempt, 9.0, memory=memory_for(state, runs[0])), 0.0)
        assert {memory_for(state, Run(point)) for point in others} == {1}, "what suffices is not known"
        state = apply(state, attempt_finished(attempt, failure=failure), 0.0)
    assert {point: memory_for(state, Run(point)) for point in others} == others
    assert memory_for(state, counted) == 1


def test_what_was_too_little_is_not_asked_for_again() -> None:
    """A larger run that begins with what a smaller one took needs more than that when it fails."""
    small, large, largest = (Run(Point.of(n=n)) for n in (8, 16, 32))
    state, asked = State(campaign={"executor": {"name": "slurm"}}), []
    state = apply(state, events.RoundProposed(1, (small, large, largest), ("", "", "")), 0.0)
    for run, lacks in ((small, True), (small, False), (large, True), (large, True), (large, False)):
        attempt = Attempt(run, state.runs[run].attempts + 1)
        state = apply(state, attempt_intended(attempt, 9.0, memory=memory_for(state, run)), 0.0)
        asked.append(state.runs[run].memory)
        failure = FailureClass.MEMORY if lacks else None
        state = apply(state, attempt_finished(attempt, failure=failure), 0.0)
    assert asked == [1, MORE_MEMORY, MORE_MEMORY, MORE_MEMORY**2, MORE_MEMORY**3]
    assert memory_for(state, largest) == MORE_MEMORY**3


def test_other_options_forget_what_was_too_little() -> None:
    more = {"executor": {"name": "slurm", "sbatch": {"mem": "300M"}}}
    state = apply(lacking(2, False, {}), events.CampaignChanged(more, False, False), 0.0)
    assert memory_for(state, Run(POINT)) == 1


@pytest.mark.parametrize(("sbatch", "again"), [("{mem: 4G}", True), ("{mem: 0}", False), ("{}", False)])
def test_without_memory_to_raise_there_is_no_further_attempt(sbatch: str, again: bool) -> None:
    text = (
        "{name: m, application: generic, executable: /bin/true, program: {}, parameters: {p: [1]}, "
        "measure: {profiler: time, metrics: [time]}, stop: {budget: 1 core-hours}, "
        f"executor: {{name: slurm, sbatch: {sbatch}}}}}"
    )
    rules = assembly.policy(loader.loads(text, "test.yaml", Path.cwd()))
    assert (rules.retries[FailureClass.MEMORY] > 0) is again


def test_the_status_tells_what_is_unconfirmed_and_who_is_suspected() -> None:
    now = after([(10.0, "n1", {}), (10.0, "n2", {}), (30.0, "bad", {"estimated": True, "cost": 3600.0})])
    now = now._replace(campaign={"name": "m", "stop": {"budget": "7200.0 core-seconds", "patience": 3}})
    document = status.document(now, (), Measurements(("p",), ()), None)
    assert document["cost"]["unconfirmed"] == 1.0
    [suspect] = document["suspect_nodes"]
    assert (suspect["node"], suspect["excluded"]) == ("bad", False)


@pytest.mark.parametrize("longest", [None, 101.0, 1000.0])
def test_the_least_limit_has_a_margin_above_what_a_run_is_expected_to_take(longest: float | None) -> None:
    """A single run scatters about its mean, however narrow the interval of that mean is."""
    known = estimates(limit=None, seconds=100.0, longest=longest, margin=2.0)
    state = State()._replace(time_limit=3600.0)
    assert known.least(state, Run(POINT)).limit == 125.0
