"""Amdahl's law for any ratio of problem sizes, and its parallel fraction by least squares.

All functions are of arrays of one shape, an element per run. ``ratio`` is ``w``, the original problem size
over the scaled one: 1 in strong scaling, 1/N in weak scaling (section 2.1).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats, Integers

# Serial fractions among which the best one is sought first: none, and equal steps of the logarithm.
_SERIAL = np.concatenate([[0.0], np.logspace(-8, 0, 321)])
_MOST_AT_ONCE = 2_000_000  # elements of the table of errors


def relative_time(processes: Floats, fraction: Floats | float) -> Floats:
    """Return ``1 - p + p/N``: the time on N processes over that on one, ``w / S`` of equation 2."""
    return np.asarray(1 - fraction + fraction / processes, np.float64)


def fit_fraction(
    processes: Floats, ratio: Floats | float, speedups: Floats, reference: Floats | float = 1.0
) -> float:
    """Return the parallel fraction with the least squared error of speedups, equation 4.

    Parameters
    ----------
    processes, ratio
        N and w of every run, shape (n,).
    speedups
        Measured: the time of the reference run over that of the run, shape (n,).
    reference
        Processes of the reference run: 1 in the paper. Of more, both the measured and the predicted speedup
        are relative to it, and so is ``ratio``.

    Returns
    -------
    Between 0 and 1.

    Raises
    ------
    ModelError
        When no run has more processes than its reference, or a speedup is not positive and finite.
    """
    n, w, s, n0 = np.broadcast_arrays(*np.atleast_1d(processes, ratio, speedups, reference))
    if not np.all(np.isfinite(s) & (s > 0)):
        raise ModelError("a measured speedup is not positive: leave runs without a positive time out")
    more = n > n0
    if not more.any():
        raise ModelError(
            "no run has more processes than the run that its speedup is relative to: measure one problem on "
            "two or more numbers of processes"
        )
    n, w, s, n0 = n[more], w[more], s[more], n0[more]

    def error(serial: Floats) -> Floats:
        p = 1 - serial[:, None]
        return np.asarray(((s - w * relative_time(n0, p) / relative_time(n, p)) ** 2).sum(axis=1), np.float64)

    rows = max(1, _MOST_AT_ONCE // len(n))
    errors = np.concatenate([error(_SERIAL[k : k + rows]) for k in range(0, len(_SERIAL), rows)])
    best = int(np.argmin(errors))
    low, high = _SERIAL[max(best - 1, 0)], _SERIAL[min(best + 1, len(_SERIAL) - 1)]
    refined = minimize_scalar(
        lambda serial: float(error(np.array([serial]))[0]),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-10},
    )
    serial = refined.x if refined.fun < errors[best] else _SERIAL[best]
    return float(1 - serial)


def fit_fractions(
    processes: Floats,
    ratio: Floats | float,
    speedups: Floats,
    problem: Integers,
    reference: Floats | float = 1.0,
) -> dict[int, float]:
    """Return the parallel fraction of every problem size, equation 9: equation 4 on its own runs.

    Parameters
    ----------
    processes, ratio, speedups, reference
        As in `fit_fraction`.
    problem
        A number per problem size, shape (n,).

    Returns
    -------
    By problem; without those where no run has more processes than its reference.
    """
    n, w, s, n0 = np.broadcast_arrays(*np.atleast_1d(processes, ratio, speedups, reference))
    found = {}
    for number in np.unique(problem):
        here = problem == number
        if np.any(n[here] > n0[here]):
            found[int(number)] = fit_fraction(n[here], w[here], s[here], n0[here])
    return found
