"""What is kept back of the budget, and how messages tell what is left of it."""

from __future__ import annotations

from orchestrator.journal.state import State, measured_before, validation_run
from orchestrator.policy import failing
from orchestrator.policy.estimates import Estimates
from orchestrator.policy.rules import Policy
from orchestrator.resources import Reservation
from orchestrator.units import CostUnit, count, format_cost, format_duration, in_unit

VALIDATION_SHARE = 0.5  # of what is left is kept back for more than the expected time of the validation
_WHOLE = 10.0  # seconds from which on whole ones are exact enough
_NOTICEABLE = 0.01  # share of the budget from which charges beyond reservations are named as a cause


def kept_for_validation(state: State, policy: Policy, estimates: Estimates) -> float:
    """Return the core-seconds kept back for the validation that the user asked for; 0 once it is proposed.

    That is its reservation by what is known now. Where that is more than a share of what is left, because the
    models are not certain yet, it is that share, but never less than the validation needs if it takes as long
    as expected. Else uncertain models would end the measurements that make them certain. Nothing is kept back
    where `no_validation` says why that run is not made.
    """
    if policy.validation_point is None or state.validation is not None:
        return 0.0
    if no_validation(state, policy, estimates) is not None:
        return 0.0
    run, left = validation_run(state, policy.validation_point), policy.budget - state.spent
    least = estimates.least(state, run).reserved
    return max(least, min(estimates.reservation(state, run).reserved, VALIDATION_SHARE * left))


def no_validation(state: State, policy: Policy, estimates: Estimates) -> str | None:
    """Return why the validation is not made if the campaign ends with what is known now, in words.

    None where it can be made, is not wanted, or was proposed. That is no decision: models may still change.
    """
    point, unit = policy.validation_point, policy.unit
    if point is None or state.validation is not None:
        return None
    run, left = validation_run(state, point), policy.budget - state.spent
    why = failing.why_not(point, failing.regions(state))
    if not why and not measured_before(state, run):
        why = estimates.points[point].too_long
    if why:
        return f"the run at {point} is not made: {why}; nothing is kept back for it"
    need = estimates.least(state, run)
    if need.reserved <= left:
        return None
    return (
        f"as models stand the run at {point} ({occupied(need)}) needs {format_cost(need.reserved, unit)}, "
        f"and {in_unit(left, unit)} of {in_unit(policy.budget, unit)} are left: it is not made unless "
        f"stop.budget is at least {format_cost(state.spent + need.reserved, unit)}; nothing is kept back "
        "for it"
    )


def occupied(need: Reservation) -> str:
    """Return what a reservation is for, as text: cores, the time limit, and what ending a run may take."""
    text = f"{count(need.cores, 'core')} for up to {_seconds(need.limit)}"
    beyond = need.reserved / need.cores - need.limit
    return (
        f"{text}, and for {_seconds(beyond)} until a run that takes longer has ended" if beyond >= 1 else text
    )


def _seconds(value: float) -> str:
    return format_duration(round(value) if value >= _WHOLE else value)


def beside(kept: float, unit: CostUnit) -> str:
    """Return what is kept for the validation beside what is left, as text."""
    return f" beside {in_unit(kept, unit)} for the validation" if kept else ""


def spent_of(state: State, policy: Policy) -> str:
    """Return what the campaign had spent when a rule held; a validation may follow."""
    unit = policy.unit
    late = ""
    if state.beyond > _NOTICEABLE * policy.budget:
        late = (
            f", {in_unit(state.beyond, unit)} of them because jobs were charged longer than their "
            "time limits: the scheduler noticed late that they had ended"
        )
    return f"{in_unit(state.spent, unit)} of {format_cost(policy.budget, unit)} were spent by then{late}"
