"""What a campaign would do first and what that may cost, before anything is spent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from orchestrator.campaign.definition import Campaign
from orchestrator.control import estimation
from orchestrator.control.assembly import Assembly, modeler, policy, strategy
from orchestrator.control.settle import round_of
from orchestrator.errors import CampaignError
from orchestrator.executors.base import Executor
from orchestrator.journal.events import RoundProposed
from orchestrator.journal.state import State
from orchestrator.policy.budget import kept_for_validation, occupied
from orchestrator.resources import Reservation, fair_limit
from orchestrator.space import ListedSpace
from orchestrator.strategies.drawing import MOST_VAIN, SMALL
from orchestrator.types import Measurements, Run
from orchestrator.units import cost_at_least, count, format_cost, in_unit

DRAWING = "sample", "active"  # strategies that draw points at random
_SHORTEST_LIMIT = 1.0  # seconds; with less for each run nothing can be measured
_ROUNDING = 1e-9  # of a sum: a limit that is derived from the budget makes the first round cost just that


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRound:
    """The starting set: runs, reasons, cores and time limits (s) have one entry per run.

    ``derived_limit`` (s) is the limit chosen from the budget where the campaign states none. ``worst`` and
    ``expected`` are the costs of all runs in core-seconds; ``expected`` is None without the user's estimate.
    ``worst`` is what all runs reserve, or the budget; ``needed`` is what the budget must hold so that all can
    be begun, one after another, if each takes its whole time limit.
    ``validation`` is what a run at the evaluation point may cost by what is known now, and ``kept`` the
    core-seconds kept back for it; None and 0 without a validation.
    """

    runs: tuple[Run, ...]
    reasons: tuple[str, ...]
    cores: tuple[int, ...]
    limits: tuple[float, ...]
    derived_limit: float | None
    worst: float
    needed: float
    expected: float | None
    validation: Reservation | None = None
    kept: float = 0.0

    @property
    def need(self) -> float:
        """The core-seconds that the budget must hold: as expected, or else at most."""
        return self.needed if self.expected is None else self.expected

    @property
    def what(self) -> str:
        """What `need` says of the round."""
        return "may cost" if self.expected is None else "is expected to cost"


def first_round(assembly: Assembly, executor: Executor) -> FirstRound:
    """Return the first round with its costs.

    Raises
    ------
    CampaignError
        If an option of the strategy or the model makes no sense; if the strategy proposes nothing, or the
        round may exceed the budget: by the user's estimate if there is one, else if every run takes its
        whole time limit; or if a validation is asked for that the budget does not hold beside it.
    """
    campaign, rules = assembly.campaign, policy(assembly.campaign)
    modeler(campaign)  # raises here, before anything is spent, where its options permit no model
    proposed = _starting_set(assembly)
    cores = tuple(assembly.cores(run.point) for run in proposed.runs)
    validation = () if rules.validation_point is None else (Run(rules.validation_point),)
    derived = None
    if campaign.measure.time_limit is None:
        derived = _derived_limit(assembly, executor, proposed.runs, validation)
    begun = State(time_limit=derived)
    points = dict.fromkeys(run.point for run in (*proposed.runs, *validation))
    known = estimation.estimates(assembly, executor, estimation.at_points(assembly, points, ()))
    reservations = [known.reservation(begun, run) for run in proposed.runs]
    plan = FirstRound(
        runs=proposed.runs,
        reasons=proposed.reasons,
        cores=cores,
        limits=tuple(item.limit for item in reservations),
        derived_limit=derived,
        worst=min(campaign.stop.budget, sum(item.reserved for item in reservations)),
        needed=_one_by_one(reservations),
        expected=_expected(assembly, proposed.runs, cores),
        validation=known.reservation(begun, validation[0]) if validation else None,
        kept=kept_for_validation(begun, rules, known),
    )
    _check_budget(campaign, max(reservations, key=lambda item: item.reserved), plan)
    return plan


def _starting_set(assembly: Assembly) -> RoundProposed:
    """Return the runs of the first round, whatever they cost; raise `CampaignError` where there are none."""
    campaign = assembly.campaign
    view = assembly.view(State(), (), Measurements(tuple(p.name for p in campaign.parameters), ()))
    view = replace(view, budget_left=math.inf)  # else only a part of the starting set would be proposed
    rng = np.random.default_rng([campaign.seed, 1])
    choices = assembly.paired(strategy(campaign)(view, rng), State(), rng)
    proposed = round_of(1, choices, State(), assembly.effort_plan(State(), (), choices))
    if not proposed.runs:
        raise CampaignError(_nothing_proposed(campaign))
    return proposed


def _derived_limit(
    assembly: Assembly, executor: Executor, runs: Sequence[Run], validation: Sequence[Run]
) -> float:
    """Return the time limit (s) with which the budget holds all runs; raise `CampaignError` if it is none."""
    campaign = assembly.campaign
    needed = _needed(assembly, executor, runs, validation)
    derived = fair_limit(campaign.stop.budget, needed)
    if derived < _SHORTEST_LIMIT and not _states_times(campaign):
        cores = tuple(assembly.cores(run.point) for run in runs)
        raise CampaignError(_too_small(campaign, cores, needed(_SHORTEST_LIMIT), bool(validation)))
    return derived


def _nothing_proposed(campaign: Campaign) -> str:
    """Return why there is no first round: strategies that draw may miss the few points of a large space."""
    name, space = campaign.strategy.name, campaign.space
    if name in DRAWING and space.combinations > SMALL and not isinstance(space, ListedSpace):
        return (
            f"strategy {name!r} finds nothing to measure: none of {MOST_VAIN} combinations that were drawn "
            f"from {space.combinations:.3g} is a point of the search space; relax constraints, or state the "
            "values of fewer parameters and derive the others from constraints"
        )
    return f"strategy {name!r} proposes nothing in this search space; widen the parameters"


def _states_times(campaign: Campaign) -> bool:
    """Whether the user's estimate decides the limits of runs of which nothing else is known."""
    return campaign.measure.expected_time is not None and campaign.measure.limit_margin is not None


