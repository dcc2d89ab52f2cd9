"""What to do next: a pure function of the state and of figures that were computed before. The loop obeys.

`next_actions` returns actions that can all be done at once, in order; an empty list means: wait for what
is in flight. Stop rules, retries and the budget live here and nowhere else. No model can be fitted here:
what the models say about open runs arrives as a table (`orchestrator.policy.estimates`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator import resources
from orchestrator.journal import setbacks
from orchestrator.journal.attempt_end import RECENT
from orchestrator.journal.references import is_reference
from orchestrator.journal.state import (
    InFlight,
    RunState,
    RunStatus,
    State,
    has_measured,
    measured_before,
    validation_run,
)
from orchestrator.policy import failing
from orchestrator.policy.estimates import Estimates
from orchestrator.policy.packing import Job, JobPlan, SharingRules
from orchestrator.policy.placement import Placement
from orchestrator.resources import Reservation
from orchestrator.types import Attempt, FailureClass, Point, Run, RunKind
from orchestrator.units import CostUnit, count, format_cost, format_duration, in_unit, uncertainty

VALIDATION_SHARE = 0.5  # of what is left is kept back for more than the expected time of the validation
# Factor on λ: so many rounds without gain end a campaign although they cost next to nothing. Chosen by hand.
LONGEST_PATIENCE = 10
_WHOLE = 10.0  # seconds from which on whole ones are exact enough
_NOTICEABLE = 0.01  # share of the budget from which charges beyond reservations are named as a cause
CONFIRMATION = 600.0  # seconds to wait for the real charges of attempts, when nothing else is left to do
LONGEST_OUTAGE = 86400.0  # seconds to wait for them at most while accounting does not answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The campaign's rules.

    Attributes
    ----------
    budget
        Core-seconds.
    patience
        λ: rounds without gain after which the campaign may stop.
    failures
        Consecutive runs given up after which the campaign stops.
    max_pending
        Most jobs that are queued or running.
    retries
        Further attempts per class of failure.
    wall_time
        Seconds.
    rule
        What a gain is: ``uncertainty``, or ``smape``, the papers' rule. That has no further condition.
    without_gain
        Share of the budget that must be spent without gain, too, before the campaign stops.
    width
        Relative width of intervals at P₊ that is narrow enough; if given, nothing else is.
    failure_rate
        Share of failures among the last attempts that stops the campaign.
    infrastructure
        Core-seconds of attempts that failed because of the infrastructure after which the campaign pauses.
    validation_point
        Where one run checks the models at the end.
    sharing
        Which runs may share a job; None: every attempt has a job of its own.
    placement
        Which nodes runs are asked onto.
    unit
        In which messages give costs.
    """

    budget: float
    patience: int
    failures: int
    max_pending: int
    retries: Mapping[FailureClass, int]
    wall_time: float | None = None
    rule: str = "uncertainty"
    without_gain: float = 0.0
    width: float | None = None
    failure_rate: float | None = None
    infrastructure: float = math.inf
    validation_point: Point | None = None
    sharing: SharingRules | None = None
    placement: Placement = "any"
    unit: CostUnit = "core-hours"


@dataclass(frozen=True, slots=True)
class Submit:
    """Journal an intent with its reservation, then submit the attempt.

    Attempts with the same ``pack`` share a job in this order; ``pack`` is the first of them.
    """

    attempt: Attempt
    reservation: Reservation
    pack: Attempt | None = None


@dataclass(frozen=True, slots=True)
class GiveUp:
    """No further attempt at this run."""

    run: Run
    reason: str


@dataclass(frozen=True, slots=True)
class Skip:
    """Do not begin this run; ``unaffordable``: because the budget left cannot hold it."""

    run: Run
    reason: str
    unaffordable: bool = False


@dataclass(frozen=True, slots=True)
class Fit:
    """Refit the models: the round is complete."""

    round: int


