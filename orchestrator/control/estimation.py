"""What is known of runs before a decision: from the campaign file and the models of durations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from orchestrator.control.assembly import Assembly, policy
from orchestrator.executors.base import Executor
from orchestrator.journal.measurements import ELAPSED
from orchestrator.journal.state import State
from orchestrator.models.base import Model, holds_at
from orchestrator.models.costs import expected_total
from orchestrator.policy.estimates import Estimates, PointEstimate
from orchestrator.policy.limits import ESTIMATE, likely_longest
from orchestrator.types import Point, Resources, Run

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


Granted = Callable[[Resources], tuple[float, str]]
"""The longest time limit that a run with these resources is granted, in seconds, and by what."""


def at_points(
    assembly: Assembly, points: Iterable[Point], models: Sequence[Model], granted: Granted | None = None
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
    needed = limited or campaign.measure.time_limit is not None
    known = _by_models(durations, points) if needed else {}
    resources = {point: assembly.resources(point) for point in points}
    predicted = _predicted(durations, [point for point in points if expected_at(point)])
    return {
        point: PointEstimate(
            resources[point],
            campaign.time_limit(point),
            estimate,
            predicted.get(point),
            _longest(known.get(point), estimate) if limited else None,
            known[point][0] if point in known else None,
            *(granted(resources[point]) if granted is not None else ()),
        )
        for point, estimate in zip(points, stated, strict=True)
    }


def _predicted(durations: Sequence[Model], points: Sequence[Point]) -> dict[Point, float]:
    """Return the predicted durations of runs in seconds, each in a job of its own, where there is one."""
    if not durations or not points:
        return {}
    seconds = expected_total(durations, points).tolist()
    return {point: own for point, own in zip(points, seconds, strict=True) if math.isfinite(own)}


def _by_models(durations: Iterable[Model], points: Sequence[Point]) -> dict[Point, tuple[float, float]]:
    """Return how many seconds runs take by a model of durations, where there is one, and at most."""
    durations_at: dict[Point, tuple[float, float]] = {}
    for model in durations:
        here = [point for point in points if point not in durations_at and holds_at(model, point)]
        if here:
            predicted = model.predict(here)
            longest = map(likely_longest, predicted.value.tolist(), predicted.high.tolist())
            seconds = zip(predicted.value.tolist(), longest, strict=True)
            durations_at |= {
                point: own for point, own in zip(here, seconds, strict=True) if all(map(math.isfinite, own))
            }
    return durations_at


def _longest(by_models: tuple[float, float] | None, stated: float | None) -> float | None:
    """Return the most seconds that a run takes, by a model or else by the user's estimate, if any says so."""
    if by_models is not None:
        return by_models[1]
    return None if stated is None else ESTIMATE * stated


def too_expensive(known: Estimates, state: State, left: float) -> frozenset[Point]:
    """Return the points at which not even one run more can be reserved within ``left`` core-seconds."""
    return frozenset(
        point for point in known.points if known.least(state, Run(point, "time", _NEXT)).reserved > left
    )


def too_long(known: Estimates) -> dict[Point, str]:
    """Return the points at which runs would more probably reach the time limit than not, and why."""
    return {point: why for point, estimate in known.points.items() if (why := estimate.too_long)}
