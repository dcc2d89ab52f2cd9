"""Information per cost: measure what teaches most about P₊ for what it costs. Our own strategy.

The models' posterior says how the time at a candidate and the time at P₊ hang together. A run x with noise
variance σ² is expected to lower the variance of log f(P₊) by ``Cov(log f(x), log f(P₊))² / (Var(log f(x)) +
σ²)`` (the reduction of a Gaussian's variance, e.g. Rasmussen and Williams, Gaussian processes for machine
learning, equation 2.26; as a design criterion: Cohn, Neural network exploration using optimal experiment
design, 1996). That is summed over the relevant call paths, by share, and divided by the expected cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from orchestrator.models.base import holds_at
from orchestrator.models.belief import has_belief
from orchestrator.strategies.base import Choice, Nothing, Strategy, View
from orchestrator.strategies.candidates import Candidate, affordable, cost_text, kind_of_run
from orchestrator.strategies.gpr import Rating, best_rated
from orchestrator.strategies.information import choosing, ending
from orchestrator.strategies.information.choosing import Pick
from orchestrator.strategies.information.stakes import Stakes, Weighted
from orchestrator.strategies.relevance import Relevant, relevant
from orchestrator.strategies.starting_set import first_round, spread_lines
from orchestrator.types import Point

# Share of the remaining budget up to which whole lines come first. That they do gains 1 % of functions with
# two parameters at 3 % of the cost (docs/experiments.md); the share itself was chosen by hand.
_LINES = 0.8
_NO_BELIEF = "their models give no covariances between points"
# Repeated points from which noise and lack of fit can be told apart: one alone, as that of reference runs,
# does not show whether others are disturbed more. Chosen by hand.
_REPEATED = 4
MOST = "most information per cost"
FURTHEST = "no run has as many cores yet, and the evaluation point has no fewer"


def strategy(
    *,
    overhead: float = 0.0,
    points_per_line: int = 3,
    extra_points: int = 1,
    starting_repetitions: int = 1,
) -> Strategy:
    """Return the strategy that seeks the largest expected reduction of uncertainty per cost.

    First come the lines of the papers' starting set, up to the largest values, where the budget holds all of
    them. After that, a candidate is one more run at any point, measured or not. A round of n_b runs is chosen
    jointly: after each pick the posterior is updated as if it had been measured, so that near-copies are not
    picked twice. A round of several runs takes at most a tenth of the budget, so that it can be acted on.
    It needs models with the ability `orchestrator.models.belief.Belief`. Where no relevant call path has one,
    it chooses as `gpr` does and says so in the reason of every choice. One pass over the space per round,
    memory for one chunk of it.

    Parameters
    ----------
    overhead
        Fixed cost of a run in core-seconds (launch, queue, whole nodes), added to the expected cost.
    points_per_line, extra_points, starting_repetitions
        Starting set: three points per line, one point off the lines and one run each (six runs for two
        parameters), because what comes after is chosen better than a larger starting set is.
    """

    def propose(view: View, rng: np.random.Generator) -> Sequence[Choice]:
        sparse = replace(view, initial_repetitions=starting_repetitions)
        start = first_round(sparse, points_per_line, extra_points) if view.round == 1 else []
        if start:
            return start
        entries, aims = relevant(view), targets(view)
        models = [
            Weighted(model, entry.share)
            for entry in entries
            for model in entry.models
            if has_belief(model) and any(holds_at(model, aim) for aim in aims)
        ]
        choices = lines_first(view, models, overhead) or most_informative(view, models, overhead)
        if isinstance(choices, Nothing):
            return choices
        if choices:
            without = _left_out(entries)
            return [replace(choice, reason=f"{choice.reason}{without}") for choice in choices]
        why = _why_not(view, entries)
        fallback = best_rated(view, Rating.of(view, True, 1.0, 1.0))
        return [replace(choice, reason=f"{why}; {choice.reason}") for choice in fallback]

    return propose


def _left_out(entries: Sequence[Relevant]) -> str:
    """Say how many relevant call paths do not count because their models have no belief."""
    without = [entry for entry in entries if entry.models and not any(map(has_belief, entry.models))]
    if not without:
        return ""
    return f"; {len(without)} of {len(entries)} relevant call paths are left out: {_NO_BELIEF}"


def _why_not(view: View, entries: Sequence[Relevant]) -> str:
    """Say why information per cost cannot choose."""
    known = [model for entry in entries for model in entry.models]
    if not known:
        return "no relevant call path has a model yet, so chosen as gpr does"
    if not any(holds_at(model, aim) for model in known for aim in targets(view)):
        return "no model is for the categories of the evaluation point yet, so chosen as gpr does"
    return f"{_NO_BELIEF}, which information per cost needs, so chosen as gpr does"


def targets(view: View) -> list[Point]:
    """Return P₊; without one, the upper corner of the space in every category."""
    if view.evaluation_point is not None:
        return [view.evaluation_point]
    corners: list[dict[str, float | int | str]] = [{}]
    for parameter in view.space.parameters:
        values = parameter.values if parameter.categorical else [max(parameter.values, key=float)]
        corners = [{**corner, parameter.name: value} for corner in corners for value in values]
    return [Point.of(corner) for corner in corners]


def lines_first(view: View, models: Sequence[Weighted], overhead: float) -> list[Choice]:
    """Return the next runs along the lines, cheapest first, if the budget holds all that are missing.

    Information per cost is short-sighted: it spends on small runs what a large one, that separates hypotheses
    far better, would have needed. Where not all fit, the far ends would take too much of the budget.
    """
    missing = [point for point in spread_lines(view) if not view.done.get(point)]
    if not models or view.cost_is_relative or not missing:
        return []
    stakes = Stakes.of(view, models, targets(view), overhead)
    rated = [item for item in choosing.rate(view, stakes, missing) if affordable(view, item.safe_cost)]
    runs = [item.run for item in rated]
    if len(runs) < len(missing) or sum(run.seconds for run in runs) > _LINES * view.budget_left:
        return []
    runs.sort(key=lambda run: run.seconds)
    fits = "the missing one fits" if len(missing) == 1 else f"the {len(missing)} that are missing fit"
    why = f"next point of a line, {fits} the budget"
    return _as_round(view, runs[: view.batch_size], why)


def _as_round(view: View, runs: Sequence[Candidate], why: str) -> list[Choice]:
    """Return runs, cheapest first, as long as they take no more than a round may; one in any case."""
    spent = accumulate(run.seconds for run in runs)
    fitting = [
        run for run, total in zip(runs, spent, strict=True) if total <= choosing.ROUND * view.budget_left
    ]
    return [Choice(run.point, 1, f"{why} ({cost_text(view, run)})") for run in fitting or runs[:1]]


def most_informative(view: View, models: Sequence[Weighted], overhead: float) -> Sequence[Choice]:
    """Return n_b affordable runs, chosen jointly; runs at the same point are one choice.

    `Nothing` with the reason when no affordable run is worth its price.
    """
    if not models:
        return []
    stakes = Stakes.of(view, models, targets(view), overhead)
    found = choosing.choose(view, stakes)
    if not found.picks:
        return repeated(view, stakes) or ending.nothing(view, stakes)
    choices = []
    for index in dict.fromkeys(pick.index for pick in found.picks):
        mine = [pick for pick in found.picks if pick.index == index]
        chosen = found.pool[index]
        run = replace(chosen, repetitions=len(mine), seconds=len(mine) * chosen.seconds)
        why = FURTHEST if index == found.furthest else MOST
        choices.append(Choice(run.point, run.repetitions, _reason(view, stakes, run, mine, why)))
    return choices


def repeated(view: View, stakes: Stakes) -> list[Choice]:
    """Return second runs at points of all sizes, as long as fewer than four points were repeated.

    As long as the noise is a guess, what the models do not fit may be noise, which repetitions lower, or lack
    of fit, which they do not. A campaign must not end on that guess.
    """
    if view.maximum_repetitions < 2 or sum(count > 1 for count in view.done.values()) >= _REPEATED:
        return []
    once = [
        point
        for point, count in view.done.items()
        if count == 1 and point in view.space and point not in view.infeasible
    ]
    rated = [item for item in choosing.rate(view, stakes, once) if affordable(view, item.safe_cost)]
    runs = sorted((item.run for item in rated), key=lambda run: run.seconds)
    spread = np.linspace(0, len(runs) - 1, min(_REPEATED, len(runs))).round().astype(int)
    why = (
        "repetition 2: whether noise or lack of fit makes the intervals wide is not known without repetitions"
    )
    return _as_round(view, [runs[k] for k in dict.fromkeys(map(int, spread))], why)


def _reason(view: View, stakes: Stakes, run: Candidate, picks: Sequence[Pick], why: str) -> str:
    effect = stakes.effect(picks[0].before, picks[-1].after)
    return f"{kind_of_run(view, run.point)}: {why}, {effect} ({cost_text(view, run)})"
