"""Decisions are pure: state in, actions out; no cluster, no clock, no files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import immutables
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.journal import events, setbacks
from orchestrator.journal.references import REASON
from orchestrator.journal.replay import apply
from orchestrator.journal.state import RunStatus, State
from orchestrator.policy import decide
from orchestrator.policy.actions import Action, Assess, Fit, Propose, Submit
from orchestrator.policy.budget import kept_for_validation
from orchestrator.policy.decide import next_actions
from orchestrator.policy.estimates import Estimates
from orchestrator.policy.rules import Policy
from orchestrator.resources import Reservation
from orchestrator.types import Attempt, FailureClass, Point, Run
from tests.journal.attempts import attempt_finished, attempt_intended
from tests.policy.known import estimates

RETRIES = {
    FailureClass.INFRASTRUCTURE: 2,
    FailureClass.TIMEOUT: 1,
    FailureClass.APPLICATION: 1,
    FailureClass.PARSE: 0,
}
POLICY = Policy(budget=100.0, patience=2, failures=3, max_pending=2, retries=RETRIES)
RUNS = tuple(Run(Point.of(p=p)) for p in (1, 2, 3))


def reservation(run: Run) -> Reservation:
    return Reservation(int(run.point["p"]), 10.0, 10.0 * int(run.point["p"]))


def after(*new: events.Event, state: State | None = None) -> State:
    state = state or State()
    for time, event in enumerate(new, start=1):
        state = apply(state, event, float(time))
    return state


def actions(state: State, policy: Policy = POLICY, now: float = 1.0) -> list[Action]:
    return next_actions(state, policy, now, estimates())


def intended(run: Run, number: int = 1) -> events.AttemptIntended:
    need = reservation(run)
    return attempt_intended(Attempt(run, number), need.limit, cores=need.cores, reserved=need.reserved)


def finished(
    run: Run, number: int = 1, failure: FailureClass | None = None, cost: float = 1.0
) -> events.AttemptFinished:
    return attempt_finished(Attempt(run, number), cost, failure=failure, reason="why" if failure else "")


def measured(runs: Sequence[Run]) -> list[events.Event]:
    return [event for run in runs for event in (intended(run), finished(run))]


PROPOSED = events.RoundProposed(1, RUNS, ("cheap",) * 3)
ONE_MEASURED = [PROPOSED, *measured(RUNS)]


def test_a_campaign_begins_with_the_starting_set() -> None:
    assert actions(after()) == [Propose(1)]


def test_places_are_filled_in_order_up_to_max_pending() -> None:
    submitted = actions(after(PROPOSED))
    assert [a.attempt.run for a in submitted if isinstance(a, Submit)] == list(RUNS[:2])


def test_nothing_to_do_while_all_places_are_taken() -> None:
    assert actions(after(PROPOSED, intended(RUNS[0]), intended(RUNS[1]))) == []


def test_a_run_that_does_not_fit_waits_for_those_in_flight() -> None:
    tight = replace(POLICY, budget=25.0)
    state = after(PROPOSED, intended(RUNS[0]))
    assert actions(state, tight) == []  # 10 reserved, 20 more do not fit into 25
    state = after(finished(RUNS[0]), state=state)
    assert actions(state, tight) == [Submit(Attempt(RUNS[1]), reservation(RUNS[1]))]


def test_a_run_that_never_fits_is_skipped_and_cheaper_ones_still_run() -> None:
    state = after(events.RoundProposed(1, RUNS[::-1], ("",) * 3))
    first, *rest = actions(state, replace(POLICY, budget=15.0))
    assert isinstance(first, events.RunSkipped) and first.run == RUNS[2]
    assert "3 cores for up to 10 s may cost 0.008333 core-hours, 0.004167 are left" in first.reason
    assert [type(a) for a in rest] == [events.RunSkipped, Submit]


def test_a_point_that_fails_is_tried_again_by_one_run_and_the_others_wait_for_it() -> None:
    """Each would fail alike, as often as a run may."""
    same = tuple(Run(Point.of(p=1), "time", k) for k in (1, 2, 3))
    more = replace(POLICY, max_pending=3)
    state = after(events.RoundProposed(1, (*same, RUNS[1]), ("",) * 4), *map(intended, same[:2]))
    failed = (
        finished(same[0], failure=FailureClass.APPLICATION),
        finished(same[1], failure=FailureClass.APPLICATION),
    )
    state = after(*failed, state=state)
    assert begun_by(actions(state, more)) == [same[0], RUNS[1]]
    state = after(intended(same[0], 2), state=state)
    assert begun_by(actions(state, more)) == [RUNS[1]]
    works = after(finished(same[0], 2), state=state)
    assert begun_by(actions(works, more)) == [same[1], same[2], RUNS[1]]
    fails = after(finished(same[0], 2, FailureClass.APPLICATION), state=state)
    (given_up,) = actions(fails, more)
    assert isinstance(given_up, events.RunGivenUp) and given_up.run == same[0]
    fails = after(events.RunGivenUp(same[0], "why"), state=fails)
    skipped = [action.run for action in actions(fails, more) if isinstance(action, events.RunSkipped)]
    assert skipped == [same[1], same[2]]


def test_a_run_is_not_tried_again_within_the_limit_that_it_reached() -> None:
    state = after(PROPOSED, intended(RUNS[0]), finished(RUNS[0], failure=FailureClass.TIMEOUT))

    def first(known: Estimates, state: State = state) -> Action:
        return next_actions(state, POLICY, 1.0, known)[0]

    for known in (estimates(), estimates(margin=2.0, longest=11.0)):
        end = first(known)
        assert isinstance(end, events.RunGivenUp)
        assert end.reason == "timeout: why (1 attempt); measure.time_limit permits no longer one"
    again = [Submit]
    assert [type(first(estimates(limit=11.0)))] == again, "a higher limit"
    assert [type(first(estimates(margin=2.0, longest=9.0)))] == again, "it is known to take less"
    same = tuple(Run(RUNS[0].point, "time", k) for k in (1, 2))
    late = finished(same[1], failure=FailureClass.TIMEOUT)
    proposed = events.RoundProposed(1, same, ("", ""))
    other = after(proposed, *map(intended, same), finished(same[0]), late)
    assert [type(first(estimates(), other))] == again, "another repetition took less"


def test_few_runs_begin_at_once_while_only_the_budget_limits_their_time() -> None:
    """Else a program that takes longer than that would spend the whole budget on limits that it reaches."""
    guessed, wide = estimates(limit=None), replace(POLICY, max_pending=8)

    def begun(*new: events.Event, known: Estimates = guessed) -> list[Run]:
        return begun_by(next_actions(after(PROPOSED, *new)._replace(time_limit=10.0), wide, 1.0, known))

    assert begun() == [RUNS[0]]
    assert begun(intended(RUNS[0])) == []
    assert begun(*measured(RUNS[:1])) == list(RUNS[1:])
    assert begun(intended(RUNS[0]), finished(RUNS[0], failure=FailureClass.TIMEOUT)) == [RUNS[0]]
    assert begun(known=estimates(limit=None, longest=5.0)) == list(RUNS), "something is known"
    assert begun(known=estimates(limit=10.0)) == list(RUNS), "the user said so"


def test_larger_runs_begin_with_more_than_the_limit_that_a_smaller_one_reached() -> None:
    reached = intended(RUNS[1]), finished(RUNS[1], failure=FailureClass.TIMEOUT)
    state = after(PROPOSED, *reached)._replace(time_limit=10.0)

    def limits(known: Estimates) -> list[float]:
        return [known.reservation(state, run).limit for run in RUNS]

    assert limits(estimates(limit=None, margin=2.0)) == [10.0, 20.0, 20.0]
    assert limits(estimates(limit=None)) == [10.0, 20.0, 10.0], "equal limits are wanted"
    assert limits(estimates(limit=10.0, margin=2.0)) == [10.0, 10.0, 10.0]
    assert limits(estimates(limit=None, margin=2.0, longest=3.0)) == [10.0, 20.0, 10.0]


def test_a_run_that_would_reach_its_limit_is_not_begun() -> None:
    state, long = after(PROPOSED), estimates(limit=10.0, median=10.06)
    found = next_actions(state, POLICY, 1.0, long)
    why = "it takes 10.1 s by the models, and measure.time_limit is 10 s"
    assert found == [events.RunSkipped(run, why, unaffordable=False) for run in RUNS]
    assert begun_by(next_actions(state, POLICY, 1.0, estimates(limit=10.0, median=9.9))) == list(RUNS[:2])
    unlimited = estimates(limit=None, median=9e9)
    assert begun_by(next_actions(state._replace(time_limit=5.0), POLICY, 1.0, unlimited)) == list(RUNS[:2])
    same = tuple(Run(RUNS[0].point, "time", k) for k in (1, 2))
    state = after(events.RoundProposed(1, same, ("", "")), *measured(same[:1]))
    assert begun_by(next_actions(state, POLICY, 1.0, long)) == [same[1]], (
        "an earlier repetition ended in time"
    )


def begun_by(found: Sequence[Action]) -> list[Run]:
    return [action.attempt.run for action in found if isinstance(action, Submit)]


def test_what_a_run_may_cost_includes_the_time_until_it_has_ended() -> None:
    state = after(events.RoundProposed(1, RUNS[2:], ("",)))
    slow_to_end = estimates(reserved_seconds=lambda *limits: sum(limits) + 12)
    [skip] = next_actions(state, replace(POLICY, budget=15.0), 1.0, slow_to_end)
    assert isinstance(skip, events.RunSkipped)
    assert "3 cores for up to 10 s, and for 12 s until a run that takes longer has ended, may" in skip.reason


def test_a_round_of_which_nothing_fits_stops_the_campaign() -> None:
    state = after(PROPOSED, *(events.RunSkipped(run, "too expensive", True) for run in RUNS))
    assert actions(state) == [Fit(1)]
    state = after(events.RoundCompleted(round=1, smape=None, width=None, improved=False), state=state)
    (stop,) = actions(state)
    assert isinstance(stop, events.StopRuleReached) and stop.rule == "budget"
    assert stop.detail.endswith(
        f"no run of the last round fits what is left; first: {RUNS[0]}: too expensive"
    )


def test_a_round_that_fitted_until_an_attempt_failed_is_followed_by_another() -> None:
    tried = intended(RUNS[0]), finished(RUNS[0], failure=FailureClass.TIMEOUT)
    state = after(PROPOSED, *tried, *(events.RunSkipped(run, "too expensive", True) for run in RUNS))
    state = after(events.RoundCompleted(round=1, smape=None, width=None, improved=False), state=state)
    assert actions(state) == [Propose(2)]
    again = events.RoundProposed(2, RUNS, ("",) * 3)
    state = after(again, *(events.RunSkipped(run, "too expensive", True) for run in RUNS), state=state)
    state = after(events.RoundCompleted(round=2, smape=None, width=None, improved=False), state=state)
    (stop,) = actions(state)
    assert isinstance(stop, events.StopRuleReached) and stop.rule == "budget"


def test_a_round_that_is_skipped_for_its_time_limit_alone_is_followed_by_another() -> None:
    state = after(PROPOSED)
    for skip in next_actions(state, POLICY, 1.0, estimates(limit=10.0, median=11.0)):
        assert isinstance(skip, events.RunSkipped)
        state = after(events.RunSkipped(skip.run, skip.reason, skip.unaffordable), state=state)
    state = after(events.RoundCompleted(round=1, smape=None, width=None, improved=False), state=state)
    assert actions(state) == [Propose(2)]
    [skipped] = next_actions(after(PROPOSED), replace(POLICY, budget=0.5), 1.0, estimates())[:1]
    assert isinstance(skipped, events.RunSkipped) and skipped.unaffordable


@pytest.mark.parametrize(("failure", "attempts"), [(k, v + 1) for k, v in RETRIES.items()])
def test_each_class_of_failure_has_its_own_number_of_attempts(failure: FailureClass, attempts: int) -> None:
    refused = failure is FailureClass.INFRASTRUCTURE  # other failures of that class do not count
    state = after(events.RoundProposed(1, RUNS[:1], ("",)))
    for number in range(1, attempts + 1):
        known = estimates(limit=10.0 * number)  # the limit that was reached is raised
        (submit,) = next_actions(state, POLICY, 1.0, known)
        assert isinstance(submit, Submit) and submit.attempt == Attempt(RUNS[0], number)
        end = replace(finished(RUNS[0], number, failure), refused=refused)
        state = after(intended(RUNS[0], number), end, state=state)
    (given_up,) = actions(state)
    assert isinstance(given_up, events.RunGivenUp)
    assert failure in given_up.reason and "why" in given_up.reason
    state = after(events.RunGivenUp(RUNS[0], given_up.reason), state=state)
    assert RUNS[0].point in state.infeasible
    assert state.spent == attempts  # every attempt is charged


def test_further_repetitions_at_an_infeasible_point_are_skipped() -> None:
    again = replace(RUNS[0], repetition=2)
    state = after(
        events.RoundProposed(1, (RUNS[0], again), ("", "")),
        intended(RUNS[0]),
        finished(RUNS[0], failure=FailureClass.PARSE),
        events.RunGivenUp(RUNS[0], "no output"),
    )
    assert actions(state) == [events.RunSkipped(again, "P(p=1) was given up", unaffordable=False)]


def test_a_point_that_worked_before_stays_feasible() -> None:
    again = replace(RUNS[0], repetition=2)
    state = after(
        events.RoundProposed(1, (RUNS[0], again), ("", "")),
        *measured(RUNS[:1]),
        intended(again),
        finished(again, failure=FailureClass.PARSE),
        events.RunGivenUp(again, "once broken"),
    )
    assert state.infeasible == frozenset()


def test_a_withdrawn_attempt_is_submitted_again_under_its_number_and_costs_nothing() -> None:
    state = after(PROPOSED, intended(RUNS[0]), events.AttemptWithdrawn(Attempt(RUNS[0]), "not queued"))
    assert state.reserved == 0 and state.spent == 0
    assert Submit(Attempt(RUNS[0], 1), reservation(RUNS[0])) in actions(state)


def test_the_models_are_refitted_when_the_round_is_settled_then_the_next_is_proposed() -> None:
    state = after(*ONE_MEASURED)
    assert actions(state) == [Fit(1)]
    state = after(events.RoundCompleted(round=1, smape=5.0, width=0.5, improved=True), state=state)
    assert actions(state) == [Propose(2)]


def test_patience_counts_rounds_without_improvement() -> None:
    state = after(*ONE_MEASURED, events.RoundCompleted(round=1, smape=5.0, width=0.5, improved=False))
    assert actions(state) == [Propose(2)]
    state = state._replace(rounds_without_improvement=2)
    (stop,) = actions(state)
    assert stop == events.StopRuleReached(
        "patience", "2 rounds without improvement, in which 3 % of the budget were spent"
    )


def without_gain(rounds: int, spent: float, gained_at: float = 10.0) -> State:
    """Return a state after so many rounds without gain, since ``gained_at`` core-seconds were spent."""
    state = after(*ONE_MEASURED, events.RoundCompleted(round=1, smape=5.0, width=0.5, improved=True))
    return state._replace(rounds_without_improvement=rounds, spent=spent, spent_at_gain=gained_at)


@pytest.mark.parametrize(
    ("rounds", "spent", "stops"),
    [(2, 29.0, False), (2, 30.0, True), (1, 90.0, False), (19, 11.0, False), (20, 11.0, True)],
)
def test_patience_wants_a_share_of_the_budget_spent_without_gain_or_very_many_rounds(
    rounds: int, spent: float, stops: bool
) -> None:
    (action,) = actions(without_gain(rounds, spent), replace(POLICY, without_gain=0.2))
    assert action == Propose(2) or stops
    assert not stops or (isinstance(action, events.StopRuleReached) and action.rule == "patience")


@pytest.mark.parametrize(("smape", "stops"), [(0.0, True), (4.0, False)])
def test_a_campaign_that_reads_only_zeros_does_not_spend_a_fifth_of_its_budget(
    smape: float, stops: bool
) -> None:
    """Where another metric has values, as time beside a count of errors, there is something to learn."""
    zeros = immutables.Map({"only zeros": "every value of time is zero: why"})
    state = without_gain(2, 11.0)._replace(machine=zeros, smape=smape)
    (action,) = actions(state, replace(POLICY, without_gain=0.2))
    stop = events.StopRuleReached(
        "patience", "2 rounds without improvement; every value of time is zero: why"
    )
    assert action == (stop if stops else Propose(2))


def test_the_rule_of_the_papers_is_patience_alone() -> None:
    papers = replace(POLICY, rule="smape", without_gain=0.2)
    (stop,) = actions(without_gain(2, 11.0), papers)
    assert stop == events.StopRuleReached("patience", "2 rounds without improvement")
    narrow = without_gain(1, 11.0)._replace(narrow_rounds=9)
    assert actions(narrow, papers) == [Propose(2)]


def rounds_of_width(*widths: float) -> State:
    """Return a state after rounds with intervals that are as narrow as the noise permits, if below 5 %."""
    state = after(*ONE_MEASURED)
    for number, width in enumerate(widths, start=1):
        done = events.RoundCompleted(
            round=number, smape=5.0, width=width, improved=True, noise=0.1, narrow=width <= 0.05
        )
        state = after(done, state=state)
    return state._replace(round=len(widths))


def test_intervals_as_narrow_as_the_noise_permits_in_enough_rounds_stop_the_campaign() -> None:
    (stop,) = actions(rounds_of_width(0.2, 0.04, 0.03))
    assert isinstance(stop, events.StopRuleReached) and stop.rule == "converged"
    assert "is 3 %, where 90 % of single runs lie within a range of 10 %" in stop.detail
    assert actions(rounds_of_width(0.04, 0.2, 0.03)) == [Propose(4)]  # not in a row


def test_who_says_how_narrow_intervals_must_be_gets_them_so() -> None:
    demanding = replace(POLICY, width=0.01)
    assert actions(rounds_of_width(0.04, 0.04, 0.03), demanding) == [Propose(4)]


def test_the_share_spent_without_gain_counts_from_the_end_of_the_last_round_that_was_one() -> None:
    state = after(*ONE_MEASURED, events.RoundCompleted(round=1, smape=5.0, width=0.5, improved=True))
    assert state.spent_at_gain == state.spent == 3.0
    more = tuple(replace(run, repetition=2) for run in RUNS)
    done = events.RoundCompleted(round=2, smape=5.0, width=0.5, improved=False)
    state = after(events.RoundProposed(2, more, ("",) * 3), *measured(more), done, state=state)
    assert (state.spent_at_gain, state.spent) == (3.0, 6.0)


def test_narrow_intervals_at_the_evaluation_point_stop_the_campaign() -> None:
    state = after(
        *ONE_MEASURED, events.RoundCompleted(round=1, smape=5.0, width=0.02, improved=True, widest=0.04)
    )
    (stop,) = actions(state, replace(POLICY, width=0.05))
    assert isinstance(stop, events.StopRuleReached) and stop.rule == "precision"


def test_one_wide_interval_is_enough_to_go_on() -> None:
    state = after(
        *ONE_MEASURED, events.RoundCompleted(round=1, smape=5.0, width=0.02, improved=True, widest=0.06)
    )
    assert actions(state, replace(POLICY, width=0.05)) == [Propose(2)]


def test_wall_time_stops_proposing_but_lets_runs_in_flight_finish() -> None:
    limited = replace(POLICY, wall_time=60.0)
    state = after(PROPOSED, intended(RUNS[0]))
    (stop,) = actions(state, limited, now=61.0)
    assert isinstance(stop, events.StopRuleReached) and stop.rule == "wall_time"
    state = after(events.StopRuleReached(stop.rule, stop.detail), state=state)
    dropped = actions(state, limited, now=62.0)
    assert [type(a) for a in dropped] == [events.RunSkipped, events.RunSkipped]
    state = after(*(events.RunSkipped(run, "stop") for run in RUNS[1:]), state=state)
    assert actions(state, limited, now=63.0) == []  # one is still in flight
    state = after(finished(RUNS[0]), state=state)
    assert actions(state, limited, now=64.0) == [Fit(1)]
    state = after(events.RoundCompleted(round=1, smape=None, width=None, improved=False), state=state)
    assert actions(state, limited, now=65.0) == [events.CampaignStopped(stop.rule, stop.detail)]


def test_what_waits_when_the_campaign_stops_need_not_begin() -> None:
    def intent(run: Run, pack: str = "") -> events.AttemptIntended:
        return replace(intended(run), name=f"job-{run.repetition}", pack=pack)

    more = [replace(RUNS[0], repetition=number) for number in range(1, 7)]
    packs = ("", "", "begun", "begun", "waiting", "waiting")
    state = after(
        events.RoundProposed(1, tuple(more), ("",) * 6),
        *(intent(run, pack) for run, pack in zip(more, packs, strict=True)),
        *(events.AttemptStarted(Attempt(more[index]), "1") for index in (0, 2)),
    )
    assert decide.unbegun(state) == []
    state = after(events.StopRuleReached("wall_time", "over"), state=state)
    assert sorted(item.run.repetition for item in decide.unbegun(state)) == [2, 5, 6]
    state = after(replace(finished(more[2]), estimated=True), state=state)  # the next of its job is about to
    assert sorted(item.run.repetition for item in decide.unbegun(state)) == [2, 5, 6]


def test_a_validation_is_not_withdrawn_though_the_campaign_stops() -> None:
    state, _ = stopping_with(100.0)
    run = Run(Point.of(p=9))
    state = after(events.ValidationProposed(run), intended(run), state=state)
    assert decide.unbegun(state) == []


def test_failures_in_a_row_stop_the_campaign() -> None:
    (stop,) = actions(after(*ONE_MEASURED)._replace(consecutive_given_up=3))
    assert isinstance(stop, events.StopRuleReached) and stop.rule == "failures"


def test_a_stop_because_of_failures_tells_the_most_frequent_reason() -> None:
    state = after(*ONE_MEASURED)
    state = state._replace(recent=("", *["application: exit code 7"] * 4, *["timeout: ended at 10 s"] * 15))
    (stop,) = actions(state, replace(POLICY, failure_rate=0.75))
    assert stop == events.StopRuleReached(
        "failure_rate",
        "19 of the last 20 attempts failed; most often (15 of 19): timeout: ended at 10 s",
    )


def stopping_with(budget: float) -> tuple[State, Policy]:
    wanted = replace(POLICY, validation_point=Point.of(p=9), budget=budget)
    state = after(
        *ONE_MEASURED,
        events.RoundCompleted(round=1, smape=5.0, width=0.5, improved=True),
        events.StopRuleReached("patience", "enough"),
    )
    return state, wanted


def completed(number: int) -> events.RoundCompleted:
    return events.RoundCompleted(round=number, smape=1.0, width=0.5, improved=True)


def test_a_budget_that_late_ends_of_jobs_used_up_says_so() -> None:
    late = after(PROPOSED, intended(RUNS[0]), finished(RUNS[0], cost=95.0))
    skipped = [events.RunSkipped(run, "no budget") for run in RUNS[1:]]
    done = after(*skipped, completed(1), state=late)
    again = after(events.RoundProposed(2, RUNS[1:], ("",) * 2), state=done)
    full = after(*skipped, completed(2), state=again)
    (stop,) = actions(full)
    assert isinstance(stop, events.StopRuleReached) and stop.rule == "budget"
    assert "0.02361 of them because jobs were charged longer than their time limits" in stop.detail
    usual = after(PROPOSED, intended(RUNS[0]), finished(RUNS[0], cost=5.0))
    assert usual.beyond == 0 and late.beyond == 85.0


def test_a_round_of_which_only_the_reference_run_fits_is_the_last() -> None:
    """The strategy's runs were skipped; to measure the reference again and again would never end."""
    proposed = events.RoundProposed(2, RUNS[1:], ("most information per cost", REASON + "busy machine"))
    done = after(
        PROPOSED, *measured(RUNS[:1]), *(events.RunSkipped(run, "") for run in RUNS[1:]), completed(1)
    )
    again = after(
        proposed, events.RunSkipped(RUNS[1], "no budget"), *measured(RUNS[2:]), completed(2), state=done
    )
    (stop,) = actions(again)
    assert isinstance(stop, events.StopRuleReached) and stop.rule == "budget"


