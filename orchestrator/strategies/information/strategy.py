"""Information per cost: measure what teaches most about P₊ for what it costs. Our own strategy.

The models' posterior says how the time at a candidate and the time at P₊ hang together. A run x with noise
variance σ² is expected to lower the variance of log f(P₊) by ``Cov(log f(x), log f(P₊))² / (Var(log f(x)) +
σ²)`` (the reduction of a Gaussian's variance, e.g. Rasmussen and Williams, Gaussian processes for machine
learning, equation 2.26; as a design criterion: Cohn, Neural network exploration using optimal experiment
design, 1996). That is summed over the relevant call paths, by share, and divided by the expected cost.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.belief import ModelWithBelief, has_belief
from orchestrator.strategies.base import Choice, Strategy, View
from orchestrator.strategies.candidates import (
    Candidate,
    affordable,
    chunks,
    cost_text,
    open_points,
    single_runs,
)
from orchestrator.strategies.gpr import Rating, best_rated
from orchestrator.strategies.information.gain import Known, deviation, gain, known, learn, run_noise
from orchestrator.strategies.information.unseen_terms import UnseenTerms
from orchestrator.strategies.relevance import Relevant, relevant
from orchestrator.strategies.starting_set import first_round, spread_lines
from orchestrator.types import Point

# Candidates that compete for a batch: those that are best by themselves. Chosen by hand; not derived.
_POOL = 256
# Candidates rated at once: each has thousands of covariances. Chosen by hand; not derived.
_CHUNK = 1024
# Standard deviations of its expected cost that a run must leave in the budget: 95 % of runs cost less.
_SAFETY = 1.65
# Share of the remaining budget up to which whole lines come first. That they do gains 1 % of functions with
# two parameters at 3 % of the cost (docs/evaluation.md); the share itself was chosen by hand.
_LINES = 0.8
# Share of the remaining budget beyond which a round has one run: what it shows must still be of use. Without
# the bound 80 instead of 89 % of functions with three parameters are accurate (docs/evaluation.md).
_ROUND = 0.1
_NO_BELIEF = "their models give no covariances between points"
_SMALLEST_COST = 1e-12  # core-seconds; a run expected to cost nothing must not divide all others away


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
        entries = relevant(view)
        models = [
            Weighted(model, entry.share) for entry in entries for model in entry.models if has_belief(model)
        ]
        choices = lines_first(view, models, overhead) or most_informative(view, models, overhead)
        if choices:
            return _with_remark(choices, _left_out(entries), "")
        fallback = best_rated(view, Rating.of(view, True, 1.0, 1.0))
        return _with_remark(fallback, "", _why_not(entries, models))

    return propose


@dataclass(frozen=True, slots=True)
class Weighted:
    """A model of a relevant call path, and the weight of the call path."""

    model: ModelWithBelief
    share: float


def _left_out(entries: Sequence[Relevant]) -> str:
    """Say how many relevant call paths do not count because their models have no belief."""
    without = [entry for entry in entries if entry.models and not any(map(has_belief, entry.models))]
    if not without:
        return ""
    return f"{len(without)} of {len(entries)} relevant call paths are left out: {_NO_BELIEF}"


def _why_not(entries: Sequence[Relevant], models: Sequence[Weighted]) -> str:
    """Say why information per cost chose nothing."""
    if models:
        return "no affordable run lowers the uncertainty at the evaluation point, so chosen as gpr does"
    if any(entry.models for entry in entries):
        return f"{_NO_BELIEF}, which information per cost needs, so chosen as gpr does"
    return "no relevant call path has a model yet, so chosen as gpr does"


def _with_remark(choices: Sequence[Choice], after: str, before: str) -> list[Choice]:
    """Return choices with a remark before or after each reason: the log and the status show reasons."""
    return [
        replace(choice, reason="; ".join(filter(None, (before, choice.reason, after)))) for choice in choices
    ]


def targets(view: View) -> list[Point]:
    """Return P₊; without one, the upper corner of the space in every category."""
    if view.evaluation_point is not None:
        return [view.evaluation_point]
    corners: list[dict[str, float | int | str]] = [{}]
    for parameter in view.space.parameters:
        values = parameter.values if parameter.categorical else [max(parameter.values, key=float)]
        corners = [{**corner, parameter.name: value} for corner in corners for value in values]
    return [Point.of(corner) for corner in corners]


@dataclass(frozen=True, slots=True)
class Pick:
    """A run picked for a batch, with the uncertainty at P₊ (relative variance) before and after it."""

    index: int
    before: float
    after: float


def lines_first(view: View, models: Sequence[Weighted], overhead: float) -> list[Choice]:
    """Return the next runs along the lines, cheapest first, if the budget holds all that are missing.

    Information per cost is short-sighted: it spends on small runs what a large one, that separates hypotheses
    far better, would have needed. Where not all fit, the far ends would take too much of the budget.
    """
    missing = [point for point in spread_lines(view) if not view.done.get(point)]
    if not models or view.cost_is_relative or not missing:
        return []
    runs = [run for _, run in _rate(view, models, targets(view), overhead, missing)]
    if len(runs) < len(missing) or sum(run.seconds for run in runs) > _LINES * view.budget_left:
        return []
    runs.sort(key=lambda run: run.seconds)
    choices: list[Choice] = []
    spent = 0.0
    for run in runs[: view.batch_size]:
        spent += run.seconds
        if choices and spent > _ROUND * view.budget_left:
            break
        reason = f"next point of a line, the {len(missing)} that are missing fit the budget"
        choices.append(Choice(run.point, 1, f"{reason} ({cost_text(view, run)})"))
    return choices


def most_informative(view: View, models: Sequence[Weighted], overhead: float) -> list[Choice]:
    """Return n_b affordable runs, chosen jointly; runs at the same point are one choice.

    Empty when nothing is affordable, or nothing teaches anything about P₊.
    """
    if not models:
        return []
    aims = targets(view)
    pool_size = 1 if view.batch_size == 1 else _POOL  # nothing to be chosen jointly
    rated = heapq.nlargest(
        pool_size, _rate(view, models, aims, overhead, open_points(view)), key=lambda entry: entry[0]
    )
    pool = [run for _, run in rated]
    picks = _pick(view, models, aims, pool, overhead) if pool else []
    choices = []
    for index in dict.fromkeys(pick.index for pick in picks):
        mine = [pick for pick in picks if pick.index == index]
        run = replace(pool[index], repetitions=len(mine), seconds=len(mine) * pool[index].seconds)
        choices.append(Choice(run.point, run.repetitions, _reason(view, aims, run, mine)))
    return choices


def _reason(view: View, aims: Sequence[Point], run: Candidate, picks: Sequence[Pick]) -> str:
    done = view.done.get(run.point, 0)
    what = f"repetition {done + 1}" if done else "new point"
    before, after = (100.0 * math.sqrt(max(v, 0.0)) for v in (picks[0].before, picks[-1].after))
    where = str(aims[0]) if len(aims) == 1 else "the upper corners"
    return (
        f"{what}: most information per cost, lowers the uncertainty at {where} from {before:.3g} % to "
        f"{after:.3g} % ({cost_text(view, run)})"
    )


def _rate(
    view: View, models: Sequence[Weighted], aims: Sequence[Point], overhead: float, points: Iterable[Point]
) -> Iterator[tuple[float, Candidate]]:
    hidden = [UnseenTerms.of(entry.model, view.done) for entry in models]
    goals = [known(entry.model, aims, h).factor for entry, h in zip(models, hidden, strict=True)]
    for chunk in chunks(points, _CHUNK):
        runs = single_runs(view, chunk)
        if not runs:
            continue
        counts = np.array([view.done.get(run.point, 0) for run in runs])
        total, growth, unsure = np.zeros((3, len(runs)))
        for entry, terms, goal in zip(models, hidden, goals, strict=True):
            here = known(entry.model, [run.point for run in runs], terms)
            total += entry.share * gain(here.factor, goal, run_noise(here.noise, here.misfit, counts))
            growth += entry.share * here.growth
            unsure += entry.share * deviation(here.factor)
        runs = [
            replace(run, seconds=run.seconds * (1 + float(g))) for run, g in zip(runs, growth, strict=True)
        ]
        for run, value, margin in zip(runs, total / _costs(runs, overhead), _SAFETY * unsure, strict=True):
            if affordable(view, run.seconds * (1 + margin)):
                yield float(value), run


def _costs(runs: Sequence[Candidate], overhead: float) -> Floats:
    return np.maximum(np.array([run.seconds for run in runs]) + overhead, _SMALLEST_COST)


def _pick(
    view: View, models: Sequence[Weighted], aims: Sequence[Point], pool: Sequence[Candidate], overhead: float
) -> list[Pick]:
    size = len(pool)
    points = [*(run.point for run in pool), *aims]
    beliefs = [known(entry.model, points, UnseenTerms.of(entry.model, view.done)) for entry in models]
    counts = np.array([view.done.get(run.point, 0) for run in pool])
    picks: list[Pick] = []
    spent = 0.0
    for _ in range(view.batch_size):
        before, gains = 0.0, np.zeros(size)
        for entry, belief in zip(models, beliefs, strict=True):
            noise = run_noise(belief.noise, belief.misfit[:size], counts)
            gains += entry.share * gain(belief.factor[:size], belief.factor[size:], noise)
            before += entry.share * float(np.sum(belief.factor[size:] ** 2))
        most = _ROUND * view.budget_left if picks and not view.cost_is_relative else math.inf
        open_ = [affordable(view, spent + run.seconds) and spent + run.seconds <= most for run in pool]
        gains[(counts >= view.maximum_repetitions) | ~np.array(open_)] = 0.0
        best = int(np.argmax(gains / _costs(pool, overhead)))
        if gains[best] <= 0:
            break
        picks.append(Pick(best, before, before - float(gains[best])))
        beliefs = [_after(belief, best, int(counts[best])) for belief in beliefs]
        spent += pool[best].seconds
        counts[best] += 1
    return picks


def _after(belief: Known, index: int, runs: int) -> Known:
    """Return what is believed after one more run at a point that has ``runs``."""
    noise = run_noise(belief.noise, belief.misfit[index : index + 1], np.array([runs]))
    return replace(belief, factor=learn(belief.factor, index, float(noise[0])))
