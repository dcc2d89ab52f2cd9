"""Cheapest points first (Ritter et al., Cost-Effective Empirical Performance Modeling, figure 2)."""

from __future__ import annotations

from orchestrator.strategies.base import Choice, Strategy, View
from orchestrator.strategies.candidates import all_initial_runs, cheapest, cost_text, within_budget
from orchestrator.strategies.starting_set import after_starting_set


def strategy() -> Strategy:
    """Return the CPF strategy: the starting set, then the n_b cheapest points not measured yet.

    Every point gets its initial repetitions at once. Budget and λ are the loop's stop rules. One pass
    over the space per round, memory for n_b points.
    """
    return after_starting_set(lambda view, rng: next_cheapest(view, view.batch_size))


def next_cheapest(view: View, number: int, why: str = "cheapest point not measured yet") -> list[Choice]:
    """Return the cheapest points with missing initial repetitions, at most ``number`` of them."""
    runs = cheapest(view, all_initial_runs(view), number)
    return within_budget(view, runs, lambda run: f"{why}: {cost_text(view, run)}")
