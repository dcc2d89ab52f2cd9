"""What to do next: a pure function of state. The loop obeys.

`next_actions` returns actions that can all be done at once, in order; an empty list means: wait for what
is in flight. Stop rules, retries and the budget live here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from orchestrator import resources
from orchestrator.journal.state import RECENT, InFlight, RunState, RunStatus, State
from orchestrator.policy.packing import Job, Packer, Plan
from orchestrator.resources import Reservation
from orchestrator.types import Attempt, FailureClass, Point, Run

VALIDATION_SHARE = 0.25  # of the budget is kept back for the validation, at most
CONFIRMATION = 600.0  # seconds to wait for what attempts really cost, when nothing else is left to do


@dataclass(frozen=True, slots=True)
class Policy:
    """The campaign's rules. ``budget`` in core-seconds, ``wall_time`` in seconds.

    ``retries`` are further attempts per class of failure; ``failures`` consecutive runs given up stop
    the campaign, as does a share ``failure_rate`` of failures among the last attempts; ``width`` (relative)
    is that of intervals at P₊ that are narrow enough.
    """

    budget: float
    patience: int
    failures: int
    max_pending: int
    retries: Mapping[FailureClass, int]
    wall_time: float | None = None
    width: float | None = None
    failure_rate: float | None = None
    validation_point: Point | None = None


@dataclass(frozen=True, slots=True)
class Submit:
    """Journal an intent with its reservation, then submit the attempt.

    Those with the same ``pack``, the first attempt of their job, share a job in this order.
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
    """Do not begin this run."""

    run: Run
    reason: str


@dataclass(frozen=True, slots=True)
class Fit:
    """Refit the models: the round is complete."""

    round: int


@dataclass(frozen=True, slots=True)
class Propose:
    """Ask the strategy for a round."""

    round: int


@dataclass(frozen=True, slots=True)
class Validate:
    """Propose one run at the evaluation point."""

    run: Run


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


Action = Submit | GiveUp | Skip | Fit | Propose | Validate | BeginStop | Stop


def next_actions(
    state: State,
    policy: Policy,
    now: float,
    reservation: Callable[[Run], Reservation],
    packer: Packer | None = None,
) -> list[Action]:
    """Return what to do now.

    Parameters
    ----------
    state
        The replay of the journal.
    policy
        The campaign's rules.
    now
        Unix seconds, on the executor's clock.
    reservation
        The most that one attempt at a run can be charged.
    packer
        Says which runs share a job; None: every attempt has its own.
    """
    if state.stopped is not None:
        return []
    if state.stopping is None:
        rule = _urgent_rule(state, policy, now)
        if rule is not None:
            return [rule]
    elif state.validation is None or state.queue != (state.validation,):
        dropped = _drop_unbegun(state)
        if dropped:
            return dropped
    given_up = _give_up(state, policy)
    if given_up:
        return given_up
    # A clock that was set back must not make the wait longer than that much twice.
    confirming = bool(state.unconfirmed) and abs(now - state.time) < CONFIRMATION
    work = _begin(state, policy, reservation, packer, bool(state.in_flight) or confirming)
    if work or state.in_flight or (confirming and any(True for _ in _candidates(state))):
        return work
    if state.stopping is not None:
        last = _finish(state, policy, reservation)
        return [] if confirming and isinstance(last, Stop) else [last]
    if state.rounds_completed < state.round:
        return [Fit(state.round)]
    return [_after_round(state, policy)]


def _urgent_rule(state: State, policy: Policy, now: float) -> BeginStop | None:
    """Rules that hold in the middle of a round, too."""
    if policy.wall_time is not None and state.started is not None and now - state.started >= policy.wall_time:
        return BeginStop("wall_time", f"{now - state.started:.0f} s of {policy.wall_time:.0f} s have passed")
    if state.consecutive_given_up >= policy.failures:
        return BeginStop("failures", f"{state.consecutive_given_up} runs in a row were given up")
    rate, failed = policy.failure_rate, sum(state.recent)
    if rate is not None and len(state.recent) == RECENT and failed >= rate * RECENT:
        return BeginStop("failure_rate", f"{failed} of the last {RECENT} attempts failed")
    return None


def _drop_unbegun(state: State) -> list[Action]:
    assert state.stopping is not None
    return [Skip(run, f"the campaign stops: {state.stopping.rule}") for run in _candidates(state)]


def _give_up(state: State, policy: Policy) -> list[Action]:
    actions: list[Action] = []
    for run in state.failed:
        item = state.runs[run]
        if item.failures and not _may_retry(item, policy):
            actions.append(GiveUp(run, f"{_reason(state, run)} ({_count(len(item.failures), 'attempt')})"))
    return actions


