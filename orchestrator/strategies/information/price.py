"""What a run must be worth: its price, which is never nothing, and the least that it must teach for that.

A run that is nearly free still takes a place in a round, and a round takes time in queues. So every run of a
round is priced at least a share of the budget left. Dividing by the expected cost alone would prefer nearly
free runs that teach nearly nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.strategies.base import View
from orchestrator.strategies.candidates import Candidate

# Least price of a round as a share of the budget left, divided among its runs. Chosen by hand.
ROUND_SHARE = 0.01
# A run is worth its price if runs as good as it, for all that is left, would lower the variance at P₊ by this
# share, which narrows the intervals by 1 %. With a tenth, which narrows them by the 5 % that count as a gain,
# campaigns stop too early, because runs also decide between hypotheses (docs/evaluation/whole-campaigns.md).
LEAST_GAIN = 0.02
# Least share of the variance at P₊ that a round of equally good runs must lower, however cheap it is. Chosen
# by hand.
LEAST_OF_ROUND = 0.0005
# A further run at a point is needless if the variance of the mean there is less than this share of what the
# model does not know about the point. Chosen by hand.
_SETTLED = 0.1
_SMALLEST_COST = 1e-12  # core-seconds; a run expected to cost nothing must not divide all others away


@dataclass(frozen=True, slots=True)
class Price:
    """Prices of runs in core-seconds."""

    per_run: float  # what is added to the expected cost of a run
    budget: float  # what is left; infinite where costs cannot be compared with it
    least: float  # share of the variance at P₊ that a run must lower

    @classmethod
    def of(cls, view: View, overhead: float) -> Self:
        """Return the prices of a round; ``overhead`` is the least fixed cost of a run."""
        if view.cost_is_relative or not math.isfinite(view.budget_left):
            return cls(overhead, math.inf, 0.0)
        per_run = ROUND_SHARE * view.budget_left / view.batch_size
        return cls(max(overhead, per_run), view.budget_left, LEAST_OF_ROUND / view.batch_size)

    @property
    def of_round(self) -> float:
        """Return the least price of a round; 0 where costs cannot be compared with the budget."""
        return 0.0 if math.isinf(self.budget) else ROUND_SHARE * self.budget

    def of_runs(self, runs: Sequence[Candidate]) -> Floats:
        """Return the price of each run."""
        return np.maximum(np.array([run.seconds for run in runs]) + self.per_run, _SMALLEST_COST)

    def worth(self, gains: Floats, total: float, prices: Floats) -> NDArray[np.bool_]:
        """Return which runs are worth their price.

        Parameters
        ----------
        gains, total
            By how much each run lowers the variance at P₊, and that variance.
        prices
            Of each run.
        """
        if math.isinf(self.budget):
            return np.asarray(gains > 0, np.bool_)
        least = np.maximum(self.least, LEAST_GAIN * prices / self.budget)
        return np.asarray((gains > 0) & (gains >= least * total), np.bool_)


def needless(counts: NDArray[np.intp], unknown: Floats, noise: float) -> NDArray[np.bool_]:
    """Return at which points a further run shows nothing: the mean there is known far better than the model.

    Parameters
    ----------
    counts
        Runs at each point.
    unknown
        Relative variance of the truth there around what the model predicts, misfit included.
    noise
        Relative variance of a single run.
    """
    return np.asarray((counts > 0) & (noise < _SETTLED * counts * unknown), np.bool_)
