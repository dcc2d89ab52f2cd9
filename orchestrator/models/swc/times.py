"""Measured times of a call path, located: one value per point, its noise, and every run."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orchestrator.models import data
from orchestrator.models.base import Floats, Integers, Key
from orchestrator.models.noise import Located, locate
from orchestrator.models.pmnf.trends import remarks
from orchestrator.types import Measurements


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Located times of one call path."""

    log_value: Floats  # logarithm of the location per point, shape (n,)
    count: Floats  # effective repetitions per point, shape (n,)
    # sigma, freedom: relative noise of one repetition, and the degrees of freedom behind it.
    sigma: float
    freedom: float
    # Covariance of a smooth lack of fit between points, shape (n, n), in units of the variance of a location;
    # zero where there is none.
    smooth: Floats
    # runs, point: logarithm of every run (or of every location, where an aggregate was asked for) and the
    # number of its point, shape (m,).
    runs: Floats
    point: Integers

    @property
    def variance(self) -> float:
        """Expected relative variance of a location."""
        return self.sigma**2 / float(self.count.mean())

    def with_smooth_misfit(self, features: Floats, strength: float) -> Times:
        """Add a smooth lack of fit: ``features`` (n, k) with coefficients of variance ``strength``."""
        return replace(self, smooth=strength * features @ features.T)


@dataclass(frozen=True, slots=True)
class TimedPoints:
    """Located times of one call path, with the points at which they were measured.

    ``x`` holds the coordinates of the points, shape (n, parameters), in the order of ``parameters``.
    ``notes`` are remarks on the measured values.
    """

    parameters: tuple[str, ...]
    x: Floats
    times: Times
    notes: tuple[str, ...]

    def only(self, names: frozenset[str]) -> TimedPoints:
        """Return the same times with the coordinates of some parameters only."""
        kept = [k for k, name in enumerate(self.parameters) if name in names]
        return replace(self, parameters=tuple(self.parameters[k] for k in kept), x=self.x[:, kept])


def locate_times(timed: Measurements, aggregate: str) -> dict[Key, TimedPoints]:
    """Locate all times by (call path, metric, category), with the coordinates of all numeric parameters.

    Parameters
    ----------
    timed
        Measurements of times only: all of them share one estimate of the noise.
    aggregate
        The option of the modeler, see `orchestrator.models.noise.locate`.
    """
    located_times: dict[Key, TimedPoints] = {}
    for group in data.groups(timed)[0]:
        located = locate(group.values, aggregate, group.origins)
        # Coefficients are fitted to the aggregate where one was asked for, otherwise to every run.
        runs = np.log(group.values) if aggregate in ("auto", "none") else located.log_value[:, :, None]
        noted = remarks(group.parameters, group.points, located)
        numeric = tuple(name for name, _ in group.fixed)
        x = group.coordinates(numeric)
        for row, label in enumerate(group.labels):
            notes = (*group.notes[row], *noted[row])
            times = _times(located, row, runs[row])
            located_times[(*label, group.category)] = TimedPoints(numeric, x, times, notes)
    return located_times


def _times(located: Located, row: int, runs: NDArray[np.float64]) -> Times:
    size = located.log_value.shape[1]
    point, _ = finite = np.nonzero(np.isfinite(runs))
    return Times(
        log_value=located.log_value[row],
        count=located.count[row],
        sigma=float(located.sigma[row]),
        freedom=float(located.freedom[row]),
        smooth=np.zeros((size, size)),
        runs=runs[finite],
        point=point,
    )
