"""How much formulas are to be doubted for one call path because no formula explains others of its program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from orchestrator.models.base import Floats

# Call paths that formulas explain, and as many that they do not, as if these had been seen before. Chosen by
# hand; not derived.
_BEFOREHAND = 2.0
# Steps at most, and the change below which nothing changes any more.
_STEPS, _SAME = 100, 1e-6


def doubt(log_odds: Floats, metrics: Sequence[str]) -> Floats:
    """Return how much less probable formulas are for each call path, because of the others.

    The share of the call paths of a program that formulas explain is unknown, and what explains the others
    shows it (collapsed variational Bayes of a mixture: Asuncion et al., On smoothing and inference for topic
    models, UAI 2009, equation 13). A share of more than one half does not make formulas more probable: each
    was chosen among thousands, so that one fits says little for another one.

    Parameters
    ----------
    log_odds
        Natural logarithm of how much more probable formulas are than anything else, of every call path alone.
    metrics
        What was measured of every call path: only those of the same metric say something of each other.

    Returns
    -------
    Natural logarithm of a factor of at most 1, shape (call paths,); 0 for one that is alone.
    """
    result, names = np.zeros(len(log_odds)), np.array(metrics)
    for metric in dict.fromkeys(metrics):
        rows = names == metric
        result[rows] = _of_program(log_odds[rows])
    return result


def _of_program(log_odds: Floats) -> Floats:
    """Return the doubt for call paths of one metric."""
    own = np.zeros(len(log_odds))
    for _ in range(_STEPS):
        explained = expit(log_odds + own)
        others = explained.sum() - explained, (1 - explained).sum() - (1 - explained)
        before, own = own, np.log((_BEFOREHAND + others[0]) / (_BEFOREHAND + others[1]))
        if np.abs(own - before).max() < _SAME:
            break
    return np.minimum(own, 0.0)
