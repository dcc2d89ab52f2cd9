"""What a campaign would do first and what that may cost, before anything is spent."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from orchestrator.campaign.definition import RESOURCES, Campaign
from orchestrator.campaign.schema import LocalOptions, Stop
from orchestrator.control import estimation
from orchestrator.control.assembly import Assembly, policy, strategy
from orchestrator.control.idle import idle, occupying
from orchestrator.control.settle import round_of
from orchestrator.errors import CampaignError
from orchestrator.executors.base import Executor
from orchestrator.executors.local import cores as local_cores
from orchestrator.journal.events import RoundProposed
from orchestrator.journal.state import State
from orchestrator.policy.budget import kept_for_validation, occupied
from orchestrator.report import extrapolation
from orchestrator.resources import Reservation, fair_limit
from orchestrator.space import ListedSpace
from orchestrator.strategies.drawing import MOST_VAIN, SMALL
from orchestrator.types import Measurements, Run
from orchestrator.units import CostUnit, cost_at_least, count, format_cost, in_unit, plain

_DRAWING = "sample", "active"  # strategies that draw points at random
_SHORTEST_LIMIT = 1.0  # seconds; with less for each run nothing can be measured
_LONG = (
    86400.0  # seconds for which a budget keeps this machine busy, from which on it is said. Chosen by hand
)
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


def first_round(assembly: Assembly, executor: Executor) -> FirstRound:
    """Return the first round with its costs.

    Raises
    ------
    CampaignError
        If the strategy proposes nothing, or the round may exceed the budget: by the user's estimate if there
        is one, else if every run takes its whole time limit; or if a validation is asked for that the budget
        does not hold beside it.
    """
    campaign, rules = assembly.campaign, policy(assembly.campaign)
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
    _check_budget(campaign, max(item.reserved for item in reservations), plan)
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
        raise CampaignError(_too_small(campaign.stop, cores, needed(_SHORTEST_LIMIT), bool(validation)))
    return derived


def _nothing_proposed(campaign: Campaign) -> str:
    """Return why there is no first round: strategies that draw may miss the few points of a large space."""
    name, space = campaign.strategy.name, campaign.space
    if name in _DRAWING and space.combinations > SMALL and not isinstance(space, ListedSpace):
        return (
            f"strategy {name!r} finds nothing to measure: none of {MOST_VAIN} combinations that were drawn "
            f"from {space.combinations:.3g} is a point of the search space; relax constraints, or state the "
            "values of fewer parameters and derive the others from constraints"
        )
    return f"strategy {name!r} proposes nothing in this search space; widen the parameters"


def _states_times(campaign: Campaign) -> bool:
    """Whether the user's estimate decides the limits of runs of which nothing else is known."""
    return campaign.measure.expected_time is not None and campaign.measure.limit_margin is not None


def notes(campaign: Campaign, plan: FirstRound) -> list[str]:
    """Return what the user should know before a campaign begins, beside its costs."""
    beside = side_by_side(campaign, plan.cores)
    known = [*far_away(campaign), *about_parameters(campaign), *left_out(campaign), *unending(campaign)]
    return [*known, *([] if beside is None else [beside])]


def unending(campaign: Campaign) -> list[str]:
    """Return for how long a budget keeps this machine busy, where that is long: its unit may be a mistake."""
    options, stop = campaign.executor, campaign.stop
    if not isinstance(options, LocalOptions) or stop.wall_time is not None:
        return []
    seconds = stop.budget / options.slots
    if seconds < _LONG:
        return []
    days = plain(seconds / 86400)
    return [
        f"the budget of {format_cost(stop.budget, stop.unit)} keeps {count(options.slots, 'slot')} of this "
        f"machine busy for {days} days, if no other rule stops the campaign: check its unit, or set "
        "stop.wall_time"
    ]


def left_out(campaign: Campaign) -> list[str]:
    """Return which values are read from outputs by ``program.output``, and then not kept."""
    measure, rules = campaign.measure, () if campaign.program is None else campaign.program.output
    if measure.profiler == "time" and any(rule.metric == "time" for rule in rules):
        return [
            "measure.profiler: time takes the time of whole runs; those of program.output are read with "
            "measure.profiler: stdout"
        ]
    names = [name for name in dict.fromkeys(rule.metric for rule in rules) if name not in measure.measured]
    return (
        [
            f"{', '.join(names)} of program.output {'is' if len(names) == 1 else 'are'} left out, as "
            f"measure.metrics names only {', '.join(measure.measured)}; of a rate, write "
            f"{{name: {names[0]}, better: higher, model: inverse}} there"
        ]
        if names
        else []
    )


def about_parameters(campaign: Campaign) -> list[str]:
    """Return which parameters do not do what their names say, or nothing at all."""
    return [*mere_names(campaign), *idle(campaign)]


