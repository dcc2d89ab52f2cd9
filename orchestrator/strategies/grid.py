"""Grid search: the grid in its own order, repetition after repetition (Ritter et al., section IV-B)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from orchestrator.strategies.base import Choice, Strategy, View
from orchestrator.strategies.candidates import (
    Candidate,
    affordable,
    cost_text,
    open_points,
    single_run,
    within_budget,
)
from orchestrator.strategies.starting_set import after_starting_set


def strategy() -> Strategy:
    """Return grid search: after the starting set, sweeps over the grid in lexicographic order.

    The paper's grid search compares models over all combinations of points within the budget; that
    takes their measurements for granted. What remains of it where every measurement must be paid is the
    order of the grid: the first sweep gives every point its first run, the next sweep its second, up to
    the maximum of repetitions. It is blind to cost and to models, and meant as a yardstick.

    Up to one pass over the space per sweep that is complete already, memory for n_b points.
    """

    def choose(view: View, rng: np.random.Generator) -> Sequence[Choice]:
        def reason(run: Candidate) -> str:
            sweep = view.done.get(run.point, 0) + 1
            return f"next point of the grid in sweep {sweep}: {cost_text(view, run)}"

        return within_budget(view, list(islice(_sweeps(view), view.batch_size)), reason)

    return after_starting_set(choose)


def _sweeps(view: View) -> Iterator[Candidate]:
    for sweep in range(1, view.maximum_repetitions + 1):
        for point in open_points(view):
            if view.done.get(point, 0) == sweep - 1:
                run = single_run(view, point)
                if affordable(view, run.seconds):
                    yield run