def test_the_validation_run_follows_the_stop_rule_if_the_budget_allows() -> None:
    state, wanted = stopping_with(100.0)
    run = Run(Point.of(p=9))
    assert actions(state, wanted) == [events.ValidationProposed(run)]
    state = after(events.ValidationProposed(run), state=state)
    assert actions(state, wanted) == [Submit(Attempt(run), reservation(run))]
    state = after(intended(run), finished(run), state=state)
    assert actions(state, wanted) == [events.CampaignStopped("patience", "enough")]


@pytest.mark.parametrize(
    ("rule", "cost", "goes_on"),
    [("exhausted", 5.0, True), ("budget", 5.0, True), ("exhausted", 90.0, False), ("patience", 5.0, False)],
)
def test_rounds_go_on_with_what_the_validation_left_of_what_was_kept_for_it(
    rule: str, cost: float, goes_on: bool
) -> None:
    """Once: the next time a rule holds nothing is kept any more."""
    state, wanted = stopping_with(100.0)
    state = after(*ONE_MEASURED, completed(1), events.StopRuleReached(rule, "10 are left beside 90", 90.0))
    run = Run(Point.of(p=9))
    state = after(events.ValidationProposed(run), intended(run), finished(run, cost=cost), state=state)
    (action,) = actions(state, wanted)
    if not goes_on:
        assert action == events.CampaignStopped(rule, "10 are left beside 90")
        return
    assert action == events.StopWithdrawn(wanted.budget - state.spent)
    state = after(action, state=state)
    assert state.stopping is None and actions(state, wanted) == [Propose(2)]
    state = after(events.RoundProposed(2, RUNS[1:2], ("",)), *measured(RUNS[1:2]), completed(2), state=state)
    state = after(events.StopRuleReached(rule, "nothing left"), state=state)
    assert actions(state, wanted) == [events.CampaignStopped(rule, "nothing left")]


