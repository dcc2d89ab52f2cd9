"""What is known of runs before a decision: from the campaign file and the models of durations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from orchestrator.control.assembly import Assembly, policy
from orchestrator.executors.base import Executor
from orchestrator.journal.measurements import ELAPSED
from orchestrator.journal.state import State
from orchestrator.models.base import Model, holds_at
from orchestrator.models.costs import expected_total
from orchestrator.policy.estimates import Estimates, PointEstimate
from orchestrator.policy.limits import ESTIMATE, likely_longest
from orchestrator.types import Point, Run

_NEXT = 10**9  # a repetition that nobody has made: its limit follows what is known of the point alone


def estimates(assembly: Assembly, executor: Executor, points: Mapping[Point, PointEstimate]) -> Estimates:
    """Return what a decision may know of runs at points, of which `at_points` knows so much."""
    campaign = assembly.campaign
    return Estimates(
        points=points,
        reserved_seconds=executor.reserved_seconds,
        slowdown={"effort": campaign.slowdown("effort")},
        margin=campaign.measure.limit_margin,
    )


def at_points(
    assembly: Assembly, points: Iterable[Point], models: Sequence[Model]
) -> dict[Point, PointEstimate]:
    """Return what is known of time runs at points; only figures that a decision will use."""
    campaign, rules = assembly.campaign, policy(assembly.campaign)
    durations = [model for model in models if model.metric == ELAPSED]
    shares = rules.sharing is not None and rules.sharing.most is None
    limited = campaign.measure.limit_margin is not None

    def expected_at(point: Point) -> bool:
        return shares or point == rules.validation_point

    points = list(dict.fromkeys(points))
    stated = [campaign.expected_time(point) if expected_at(point) or limited else None for point in points]
    longest = _longest(durations, points) if limited else [None] * len(points)
    return {
        point: PointEstimate(
            assembly.resources(point),
            campaign.time_limit(point),
            estimate,
            _predicted(durations, point) if expected_at(point) else None,
            ESTIMATE * estimate if most is None and limited and estimate is not None else most,
        )
        for point, estimate, most in zip(points, stated, longest, strict=True)
    }


def _predicted(durations: Sequence[Model], point: Point) -> float | None:
    """Return the predicted duration of a run in seconds, in a job of its own; None without a prediction."""
    seconds = float(expected_total(durations, [point])[0]) if durations else math.nan
    return seconds if math.isfinite(seconds) else None


def _longest(durations: Iterable[Model], points: Sequence[Point]) -> list[float | None]:
    """Return the most seconds that runs take by a model of durations; None where there is none."""
    found: dict[Point, float] = {}
    for model in durations:
        here = [point for point in points if point not in found and holds_at(model, point)]
        if here:
            predicted = model.predict(here)
            seconds = map(likely_longest, predicted.value.tolist(), predicted.high.tolist())
            found |= {point: most for point, most in zip(here, seconds, strict=True) if math.isfinite(most)}
    return [found.get(point) for point in points]


def too_expensive(known: Estimates, state: State, points: Iterable[Point], left: float) -> frozenset[Point]:
    """Return the points at which not even one run more can be reserved within ``left`` core-seconds."""
    return frozenset(
        point for point in points if known.least(state, Run(point, "time", _NEXT)).reserved > left
    )