@dataclass(frozen=True, slots=True)
class Assess:
    """Journal how good the models are of what is left after measurements were discarded or restored."""


@dataclass(frozen=True, slots=True)
class Propose:
    """Ask the strategy for a round."""

    round: int


@dataclass(frozen=True, slots=True)
class Validate:
    """Propose one run at the evaluation point."""

    run: Run


@dataclass(frozen=True, slots=True)
class Pause:
    """Begin nothing more until somebody resumes the campaign."""

    cause: str
    detail: str


@dataclass(frozen=True, slots=True)
class BeginStop:
    """A stop rule holds: propose nothing more."""

    rule: str
    detail: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Everything is settled: end the campaign."""

    rule: str
    detail: str


Action = Submit | GiveUp | Skip | Fit | Assess | Propose | Validate | Pause | BeginStop | Stop


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
    if state.stopping is None:
        rule = _urgent_rule(state, policy, now)
        if rule is not None:
            return [rule]
    elif state.validation is None or state.queue != (state.validation,):
        dropped = _drop_unbegun(state)
        if dropped:
            return dropped
    given_up = _give_up(state, policy, estimates)
    if given_up:
        return given_up
    # A clock that was set back must not make the wait longer than that much twice.
    silent = any(abs(now - outage.since) < LONGEST_OUTAGE for outage in state.outages.values())
    confirming = bool(state.unconfirmed) and (silent or abs(now - state.time) < CONFIRMATION)
    work = _begin(state, policy, estimates, may_wait=bool(state.in_flight) or confirming)
    if any(isinstance(action, Submit) for action in work):
        if (pause := _pause(state, policy)) is not None:
            return [pause]
        if state.blocked or abs(now - state.setbacks.last) < state.setbacks.wait:
            return []
    if work or state.in_flight or (confirming and any(True for _ in _candidates(state))):
        return work
    if state.stopping is not None:
        last = _finish(state, policy, estimates)
        return [] if confirming and isinstance(last, Stop) else [last]
    if state.rounds_completed < state.round:
        return [Fit(state.round)]
    return [_after_round(state, policy, estimates)]


def _urgent_rule(state: State, policy: Policy, now: float) -> BeginStop | None:
    """Return the stop rule that holds in the middle of a round, too.

    Failures at points where the program does not run say nothing of the others.
    """
    if policy.wall_time is not None and state.started is not None and now - state.started >= policy.wall_time:
        return BeginStop("wall_time", f"{now - state.started:.0f} s of {policy.wall_time:.0f} s have passed")
    if state.consecutive_given_up >= policy.failures and _elsewhere(state)[0] >= policy.failures:
        reasons = [item.reason for item in state.runs.values() if item.status is RunStatus.GIVEN_UP]
        detail = f"{count(state.consecutive_given_up, 'point')} in a row were given up"
        return BeginStop("failures", f"{detail}; {_cause(reasons)}")
    rate, failed = policy.failure_rate, [reason for reason in state.recent if reason]
    if rate is None or len(state.recent) < RECENT:
        return None
    if len(failed) >= rate * RECENT and _elsewhere(state)[1] >= rate * RECENT:
        detail = f"{len(failed)} of the last {RECENT} attempts failed"
        return BeginStop("failure_rate", f"{detail}; {_cause(failed)}")
    return None


def _elsewhere(state: State) -> tuple[float, float]:
    """Return how many points were given up, and how many attempts failed, outside regions that fail.

    Without such regions that is no bound on either.
    """
    known = failing.regions(state)
    if not known:
        return math.inf, math.inf
    runs = [(run, item) for run, item in state.runs.items() if not failing.why_not(run.point, known)]
    points = {run.point for run, item in runs if item.status is RunStatus.GIVEN_UP}
    return len(points), sum(len(item.failures) for _, item in runs)


def for_want_of_runs(state: State, rule: str, detail: str) -> BeginStop:
    """Return the stop where a strategy proposes nothing: because of failures if nothing could be measured."""
    failed = [item.reason for item in state.runs.values() if item.status is RunStatus.GIVEN_UP]
    if failed and not has_measured(state):
        return BeginStop("failures", f"every run was given up; {_cause(failed)}")
    return BeginStop(rule, "; ".join([detail, *failing.warnings(state)]))


def _cause(reasons: Sequence[str]) -> str:
    """Return the most frequent of reasons with its number, as text."""
    reason, times = setbacks.most_frequent(reasons)
    return f"most often ({times} of {len(reasons)}): {reason}" if reason else "the reason is not known"


def _pause(state: State, policy: Policy) -> Pause | None:
    """Return the pause that failures of the infrastructure require before anything more is begun."""
    known = state.setbacks
    if known.since_resumed > 0 and known.since_resumed >= policy.infrastructure:
        cost = format_cost(known.since_resumed, policy.unit)
        share = in_unit(policy.infrastructure, policy.unit)
        detail = f"attempts that failed because of it cost {cost}, {share} are allowed"
    elif known.tries >= setbacks.MOST:
        detail = f"{known.tries} tries in a row failed because of it, with growing waits between them"
    else:
        return None
    return Pause("infrastructure", f"{detail}; {_cause(known.reasons)}")


def _drop_unbegun(state: State) -> list[Action]:
    assert state.stopping is not None
    return [Skip(run, f"the campaign stops: {state.stopping.rule}") for run in _candidates(state)]


def _give_up(state: State, policy: Policy, estimates: Estimates) -> list[Action]:
    actions: list[Action] = []
    for run in state.failed:
        item = state.runs[run]
        if not item.failures:
            continue
        reason = f"{_reason(state, run)} ({count(len(item.failures), 'attempt')})"
        if not _may_retry(item, policy):
            actions.append(GiveUp(run, reason))
        elif item.failures[-1] is FailureClass.TIMEOUT and not estimates.fits_next(state, run):
            bound = estimates.points[run.point].bound
            actions.append(GiveUp(run, f"{reason}; {bound} permits no longer one"))
    return actions


def _may_retry(item: RunState, policy: Policy) -> bool:
    """Whether another attempt may follow; failures of the infrastructure do not count, its refusals do."""
    last = item.failures[-1]
    number = item.refused if last is FailureClass.INFRASTRUCTURE else item.failures.count(last)
    return number <= policy.retries.get(last, 0)


def _reason(state: State, run: Run) -> str:
    item = state.runs[run]
    return f"{item.failures[-1]}: {item.reason}" if item.failures else "it was withdrawn"


def _candidates(state: State) -> Iterator[Run]:
    """Failed runs to be tried again come first, then the round's queue."""
    yield from state.failed
    yield from state.waiting