def test_nothing_is_validated_where_nothing_was_measured() -> None:
    wanted = replace(POLICY, validation_point=Point.of(p=9))
    skipped = [events.RunGivenUp(run, "application: exit code 1") for run in RUNS]
    state = after(PROPOSED, *skipped, completed(1), events.StopRuleReached("failures", "all failed"))
    assert actions(state, wanted) == [events.CampaignStopped("failures", "all failed")]


@pytest.mark.parametrize(("now", "waits"), [(100.0, True), (95.0, True), (701.0, False), (-9e4, False)])
def test_what_an_attempt_cost_is_waited_for_ten_minutes_whatever_the_clock_says(
    now: float, waits: bool
) -> None:
    last = attempt_finished(Attempt(RUNS[0], 1), estimated=True)
    state = after(PROPOSED, intended(RUNS[0]), last, *measured(RUNS[1:]))
    state = after(
        events.RoundCompleted(round=1, smape=5.0, width=0.5, improved=True),
        events.StopRuleReached("patience", "enough"),
        state=state,
    )
    expected = [] if waits else [events.CampaignStopped("patience", "enough")]
    assert actions(state._replace(time=100.0), POLICY, now) == expected


def test_a_validation_beyond_the_budget_is_skipped_with_the_figures_and_possible_with_more() -> None:
    state, wanted = stopping_with(90.0)  # 3 are spent, 90 would be needed
    run = Run(Point.of(p=9))
    assert actions(state, wanted) == [events.ValidationProposed(run)]
    state = after(events.ValidationProposed(run), state=state)
    [skip] = actions(state, wanted)
    assert isinstance(skip, events.RunSkipped)
    assert skip.reason == "9 cores for up to 10 s may cost 0.025 core-hours, 0.02417 are left"
    state = after(events.RunSkipped(run, skip.reason), state=state)
    assert actions(state, wanted) == [events.CampaignStopped("patience", "enough")]
    stopped = after(events.CampaignStopped("patience", "enough"), events.CampaignChanged({}), state=state)
    again = after(events.StopRuleReached("patience", "enough"), state=stopped)
    assert actions(again, replace(wanted, budget=93.0)) == [events.ValidationProposed(run)]


