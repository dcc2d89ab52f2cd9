"""What is known of runs before a decision: from the campaign file and the models of durations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from orchestrator.control.assembly import Assembly, policy
from orchestrator.executors.base import Executor
from orchestrator.journal.measurements import ELAPSED
from orchestrator.models.base import Model, holds_at
from orchestrator.models.costs import expected_total
from orchestrator.policy.estimates import Estimates, PointEstimate
from orchestrator.policy.limits import ESTIMATE, likely_longest
from orchestrator.types import Point


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

    def known(point: Point) -> PointEstimate:
        expected = shares or point == rules.validation_point
        stated = campaign.expected_time(point) if expected or limited else None
        return PointEstimate(
            assembly.resources(point),
            campaign.time_limit(point),
            stated,
            _predicted(durations, point) if expected else None,
            _longest(durations, point, stated) if limited else None,
        )

    return {point: known(point) for point in points}


def _predicted(durations: Sequence[Model], point: Point) -> float | None:
    """Return the predicted duration of a run in seconds, in a job of its own; None without a prediction."""
    seconds = float(expected_total(durations, [point])[0]) if durations else math.nan
    return seconds if math.isfinite(seconds) else None


def _longest(durations: Iterable[Model], point: Point, stated: float | None) -> float | None:
    """Return the most seconds that a run takes, by a model or by the user's estimate; None without both."""
    for model in durations:
        if holds_at(model, point):
            predicted = model.predict([point])
            longest = likely_longest(float(predicted.value[0]), float(predicted.high[0]))
            if math.isfinite(longest):
                return longest
    return None if stated is None else ESTIMATE * stated
