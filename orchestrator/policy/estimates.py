"""What is known of the open runs before a decision: plain figures, computed from the models beforehand. Pure.

A decision reads this table and the state. It has no access to a model, a modeler or a measurement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from orchestrator.journal.state import RunState, State
from orchestrator.policy.limits import limit_for
from orchestrator.resources import Reservation
from orchestrator.types import Point, Resources, Run, RunKind


class ReservedSeconds(Protocol):
    """The most seconds that a job of attempts with these time limits can be charged; grows with each."""

    def __call__(self, *limits: float) -> float:
        """Return seconds, including what the executor needs to start and to end a job."""
        ...


class PointEstimate(NamedTuple):
    """What a time run at one point occupies and takes. Times in seconds; None where nothing is known.

    ``limit``: the fixed time limit of the campaign file. ``stated``: the user's estimate. ``predicted``: by
    the models of durations, with the overhead of a job. ``longest``: upper end of that prediction's interval.
    """

    resources: Resources
    limit: float | None = None
    stated: float | None = None
    predicted: float | None = None
    longest: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """All that a decision may know of runs beside the state.

    Attributes
    ----------
    points
        One entry for each point with an open run, and for the validation point.
    reserved_seconds
        The executor's rule for what a job can be charged.
    slowdown
        How many times longer than a time run a run of each kind may take; 1 where missing.
    margin
        Factor on ``longest`` for the time limit; None: always the fixed limit.
    """

    points: Mapping[Point, PointEstimate]
    reserved_seconds: ReservedSeconds
    slowdown: Mapping[RunKind, float]
    margin: float | None = None

    def reservation(self, state: State, run: Run) -> Reservation:
        """Return the most that the next attempt at a run can be charged."""
        known, slowdown = self.points[run.point], self.slowdown.get(run.kind, 1.0)
        cap = known.limit or state.time_limit
        assert cap is not None, "a time limit is derived when the campaign starts"
        longest = None if known.longest is None else slowdown * known.longest
        limit = limit_for(cap * slowdown, self.margin, longest, state.runs.get(run, RunState()))
        cores = known.resources.cores
        return Reservation(cores, limit, self.reserved_seconds(limit) * cores * state.allocation)

    def seconds(self, state: State, run: Run) -> float:
        """Return the seconds that a run is expected to take within a job, or else its time limit."""
        known, slowdown = self.points[run.point], self.slowdown.get(run.kind, 1.0)
        if known.predicted is not None:
            return slowdown * max(0.0, known.predicted - state.job_costs.overhead)
        if known.stated is not None:
            return slowdown * known.stated
        return self.reservation(state, run).limit
