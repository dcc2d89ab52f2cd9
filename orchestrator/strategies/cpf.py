"""Cheapest points first (Ritter et al., Cost-Effective Empirical Performance Modeling, figure 2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from orchestrator.strategies.base import Choice, Strategy, View
from orchestrator.strategies.candidates import (
    Candidate,
    all_initial_runs,
    cheapest,
    cost_text,
    within_budget,
)
from orchestrator.strategies.starting_set import first_round


def strategy() -> Strategy:
    """Return the CPF strategy: the starting set, then the n_b cheapest points not measured yet.

    Every point gets its initial repetitions at once. Budget and λ are the loop's stop rules. One pass
    over the space per round, memory for n_b points.
    """

    def propose(view: View, rng: np.random.Generator) -> Sequence[Choice]:
        start = first_round(view) if view.round == 1 else []
        return start or next_cheapest(view)

    return propose


def next_cheapest(view: View) -> list[Choice]:
    """Return the n_b cheapest points with missing initial repetitions."""
    runs = cheapest(view, all_initial_runs(view), view.batch_size)

    def reason(run: Candidate) -> str:
        return f"cheapest point not measured yet: {cost_text(view, run)}"

    return within_budget(view, runs, reason)
