"""Random samples of large spaces: no starting set, no grid, repetitions until a point is known well enough.

Hutter and Solomonik, Application Performance Modeling via Tensor Completion, section 6.0.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from orchestrator.strategies.base import Choice, Strategy, View
from orchestrator.strategies.candidates import (
    Candidate,
    affordable,
    cost_text,
    initial_runs,
    missing,
    run_cost,
    within_budget,
)
from orchestrator.strategies.drawing import Law, drawn_runs
from orchestrator.types import Measurements, Point

# Share of its runs by which a point's repetitions grow per round: fewer rounds than one run each, and at most
# half as many runs too many. Chosen by hand; not derived.
_GROWTH = 0.5


def strategy(
    *,
    uniform: Sequence[str] = (),
    log: Sequence[str] = (),
    start: int | None = None,
    variation: float = 0.01,
    runs: int = 50,
) -> Strategy:
    """Return random sampling: n_b points a round, points that need repetitions before new ones.

    Parameters
    ----------
    uniform, log
        Parameters that are drawn uniformly or log-uniformly, whatever their values look like; see
        `orchestrator.strategies.drawing`.
    start
        Points of round 1; None: n_b.
    variation, runs
        A point is repeated until the coefficient of variation of its time is below ``variation``, or it has
        so many runs. ``repetitions.maximum`` of the campaign and the budget limit that further.
    """

    def propose(view: View, rng: np.random.Generator) -> Sequence[Choice]:
        law = Law.of(view.space.parameters, uniform, log)
        wanted = start if start is not None and view.round == 1 else view.batch_size
        again = list(repetitions(view, variation, runs, wanted, rng))
        fresh = new_runs(view, law, wanted - len(again), rng)
        why = {candidate.point: text for candidate, text in again}

        def reason(run: Candidate) -> str:
            return f"{why.get(run.point, law.describe())}: {cost_text(view, run)}"

        return within_budget(view, [*(candidate for candidate, _ in again), *fresh], reason)

    return propose


def new_runs(view: View, law: Law, number: int, rng: np.random.Generator) -> list[Candidate]:
    """Draw points that were not measured yet, with their initial repetitions, or one if that is too much."""
    if number <= 0:
        return []
    drawn = drawn_runs(view, law, number, rng, new=True)
    full = [initial_runs(view, run.point) if missing(view, run.point) else run for run in drawn]
    return [every if affordable(view, every.seconds) else run for every, run in zip(full, drawn, strict=True)]


def repetitions(
    view: View, variation: float, runs: int, most: int, rng: np.random.Generator
) -> Iterator[tuple[Candidate, str]]:
    """Yield further runs at up to ``most`` measured points whose times vary too much, and why.

    Which of them come first is drawn: a budget that ends early must not leave out one corner of the space.
    """
    limit = min(runs, view.maximum_repetitions)
    due = [
        point
        for point, done in view.done.items()
        if 0 < done < limit and point != view.evaluation_point and point not in view.infeasible
    ]
    if not due:
        return
    spread = variations(view.measurements, due)
    for point in (due[k] for k in rng.permutation(len(due))):
        varies = spread.get(point)
        if (varies is not None and varies < variation) or point not in view.space:
            continue
        done = view.done[point]
        number = min(limit - done, max(1, round(_GROWTH * done)))
        candidate = Candidate(point, number, run_cost(view, point, number))
        if not affordable(view, candidate.seconds):
            candidate = replace(candidate, repetitions=1, seconds=run_cost(view, point))
        if not affordable(view, candidate.seconds):
            continue
        known = "one run says nothing of" if varies is None else f"{100 * varies:.3g} % is"
        yield (
            candidate,
            f"repetition {done + 1}: {known} the coefficient of variation, {100 * variation:g} % wanted",
        )
        most -= 1
        if most <= 0:
            return


def variations(known: Measurements, points: Sequence[Point]) -> Mapping[Point, float]:
    """Return the coefficient of variation of the time at points with two runs or more.

    That is the standard deviation of single runs divided by their mean, as a mean over call paths weighted by
    time. Without measurements of times every metric counts.
    """
    items = [item for item in known.items if item.metric == "time"] or list(known.items)
    result = {}
    for point in points:
        repeated = [
            np.array(item.values[point], float) for item in items if len(item.values.get(point, ())) > 1
        ]
        if repeated:
            means = sum(float(np.abs(runs.mean())) for runs in repeated)
            deviation = sum(float(runs.std(ddof=1)) for runs in repeated)
            result[point] = deviation / means if means > 0 else 0.0
    return result