def test_a_validation_gets_as_much_time_as_the_budget_left_holds_if_it_is_expected_to_suffice() -> None:
    state, wanted = stopping_with(90.0)  # 87 are left for 9 cores: 9.67 s
    state = after(events.ValidationProposed(Run(Point.of(p=9))), state=state)
    [submit] = next_actions(state, wanted, 1.0, estimates(seconds=5.0))
    assert isinstance(submit, Submit) and submit.reservation.limit == pytest.approx(87 / 9)
    assert state.spent + submit.reservation.reserved <= 90
    [skip] = next_actions(state, wanted, 1.0, estimates(seconds=9.8))
    assert isinstance(skip, events.RunSkipped)


def test_an_impossible_event_tells_the_story_of_its_run() -> None:
    with pytest.raises(ValueError, match=r"impossible event for P\(p=1\) time-1: .*in flight.*1 attempts"):
        after(PROPOSED, intended(RUNS[0]), intended(RUNS[0], 2))
    with pytest.raises(ValueError, match="attempt 1 is not in flight"):
        after(PROPOSED, finished(RUNS[0]))


@settings(max_examples=200, deadline=None)
@given(st.data(), st.floats(5, 200), st.integers(1, 5))
def test_whatever_happens_the_budget_holds_and_every_campaign_ends(
    data: st.DataObject, budget: float, places: int
) -> None:
    """Drive decisions with arbitrary outcomes; costs never exceed what was reserved."""
    policy = replace(POLICY, budget=budget, max_pending=places, validation_point=Point.of(p=4))
    state = after(PROPOSED)
    now = 0.0
    for _step in range(400):
        assert state.spent + state.reserved <= budget + 1e-9
        assert len(state.in_flight) <= places
        if state.stopped is not None or decide.is_paused(state):
            break
        now += setbacks.LONGEST_WAIT
        for action in actions(state, policy, now):
            for event in react(action, state):
                state = apply(state, event, now)
        if state.in_flight:
            attempt = data.draw(st.sampled_from(sorted(state.in_flight, key=str)))
            state = apply(state, draw_outcome(data, attempt, state), now)
    if state.paused is not None:
        assert state.stopped is None and not state.in_flight
        return
    assert state.stopped is not None
    assert {item.status for item in state.runs.values()} <= {
        RunStatus.MEASURED,
        RunStatus.GIVEN_UP,
        RunStatus.SKIPPED,
    }


