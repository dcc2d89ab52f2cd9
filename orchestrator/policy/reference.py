"""The reference run: a cheap point, measured again while a drift of the machine is suspected. Pure.

What the machine does over time and what the model describes look alike as long as every point is measured
once. Repetitions of one point over the hours tell them apart. A reference run is an ordinary run: it is
charged, retried, and a measurement of its point.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from orchestrator.journal.references import REASON, references
from orchestrator.journal.state import RunState, State
from orchestrator.policy import machine
from orchestrator.strategies.base import Choice
from orchestrator.types import Point

_AGAIN = "one point is repeated to distinguish a drift from an error of the model"
# Share of the budget that reference runs may cost; the least share of the usual duration that a reference run
# takes, because shorter ones show little but their start, and fit between what others do. Chosen by hand.
_SHARE = 0.05
_LEAST = 0.5
_BLIND = 900.0  # seconds of a campaign from which a drift matters


def propose(state: State, choices: Sequence[Choice], budget: float, runs: int = 1) -> list[Choice]:
    """Return one reference run to add to a round, or nothing.

    Parameters
    ----------
    state
        With the findings of the last round.
    choices
        The strategy's. Nothing is added to an empty round, nor where the point is repeated anyway.
    budget
        Core-seconds of the campaign. Reference runs may cost a twentieth of it.
    runs
        How many runs the choice will be: one of each executable where two are compared.
    """
    why = _suspicion(state) if choices else ""
    if not why:
        return []
    before, known = references(state), _by_point(state)
    point = next((item for item in before.points if item in known), None) or _cheapest(known)
    if point is None or point in state.infeasible or any(choice.point == point for choice in choices):
        return []
    expected = fmean(item.cost for item in known[point])
    if before.cost + before.reserved + runs * expected > _SHARE * budget:
        return []
    return [Choice(point, 1, f"{REASON}{why}; {_AGAIN}")]


def _suspicion(state: State) -> str:
    """Return why a drift is suspected; empty where nothing says so."""
    trend = machine.drift(state)
    if trend is not None and trend.suspected:
        chance = max(trend.chance, 0.001)
        return (
            f"times of the same points changed by {100 * trend.change:+.0f} % (chance {100 * chance:.2g} %)"
        )
    for kind in ("busy machine", "busy host"):
        if kind in state.machine:
            return kind
    return _blind(state)


def _blind(state: State) -> str:
    """Say that a drift could not be seen: no point was measured both early and late.

    Only of runs that were executed: a rehearsal has no machine.
    """
    began = ([item.began or 0.0 for item in items if item.origin] for items in _by_point(state).values())
    times = [found for found in began if found]
    if not times:
        return ""
    span = max(map(max, times)) - min(map(min, times))
    longest = max(max(found) - min(found) for found in times)
    if span < _BLIND or longest >= span / 2:
        return ""
    return f"no point was measured both early and late in {span / 60:.0f} minutes"


def _by_point(state: State) -> dict[Point, list[RunState]]:
    found: dict[Point, list[RunState]] = {}
    for run, item in machine.timed(state):
        if item.began is not None:
            found.setdefault(run.point, []).append(item)
    return found


def _cheapest(known: dict[Point, list[RunState]]) -> Point | None:
    """Return the cheapest point of the earlier half of the campaign whose runs are not too short."""
    if not known:
        return None
    first = {point: min(item.began or 0.0 for item in items) for point, items in known.items()}
    middle = median(first.values())
    seconds = {point: fmean(item.elapsed for item in items) for point, items in known.items()}
    least = _LEAST * median(seconds.values())
    early = [point for point in known if first[point] <= middle and seconds[point] >= least]
    return min(early, key=lambda p: (fmean(item.cost for item in known[p]), p.key), default=None)