def _may_retry(item: RunState, policy: Policy) -> bool:
    last = item.failures[-1]
    return item.failures.count(last) <= policy.retries.get(last, 0)


def _reason(state: State, run: Run) -> str:
    item = state.runs[run]
    return f"{item.failures[-1]}: {item.reason}" if item.failures else "it was withdrawn"


def _candidates(state: State) -> Iterator[Run]:
    """Failed runs to be tried again come first, then the round's queue."""
    yield from state.failed
    yield from state.waiting


def _begin(
    state: State,
    policy: Policy,
    reservation: Callable[[Run], Reservation],
    packer: Packer | None,
    may_wait: bool,
) -> list[Action]:
    """Fill free places, in order; a run that does not fit the budget waits while it may.

    It may while others are in flight, or their charges estimated. Whether it fits later depends on what those
    really cost, never on the order in which they finish.
    """
    chosen: dict[Run, Action] = {}
    reserved = state.reserved
    waiting = list(_candidates(state))
    plan = Plan(packer, waiting, policy.max_pending - state.jobs)
    budget = policy.budget - _kept_for_validation(state, policy, reservation)
    seen: list[Run] = []
    for run in waiting:
        seen.append(run)
        if run.point in state.infeasible:
            chosen[run] = Skip(run, f"{run.point} was given up")
            continue
        need = reservation(run)
        job = plan.open_job(run, need)
        if job is None and len(plan.jobs) >= plan.places:
            break
        more = need.reserved if job is None else plan.more(job, need)
        if not resources.affordable(budget, state.spent, reserved, more):
            if not may_wait and not plan.jobs:
                chosen[run] = _unaffordable(budget - state.spent, run, need)
                continue
            break
        plan.add(run, need, job)
        reserved += more
    chosen |= {item.attempt.run: item for job in plan.jobs for item in _submissions(state, plan, job)}
    return [chosen[run] for run in seen if run in chosen]  # in order, whatever shares a job


def _submissions(state: State, plan: Plan, job: Job) -> list[Submit]:
    attempts = [Attempt(run, state.runs[run].attempts + 1) for run in job.runs]
    pack = attempts[0] if len(attempts) > 1 else None
    needs = plan.reservations(job)
    return [Submit(attempt, need, pack) for attempt, need in zip(attempts, needs, strict=True)]


def _kept_for_validation(state: State, policy: Policy, reservation: Callable[[Run], Reservation]) -> float:
    """Return the core-seconds kept back for the validation that the user asked for.

    Nothing where that is more than a share of the budget: measuring comes first.
    """
    if policy.validation_point is None or state.validation is not None:
        return 0.0
    need = reservation(Run(policy.validation_point)).reserved
    return need if need <= VALIDATION_SHARE * policy.budget else 0.0


def _unaffordable(left: float, run: Run, need: Reservation) -> Skip:
    return Skip(
        run,
        f"{need.cores} cores for up to {need.limit:.0f} s may cost "
        f"{resources.core_hours(need.reserved):.4g} core-hours, {resources.core_hours(left):.4g} are left",
    )


def _after_round(state: State, policy: Policy) -> Action:
    """All runs of the last round are settled and the models are refitted."""
    if state.round == 0:
        return Propose(1)
    if state.queue and all(state.runs[run].status is RunStatus.SKIPPED for run in state.queue):
        return BeginStop("budget", _budget_left(state, policy) + "; no run of the last round fits it")
    if policy.width is not None and state.widest is not None and state.widest <= policy.width:
        return BeginStop(
            "precision",
            f"no relevant interval at the evaluation point is wider than {100 * state.widest:.3g} %",
        )
    if state.rounds_without_improvement >= policy.patience:
        return BeginStop(
            "patience", f"{_count(state.rounds_without_improvement, 'round')} without improvement"
        )
    return Propose(state.round + 1)


def _budget_left(state: State, policy: Policy) -> str:
    spent, budget = resources.core_hours(state.spent), resources.core_hours(policy.budget)
    return f"{spent:.4g} of {budget:.4g} core-hours are spent"


def _finish(state: State, policy: Policy, reservation: Callable[[Run], Reservation]) -> Action:
    """After a stop rule, with nothing in flight: refit what came in, validate if wanted and paid for, end."""
    assert state.stopping is not None
    if state.rounds_completed < state.round:
        return Fit(state.round)
    if state.validation is None and policy.validation_point is not None:
        run = Run(policy.validation_point)
        need = reservation(run).reserved
        if resources.affordable(policy.budget, state.spent, 0.0, need):
            return Validate(run)
    return Stop(state.stopping.rule, state.stopping.detail)


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def unresolved(state: State) -> dict[Attempt, InFlight]:
    """Return the intents whose submission was never confirmed: look them up before anything else."""
    return {attempt: item for attempt, item in state.in_flight.items() if not item.submitted}