def _begin(state: State, policy: Policy, estimates: Estimates, may_wait: bool) -> list[Action]:
    """Fill free places, in order; a run that does not fit the budget waits where it may.

    It may wait while other attempts are in flight, or while charges are estimates. Whether the run fits later
    depends on the real charges, never on the order in which attempts finish.
    """
    chosen: dict[Run, Action] = {}
    reserved = state.reserved
    waiting = list(_candidates(state))
    plan = JobPlan(
        state=state,
        estimates=estimates,
        rules=policy.sharing,
        waiting=waiting,
        places=policy.max_pending - state.jobs,
        placement=policy.placement,
    )
    kept = kept_for_validation(state, policy, estimates)
    budget = policy.budget - kept
    tried_again = _tried_again(state)
    known = failing.regions(state) if waiting else ()
    seen: list[Run] = []
    for run in waiting:
        seen.append(run)
        if run.point in state.infeasible:
            chosen[run] = Skip(run, f"{run.point} was given up")
            continue
        may_fail = run == state.validation or state.runs[run].failures  # what was begun may have its retries
        if not may_fail and (why := failing.why_not(run.point, known)):
            chosen[run] = Skip(run, why)
            continue
        if (why := estimates.points[run.point].too_long) and not measured_before(state, run):
            chosen[run] = Skip(run, why)
            continue
        if tried_again.get((run.kind, run.point), run) != run:
            continue
        alone = estimates.reservation(state, run)
        if run == state.validation:  # what is left has no other use
            alone = estimates.fitting(state, run, budget - state.spent - reserved) or alone
        job = plan.job_for(run, alone)
        if plan.is_held(run, job):
            continue
        if job is None and len(plan.jobs) >= plan.places:
            break
        more = plan.more(job, alone)
        if not resources.affordable(budget, state.spent, reserved, more):
            if may_wait or plan.jobs:
                break
            smaller = estimates.fitting(state, run, budget - state.spent - reserved)
            if smaller is None:
                chosen[run] = _unaffordable(budget - state.spent, kept, run, alone, policy.unit)
                continue
            alone, more = smaller, smaller.reserved
        plan.add(run, alone, job)
        reserved += more
    chosen |= {item.attempt.run: item for job in plan.jobs for item in _submissions(plan, job)}
    return [chosen[run] for run in seen if run in chosen]  # in order, whatever shares a job


