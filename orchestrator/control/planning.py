"""What a campaign would do first and what that may cost, before anything is spent."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import LocalOptions
from orchestrator.control.assembly import Assembly, strategy
from orchestrator.control.settle import round_of
from orchestrator.errors import CampaignError
from orchestrator.executors.base import Executor
from orchestrator.executors.local import cores as local_cores
from orchestrator.journal.state import State
from orchestrator.resources import core_hours, fair_limit
from orchestrator.types import Measurements, Run

_SHORTEST_LIMIT = 1.0  # seconds; with less for each run nothing can be measured


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRound:
    """The starting set: runs, reasons, cores and time limits (s) have one entry per run.

    ``derived_limit`` (s) is the limit chosen from the budget where the campaign states none. ``worst`` and
    ``expected`` are the costs of all runs in core-seconds; ``expected`` is None without the user's estimate.
    """

    runs: tuple[Run, ...]
    reasons: tuple[str, ...]
    cores: tuple[int, ...]
    limits: tuple[float, ...]
    derived_limit: float | None
    worst: float
    expected: float | None


def first_round(assembly: Assembly, executor: Executor) -> FirstRound:
    """Return the first round with its costs.

    Raises
    ------
    CampaignError
        If the strategy proposes nothing, or the round may exceed the budget: by the user's estimate if there
        is one, else if every run takes its whole time limit.
    """
    campaign = assembly.campaign
    view = assembly.view(State(), (), Measurements(tuple(p.name for p in campaign.parameters), ()))
    view = replace(view, budget_left=math.inf)  # else only a part of the starting set would be proposed
    rng = np.random.default_rng([campaign.seed, 1])
    choices = strategy(campaign)(view, rng)
    proposed = round_of(1, choices, State(), assembly.effort_plan(State(), (), choices))
    if not proposed.runs:
        raise CampaignError(
            f"strategy {campaign.strategy.name!r} proposes nothing in this search space; widen the parameters"
        )
    cores = tuple(assembly.cores(run.point) for run in proposed.runs)
    derived = None
    if campaign.measure.time_limit is None:
        derived = fair_limit(campaign.stop.budget, cores, _reserved(assembly, executor, proposed.runs))
        if derived < _SHORTEST_LIMIT:
            raise CampaignError(_too_small(campaign.stop.budget, cores, derived))
    limits = tuple(
        (campaign.time_limit(run.point) or derived or 0.0) * campaign.slowdown(run.kind)
        for run in proposed.runs
    )
    worst = sum(c * executor.reserved_seconds(t) for c, t in zip(cores, limits, strict=True))
    expected = _expected(assembly, proposed.runs, cores)
    plan = FirstRound(
        runs=proposed.runs,
        reasons=proposed.reasons,
        cores=cores,
        limits=limits,
        derived_limit=derived,
        worst=worst,
        expected=expected,
    )
    _check_budget(assembly, executor, plan)
    return plan


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


def _reserved(assembly: Assembly, executor: Executor, runs: tuple[Run, ...]) -> Callable[[float], float]:
    """Return the seconds that a core of these runs reserves on average, by the limit of time runs."""
    cores = Counter[float]()
    for run in runs:
        cores[assembly.campaign.slowdown(run.kind)] += assembly.cores(run.point)

    def reserved(limit: float) -> float:
        seconds = sum(count * executor.reserved_seconds(limit * factor) for factor, count in cores.items())
        return seconds / cores.total()

    return reserved


def _check_budget(assembly: Assembly, executor: Executor, plan: FirstRound) -> None:
    budget = assembly.campaign.stop.budget
    single = max(c * executor.reserved_seconds(t) for c, t in zip(plan.cores, plan.limits, strict=True))
    need, what = (plan.worst, "may cost") if plan.expected is None else (plan.expected, "is expected to cost")
    if need > budget:
        expected = (
            "state measure.expected_time if runs are much shorter than their limit"
            if plan.expected is None
            else "correct measure.expected_time if runs are shorter than that"
        )
        limit = "lower measure.time_limit or" if plan.expected is None else "lower"
        raise CampaignError(
            f"the first round ({len(plan.runs)} runs on up to {max(plan.cores)} cores) {what} "
            f"{core_hours(need):.4g} core-hours, stop.budget is {core_hours(budget):.4g}: raise "
            f"stop.budget, {limit} measure.repetitions.initial, or {expected}"
        )
    if single > budget:
        raise CampaignError(
            f"one run of the first round reserves {core_hours(single):.4g} core-hours, stop.budget is "
            f"{core_hours(budget):.4g}: raise it or lower measure.time_limit"
        )


def _too_small(budget: float, cores: tuple[int, ...], limit: float) -> str:
    return (
        f"stop.budget of {core_hours(budget):.4g} core-hours leaves {max(limit, 0.0):.2g} s for each of "
        f"the {len(cores)} runs of the first round (on {sum(cores)} cores in all): raise it, use fewer "
        "repetitions or smaller points, or state measure.time_limit and measure.expected_time"
    )
