"""Which runs begin now: in order, as far as places, jobs and the budget allow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from orchestrator import resources
from orchestrator.journal.events import RunSkipped
from orchestrator.journal.state import State, measured_before, runs_measured
from orchestrator.policy import failing
from orchestrator.policy.actions import Action, Submit
from orchestrator.policy.budget import beside, kept_for_validation, occupied
from orchestrator.policy.estimates import Estimates
from orchestrator.policy.packing import Job, JobPlan
from orchestrator.policy.regions import Region
from orchestrator.policy.rules import Policy
from orchestrator.resources import Reservation
from orchestrator.types import Attempt, FailureClass, Point, Run, RunKind
from orchestrator.units import CostUnit, format_cost, in_unit


def candidates(state: State) -> Iterator[Run]:
    """Failed runs to be tried again come first, then the round's queue."""
    yield from state.failed
    yield from state.waiting


def begin(
    state: State, policy: Policy, estimates: Estimates, fails: Sequence[Region], may_wait: bool
) -> list[Action]:
    """Fill free places, in order; a run that does not fit the budget waits where it may.

    It may wait while other attempts are in flight, or while charges are estimates. Whether the run fits later
    depends on the real charges, never on the order in which attempts finish. Where the program ``fails``,
    runs that were not begun are skipped. Where limits are guesses, `_at_once` runs may be in flight.
    """
    chosen: dict[Run, Action] = {}
    plan = JobPlan(
        state=state,
        estimates=estimates,
        rules=policy.sharing,
        waiting=list(candidates(state)),
        places=policy.max_pending - state.jobs,
        placement=policy.placement,
    )
    kept = kept_for_validation(state, policy, estimates)
    budget, reserved = policy.budget - kept, state.reserved
    tried_again, at_once = _tried_again(state), _at_once(state, estimates)
    together = policy.sharing is not None and policy.sharing.repetitions == "together"
    for run in plan.waiting:
        if (why := _never_begun(state, estimates, run, fails)) is not None:
            chosen[run] = RunSkipped(run, why, unaffordable=False)
            continue
        if tried_again.get((run.kind, run.point), run) != run:
            continue  # it waits for another run there, and would fail alike
        left = budget - state.spent - reserved
        need = _need(state, estimates, run, left)
        job = plan.job_for(run, need)
        if plan.is_held(run, job):
            continue
        if job is None and len(plan.jobs) >= plan.places:
            break
        begun = len(state.in_flight) + sum(len(item.runs) for item in plan.jobs)
        if begun >= at_once and not (together and job is not None):
            break
        more = plan.more(job, need)
        if not resources.affordable(budget, state.spent, reserved, more):
            if may_wait or plan.jobs:
                break
            smaller = estimates.fitting(state, run, left)
            if smaller is None:
                chosen[run] = _unaffordable(budget - state.spent, kept, run, need, policy.unit)
                continue
            need, more = smaller, smaller.reserved
        plan.add(run, need, job)
        reserved += more
    chosen |= {item.attempt.run: item for job in plan.jobs for item in _submissions(plan, job)}
    return [chosen[run] for run in plan.waiting if run in chosen]  # in order, whatever shares a job


def _never_begun(state: State, estimates: Estimates, run: Run, fails: Sequence[Region]) -> str | None:
    """Return why a run is never begun, whatever is left of the budget; None where it may be."""
    if run.point in state.infeasible:
        return f"{run.point} was given up"
    # What was begun may have its retries.
    if not state.runs[run].failures and (why := failing.why_not(run.point, fails)):
        return why
    too_long = estimates.points[run.point].too_long
    return too_long if too_long and not measured_before(state, run) else None


def _at_once(state: State, estimates: Estimates) -> float:
    """Return how many runs may be in flight: one more than were measured, while their limits are guesses.

    A limit from the budget alone may end every run, and a whole round of them would be the budget.
    """
    guessed = any(estimates.is_guess(run) for run in candidates(state))
    return 1 + runs_measured(state) if guessed else math.inf


def _need(state: State, estimates: Estimates, run: Run, left: float) -> Reservation:
    """Return what a run reserves that has a job of its own."""
    need = estimates.reservation(state, run)
    if run == state.validation:  # what is left has no other use
        return estimates.fitting(state, run, left) or need
    return need


def _tried_again(state: State) -> dict[tuple[RunKind, Point], Run]:
    """Return the run that is tried again at each point at which nothing but failures happened so far.

    Other runs there wait for it: they would fail alike, each as often as a run may.
    """

    def failed_only(runs: Iterable[Run]) -> list[Run]:
        own = (run for run in runs if set(state.runs[run].failures) - {FailureClass.INFRASTRUCTURE})
        return sorted((run for run in own if not measured_before(state, run)), key=lambda run: run.repetition)

    first: dict[tuple[RunKind, Point], Run] = {}
    for run in (*failed_only(attempt.run for attempt in state.in_flight), *failed_only(state.failed)):
        first.setdefault((run.kind, run.point), run)
    return first


def _submissions(plan: JobPlan, job: Job) -> list[Submit]:
    attempts = [Attempt(run, plan.state.runs[run].attempts + 1) for run in job.runs]
    pack = attempts[0] if len(attempts) > 1 else None
    reservations = plan.reservations(job)
    return [Submit(attempt, item, pack) for attempt, item in zip(attempts, reservations, strict=True)]


def _unaffordable(left: float, kept: float, run: Run, need: Reservation, unit: CostUnit) -> RunSkipped:
    comma = "," if "," in (what := occupied(need)) else ""
    cost = format_cost(need.reserved, unit)
    reason = f"{what}{comma} may cost {cost}, {in_unit(left, unit)} are left{beside(kept, unit)}"
    return RunSkipped(run, reason, unaffordable=True)