def _expected(assembly: Assembly, runs: tuple[Run, ...], cores: tuple[int, ...]) -> float | None:
    if assembly.campaign.measure.expected_time is None:
        return None
    campaign = assembly.campaign
    return sum(
        c * (campaign.expected_time(run.point) or 0.0) * campaign.slowdown(run.kind)
        for c, run in zip(cores, runs, strict=True)
    )


def _needed(
    assembly: Assembly, executor: Executor, runs: Sequence[Run], validation: Sequence[Run]
) -> Callable[[float], float]:
    """Return the core-seconds that begin all runs and keep the validation, by the limit of time runs.

    A run that has ended holds no reservation any more. So what ending a run may take beyond its limit is
    needed once, for the run in flight, and again for the validation, which is kept back meanwhile.
    """
    shapes = Counter((assembly.cores(run.point), assembly.campaign.slowdown(run.kind)) for run in runs)
    last = [assembly.cores(run.point) for run in validation]

    def needed(limit: float) -> float:
        taken = sum(number * cores * factor * limit for (cores, factor), number in shapes.items())
        beyond = max(
            cores * (executor.reserved_seconds(factor * limit) - factor * limit) for cores, factor in shapes
        )
        return taken + beyond + sum(cores * executor.reserved_seconds(limit) for cores in last)

    return needed


def _one_by_one(reservations: Sequence[Reservation]) -> float:
    """Return the core-seconds that begin all runs, one after another, if each takes its whole limit."""
    taken = [item.cores * item.limit for item in reservations]
    return sum(taken) + max(item.reserved - most for item, most in zip(reservations, taken, strict=True))


def _check_budget(campaign: Campaign, single: Reservation, plan: FirstRound) -> None:
    """Refuse a first round that the budget does not hold with the validation; ``single``: its largest run."""
    budget, unit, need = campaign.stop.budget, campaign.stop.unit, plan.need
    if need > budget * (1 + _ROUNDING):
        runs = f"{count(len(plan.runs), 'run')} on up to {count(max(plan.cores), 'core')}"
        raise CampaignError(
            f"the first round ({runs}) {plan.what} {format_cost(need, unit)}, stop.budget is "
            f"{in_unit(budget, unit)}: raise stop.budget, {_remedy(plan, _fewer(campaign))}"
        )
    need = max(need, single.reserved)
    kept = 0.0 if plan.validation is None else plan.kept or plan.validation.reserved
    if single.reserved > budget:
        ending = single.reserved - single.cores * single.limit
        raise CampaignError(
            f"one run of the first round reserves {format_cost(single.reserved, unit)} ({occupied(single)}), "
            f"stop.budget is {in_unit(budget, unit)}: raise it to {cost_at_least(need + kept, unit)}"
            f"{' or lower measure.time_limit' if ending < budget else ''}"
        )
    if plan.validation is None:
        return
    if need + kept > budget:
        times = "measure.expected_time" if plan.expected is None else "a smaller measure.expected_time"
        raise CampaignError(
            f"validate: true needs {format_cost(kept, unit)} for a run at {campaign.evaluation_point} "
            f"({occupied(plan.validation)}) beside the first round, which {plan.what} "
            f"{in_unit(need, unit)}; stop.budget is {in_unit(budget, unit)}: raise stop.budget to "
            f"{cost_at_least(need + kept, unit)}, state {times} if that run is shorter, or write "
            "validate: false"
        )


def _fewer(campaign: Campaign) -> str:
    """Return the option with which a first round has fewer runs."""
    return "strategy.start" if campaign.strategy.name in DRAWING else "measure.repetitions.initial"


def _remedy(plan: FirstRound, fewer: str) -> str:
    """Return what makes a first round cheaper than by a larger budget; ``fewer``: see `_fewer`."""
    if plan.expected is None:
        return (
            f"lower measure.time_limit or {fewer}, or state measure.expected_time if runs are much shorter "
            "than their limit"
        )
    return f"lower {fewer}, or correct measure.expected_time if runs are shorter than that"


def _too_small(campaign: Campaign, cores: tuple[int, ...], least: float, validated: bool) -> str:
    stop = campaign.stop
    given, needed = (format_cost(cost, stop.unit) for cost in (stop.budget, least))
    return (
        f"stop.budget of {given} is too small for the {len(cores)} runs of the first round (on "
        f"{sum(cores)} cores in all){' and the validation' if validated else ''}: with limits of only "
        f"{_SHORTEST_LIMIT:g} s they need {needed}, as a run may be charged for more than its "
        f"limit before it has ended: raise it, lower {_fewer(campaign)}, use smaller points, "
        f"{'write validate: false, ' if validated else ''}or state measure.time_limit and "
        "measure.expected_time"
    )
