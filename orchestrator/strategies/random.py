"""Random search over points and their repetitions (Ritter et al., section IV-B)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from orchestrator.strategies.base import Choice, Strategy, View
from orchestrator.strategies.candidates import Candidate, cost_text, open_points, sample, within_budget
from orchestrator.strategies.starting_set import after_starting_set


def strategy() -> Strategy:
    """Return random search: after the starting set, n_b different points drawn uniformly, one run each.

    A point that is drawn again gets one repetition more, up to the maximum. One pass over the space per
    round, memory for n_b points (reservoir sampling).
    """

    def choose(view: View, rng: np.random.Generator) -> Sequence[Choice]:
        runs = sample(view, open_points(view), view.batch_size, rng)

        def reason(run: Candidate) -> str:
            repetition = view.done.get(run.point, 0) + 1
            return f"drawn at random, repetition {repetition}: {cost_text(view, run)}"

        return within_budget(view, runs, reason)

    return after_starting_set(choose)
