"""CPF first, GPR from a switching point on (Ritter et al., section IV-B)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from orchestrator.strategies.base import Choice, Strategy, View
from orchestrator.strategies.cpf import next_cheapest
from orchestrator.strategies.gpr import Rating, best_rated
from orchestrator.strategies.starting_set import after_starting_set


def strategy(
    *, switch_points: int | None = None, accuracy_weight: float = 1.0, cost_weight: float = 1.0
) -> Strategy:
    """Return the hybrid strategy.

    Parameters
    ----------
    switch_points
        Number of different measured points from which on GPR chooses. The paper leaves it to an expert;
        unless given it is eight per parameter, i.e. three points per parameter after the starting set.
    accuracy_weight, cost_weight
        As for `gpr`.
    """

    def choose(view: View, rng: np.random.Generator) -> Sequence[Choice]:
        switch = 8 * len(view.space.parameters) if switch_points is None else switch_points
        cheap = next_cheapest(view, view.batch_size) if len(view.done) < switch else []
        return cheap or best_rated(view, Rating.of(view, True, accuracy_weight, cost_weight))

    return after_starting_set(choose)