def react(action: Action, state: State) -> list[events.Event]:
    match action:
        case Submit(attempt, need):
            return [attempt_intended(attempt, need.limit, cores=need.cores, reserved=need.reserved)]
        case Fit(number):
            return [events.RoundCompleted(round=number, smape=1.0, width=None, improved=False)]
        case Assess():
            return [events.ModelsAssessed(smape=1.0, width=None, widest=None, noise=None, narrow=False)]
        case Propose(number):
            runs = tuple(replace(run, repetition=number) for run in RUNS)
            return [events.RoundProposed(number, runs, ("",) * 3)]
        case decided:
            return [decided]


def draw_outcome(data: st.DataObject, attempt: Attempt, state: State) -> events.Event:
    failure = data.draw(st.one_of(st.none(), st.sampled_from(FailureClass)))
    cost = data.draw(st.floats(0, state.in_flight[attempt].reserved))
    return attempt_finished(attempt, cost, failure=failure, reason="drawn")


def test_a_round_in_which_nothing_was_measured_does_not_count_against_patience() -> None:
    state = after(
        *ONE_MEASURED,
        events.RoundCompleted(round=1, smape=5.0, width=0.5, improved=True),
        events.RoundProposed(2, RUNS[:1], ("",)),
        events.RunSkipped(RUNS[0], "too expensive"),
        events.RoundCompleted(round=2, smape=5.0, width=0.5, improved=False, measured=False),
    )
    assert state.rounds_without_improvement == 0 and state.rounds_completed == 2


