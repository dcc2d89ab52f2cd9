"""Random search over points and their repetitions (Ritter et al., section IV-B)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from orchestrator.strategies.base import Choice, Strategy, View
from orchestrator.strategies.candidates import Candidate, cost_text, open_points, sample, within_budget
from orchestrator.strategies.starting_set import first_round


def strategy() -> Strategy:
    """Return random search: after the starting set, n_b different points drawn uniformly, one run each.

    A point that is drawn again gets one repetition more, up to the maximum. One pass over the space per
    round, memory for n_b points (reservoir sampling).
    """

    def propose(view: View, rng: np.random.Generator) -> Sequence[Choice]:
        start = first_round(view) if view.round == 1 else []
        if start:
            return start
        runs = sample(view, open_points(view), view.batch_size, rng)

        def reason(run: Candidate) -> str:
            repetition = view.done.get(run.point, 0) + 1
            return f"drawn at random, repetition {repetition}: {cost_text(view, run)}"

        return within_budget(view, runs, reason)

    return propose
