"""The rules that end or pause a campaign: at any time, after a round, and where nothing is proposed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from orchestrator.journal import setbacks
from orchestrator.journal.attempt_end import RECENT
from orchestrator.journal.events import CampaignPaused, StopRuleReached
from orchestrator.journal.references import is_reference
from orchestrator.journal.state import ONLY_ZEROS, RunStatus, State, given_up, has_measured
from orchestrator.policy import failing
from orchestrator.policy.budget import spent_of
from orchestrator.policy.rules import Policy
from orchestrator.strategies.base import Nothing
from orchestrator.units import count, format_cost, in_unit, place, uncertainty

# Factor on λ: so many rounds without gain end a campaign although they cost next to nothing. Chosen by hand.
LONGEST_PATIENCE = 10


def at_any_time(state: State, policy: Policy, now: float) -> StopRuleReached | None:
    """Return the stop rule that holds in the middle of a round, too.

    Failures at points where the program does not run say nothing of the others.
    """
    if policy.wall_time is not None and state.started is not None and now - state.started >= policy.wall_time:
        return StopRuleReached(
            "wall_time", f"{now - state.started:.0f} s of {policy.wall_time:.0f} s have passed"
        )
    if state.consecutive_given_up >= policy.failures and _elsewhere(state)[0] >= policy.failures:
        detail = f"{count(state.consecutive_given_up, 'point')} in a row were given up"
        return StopRuleReached("failures", f"{detail}; {_cause([reason for _, reason in given_up(state)])}")
    rate, failed = policy.failure_rate, [reason for reason in state.recent if reason]
    if rate is None or len(state.recent) < RECENT:
        return None
    if len(failed) >= rate * RECENT and _elsewhere(state)[1] >= rate * RECENT:
        detail = f"{len(failed)} of the last {RECENT} attempts failed"
        return StopRuleReached("failure_rate", f"{detail}; {_cause(failed)}")
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


def pause(state: State, policy: Policy) -> CampaignPaused | None:
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
    return CampaignPaused("infrastructure", f"{detail}; {_cause(known.reasons)}")


def after_round(state: State, policy: Policy) -> StopRuleReached | None:
    """Return the stop rule that holds after a round: its runs are settled and the models are refitted."""
    return (
        _nothing_fits(state, policy)
        or _precision(state, policy)
        or _converged(state, policy)
        or _patience(state, policy)
    )


def _nothing_fits(state: State, policy: Policy) -> StopRuleReached | None:
    """Stop where the round had no run that the budget could hold."""
    chosen = [run for run in state.queue if not is_reference(state.runs[run])]
    items = [state.runs[run] for run in chosen]
    # Those that are skipped for other reasons, such as a new time limit, are not proposed again.
    unaffordable = [run for run, item in zip(chosen, items, strict=True) if item.unaffordable]
    if not unaffordable or any(item.status is not RunStatus.SKIPPED for item in items):
        return None
    if any(item.tried == item.round for item in items):  # it fitted, until an attempt failed: others may fit
        return None
    first = unaffordable[0]
    return StopRuleReached(
        "budget",
        f"{spent_of(state, policy)}; no run of the last round fits what is left; first: {first}: "
        f"{state.runs[first].reason}",
        state.kept,
    )


def _precision(state: State, policy: Policy) -> StopRuleReached | None:
    """Stop where the intervals are as narrow as the user asks for."""
    if policy.width is not None and state.widest is not None and state.widest <= policy.width:
        detail = f"no relevant interval {place(state.targets)} is wider than {uncertainty(state.widest)}"
        return StopRuleReached("precision", detail)
    return None


def _converged(state: State, policy: Policy) -> StopRuleReached | None:
    """Stop where the intervals at P₊ were as narrow as the noise permits for λ rounds in a row."""
    if policy.rule == "smape" or policy.width is not None or state.narrow_rounds < policy.patience:
        return None
    width, noise = (uncertainty(value or 0.0) for value in (state.uncertainty, state.noise))
    return StopRuleReached(
        "converged",
        f"the uncertainty {place(state.targets)} is {width}, where 90 % of single runs lie within a range of "
        f"{noise}; {spent_of(state, policy)}",
    )


def _patience(state: State, policy: Policy) -> StopRuleReached | None:
    """Stop after λ rounds without gain in which a share of the budget was spent, or ten times as many."""
    rounds = state.rounds_without_improvement
    if rounds < policy.patience:
        return None
    detail = f"{count(rounds, 'round')} without improvement"
    if policy.rule == "smape":
        return StopRuleReached("patience", detail)
    if ONLY_ZEROS in state.machine and state.smape == 0:  # further runs would read zeros, too
        return StopRuleReached("patience", f"{detail}; {state.machine[ONLY_ZEROS]}")
    share = (state.spent - state.spent_at_gain) / policy.budget
    if share < policy.without_gain and rounds < LONGEST_PATIENCE * policy.patience:
        return None
    return StopRuleReached("patience", f"{detail}, in which {100 * share:.3g} % of the budget were spent")


def for_want_of_runs(state: State, nothing: Nothing) -> StopRuleReached:
    """Return the stop where a strategy proposes nothing: because of failures if nothing could be measured."""
    failed = [reason for _, reason in given_up(state)]
    if failed and not has_measured(state):
        return StopRuleReached("failures", f"every run was given up; {_cause(failed)}")
    left_out = [f"{failing.LEFT_OUT}{region.where}" for region in failing.regions(state)]  # status says why
    if failed and not left_out:
        left_out = [f"{count(len(failed), 'run')} given up; {_cause(failed)}"]
    kept = state.kept if nothing.for_want_of_budget else 0.0
    return StopRuleReached(nothing.rule, "; ".join([nothing.reason, *left_out]), kept, nothing.useful)


def _cause(reasons: Sequence[str]) -> str:
    """Return the most frequent of reasons with its number, as text."""
    reason, times = setbacks.most_frequent(reasons)
    return f"most often ({times} of {len(reasons)}): {reason}" if reason else "the reason is not known"