def mere_names(campaign: Campaign) -> list[str]:
    """Return which parameters are called like a resource, but decide about none."""
    program = campaign.program
    if program is None:
        return []
    used = occupying(campaign, program)
    return [
        f"parameter {item.name} does not change what a run requests; to request {item.name}, write "
        f"resources: {{{item.name}: {item.name}}}"
        for item in campaign.parameters
        if item.name in RESOURCES and item.name not in used
    ]


def far_away(campaign: Campaign) -> list[str]:
    """Return in which parameters the evaluation point lies far beyond all values that can be measured."""
    if campaign.evaluation_point is None:
        return []
    values = {item.name: item.values for item in campaign.parameters}
    return extrapolation.announcements(campaign.evaluation_point, values)


def side_by_side(campaign: Campaign, cores: Sequence[int]) -> str | None:
    """Return what to know of local runs that would be timed at the same time; None where none would be.

    Parameters
    ----------
    campaign
        The campaign.
    cores
        Cores of each run.
    """
    options = campaign.executor
    if not isinstance(options, LocalOptions):
        return None
    there = local_cores.usable()
    most = options.slots if options.share_cores else min(options.slots, len(there))
    begun = [total for total in itertools.accumulate(sorted(cores)) if total <= most]
    together = min(len(begun), options.max_pending)
    if together < 2:
        return None
    how = f"up to {together} runs are timed side by side"
    if options.share_cores:
        return f"{how} and share cores (executor.share_cores): such times depend on what runs beside"
    return (
        f"{how}, each bound to cores of its own; memory bandwidth and caches are shared: "
        "executor.max_pending: 1 times one run after another"
    )


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


def _check_budget(campaign: Campaign, single: float, plan: FirstRound) -> None:
    """Refuse a first round that the budget does not hold with the validation; ``single``: of one run."""
    budget, unit = campaign.stop.budget, campaign.stop.unit
    need, what = (
        (plan.needed, "may cost") if plan.expected is None else (plan.expected, "is expected to cost")
    )
    if need > budget * (1 + _ROUNDING):
        raise CampaignError(f"{_first_round(plan, need, what, unit)}, {_remedy(budget, plan, unit)}")
    if single > budget:
        raise CampaignError(
            f"one run of the first round reserves {format_cost(single, unit)}, stop.budget is "
            f"{in_unit(budget, unit)}: raise it or lower measure.time_limit"
        )
    if plan.validation is None:
        return
    kept = plan.kept or plan.validation.reserved
    if max(need, single) + kept > budget:
        raise CampaignError(_no_validation(campaign, plan, max(need, single), kept, what))


def _first_round(plan: FirstRound, need: float, what: str, unit: CostUnit) -> str:
    return (
        f"the first round ({count(len(plan.runs), 'run')} on up to {count(max(plan.cores), 'core')}) {what} "
        f"{format_cost(need, unit)}"
    )


def _remedy(budget: float, plan: FirstRound, unit: CostUnit) -> str:
    expected = (
        "state measure.expected_time if runs are much shorter than their limit"
        if plan.expected is None
        else "correct measure.expected_time if runs are shorter than that"
    )
    limit = "lower measure.time_limit or" if plan.expected is None else "lower"
    return (
        f"stop.budget is {in_unit(budget, unit)}: raise stop.budget, {limit} measure.repetitions.initial, "
        f"or {expected}"
    )


def _no_validation(campaign: Campaign, plan: FirstRound, need: float, kept: float, what: str) -> str:
    """Return why the validation that the campaign asks for cannot be kept, with all figures."""
    assert plan.validation is not None
    budget, validation = campaign.stop.budget, plan.validation
    unit = campaign.stop.unit
    times = "measure.expected_time" if plan.expected is None else "a smaller measure.expected_time"
    return (
        f"validate: true needs {format_cost(kept, unit)} for a run at {campaign.evaluation_point} "
        f"({occupied(validation)}) beside the first round, which {what} "
        f"{in_unit(need, unit)}; stop.budget is {in_unit(budget, unit)}: raise stop.budget to "
        f"{cost_at_least(need + kept, unit)}, state {times} if that run is shorter, or write validate: false"
    )


def _too_small(stop: Stop, cores: tuple[int, ...], least: float, validated: bool) -> str:
    given, needed = (format_cost(cost, stop.unit) for cost in (stop.budget, least))
    return (
        f"stop.budget of {given} is too small for the {len(cores)} runs of the first round (on "
        f"{sum(cores)} cores in all){' and the validation' if validated else ''}: with limits of only "
        f"{_SHORTEST_LIMIT:g} s they need {needed}, as a run may be charged for more than its "
        "limit before it has ended: raise it, use fewer repetitions or smaller points, "
        f"{'write validate: false, ' if validated else ''}or state measure.time_limit and "
        "measure.expected_time"
    )