def _tried_again(state: State) -> dict[tuple[RunKind, Point], Run]:
    """Return the run that is tried again at each point at which nothing but failures happened so far.

    Other runs there wait for it: they would fail alike, each as often as a run may.
    """

    def failing(runs: Iterable[Run]) -> list[Run]:
        own = (run for run in runs if set(state.runs[run].failures) - {FailureClass.INFRASTRUCTURE})
        return sorted((run for run in own if not measured_before(state, run)), key=lambda run: run.repetition)

    found: dict[tuple[RunKind, Point], Run] = {}
    for run in (*failing(attempt.run for attempt in state.in_flight), *failing(state.failed)):
        found.setdefault((run.kind, run.point), run)
    return found


def _submissions(plan: JobPlan, job: Job) -> list[Submit]:
    attempts = [Attempt(run, plan.state.runs[run].attempts + 1) for run in job.runs]
    pack = attempts[0] if len(attempts) > 1 else None
    reservations = plan.reservations(job)
    return [Submit(attempt, item, pack) for attempt, item in zip(attempts, reservations, strict=True)]


def kept_for_validation(state: State, policy: Policy, estimates: Estimates) -> float:
    """Return the core-seconds kept back for the validation that the user asked for; 0 once it is proposed.

    That is its reservation by what is known now. Where that is more than a share of what is left, because the
    models are not certain yet, it is that share, but never less than the validation needs if it takes as long
    as expected. Else uncertain models would end the measurements that make them certain. Nothing is kept back
    where even that exceeds what is left.
    """
    if policy.validation_point is None or state.validation is not None:
        return 0.0
    run, left = validation_run(state, policy.validation_point), policy.budget - state.spent
    least = estimates.least(state, run).reserved
    if least > left:
        return 0.0
    return max(least, min(estimates.reservation(state, run).reserved, VALIDATION_SHARE * left))


def _seconds(value: float) -> str:
    return format_duration(round(value) if value >= _WHOLE else value)


def _unaffordable(left: float, kept: float, run: Run, need: Reservation, unit: CostUnit) -> Skip:
    comma = "," if "," in (what := occupied(need)) else ""
    cost = format_cost(need.reserved, unit)
    reason = f"{what}{comma} may cost {cost}, {in_unit(left, unit)} are left{_beside(kept, unit)}"
    return Skip(run, reason, unaffordable=True)


def _beside(kept: float, unit: CostUnit) -> str:
    """Return what is kept for the validation beside what is left, as text."""
    return f" beside {in_unit(kept, unit)} for the validation" if kept else ""


def occupied(need: Reservation) -> str:
    """Return what a reservation is for, as text: cores, the time limit, and what ending a run may take."""
    text = f"{count(need.cores, 'core')} for up to {_seconds(need.limit)}"
    beyond = need.reserved / need.cores - need.limit
    return (
        f"{text}, and for {_seconds(beyond)} until a run that takes longer has ended" if beyond >= 1 else text
    )


