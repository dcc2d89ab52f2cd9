"""What is known of the open runs before a decision: plain figures, computed from the models beforehand. Pure.

A decision reads this table and the state. It has no access to a model, a modeler or a measurement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from orchestrator.journal.state import RunState, State, measured_before
from orchestrator.policy.limits import RAISE, limit_for, reached_below, shortest_repetition
from orchestrator.resources import Reservation, fair_limit
from orchestrator.types import Point, Resources, Run, RunKind
from orchestrator.units import format_duration

_ROUNDING = 1e-9  # relative: what fits must fit after all sums
CLOSE = 1.25  # times the expected duration: within such a limit, most runs end


class ReservedSeconds(Protocol):
    """The most seconds that a job of attempts with these time limits can be charged; grows with each."""

    def __call__(self, *limits: float) -> float:
        """Return seconds, including what the executor needs to start and to end a job."""
        ...


class PointEstimate(NamedTuple):
    """What a time run at one point occupies and takes. Times in seconds; None where nothing is known.

    ``limit``: the fixed time limit of the campaign file. ``stated``: the user's estimate. ``predicted``: by
    the models of durations, with the overhead of a job. ``longest``: what the run takes at most, by the
    interval of that prediction, or else by the user's estimate. ``median``: what it takes as probably
    as not, by that prediction. ``granted``: the longest time limit that the scheduler grants, and
    ``granted_by`` what in it, such as ``partition debug``.
    """

    resources: Resources
    limit: float | None = None
    stated: float | None = None
    predicted: float | None = None
    longest: float | None = None
    median: float | None = None
    granted: float = math.inf
    granted_by: str = ""

    @property
    def bound(self) -> str:
        """What a time limit may not exceed, by its name."""
        stated = self.limit is not None and self.limit <= self.granted
        return "measure.time_limit" if stated or not self.granted_by else self.granted_by

    @property
    def too_long(self) -> str:
        """Why a run would more probably reach the time limit than end before; empty where it would not."""
        limit = min(self.granted, math.inf if self.limit is None else self.limit)
        if self.median is None or self.median <= limit:
            return ""
        takes, longest = format_duration(round(self.median, 1)), format_duration(limit)
        word = "is" if limit == self.limit else "grants it"
        return f"it takes {takes} by the models, and {self.bound} {word} {longest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """All that a decision may know of runs beside the state."""

    # One entry for each point with an open run, and for the validation point.
    points: Mapping[Point, PointEstimate]
    reserved_seconds: ReservedSeconds  # the executor's rule for what a job can be charged
    # How many times longer than a time run a run of each kind may take; 1 where missing.
    slowdown: Mapping[RunKind, float]
    margin: float | None = None  # factor on ``longest`` for the time limit; None: equal limits for all runs

    def reservation(self, state: State, run: Run) -> Reservation:
        """Return the most that the next attempt at a run can be charged."""
        known, slowdown = self.points[run.point], self.slowdown.get(run.kind, 1.0)
        limit = limit_for(
            stated=None if known.limit is None else slowdown * known.limit,
            derived=self._derived(state, run, slowdown),
            margin=self.margin,
            longest=self._longest(state, run),
            run=state.runs.get(run, RunState()),
        )
        return self._with_limit(state, run, min(limit, known.granted))

    def is_guess(self, run: Run) -> bool:
        """Return whether only the budget says how long a run may take."""
        known = self.points[run.point]
        return known.limit is None and known.longest is None and known.median is None

    def _derived(self, state: State, run: Run, slowdown: float) -> float | None:
        """Return the limit from the budget, or more where a run that is not larger reached its own."""
        if state.time_limit is None:
            return None
        below = reached_below(state, run) if self.margin is not None and self.is_guess(run) else 0.0
        return max(slowdown * state.time_limit, RAISE * below)

    def fits_next(self, state: State, run: Run) -> bool:
        """Return whether the next attempt at a run that reached its limit may end before its own.

        It may if its limit is higher, if the run is known to take less, or if an earlier repetition did.
        """
        limit, known = self.reservation(state, run).limit, self.points[run.point].longest
        takes_less = known is not None and self.slowdown.get(run.kind, 1.0) * known <= limit
        return limit > state.runs[run].limit or takes_less or measured_before(state, run)

    def _longest(self, state: State, run: Run) -> float | None:
        """Return the seconds that a run takes at most, as far as is known."""
        longest = self.points[run.point].longest
        if longest is None:
            return None
        return max(self.slowdown.get(run.kind, 1.0) * longest, shortest_repetition(state, run))

    def _with_limit(self, state: State, run: Run, limit: float) -> Reservation:
        cores = self.points[run.point].resources.cores
        # A run that took longer than expected is not known any more.
        timed_out = state.runs.get(run, RunState()).timed_out
        likely = None if timed_out else self._longest(state, run)
        return Reservation(cores, limit, self.reserved_seconds(limit) * cores * state.allocation, likely)

    def least(self, state: State, run: Run) -> Reservation:
        """Return the smallest reservation with which an attempt at a run makes sense.

        Its limit is `CLOSE` times what the run is expected to take, however narrow the interval of that is: a
        single run scatters about its mean. Without an expectation it is what the run takes at most as far as
        is known. Where nothing is known, and after a timeout, that is the usual reservation.
        """
        usual, known = self.reservation(state, run), self.points[run.point]
        expected = known.stated if known.predicted is None else known.predicted
        timed_out = state.runs.get(run, RunState()).timed_out
        slowdown, longest = self.slowdown.get(run.kind, 1.0), known.longest
        if timed_out or (expected is None and longest is None):
            return usual
        enough = longest if expected is None else CLOSE * expected
        assert enough is not None
        enough = max(slowdown * enough, shortest_repetition(state, run))
        return self._with_limit(state, run, min(usual.limit, enough))

    def fitting(self, state: State, run: Run, left: float) -> Reservation | None:
        """Return the largest reservation of a run within ``left`` core-seconds; None below the `least`."""
        usual, least = self.reservation(state, run), self.least(state, run)
        if usual.reserved <= left:
            return usual
        if least.reserved > left:
            return None
        weight = usual.cores * state.allocation * (1 + _ROUNDING)
        limit = fair_limit(left / weight, self.reserved_seconds, longest=usual.limit)
        return self._with_limit(state, run, max(limit, least.limit))

    def seconds(self, state: State, run: Run) -> float:
        """Return the seconds that a run is expected to take within a job, or else its time limit."""
        known, slowdown = self.points[run.point], self.slowdown.get(run.kind, 1.0)
        if known.predicted is not None:
            return slowdown * max(0.0, known.predicted - state.job_costs.overhead)
        if known.stated is not None:
            return slowdown * known.stated
        return self.reservation(state, run).limit