def test_models_of_what_is_left_are_assessed_once_before_anything_is_decided() -> None:
    policy = replace(POLICY, patience=2)
    rounds = [events.RoundCompleted(round=1, smape=5.0, width=0.02, improved=True, narrow=True)] * 2
    before = after(*ONE_MEASURED, *rounds)
    assert [type(action) for action in actions(before, policy)] == [events.StopRuleReached]
    run = next(run for run, item in before.runs.items() if item.status is RunStatus.MEASURED)
    gone = after(events.MeasurementsDiscarded((run,), "hot"), state=before)
    assert actions(gone, policy) == [Assess()]
    for narrow, next_one in ((True, events.StopRuleReached), (False, Propose)):
        assessed = events.ModelsAssessed(smape=5.0, width=0.03, widest=0.03, noise=0.1, narrow=narrow)
        now = after(assessed, state=gone)
        assert (now.uncertainty, now.smape, now.rounds_without_improvement) == (0.03, 5.0, 0)
        assert [type(action) for action in actions(now, policy)] == [next_one]


def begun(policy: Policy, seconds: float | None = None) -> int:
    found = next_actions(after(PROPOSED), policy, 1.0, estimates(seconds=seconds))
    assert all(isinstance(action, Submit) for action in found)
    return len(found)


def test_the_budget_keeps_what_the_validation_may_cost() -> None:
    nine = replace(POLICY, max_pending=3, validation_point=Point.of(p=9))  # at most 90; the runs at most 60
    assert begun(replace(nine, budget=149.0)) == 2
    assert begun(replace(nine, budget=150.0)) == 3
    # Expected to take 4 s, or 5: half of the budget is kept for the case that it takes longer.
    assert begun(replace(nine, budget=120.0), seconds=4.0) == 3
    assert begun(replace(nine, budget=119.0), seconds=4.0) == 2


