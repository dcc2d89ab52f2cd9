"""The log-linear trend: a power law of every positive parameter, times a factor per category.

Most of what a tuning space shows is such a trend; learners that follow what it leaves need far fewer samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.regression.learner import Fitted, Learner
from orchestrator.models.regression.samples import Axis, Samples

# Below so many samples nothing is learned beside the trend.
_FEWEST = 5
# Ridge, in units of the mean square of a column: keeps what few samples do not determine near zero.
_RIDGE = 1e-6


@dataclass(frozen=True, slots=True)
class Trend:
    """A linear function of coordinates and indicators of categories; ``slopes`` has the constant first."""

    axes: tuple[Axis, ...]
    slopes: Floats

    @property
    def text(self) -> str:
        """What it is."""
        return "log-linear trend"

    def at(self, x: Floats) -> Floats:
        """Return logarithms at coordinates (n, axes), shape (n,)."""
        return np.asarray(linear_columns(self.axes, x) @ self.slopes, np.float64)


@dataclass(frozen=True, slots=True)
class OnTrend:
    """The trend plus what a learner found in the rest of it."""

    trend: Trend
    rest: Fitted

    @property
    def text(self) -> str:
        """What it is."""
        return f"{self.rest.text} on the {self.trend.text}"

    def at(self, x: Floats) -> Floats:
        """Return logarithms at coordinates (n, axes), shape (n,)."""
        return self.trend.at(x) + self.rest.at(x)


def linear_columns(axes: tuple[Axis, ...], x: Floats) -> Floats:
    """Return a column of ones, one per numeric axis, centred, and an indicator per category."""
    columns = [np.ones(len(x))]
    for axis, values in zip(axes, x.T, strict=True):
        if axis.levels is None:
            columns.append((values - (axis.low + axis.high) / 2) / max(axis.high - axis.low, 1e-12))
        else:
            columns.append(axis.columns(values))
    return np.column_stack(columns)


def fit_trend(samples: Samples, rng: np.random.Generator | None = None) -> Trend:
    """Fit the trend by least squares with a small ridge; the constant is free of it.

    ``rng`` is not used: with it this is a `orchestrator.models.regression.learner.Fit`.
    """
    columns = linear_columns(samples.axes, samples.x)
    gram = columns.T @ columns
    penalty = np.full(len(gram), _RIDGE * len(samples))
    penalty[0] = _RIDGE**2
    slopes = np.linalg.solve(gram + np.diag(penalty), columns.T @ samples.y)
    return Trend(samples.axes, np.asarray(slopes, np.float64))


def on_trend(learner: Learner) -> Learner:
    """Return a learner that removes the trend first."""

    def fit(samples: Samples, rng: np.random.Generator) -> Fitted:
        trend = fit_trend(samples)
        rest = learner.fit(samples.with_y(samples.y - trend.at(samples.x)), rng)
        return OnTrend(trend, rest)

    return Learner(family=learner.family, name=f"{learner.name} on the trend", fit=fit, most=learner.most)


@dataclass(frozen=True, slots=True)
class OnlyTrend:
    """The trend, where samples are too few or all the same; NaN at unknown coordinates as everywhere."""

    trend: Trend

    @property
    def text(self) -> str:
        """What it is."""
        return self.trend.text

    def at(self, x: Floats) -> Floats:
        """Return logarithms at coordinates (n, axes), shape (n,)."""
        return np.where(np.isfinite(x).all(axis=1), self.trend.at(np.nan_to_num(x)), np.nan)


def only_trend(samples: Samples) -> OnlyTrend | None:
    """Return the trend where there is nothing to learn beside it; None where there is."""
    if len(samples) < _FEWEST or not samples.axes or np.ptp(samples.y) == 0:
        return OnlyTrend(fit_trend(samples))
    return None
