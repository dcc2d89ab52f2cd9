"""What to do next: a pure function of the state and of figures that were computed before. The loop obeys.

`next_actions` returns actions that can all be done at once, in order; an empty list means: wait for what
is in flight. Retries are decided here, stop rules in `orchestrator.policy.stop_rules`, what fits the budget
in `orchestrator.policy.beginning`, and none of it elsewhere. What may be asked of the loop is in
`orchestrator.policy.actions`. No model can be fitted here: what the models say
about open runs arrives as a table (`orchestrator.policy.estimates`).
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.journal.events import (
    CampaignStopped,
    RunGivenUp,
    RunSkipped,
    StopWithdrawn,
    ValidationProposed,
)
from orchestrator.journal.state import InFlight, RunState, RunStatus, State, has_measured, validation_run
from orchestrator.policy import failing, stop_rules
from orchestrator.policy.actions import Action, Assess, Fit, Propose, Submit
from orchestrator.policy.beginning import begin, candidates
from orchestrator.policy.estimates import Estimates
from orchestrator.policy.regions import Region
from orchestrator.policy.rules import Policy
from orchestrator.types import Attempt, FailureClass, Run
from orchestrator.units import count

CONFIRMATION = 600.0  # seconds to wait for the real charges of attempts, when nothing else is left to do
LONGEST_OUTAGE = 86400.0  # seconds to wait for them at most while accounting does not answer
# Rules that may hold because of what is kept back for the validation, and how many times what was left beside
# it must be left after it for rounds to go on. Chosen by hand.
_FOR_WANT_OF_BUDGET = ("budget", "exhausted")
_MORE = 1.1
# Failures after which another attempt may succeed: elsewhere, with more time or memory.
_MAY_PASS = (FailureClass.INFRASTRUCTURE, FailureClass.TIMEOUT, FailureClass.MEMORY)


def next_actions(state: State, policy: Policy, now: float, estimates: Estimates) -> list[Action]:
    """Return what to do now.

    Parameters
    ----------
    state
        The replay of the journal.
    policy
        The campaign's rules.
    now
        Unix seconds, on the executor's clock.
    estimates
        What was known of the open runs before this decision.
    """
    if state.stopped is not None or state.paused is not None:
        return []
    ending = _end(state, policy, now)
    if ending:
        return ending
    fails = failing.regions(state) if state.failed or state.waiting else ()
    given_up = _give_up(state, policy, estimates, fails)
    if given_up:
        return given_up
    confirming = _awaits_charges(state, now)
    work = begin(state, policy, estimates, fails, may_wait=bool(state.in_flight) or confirming)
    if any(isinstance(action, Submit) for action in work):
        return _unless_held(work, state, policy, now)
    if work or state.in_flight or (confirming and any(True for _ in candidates(state))):
        return work
    return _after_all_runs(state, policy, estimates, confirming)


def _end(state: State, policy: Policy, now: float) -> list[Action]:
    """Begin to stop where a rule says so at any time; then skip runs not begun, but for the validation."""
    if state.stopping is None:
        rule = stop_rules.at_any_time(state, policy, now)
        return [] if rule is None else [rule]
    if _validates(state):
        return []
    why = f"the campaign stops: {state.stopping.rule}"
    return [RunSkipped(run, why, unaffordable=False) for run in candidates(state)]


def _awaits_charges(state: State, now: float) -> bool:
    """Whether charges that are estimates may still be replaced by real ones."""
    # A clock that was set back must not make the wait longer than that much twice.
    silent = any(abs(now - outage.since) < LONGEST_OUTAGE for outage in state.outages.values())
    return bool(state.unconfirmed) and (silent or abs(now - state.time) < CONFIRMATION)


def _unless_held(work: list[Action], state: State, policy: Policy, now: float) -> list[Action]:
    """Return what begins runs, a pause instead, or nothing during outages and soon after setbacks."""
    if (pause := stop_rules.pause(state, policy)) is not None:
        return [pause]
    if state.blocked or abs(now - state.setbacks.last) < state.setbacks.wait:
        return []
    return work


def _after_all_runs(state: State, policy: Policy, estimates: Estimates, confirming: bool) -> list[Action]:
    """Return what follows when all runs of a round are settled: models, a stop, or the next round."""
    if state.stopping is not None:
        last = _finish(state, policy, estimates)
        return [] if confirming and isinstance(last, CampaignStopped) else [last]
    if state.rounds_completed < state.round:
        return [Fit(state.round)]
    if state.round == 0:
        return [Propose(1)]
    if state.reassess:
        return [Assess()]
    return [stop_rules.after_round(state, policy) or Propose(state.round + 1)]


def unbegun(state: State) -> list[Attempt]:
    """Return the attempts that wait for a job or for cores though the campaign stops: they are withdrawn.

    A queue may let them begin days later. What belongs to a job that has begun is left to it.
    """
    if state.stopping is None or _validates(state):
        return []
    begun = {item.pack for item in state.in_flight.values() if item.running and item.pack}
    begun |= {item.pack for item in state.unconfirmed.values()}
    return [
        attempt
        for attempt, item in state.in_flight.items()
        if not item.running and not (item.pack and item.pack in begun)
    ]


def _validates(state: State) -> bool:
    """Whether the runs of the rounds are over, and the validation is what is left."""
    return state.validation is not None and state.queue == (state.validation,)


def _give_up(state: State, policy: Policy, estimates: Estimates, fails: Sequence[Region]) -> list[Action]:
    actions: list[Action] = []
    for run in state.failed:
        item = state.runs[run]
        if not item.failures:
            continue
        reason = f"{_reason(state, run)} ({count(len(item.failures), 'attempt')})"
        if _is_expected(state, run, fails):
            actions.append(RunGivenUp(run, reason))
        elif not _may_retry(item, policy):
            timed_out = item.failures[-1] is FailureClass.TIMEOUT  # more time might do
            more = "; retries.timeout permits no further attempt" if timed_out else ""
            actions.append(RunGivenUp(run, f"{reason}{more}"))
        elif item.failures[-1] is FailureClass.TIMEOUT and not estimates.fits_next(state, run):
            bound = estimates.points[run.point].bound
            actions.append(RunGivenUp(run, f"{reason}; {bound} permits no longer one"))
    return actions


def _may_retry(item: RunState, policy: Policy) -> bool:
    """Whether another attempt may follow; failures of the infrastructure do not count, its refusals do."""
    last = item.failures[-1]
    number = item.refused if last is FailureClass.INFRASTRUCTURE else item.failures.count(last)
    return number <= policy.retries.get(last, 0)


def _is_expected(state: State, run: Run, fails: Sequence[Region]) -> bool:
    """Whether a run failed as others around it did, so that another attempt would fail alike.

    Further runs at a point that was given up are skipped instead.
    """
    passes = state.runs[run].failures[-1] in _MAY_PASS or run.point in state.infeasible
    return not passes and any(region.explains(run.point) for region in fails)


def _reason(state: State, run: Run) -> str:
    item = state.runs[run]
    return f"{item.failures[-1]}: {item.reason}" if item.failures else "it was withdrawn"


def _finish(state: State, policy: Policy, estimates: Estimates) -> Action:
    """After a stop rule, with nothing in flight: refit, validate if wanted, end or go on with the rest."""
    assert state.stopping is not None
    if state.rounds_completed < state.round:
        return Fit(state.round)
    if state.validation is None and policy.validation_point is not None and has_measured(state):
        # Skipped with the figures where it does not fit.
        return ValidationProposed(validation_run(state, policy.validation_point))
    left = _left_by_validation(state, policy)
    if left > 0:
        return StopWithdrawn(left)
    return CampaignStopped(state.stopping.rule, state.stopping.detail)


def _left_by_validation(state: State, policy: Policy) -> float:
    """Return what the validation left of what was kept for it, if only that had been missing; else 0."""
    stop, run = state.stopping, state.validation
    if stop is None or run is None or stop.rule not in _FOR_WANT_OF_BUDGET:
        return 0.0
    item, left = state.runs[run], policy.budget - state.spent
    before = left + item.cost - stop.kept
    made = item.status in (RunStatus.MEASURED, RunStatus.GIVEN_UP)
    return left if made and left > _MORE * max(before, 0.0) else 0.0


def is_paused(state: State) -> bool:
    """Return whether nothing is left to do until somebody resumes the campaign."""
    return state.paused is not None and not state.in_flight


def unresolved(state: State) -> dict[Attempt, InFlight]:
    """Return the intents whose submission was never confirmed: look them up before anything else."""
    return {attempt: item for attempt, item in state.in_flight.items() if not item.submitted}
