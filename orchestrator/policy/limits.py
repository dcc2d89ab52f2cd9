"""Time limits and memory of the next attempt: from predictions with a margin. Pure."""

from __future__ import annotations

import math
from dataclasses import replace

from orchestrator.journal.state import RunState, RunStatus, State
from orchestrator.types import FailureClass, Point, Run

SHORTEST = 10.0  # seconds: starting a program on a busy node takes seconds whatever the model says
RAISE = 2.0  # factor on the time limit after an attempt that reached it
WIDEST = 4.0  # times the expected duration: what an interval's upper end may add to a limit
ESTIMATE = 2.0  # a run may take that many times the user's estimate: nobody knows it exactly
_LAST = 3  # repetitions that a further one is compared with: there may be thousands
MORE_MEMORY = 1.5  # factor on the memory after each attempt that ran out of it


def memory_for(state: State, run: Run) -> float:
    """Return the factor on the memory that the next attempt at a run asks for.

    More than any attempt at it had too little with, and at least what others were measured with that are not
    larger in any parameter, earlier repetitions among them: with less, each would fail first.
    """
    smaller = (
        state.runs[item].memory
        for item in state.short_of_memory
        if item.kind == run.kind and _is_as_large(run.point, item.point)
    )
    return max(1.0, MORE_MEMORY * state.runs[run].lacked, *smaller)


def _is_as_large(point: Point, other: Point) -> bool:
    """Return whether no parameter is smaller than at another point, and categories are the same."""
    return all(
        value == least if isinstance(value, str) or isinstance(least, str) else value >= least
        for (_, value), (_, least) in zip(point.items, other.items, strict=True)
    )


def shortest_repetition(state: State, run: Run) -> float:
    """Return the seconds that each of the last few repetitions took; 0 where none of them was measured.

    A model may be far off at a point that was measured.
    """
    last = range(max(1, run.repetition - _LAST), run.repetition)
    earlier = (state.runs.get(replace(run, repetition=k), RunState()) for k in last)
    return min((item.elapsed for item in earlier if item.status is RunStatus.MEASURED), default=0.0)


def reached_below(state: State, run: Run) -> float:
    """Return the longest limit (s) that ended runs which are not larger in any parameter; 0 if none did."""
    return max(
        (
            item.reached
            for other, item in state.runs.items()
            if item.reached and other.kind == run.kind and _is_as_large(run.point, other.point)
        ),
        default=0.0,
    )


def likely_longest(expected: float, high: float) -> float:
    """Return how long a run takes at most, as far as a model can say: the upper end ``high`` of its interval.

    The interval of a model of few points may span orders of magnitude. Beyond `WIDEST` times the ``expected``
    duration it says that the model knows nothing, not that the run is long. All in seconds.
    """
    return min(high, WIDEST * expected)


def limit_for(
    *, stated: float | None, derived: float | None, margin: float | None, longest: float | None, run: RunState
) -> float:
    """Return the time limit of the next attempt at a run, in seconds.

    Parameters
    ----------
    stated
        The limit of the campaign file, which no attempt exceeds; None where there is none.
    derived
        The limit derived from the budget instead, for runs of which nothing is known. A run that is known to
        be longer, or that reached it, gets more: the budget decides whether that fits.
    margin
        Factor on ``longest``; None: equal limits for all runs.
    longest
        How long the run takes at most, by a model or the user's estimate, in seconds; None where unknown.
    run
        Where the run stands: a limit that ended one of its attempts is raised, also after a change of the
        rules, when the run may be tried again.
    """
    cap = math.inf if stated is None else stated
    limit = derived if stated is None else stated
    assert limit is not None, "a time limit is derived when the campaign starts"
    if margin is not None and longest is not None and math.isfinite(longest):
        limit = min(cap, max(min(SHORTEST, limit), margin * longest))
    reached = max(run.reached, run.limit) if FailureClass.TIMEOUT in run.failures else run.reached
    if reached > 0:
        limit = min(cap, max(limit, RAISE * reached))
    return limit
