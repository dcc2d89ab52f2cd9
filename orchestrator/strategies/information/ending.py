"""Why no run is proposed: nothing affordable is worth its cost, or nothing helps at any cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import compress

import numpy as np

from orchestrator.strategies.base import Nothing, View
from orchestrator.strategies.candidates import affordable, cost_text, open_points
from orchestrator.strategies.information.beyond import points_beyond
from orchestrator.strategies.information.choosing import Rated, rate
from orchestrator.strategies.information.stakes import Stakes
from orchestrator.types import Point
from orchestrator.units import format_cost

# Share of the variance at P₊ that a useful run lowers: the intervals narrow by 5 %, which counts as a gain.
_NOTICEABLE = 0.1
# Share of what the best run beyond the ranges would teach that a cheaper one must teach. Chosen by hand.
_NEARLY = 0.9


def nothing(view: View, stakes: Stakes) -> Nothing:
    """Return why no run is proposed, and the next useful run with its price if there is one."""
    best: Rated | None = None
    useful: Rated | None = None
    for item in _at_any_cost(view, stakes, open_points(view)):
        if not math.isfinite(item.run.seconds):
            continue
        if item.safe_cost <= view.budget_left:
            best = item if best is None or item.gain > best.gain else best
        else:
            useful = max(filter(None, (useful, item)), key=lambda run: _usefulness(run, stakes))
    if best is None and useful is None:
        wider, beyond = _wider(view, stakes)
        what = "every point has its maximum of repetitions, or was given up"
        return Nothing("exhausted", "; ".join(filter(None, (what, wider))), False, beyond)
    if useful is not None and useful.gain > (0.0 if best is None else best.gain):
        ahead = f"the next useful run, at {useful.run.point}, {_effect(view, stakes, useful)}"
        return Nothing("exhausted", f"{_vain(view, stakes, best)}; {ahead}", useful=useful.run.point)
    if stakes.fixed < (1 - _NOTICEABLE) * stakes.total:
        wider, beyond = _wider(view, stakes)
        what = "no run in the search space is worth its cost"
        reason = f"{what}; {wider or 'wider ranges of the parameters may help'}; {_best(view, stakes, best)}"
        return Nothing("exhausted", reason, False, beyond)
    what = "what is left is scatter around every model, which no run lowers"
    return Nothing("converged", f"{what}; {_best(view, stakes, best)}", False)


def _at_any_cost(view: View, stakes: Stakes, points: Iterable[Point]) -> Iterator[Rated]:
    """Rate one more run at each of some points, whether the budget holds it or not."""
    return rate(replace(view, budget_left=math.inf), stakes, points)


def _usefulness(item: Rated, stakes: Stakes) -> tuple[bool, float]:
    """Rank runs: first those that alone narrow the intervals noticeably, by gain per cost."""
    noticeable = item.gain >= _NOTICEABLE * stakes.total
    return noticeable, item.gain / max(item.run.seconds, 1e-12) if noticeable else item.gain


def _vain(view: View, stakes: Stakes, best: Rated | None) -> str:
    kept = f" beside {format_cost(view.kept, view.unit, 3)} for the validation" if view.kept else ""
    left = format_cost(view.budget_left, view.unit, 3)
    if best is None:
        return f"no run is safe to fit the {left} that are left{kept}"
    return f"no run that fits the {left} left{kept} is worth its cost; {_best(view, stakes, best)}"


def _best(view: View, stakes: Stakes, best: Rated | None) -> str:
    if best is None:
        return "every point has its maximum of repetitions"
    return f"the best run, at {best.run.point}, {_effect(view, stakes, best)}"


def _wider(view: View, stakes: Stakes) -> tuple[str, Point | None]:
    """Say which run would teach most, or nearly so, for the least, if the ranges of parameters were wider.

    Of runs that fit the budget, if any does; empty where the evaluation point is not beyond the ranges.
    Return its point, too, if there is one.
    """
    points = dict.fromkeys(point for aim in stakes.aims for point in points_beyond(view, aim))
    if not points:
        return "", None
    rated = list(_at_any_cost(view, stakes, points))
    gains, prices = (
        np.array([item.gain for item in rated]),
        stakes.price.of_runs([item.run for item in rated]),
    )
    useful = list(compress(rated, stakes.price.worth(gains, stakes.total, prices)))
    if not useful:
        return "no run in wider ranges, up to the evaluation point, is worth its cost either", None
    useful = [item for item in useful if affordable(view, item.safe_cost)] or useful
    enough = _NEARLY * max(item.gain for item in useful)
    best = min((item for item in useful if item.gain >= enough), key=lambda item: item.run.seconds)
    what = f"a run at {best.run.point} {_effect(view, stakes, best)}"
    return f"wider ranges of the parameters may help: {what}", best.run.point


def _effect(view: View, stakes: Stakes, item: Rated) -> str:
    return f"{stakes.effect(stakes.total, stakes.total - item.gain)} ({cost_text(view, item.run)})"
