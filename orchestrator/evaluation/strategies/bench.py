"""Known runs for the comparison of strategies: the times and the cost of each repetition at each point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from orchestrator.journal.measurements import ELAPSED, WHOLE_RUN
from orchestrator.space import Categories
from orchestrator.types import Measurement, Measurements, Parameter, Point, Value

FULL_REPETITIONS = 5  # of every point make 100 % (Ritter et al., section IV-A)


@dataclass(frozen=True)
class ListedSpace:
    """A search space of known points."""

    parameters: tuple[Parameter, ...]
    points: tuple[Point, ...]

    @cached_property
    def _known(self) -> frozenset[Point]:
        return frozenset(self.points)

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def within(self, fixed: Mapping[str, Value]) -> Iterator[Point]:
        """Walk the points at which some parameters have the given values."""
        return self._categories.within(fixed)

    @cached_property
    def _categories(self) -> Categories:
        return Categories.of(self.parameters, self.points)

    def __contains__(self, point: object) -> bool:
        return point in self._known


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """All that could be measured, and what is true at P₊."""

    space: ListedSpace  # the points that can be measured
    evaluation_point: Point  # P₊; none of the points
    # Call path -> point -> time of every repetition, in seconds. All call paths have all points.
    times: Mapping[str, Mapping[Point, tuple[float, ...]]]
    seconds: Mapping[Point, tuple[float, ...]]  # point -> duration of every repetition as a whole, in seconds
    cores: Mapping[Point, float]  # point -> cores that a run occupies
    truth: Mapping[str, float]  # call path -> time at P₊, in seconds

    def cost(self, point: Point, repetition: int) -> float:
        """Return the core-seconds of the ``repetition``-th run (from 1) at a point."""
        return self.seconds[point][repetition - 1] * self.cores[point]

    def full_cost(self, repetitions: int) -> float:
        """Return the core-seconds of all points with ``repetitions`` runs each: 100 % of a budget.

        Where fewer runs were measured, the missing ones count with the mean of those measured.
        """
        total = 0.0
        for point, runs in self.seconds.items():
            counted = runs[:repetitions]
            total += self.cores[point] * sum(counted) * repetitions / len(counted)
        return total

    def measured(self, done: Mapping[Point, int]) -> Measurements:
        """Return the measurements of the first ``done`` runs of each point.

        With several call paths, the durations of whole runs are among them.
        """
        series = {(callpath, "time"): values for callpath, values in self.times.items()}
        if len(series) > 1:
            series[WHOLE_RUN, ELAPSED] = self.seconds
        return Measurements(
            tuple(parameter.name for parameter in self.space.parameters),
            tuple(
                Measurement(
                    callpath, metric, {p: values[p][:count] for p, count in done.items() if p in values}
                )
                for (callpath, metric), values in series.items()
            ),
            frozenset(parameter.name for parameter in self.space.parameters if parameter.categorical),
        )
