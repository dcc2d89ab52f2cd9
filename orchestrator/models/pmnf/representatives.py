"""Which hypotheses stand for all that remain possible: few enough to work with, with expectations kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats


def representatives(weights: Floats, forecast: Floats, most: int) -> tuple[NDArray[np.intp], Floats]:
    """Choose hypotheses that stand for all.

    The best one is kept, and every one that is more probable than a threshold. Of the others, in the order of
    what they forecast, those are kept that equal steps of probability fall on, each with the probability of a
    step: what is cut off is not lost from expectations and intervals (Fearnhead and Clifford 2003, On-line
    inference for hidden Markov models via particle filters, section 3: no other choice has a smaller error).

    Parameters
    ----------
    weights
        Of all hypotheses, descending, shape (all,).
    forecast
        What each predicts far out, same shape.
    most
        How many to keep, at least 1.

    Returns
    -------
    Indices in ascending order, and their weights, which sum to 1.
    """
    weights = weights / weights.sum()
    if len(weights) <= most:
        return np.arange(len(weights)), weights
    if most == 1:
        return np.zeros(1, dtype=np.intp), np.ones(1)
    sure = 1 + _certain(weights[1:], most - 1)
    order = sure + np.argsort(forecast[sure:], kind="stable")
    sums, steps = np.cumsum(weights[order]), most - sure
    fall = (np.arange(steps) + 0.5) * sums[-1] / steps
    chosen, times = np.unique(order[np.searchsorted(sums, fall)], return_counts=True)
    return np.r_[np.arange(sure), chosen], np.r_[weights[:sure], times * sums[-1] / steps]


def _certain(weights: Floats, most: int) -> int:
    """Return how many of the largest weights exceed what each of the other places would stand for."""
    beyond = weights.sum() - np.cumsum(weights)
    left = most - np.arange(1, len(weights) + 1)
    kept = (left > 0) & (weights * left > beyond)
    return int(np.argmin(kept))
