"""Every point of the search space: the naive approach (Ritter et al., section I), the yardstick."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from orchestrator.strategies.base import Choice, Strategy, View
from orchestrator.strategies.cpf import next_cheapest


def strategy(*, first_round: int = 1000) -> Strategy:
    """Return the strategy that measures every point, in the order of cost.

    There is nothing to learn between rounds, so round 1 already holds the whole matrix, as far as the
    budget reaches; spaces of more than ``first_round`` points continue in rounds of n_b.

    One pass over the space and ``n log(k)`` comparisons per round, memory for the ``k`` points proposed.
    """

    def propose(view: View, rng: np.random.Generator) -> Sequence[Choice]:
        number = first_round if view.round == 1 else view.batch_size
        return next_cheapest(view, number, "full matrix, in the order of cost")

    return propose
