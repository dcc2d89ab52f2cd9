"""Which affordable runs teach most about P₊ for their price: rated one by one, then chosen jointly."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from orchestrator.strategies.base import View
from orchestrator.strategies.candidates import Candidate, affordable, chunks, open_points, single_runs
from orchestrator.strategies.information.gain import Known, deviation, gain, known, learn, run_noise
from orchestrator.strategies.information.price import needless
from orchestrator.strategies.information.stakes import Stakes
from orchestrator.types import Point

# Candidates that compete for a batch: those that are best by themselves. Chosen by hand; not derived.
_POOL = 256
# Candidates rated at once: each has thousands of covariances. Chosen by hand; not derived.
_CHUNK = 1024
# Standard deviations of its expected cost that a run must leave in the budget: 69 % of runs cost less. With
# 1.65 standard deviations (95 %), runs at large process counts wait until small ones have spent what they
# would have needed (docs/experiments.md).
_SAFETY = 0.5
# Share of the remaining budget beyond which a round has one run: what it shows must still be of use. Without
# the bound 80 instead of 89 % of functions with three parameters are accurate (docs/experiments.md).
ROUND = 0.1
# Runs of one point from which on the process count of P₊ comes first, if no run has it. Chosen by hand.
_OFTEN = 5
# Share of the remaining budget that a run at that process count may cost: the rest must make use of it.
_FURTHEST = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Rated:
    """A run and what it lowers the variance at P₊ by, in all and per price.

    ``cores`` that it occupies; ``safe_cost`` in core-seconds that it stays below in 69 % of cases.
    """

    run: Candidate
    gain: float
    value: float
    cores: float
    safe_cost: float


@dataclass(frozen=True, slots=True)
class Pick:
    """A run picked for a batch, with the variance that it lowers, at P₊ or elsewhere, before and after it."""

    index: int
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Found:
    """The candidates of a round and those picked, in order; ``furthest`` was picked for its process count."""

    pool: tuple[Candidate, ...]
    picks: tuple[Pick, ...]
    furthest: int | None


def rate(view: View, stakes: Stakes, points: Iterable[Point]) -> Iterator[Rated]:
    """Rate one more run at each of some points that is expected to fit the budget."""
    for chunk in chunks(points, _CHUNK):
        runs = single_runs(view, chunk)
        if not runs:
            continue
        there = [run.point for run in runs]
        counts = np.array([view.done.get(point, 0) for point in there])
        gains, growth, unsure, unknown = np.zeros((4, len(runs)))
        noise = 0.0
        for entry, terms, goal in zip(stakes.models, stakes.hidden, stakes.goals, strict=True):
            here = known(entry.model, there, terms)
            spread = deviation(here.factor)
            gains += entry.share * gain(here.factor, goal, run_noise(here.noise, here.misfit, counts))
            growth += entry.share * here.growth
            unsure += entry.share * spread
            unknown += entry.share * (spread**2 + here.misfit)
            noise += entry.share * here.noise
        gains[needless(counts, unknown, noise)] = 0.0
        pairs = zip(runs, growth, strict=True)
        runs = [replace(run, seconds=run.seconds * (1 + float(more))) for run, more in pairs]
        values = gains / stakes.price.of_runs(runs)
        cores = np.full(len(runs), np.nan) if view.cores is None else np.asarray(view.cores(there), float)
        for k, run in enumerate(runs):
            safe = run.seconds * (1 + _SAFETY * float(unsure[k]))
            yield Rated(
                run=run, gain=float(gains[k]), value=float(values[k]), cores=float(cores[k]), safe_cost=safe
            )


def choose(view: View, stakes: Stakes) -> Found:
    """Return n_b affordable runs that are worth their price, chosen jointly.

    Where a point has many runs, and none has as many cores as P₊, a run with as many as are affordable comes
    first: no repetition of small runs shows how the program behaves there.
    """
    watch = _Furthest(view)
    rated = (item for item in rate(view, stakes, open_points(view)) if affordable(view, item.safe_cost))
    size = 1 if view.batch_size == 1 else _POOL  # nothing to be chosen jointly
    best = heapq.nlargest(size, watch.passing(rated), key=lambda item: item.value)
    furthest = watch.found
    runs = [item.run for item in best]
    due = furthest is not None and max(view.done.values(), default=0) >= _OFTEN
    if furthest is not None and due and furthest.run not in runs:
        runs = [furthest.run, *runs]
    first = runs.index(furthest.run) if furthest is not None and due else None
    most = view.maximum_repetitions if furthest is None else min(_OFTEN, view.maximum_repetitions)
    picks = _pick(view, stakes, runs, first, most) if runs else []
    return Found(tuple(runs), tuple(picks), first)


class _Furthest:
    """Finds the run with the most cores, up to those of P₊, where no run has so many yet.

    Among equals it is the one that teaches most for its price. Runs that would take more than half of the
    budget are not meant. One pass, memory for one run.
    """

    def __init__(self, view: View):
        self.found: Rated | None = None
        self._most = _FURTHEST * view.budget_left
        self._limit, self._reached = math.inf, math.inf  # nothing is further
        if view.cores is None or view.cost_is_relative:
            return
        if view.evaluation_point is not None:
            target = float(view.cores([view.evaluation_point])[0])
            self._limit = target if math.isfinite(target) else math.inf
        measured = [point for point, runs in view.done.items() if runs and point not in view.infeasible]
        self._reached = max((c for c in map(float, view.cores(measured)) if c <= self._limit), default=0.0)

    def passing(self, items: Iterable[Rated]) -> Iterator[Rated]:
        """Look at every run that passes."""
        for item in items:
            further = self._reached < item.cores <= self._limit and item.safe_cost <= self._most
            if further and item.value > 0 and _rank(item) > _rank(self.found):
                self.found = item
            yield item


def _rank(item: Rated | None) -> tuple[float, float]:
    return (0.0, 0.0) if item is None else (item.cores, item.value)


def _pick(
    view: View, stakes: Stakes, pool: Sequence[Candidate], first: int | None, most_runs: int
) -> list[Pick]:
    size = len(pool)
    points = [*(run.point for run in pool), *stakes.aims]
    beliefs = [
        known(entry.model, points, terms) for entry, terms in zip(stakes.models, stakes.hidden, strict=True)
    ]
    shares = [entry.share for entry in stakes.models]
    counts = np.array([view.done.get(run.point, 0) for run in pool])
    prices = stakes.price.of_runs(pool)
    picks: list[Pick] = []
    spent = 0.0
    for _ in range(view.batch_size):
        before, noise = stakes.fixed, 0.0
        gains, unknown = np.zeros((2, size))
        for share, belief in zip(shares, beliefs, strict=True):
            scatter = run_noise(belief.noise, belief.misfit[:size], counts)
            gains += share * gain(belief.factor[:size], belief.factor[size:], scatter)
            unknown += share * (deviation(belief.factor[:size]) ** 2 + belief.misfit[:size])
            before += share * float(np.sum(belief.factor[size:] ** 2))
            noise += share * belief.noise
        most = ROUND * view.budget_left if picks and not view.cost_is_relative else math.inf
        open_ = [affordable(view, spent + run.seconds) and spent + run.seconds <= most for run in pool]
        closed = (counts >= most_runs) | ~np.array(open_) | needless(counts, unknown, noise)
        closed |= ~stakes.price.worth(gains, stakes.total, prices)
        values = np.where(closed, 0.0, gains / prices)
        best = first if first is not None and not picks else int(np.argmax(values))
        if values[best] <= 0 and best != first:
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
