"""Which runs share a job: a pure rule, and what it must never do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.control import settle
from orchestrator.journal import events
from orchestrator.journal.allocations import JobCosts, after_job
from orchestrator.journal.replay import apply
from orchestrator.journal.state import RunStatus, State
from orchestrator.policy.actions import Action, Fit, Propose, Submit
from orchestrator.policy.decide import next_actions
from orchestrator.policy.packing import MOST, SharingRules
from orchestrator.policy.rules import Policy
from orchestrator.resources import Reservation
from orchestrator.types import Attempt, AttemptState, FailureClass, Observation, Point, Run
from tests.journal.attempts import attempt_finished, attempt_intended
from tests.policy.known import estimates

LIMIT = 10.0
POLICY = Policy(
    budget=1e9,
    patience=2,
    failures=99,
    max_pending=4,
    retries=dict.fromkeys(FailureClass, 1),
    failure_rate=None,
)
AUTO = SharingRules()
EXPENSIVE = JobCosts((2.0, 2.0), (60.0, 60.0))


def reserved(limits: Sequence[float]) -> float:
    """As for Slurm: whole minutes, and the time until the end is noticed."""
    return 60.0 * math.ceil((sum(limits) + 12 * len(limits) + 30) / 60) + 60.0


def reservation(run: Run) -> Reservation:
    cores = int(run.point["p"])
    return Reservation(cores, LIMIT, cores * reserved([LIMIT]))


@dataclass(frozen=True)
class Sharing:
    """The rules, and what is known when a decision is made."""

    rules: SharingRules = AUTO
    costs: JobCosts = EXPENSIVE
    seconds: float = 1.0


def decided(state: State, how: Sharing, policy: Policy = POLICY) -> list[Action]:
    known = estimates(LIMIT, lambda *limits: reserved(limits), how.seconds)
    state = state._replace(job_costs=how.costs)
    return next_actions(state, replace(policy, sharing=how.rules), state.time, known)


def runs(*repetitions: int) -> tuple[Run, ...]:
    """So many repetitions at p=1, p=2, ..."""
    pairs = enumerate(repetitions, start=1)
    return tuple(Run(Point.of(p=p), "time", k) for p, count in pairs for k in range(1, count + 1))


def begun(wanted: Sequence[Run], how: Sharing, policy: Policy = POLICY) -> list[list[str]]:
    """Return the jobs that are begun, each with its runs as ``p-repetition``."""
    state = apply(State(), events.RoundProposed(1, tuple(wanted), ("",) * len(wanted)), 1.0)
    jobs: dict[Attempt, list[str]] = {}
    for action in decided(state, how, policy):
        assert isinstance(action, Submit)
        name = f"{action.attempt.run.point['p']}-{action.attempt.run.repetition}"
        jobs.setdefault(action.pack or action.attempt, []).append(name)
    return list(jobs.values())


def sizes(wanted: Sequence[Run], how: Sharing, policy: Policy = POLICY) -> list[int]:
    return [len(job) for job in begun(wanted, how, policy)]


# --- the rule -----------------------------------------------------------------------------------------


def test_short_runs_share_a_job_until_it_costs_next_to_nothing() -> None:
    costs = JobCosts((2.0,), (0.0,))
    assert sizes(runs(25), Sharing(costs=costs)) == [12, 12, 1]
    # Where no more jobs may begin, they are filled further, all alike.
    assert sizes(runs(70), Sharing(costs=costs)) == [18, 18, 17, 17]
    assert sizes(runs(200), Sharing(costs=costs)) == [20, 20, 20, 20]


def test_runs_that_are_long_beside_an_allocation_have_their_own() -> None:
    assert sizes(runs(3), Sharing(costs=JobCosts((2.0,), (0.0,)), seconds=6.1)) == [1, 1, 1]
    assert sizes(runs(3), Sharing(costs=JobCosts((2.0,), (0.0,)), seconds=5.9)) == [2, 1]


def test_the_wait_counts_only_if_there_are_more_runs_than_places() -> None:
    costs = JobCosts((0.5,), (60.0,))
    assert sizes(runs(4), Sharing(costs=costs, seconds=20.0)) == [1, 1, 1, 1]
    assert sizes(runs(5), Sharing(costs=costs, seconds=20.0)) == [5]


def test_before_anything_is_known_every_run_has_its_own() -> None:
    assert sizes(runs(4), Sharing(costs=JobCosts())) == [1, 1, 1, 1]


def test_a_given_number_is_kept_whatever_is_expected() -> None:
    assert sizes(runs(7), Sharing(SharingRules(most=3), JobCosts(), math.inf)) == [3, 3, 1]


def test_no_shared_job_can_lose_too_much_at_once() -> None:
    assert sizes(runs(200), Sharing(SharingRules(longest=math.inf), JobCosts((1e6,)))) == [
        MOST,
        MOST,
        MOST,
        200 - 3 * MOST,
    ]


def test_limits_add_up_to_no_more_than_the_longest_job() -> None:
    assert sizes(runs(5), Sharing(SharingRules(most=9, longest=3 * LIMIT))) == [3, 2]


def test_only_runs_of_one_shape_share_a_job() -> None:
    assert begun(runs(2, 2), Sharing(SharingRules(most=9))) == [["1-1", "1-2"], ["2-1", "2-2"]]


def test_repetitions_may_be_spread() -> None:
    points = tuple(Run(Point.of(p=1, n=n), "time", k) for n in (1, 2, 3) for k in (1, 2))
    state = apply(State(), events.RoundProposed(1, points, ("",) * 6), 1.0)
    actions = decided(state, Sharing(SharingRules(most=9, repetitions="spread")))
    jobs: dict[Attempt | None, list[Point]] = {}
    for action in actions:
        assert isinstance(action, Submit)
        jobs.setdefault(action.pack, []).append(action.attempt.run.point)
    assert [len(set(job)) for job in jobs.values()] == [3, 3]


def test_repetitions_may_be_kept_together_even_where_they_are_long() -> None:
    points = tuple(Run(Point.of(p=1, n=n), "time", k) for n in (1, 2, 3) for k in (1, 2, 3))
    rules = SharingRules(most=None, repetitions="together")
    state = apply(State(), events.RoundProposed(1, points, ("",) * 9), 1.0)
    jobs: dict[Attempt | None, set[Point]] = {}
    for action in decided(state, Sharing(rules, JobCosts(), 1000.0)):
        assert isinstance(action, Submit)
        jobs.setdefault(action.pack, set()).add(action.attempt.run.point)
    assert [len(job) for job in jobs.values()] == [1, 1, 1]
    # Two points have room in one job, a third one's repetitions would be torn apart.
    assert sizes(points, Sharing(replace(rules, most=7))) == [6, 3]


def test_what_a_job_reserves_is_divided_among_its_runs() -> None:
    state = apply(State(), events.RoundProposed(1, runs(4), ("",) * 4), 1.0)
    actions = decided(state, Sharing())
    parts = [action.reservation.reserved for action in actions if isinstance(action, Submit)]
    assert parts == [reserved(4 * [LIMIT]) / 4] * 4


def test_a_tight_budget_makes_shared_jobs_smaller_before_it_makes_runs_wait() -> None:
    # In whole minutes the fourth run costs nothing more.
    for budget, expected in (
        (reserved([LIMIT]), [1]),
        (reserved(3 * [LIMIT]), [4]),
        (reserved(6 * [LIMIT]), [6]),
    ):
        assert sizes(runs(6), Sharing(SharingRules(most=9)), replace(POLICY, budget=budget)) == expected


def test_the_overhead_is_the_median_of_the_last_jobs() -> None:
    costs = JobCosts()
    for elapsed in (3.0, 100.0, 4.0):
        costs = after_job(costs, elapsed, intended=0.0, started=10.0, finished=12.0)
    assert (costs.overhead, costs.wait) == (2.0, 8.0)


# --- what a shared job reserves ---------------------------------------------------------------------


def pack_of_three() -> State:
    state = apply(State(), events.RoundProposed(1, runs(3), ("",) * 3), 1.0)
    for run in runs(3):
        state = apply(
            state, attempt_intended(Attempt(run), LIMIT, name=str(run), reserved=100.0, pack="pack"), 1.0
        )
    return state


def test_nothing_of_a_shared_job_is_released_before_its_charges_are_confirmed() -> None:
    first, second, third = map(Attempt, runs(3))
    state = pack_of_three()
    assert (state.reserved, state.jobs) == (300.0, 1)
    for event, held in (
        (attempt_finished(first, 5.0, cost=100.0, estimated=True), 300.0),  # its successor goes on
        (events.AttemptWithdrawn(third, "the job ended", barred=True), 300.0),
        (
            attempt_finished(second, 150.0, cost=100.0, failure=FailureClass.INFRASTRUCTURE, estimated=True),
            300.0,
        ),
        (events.AttemptCharged(first, 5.0, 5.0), 300.0),
        (events.AttemptCharged(second, 250.0, 250.0), 255.0),
    ):
        state = apply(state, event, 1.0)
        assert state.spent + state.reserved == held
    assert state.spent == 255.0 and not state.holds and state.jobs == 0
    assert state.runs[third.run].attempts == 1  # the revoked one keeps its number, and counts as no failure
    assert not state.runs[third.run].failures and third.run in state.failed


def test_what_began_may_have_cost_what_those_that_never_began_reserved() -> None:
    first, second, third = map(Attempt, runs(3))
    state = pack_of_three()
    gone, lost = AttemptState.ABSENT, AttemptState.LOST
    # While the others may still begin, each has its own part; of two that are lost only one gets the rest.
    assert settle.maximum_charges([Observation(first, lost)], state) == {first: 100.0}
    together = [Observation(first, lost), Observation(second, lost), Observation(third, gone, revoked=True)]
    assert settle.maximum_charges(together, state) == {first: 200.0, second: 100.0, third: 100.0}

    for other in (second, third):
        state = apply(state, events.AttemptWithdrawn(other, "it never began", barred=True), 1.0)
    most = settle.maximum_charges([Observation(first, lost)], state)
    assert most == {first: 300.0}
    assert settle.maximum_charges([Observation(first, lost, elapsed=7.0)], state) == {
        first: 100.0
    }  # it is known
    state = apply(state, attempt_finished(first, 300.0, cost=most[first], estimated=True), 1.0)
    assert (state.spent, state.reserved) == (300.0, 0.0)


def test_corrections_come_in_an_order_that_never_exceeds_the_reservation() -> None:
    state = pack_of_three()
    attempts = [Attempt(run) for run in runs(3)]
    for attempt in attempts:
        state = apply(state, attempt_finished(attempt, 5.0, cost=100.0, estimated=True), 1.0)
    late = [
        Observation(a, AttemptState.FINISHED, elapsed=e) for a, e in zip(attempts, (5, 290, 5), strict=True)
    ]
    # While one that cost less is not confirmed, one that cost more has to wait.
    assert [event.attempt for event in settle.corrections(late[1:2], state)] == []
    assert [event.attempt for event in settle.corrections(late[:2], state)] == attempts[:1]
    for event in settle.corrections(late, state):
        state = apply(state, event, 1.0)
        assert state.spent + state.reserved <= 300.0
    assert state.spent == 300.0 and not state.holds


def test_charges_beyond_the_reservation_are_corrected_when_none_is_left_to_wait_for() -> None:
    """Where Slurm allocates two CPUs for a core, each run costs more than its part."""
    state = pack_of_three()
    attempts = [Attempt(run) for run in runs(3)]
    for attempt in attempts:
        finished = attempt_finished(attempt, 90.0, cost=100.0, estimated=True)
        state = apply(state, finished, 1.0)
    late = [Observation(a, AttemptState.FINISHED, elapsed=90.0, cores=2) for a in attempts]
    assert settle.corrections(late[:2], state) == []
    for event in settle.corrections(late, state):
        state = apply(state, event, 1.0)
    assert (state.spent, state.allocation) == (540.0, 2.0)
    assert not state.holds and not state.unconfirmed


def test_durations_can_be_compared_whether_jobs_were_shared_or_not() -> None:
    """What a job costs beside its runs is learned from packs, too, and is a part of every duration."""
    wanted = runs(5)
    state = apply(State(), events.RoundProposed(1, wanted, ("",) * 5), 1.0)
    for run, pack in zip(wanted, ["a", "a", "b", "b", ""], strict=True):
        name = pack if run.repetition in (1, 3) else str(run)
        intent = attempt_intended(Attempt(run), LIMIT, name=name, reserved=100.0, pack=pack)
        state = apply(state, intent, 1.0)

    def finish(run: Run, elapsed: float, estimated: bool) -> events.AttemptFinished:
        cost = 100.0 if estimated else elapsed
        return attempt_finished(
            Attempt(run), elapsed, cost=cost, started=10.0, finished=14.0, estimated=estimated
        )

    for event in (
        finish(wanted[0], 4.0, True),
        finish(wanted[1], 4.0, False),
        events.AttemptCharged(Attempt(wanted[0]), 6.0, 6.0),  # the job took 10 seconds
        finish(wanted[2], 4.0, True),
        finish(wanted[3], 4.0, False),
        finish(wanted[4], 6.0, False),
    ):
        state = apply(state, event, 20.0)
    assert state.job_costs.overhead == 2.0
    assert [state.runs[run].elapsed for run in wanted[2:]] == [6.0, 6.0, 6.0]


def test_a_run_that_is_charged_less_than_it_took_lasted_as_long_as_its_own_record_says() -> None:
    """Slurm charges whole seconds: none for a run of half a second."""
    (run,) = runs(1)
    state = apply(
        State(job_costs=JobCosts((0.25,) * 3, (1.0,) * 3)), events.RoundProposed(1, (run,), ("",)), 1.0
    )
    intent = attempt_intended(Attempt(run), LIMIT, name="job", reserved=100.0)
    ended = attempt_finished(Attempt(run), 0.0, started=10.0, finished=10.5)
    state = apply(apply(state, intent, 1.0), ended, 11.0)
    assert (state.runs[run].elapsed, state.spent) == (0.75, 0.0)


# --- whatever happens ---------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(
    st.data(),
    st.floats(100, 3000),
    st.integers(1, 4),
    st.sampled_from([None, 2, 3, 9]),
    st.sampled_from(["any", "spread", "together"]),
)
def test_shared_jobs_never_overspend_and_never_stop_what_could_go_on(
    data: st.DataObject, budget: float, places: int, most: int | None, repetitions: str
) -> None:
    """Drive one round; what an attempt is charged is estimated until its job is over."""
    policy = replace(POLICY, budget=budget, max_pending=places)
    how = Sharing(SharingRules(most, 60.0, repetitions))  # type: ignore[arg-type]
    costs = {run: data.draw(st.floats(0.1, LIMIT)) for run in runs(3, 3)}
    state = apply(State(), events.RoundProposed(1, tuple(costs), ("",) * len(costs)), 1.0)
    for _step in range(300):
        if state.stopped is not None:
            break
        for action in decided(state, how, policy):
            if isinstance(action, events.RunSkipped):  # alone, with all charges known, it could not begin
                assert not state.in_flight and not state.unconfirmed
                assert state.spent + reservation(action.run).reserved > budget
            state = apply(state, react(action), state.time)
            assert state.spent + state.reserved <= budget * (1 + 1e-9)
        assert state.jobs <= places
        if state.in_flight:
            attempt = data.draw(st.sampled_from(sorted(state.in_flight, key=str)))
            state = settled(state, attempt, costs)
            assert state.spent + state.reserved <= budget * (1 + 1e-9)
    assert state.stopped is not None
    spent = sum(cost * int(run.point["p"]) for run, cost in costs.items() if measured(state, run))
    assert state.spent == pytest.approx(spent) and not state.holds


def measured(state: State, run: Run) -> bool:
    return state.runs[run].status is RunStatus.MEASURED


def settled(state: State, attempt: Attempt, costs: dict[Run, float]) -> State:
    """Finish an attempt; when it was the last one of its job, its companions are charged what they cost."""
    cost = costs[attempt.run] * int(attempt.run.point["p"])
    flight = state.in_flight[attempt]
    others = any(item.pack == flight.pack for other, item in state.in_flight.items() if other != attempt)
    estimated = bool(flight.pack) and others
    charge = flight.reserved if estimated else cost
    state = apply(
        state, attempt_finished(attempt, costs[attempt.run], cost=charge, estimated=estimated), state.time
    )
    if flight.pack and not others:
        for other, item in state.unconfirmed.items():
            if item.pack == flight.pack:
                paid = costs[other.run] * int(other.run.point["p"])
                state = apply(state, events.AttemptCharged(other, costs[other.run], paid), state.time)
    return state


def react(action: Action) -> events.Event:
    match action:
        case Submit(attempt, need, pack):
            return attempt_intended(
                attempt,
                need.limit,
                name=str(attempt),
                cores=need.cores,
                reserved=need.reserved,
                pack=str(pack) if pack else "",
            )
        case Fit(number):
            return events.RoundCompleted(round=number, smape=1.0, width=None, improved=False)
        case events.RunSkipped() | events.StopRuleReached() | events.CampaignStopped():
            return action
        case Propose():
            return events.StopRuleReached("exhausted", "one round is enough")
    pytest.fail(f"unexpected {action}")
