"""Failures of the infrastructure: repeated, with growing waits, up to a share of the budget."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.journal import events, setbacks
from orchestrator.journal.replay import apply
from orchestrator.journal.state import State
from orchestrator.policy import decide
from orchestrator.policy.actions import Action, Submit
from orchestrator.policy.decide import next_actions
from orchestrator.policy.rules import Policy
from orchestrator.types import Attempt, FailureClass, Point, Run
from tests.journal.attempts import attempt_finished, attempt_intended
from tests.policy.known import estimates

ONE = Run(Point.of(p=1))
POLICY = Policy(
    budget=1000.0,
    patience=2,
    failures=3,
    max_pending=2,
    retries=dict.fromkeys(FailureClass, 0),
    failure_rate=0.1,
    infrastructure=100.0,
)


class Night:
    """A campaign of one run, whose attempts end as a test says."""

    def __init__(self, policy: Policy = POLICY) -> None:
        self.now, self.policy = 0.0, policy
        self.state = apply(State(), events.RoundProposed(1, (ONE,), ("",)), self.now)

    def happens(self, *new: events.Event) -> None:
        for event in new:
            self.state = apply(self.state, event, self.now)

    def actions(self) -> list[Action]:
        return next_actions(self.state, self.policy, self.now, estimates())

    def until_begun(self) -> float:
        """Return the seconds until the next attempt is begun, in steps of ten; begin it."""
        waited = 0.0
        while not (found := self.actions()):
            self.now, waited = self.now + 10.0, waited + 10.0
        (submit,) = found
        assert isinstance(submit, Submit)
        self.happens(attempt_intended(submit.attempt))
        return waited

    def fails(self, cost: float = 1.0, failure: FailureClass | None = FailureClass.INFRASTRUCTURE) -> None:
        """End the attempt in flight a second later."""
        (attempt,) = self.state.in_flight
        self.now += 1.0
        self.happens(attempt_finished(attempt, cost, failure=failure, reason="Slurm: NODE_FAIL"))


def test_a_run_is_repeated_with_waits_that_double_and_counts_for_no_stop_rule() -> None:
    night, waits = Night(), []
    for _ in range(setbacks.MOST):
        waits.append(night.until_begun())
        night.fails()
    assert waits == [0, 0, 60, 120, 240, 480, 960, 1800, 1800, 1800]
    assert night.state.recent == () and night.state.spent == setbacks.MOST
    (pause,) = night.actions()
    assert isinstance(pause, events.CampaignPaused)
    assert pause.cause == "infrastructure" and "10 tries in a row failed" in pause.detail
    assert pause.detail.endswith("most often (10 of 10): Slurm: NODE_FAIL")


@pytest.mark.parametrize("end", [None, FailureClass.TIMEOUT])
def test_an_attempt_that_ends_by_itself_ends_the_waits(end: FailureClass | None) -> None:
    night = Night(replace(POLICY, retries=dict.fromkeys(FailureClass, 9), failure_rate=None))
    for _ in range(3):
        night.until_begun()
        night.fails()
    night.until_begun()
    night.fails(failure=end)
    assert night.state.setbacks.tries == 0 and night.state.setbacks.charged == 3.0


def test_attempts_that_were_begun_together_are_one_try() -> None:
    known = setbacks.NONE
    for second in range(8):
        known = setbacks.failed(known, 1.0, begun=100.0, now=200.0 + second, reason="lost")
    assert known.tries == 1 and known.wait == 0 and known.charged == 8.0
    assert setbacks.failed(known, 1.0, begun=300.0, now=301.0, reason="lost").tries == 2


def test_attempts_that_overlap_are_further_tries() -> None:
    """Each is begun when another one fails, while more are queued: no instant is without one in flight."""
    known = setbacks.NONE
    for second in range(10):
        known = setbacks.failed(known, 1.0, begun=second - 2.0, now=float(second), reason="full")
    assert known.tries == 5 and known.wait == 480.0


def paused() -> Night:
    night = Night()
    for cost in (60.0, 50.0):
        night.until_begun()
        night.fails(cost)
    (pause,) = night.actions()
    assert isinstance(pause, events.CampaignPaused)
    assert "cost 0.03056 core-hours, 0.02778 are allowed" in pause.detail
    night.happens(events.CampaignPaused(pause.cause, pause.detail))
    return night


def test_beyond_its_share_of_the_budget_a_campaign_pauses_until_a_controller_starts() -> None:
    night = paused()
    night.now += 1e6
    assert night.actions() == [] and decide.is_paused(night.state)
    night.happens(events.ControllerStopped("paused"))
    assert decide.is_paused(night.state)
    night.happens(events.ControllerStarted(host="host", pid=1, version="1"))
    assert not decide.is_paused(night.state)
    assert night.until_begun() == 0
    night.fails(99.0)
    assert [type(action) for action in night.actions()] == [Submit], "another share of 100"
    night.until_begun()
    night.fails(2.0)
    assert [type(action) for action in night.actions()] == [events.CampaignPaused]


def test_a_controller_that_starts_without_a_pause_changes_no_bound() -> None:
    night = Night()
    for _ in range(3):
        night.until_begun()
        night.fails(30.0)
    before = night.state
    night.happens(events.ControllerStarted(host="host", pid=1, version="1"))
    assert night.state.setbacks == before.setbacks


def test_a_corrected_charge_corrects_what_failures_have_cost() -> None:
    night = Night()
    night.until_begun()
    attempt = Attempt(ONE)
    lost = attempt_finished(attempt, 10.0, failure=FailureClass.INFRASTRUCTURE, estimated=True)
    night.happens(lost)
    assert night.state.setbacks.charged == 10.0
    night.happens(events.AttemptCharged(attempt, 4.0, 4.0))
    assert night.state.setbacks.charged == 4.0


@pytest.mark.parametrize("change", ["cancelled", "refused"])
def test_attempts_that_the_user_ended_or_slurm_refused_are_no_setbacks(change: str) -> None:
    night = Night()
    night.until_begun()
    end = attempt_finished(Attempt(ONE), 0.0, failure=FailureClass.INFRASTRUCTURE, reason="no")
    night.happens(replace(end, cancelled=change == "cancelled", refused=change == "refused"))
    assert night.state.setbacks == setbacks.NONE
    expected = Submit if change == "cancelled" else events.RunGivenUp
    assert [type(action) for action in night.actions()] == [expected]


def test_reasons_that_differ_in_digits_only_are_the_same() -> None:
    reasons = ["job 7 failed", "disk full", "job 12 failed", "job 103 failed"]
    assert setbacks.most_frequent(reasons) == ("job 103 failed", 3)
    assert setbacks.most_frequent([]) == ("", 0)
