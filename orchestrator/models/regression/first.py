"""The first measurements of a call path, with which learners are chosen.

Points and repetitions that follow them change nothing: a choice takes many fits. The number of points is a
step of a geometric series, and of each they have as many runs as most of them.
"""

from __future__ import annotations

import numpy as np

from orchestrator.models.base import Floats

# By how much the points must grow before a choice is made again, once there are so many; the steps meet 100.
_STEP, _MANY = 1.25, 64
# More points are fitted, but not compared: they hardly change which learners are the best, and take hours.
_MOST_POINTS = 32_768


def counted(n: int) -> int:
    """Return with how many of n points a choice is made, those measured first.

    The largest step of a series that is not above n, nor above what is compared at most; n itself before its
    first step.
    """
    if n < _MANY:
        return n
    steps = np.floor(np.log(min(n, _MOST_POINTS) / 100) / np.log(_STEP) + 1e-9)
    return int(100 * _STEP**steps)


def first_runs(values: Floats) -> Floats:
    """Return the values of points without the repetitions that few of the first points have.

    Parameters
    ----------
    values
        Of all points in the order of measurement, shape (points, repetitions), padded with NaN.

    Returns
    -------
    Shape (first points, repetitions).
    """
    some = values[: counted(len(values))]
    # Half of the points have them, or more.
    runs = np.sort(np.isfinite(some).sum(axis=1))[(len(some) - 1) // 2]
    return some[:, :runs]
