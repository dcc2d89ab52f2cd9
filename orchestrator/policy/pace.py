"""What becomes of a campaign at the pace of its last rounds: its uncertainty, and its budget. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.journal.state import RoundMark

ROUNDS = 6  # the last ones that a trend is taken from
FEWEST = 3  # rounds with intervals, without which there is no trend
_GROWTH = 1.1  # factor by which the spending of these rounds must have grown
# Intervals of a model whose form is known narrow with the root of the number of runs. They narrow faster only
# while the form is being found, which ends.
_STEEPEST = -0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What becomes of a campaign that goes on as in its last rounds."""

    # Mean relative width of the 90 % intervals at P₊ after the last round; None where it is not known.
    uncertainty: float | None = None
    final: float | None = None  # the same when the budget is spent; None without a trend
    # By which power of the core-seconds spent the uncertainty has changed; None without a trend.
    exponent: float | None = None
    no_trend: str = ""  # why there is no trend; empty where there is one
    # Until the budget is spent at the rate of the last rounds; None where no rate is known.
    seconds: float | None


def pace(marks: Sequence[RoundMark], spent: float, budget: float) -> Pace:
    """Return what becomes of a campaign; budget and ``spent`` in core-seconds.

    The trend is a straight line through the logarithms of uncertainty and core-seconds spent, over the last
    `ROUNDS` rounds that have intervals. It goes on from the last round, never faster than with the root of
    the core-seconds.
    """
    seconds = _seconds(marks[-ROUNDS:], spent, budget)
    known = [mark for mark in marks if mark.uncertainty and mark.spent > 0][-ROUNDS:]
    if not known:
        return Pace(no_trend="no round has intervals yet", seconds=seconds)
    last = known[-1]
    why = _no_trend(known)
    if why:
        return Pace(uncertainty=last.uncertainty, no_trend=why, seconds=seconds)
    import statistics  # a look at a campaign seldom comes here

    line = statistics.linear_regression(
        [math.log(mark.spent) for mark in known], [math.log(mark.uncertainty or 1.0) for mark in known]
    )
    if line.slope >= 0:
        text = f"the intervals did not become narrower in the last {len(known)} rounds"
        return Pace(uncertainty=last.uncertainty, exponent=line.slope, no_trend=text, seconds=seconds)
    factor = (max(budget, last.spent) / last.spent) ** max(line.slope, _STEEPEST)
    return Pace(
        uncertainty=last.uncertainty,
        final=(last.uncertainty or 0.0) * factor,
        exponent=line.slope,
        seconds=seconds,
    )


def _no_trend(known: Sequence[RoundMark]) -> str:
    if len(known) < FEWEST:
        rounds = f"{len(known)} round{'s have' if len(known) > 1 else ' has'}"
        return f"no trend yet: {rounds} intervals, {FEWEST} are needed"
    if known[-1].spent < _GROWTH * known[0].spent:
        grown = 100 * (known[-1].spent / known[0].spent - 1)
        return f"no trend: the last {len(known)} rounds added only {grown:.2g} % to what is spent"
    return ""


def _seconds(marks: Sequence[RoundMark], spent: float, budget: float) -> float | None:
    """Return the seconds until the budget is spent, at the rate of some rounds."""
    if len(marks) < 2:
        return None
    core_seconds, seconds = marks[-1].spent - marks[0].spent, marks[-1].time - marks[0].time
    if core_seconds <= 0 or seconds <= 0:
        return None
    return max(0.0, budget - spent) * seconds / core_seconds