def _after_round(state: State, policy: Policy, estimates: Estimates) -> Action:
    """All runs of the last round are settled and the models are refitted."""
    if state.round == 0:
        return Propose(1)
    if state.reassess:
        return Assess()
    chosen = [state.runs[run] for run in state.queue if not is_reference(state, run)]
    skipped = all(item.status is RunStatus.SKIPPED for item in chosen)
    # Those that are skipped for other reasons, such as a new time limit, are not proposed again.
    if skipped and any(item.unaffordable for item in chosen):
        kept = _beside(kept_for_validation(state, policy, estimates), policy.unit)
        detail = f"{_budget_spent(state, policy)}; no run of the last round fits what is left{kept}"
        return BeginStop("budget", detail)
    if policy.width is not None and state.widest is not None and state.widest <= policy.width:
        return BeginStop(
            "precision",
            f"no relevant interval {_place(state)} is wider than {uncertainty(state.widest)}",
        )
    return _converged(state, policy) or _patience(state, policy) or Propose(state.round + 1)


def _place(state: State) -> str:
    """Return where the uncertainty of a state is known."""
    return "over the search space" if state.targets else "at the evaluation point"


def _converged(state: State, policy: Policy) -> BeginStop | None:
    """Stop where the intervals at P₊ were as narrow as the noise permits for λ rounds in a row."""
    if policy.rule == "smape" or policy.width is not None or state.narrow_rounds < policy.patience:
        return None
    width, noise = (uncertainty(value or 0.0) for value in (state.uncertainty, state.noise))
    return BeginStop(
        "converged",
        f"the uncertainty {_place(state)} is {width}, where 90 % of single runs lie within a range of "
        f"{noise}; {_budget_spent(state, policy)}",
    )


def _patience(state: State, policy: Policy) -> BeginStop | None:
    """Stop after λ rounds without gain in which a share of the budget was spent, or ten times as many."""
    rounds = state.rounds_without_improvement
    if rounds < policy.patience:
        return None
    detail = f"{count(rounds, 'round')} without improvement"
    if policy.rule == "smape":
        return BeginStop("patience", detail)
    share = (state.spent - state.spent_at_gain) / policy.budget
    if share < policy.without_gain and rounds < LONGEST_PATIENCE * policy.patience:
        return None
    return BeginStop("patience", f"{detail}, in which {100 * share:.3g} % of the budget were spent")


def _budget_spent(state: State, policy: Policy) -> str:
    """Return what the campaign had spent when a rule held; a validation may follow."""
    unit = policy.unit
    late = ""
    if state.beyond > _NOTICEABLE * policy.budget:
        late = (
            f", {in_unit(state.beyond, unit)} of them because jobs were charged longer than their "
            "time limits: the scheduler noticed late that they had ended"
        )
    return f"{in_unit(state.spent, unit)} of {format_cost(policy.budget, unit)} were spent by then{late}"


def _finish(state: State, policy: Policy, estimates: Estimates) -> Action:
    """After a stop rule, with nothing in flight: refit, validate if wanted, end."""
    assert state.stopping is not None
    if state.rounds_completed < state.round:
        return Fit(state.round)
    if state.validation is None and policy.validation_point is not None and has_measured(state):
        # Skipped with the figures where it does not fit.
        return Validate(validation_run(state, policy.validation_point))
    return Stop(state.stopping.rule, state.stopping.detail)


def is_paused(state: State) -> bool:
    """Return whether nothing is left to do until somebody resumes the campaign."""
    return state.paused is not None and not state.in_flight


def unresolved(state: State) -> dict[Attempt, InFlight]:
    """Return the intents whose submission was never confirmed: look them up before anything else."""
    return {attempt: item for attempt, item in state.in_flight.items() if not item.submitted}