def test_nothing_is_kept_for_a_validation_that_the_budget_does_not_hold() -> None:
    nine = replace(POLICY, max_pending=3, validation_point=Point.of(p=9), budget=89.0)
    assert begun(nine) == 3
    assert begun(nine, seconds=7.0) == 1


@settings(max_examples=200, deadline=None)
@given(
    st.data(),
    st.floats(5, 300),
    st.integers(1, 5),
    st.floats(0.1, 60),
    st.one_of(st.none(), st.floats(0.1, 60)),
)
def test_whatever_is_known_the_budget_holds_with_what_is_kept_for_the_validation(
    data: st.DataObject, budget: float, places: int, seconds: float, limit: float | None
) -> None:
    """Estimates change from decision to decision, as those of models do; attempts time out."""
    validation = Run(Point.of(p=4))
    policy = replace(POLICY, budget=budget, max_pending=places, validation_point=validation.point)
    state = after(PROPOSED)._replace(time_limit=5.0)
    for step in range(200):
        if state.stopped is not None or decide.is_paused(state):
            break
        now = step * setbacks.LONGEST_WAIT
        factor = data.draw(st.sampled_from([0.5, 1.0, 1.1, 3.0]))
        known = estimates(limit, seconds=seconds * factor, longest=seconds * factor * 1.5, margin=2.0)
        for action in next_actions(state, policy, now, known):
            if isinstance(action, Submit) and action.attempt.run != validation:
                kept = kept_for_validation(state, policy, known)
                assert state.spent + state.reserved + action.reservation.reserved + kept <= budget + 1e-9
            for event in react(action, state):
                state = apply(state, event, now)
        assert state.spent + state.reserved <= budget + 1e-9
        if state.in_flight:
            attempt = data.draw(st.sampled_from(sorted(state.in_flight, key=str)))
            state = apply(state, draw_outcome(data, attempt, state), now)
    if state.paused is not None:
        return
    assert state.stopped is not None
    something = any(item.status is RunStatus.MEASURED for item in state.runs.values())
    assert something is (validation in state.runs), "measured, given up or skipped with the figures"


def test_a_run_gets_the_limit_that_fits_the_budget_if_that_is_what_it_likely_takes() -> None:
    last = Run(Point.of(p=4))
    state = after(events.RoundProposed(1, (last,), ("last",)))
    policy = replace(POLICY, budget=50.0)  # its reservation is 4 * min(60, 2 * 10)
    [submit] = next_actions(state, policy, 1.0, estimates(60.0, longest=10.0, margin=2.0))
    assert isinstance(submit, Submit)
    assert 10.0 <= submit.reservation.limit <= 12.5 and submit.reservation.reserved <= 50.0
    [skip] = next_actions(state, policy, 1.0, estimates(60.0, longest=13.0, margin=2.0))
    assert isinstance(skip, events.RunSkipped)
    [skip] = next_actions(state, policy, 1.0, estimates(60.0))
    assert isinstance(skip, events.RunSkipped), "nothing is known of it"
