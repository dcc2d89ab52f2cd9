"""Time limits and memory of the next attempt: from predictions with a margin, up to a fixed limit. Pure."""

from __future__ import annotations

import math

from orchestrator.journal.state import RunState
from orchestrator.types import FailureClass

SHORTEST = 10.0  # seconds: starting a program on a busy node takes seconds whatever the model says
RAISE = 2.0  # factor on the time limit after an attempt that reached it
MORE_MEMORY = 1.5  # factor on the memory after each attempt that ran out of it


def memory_for(run: RunState) -> float:
    """Return the factor on the memory that the next attempt at a run asks for."""
    return MORE_MEMORY ** run.failures.count(FailureClass.MEMORY)


def limit_for(cap: float, margin: float | None, expected: float | None, run: RunState) -> float:
    """Return the time limit of the next attempt at a run, in seconds.

    Parameters
    ----------
    cap
        The fixed limit: of the campaign file, or derived from the budget.
    margin
        Factor on ``expected``; None: always the fixed limit.
    expected
        Upper end of the interval of the run's duration, in seconds; None before there is a model.
    run
        Where the run stands: a limit that ended its last attempt is raised.
    """
    if margin is None:
        return cap
    limit = cap
    if expected is not None and math.isfinite(expected):
        limit = min(cap, max(SHORTEST, margin * expected))
    if FailureClass.TIMEOUT in run.failures:
        limit = min(cap, max(limit, RAISE * run.limit))
    return limit
