"""Which hypotheses stand for all that remain possible: few enough to work with, with expectations kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.hypotheses import Floats


def representatives(weights: Floats, most: int) -> tuple[NDArray[np.intp], Floats]:
    """Choose hypotheses that stand for all.

    The more probable half is kept as it is. Of the others those are kept that equal steps of probability fall
    on, each with the weight of its steps (systematic sampling, as Kitagawa 1996 resamples particles): what
    is cut off is not lost from expectations and intervals.

    Parameters
    ----------
    weights
        Of all hypotheses, descending, shape (all,).
    most
        How many to keep, at least 1.

    Returns
    -------
    Indices in ascending order, and their weights, which sum to 1.
    """
    weights = weights / weights.sum()
    if len(weights) <= most:
        return np.arange(len(weights)), weights
    sure = (most + 1) // 2
    kept, rest, steps = weights[:sure], weights[sure:], most - sure
    if not steps:
        return np.arange(sure), kept / kept.sum()
    fall = (np.arange(steps) + 0.5) * rest.sum() / steps
    hit = np.minimum(np.searchsorted(np.cumsum(rest), fall), len(rest) - 1)
    stand, times = np.unique(hit, return_counts=True)
    return np.r_[np.arange(sure), sure + stand], np.r_[kept, times * rest.sum() / steps]
