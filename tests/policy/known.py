"""Estimates for decisions without a campaign: the same figures at every point."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.policy.estimates import Estimates, PointEstimate, ReservedSeconds
from orchestrator.types import Point, Resources


class _EveryPoint(dict[Point, PointEstimate]):
    def __init__(self, estimate: Callable[[Point], PointEstimate]):
        super().__init__()
        self._estimate = estimate

    def __missing__(self, point: Point) -> PointEstimate:
        return self._estimate(point)


def total(*limits: float) -> float:
    return sum(limits)


def estimates(
    limit: float | None = 10.0,
    reserved_seconds: ReservedSeconds = total,
    seconds: float | None = None,
    longest: float | None = None,
    median: float | None = None,
    margin: float | None = None,
) -> Estimates:
    """Runs at ``p`` occupy p cores, have a fixed limit, and are stated to take ``seconds``."""

    def at(point: Point) -> PointEstimate:
        cores = int(point["p"])
        return PointEstimate(
            Resources(ranks=cores, threads=1, nodes=1, ranks_per_node=cores, cores=cores),
            limit,
            stated=seconds,
            longest=longest,
            median=median,
        )

    return Estimates(points=_EveryPoint(at), reserved_seconds=reserved_seconds, slowdown={}, margin=margin)
