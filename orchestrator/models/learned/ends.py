"""Straight ends: beyond the largest measured values the logarithm of a time goes on as a straight line.

What happens near the end of the measured range is a better guide than the trend over all of it: small
problems fit into caches, few nodes into one switch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.learned.fitted import learner
from orchestrator.models.regression.learner import Fitted, Learner
from orchestrator.models.regression.samples import Axis, Samples
from orchestrator.models.regression.trend import Trend, fit_trend, linear_columns

# Penalty, in units of the mean square of a column, on how a slope differs from that of the trend, and on how
# it depends on other coordinates.
_RIDGE = 1e-3
# Least number of samples near an end from which its slope is estimated. Chosen by hand; not derived.
_FEWEST = 12


@dataclass(frozen=True, slots=True)
class StraightEnds:
    """What was learned inside the measured range, and a slope per axis and end."""

    inside: Fitted  # the prediction at the nearest coordinates of the measured range
    axes: tuple[Axis, ...]  # what the coordinates are
    ends: Floats  # smallest and largest fitted coordinate, shape (axes, 2); infinite for categories
    # Per axis its lower and its upper end: coefficients of `linear_columns`, shape (axes, 2, columns).
    slopes: Floats

    @property
    def text(self) -> str:
        """What it is."""
        return f"{self.inside.text}, with straight ends"

    def at(self, x: Floats) -> Floats:
        """Return logarithms at coordinates (n, axes), shape (n,)."""
        nearest = np.clip(x, self.ends[:, 0], self.ends[:, 1])
        result = self.inside.at(nearest)
        columns = linear_columns(self.axes, nearest)
        for index, slopes in enumerate(self.slopes):
            distance = x[:, index] - nearest[:, index]
            for slope, outside in zip(slopes, (distance < 0, distance > 0), strict=True):
                result[outside] += (columns[outside] @ slope) * distance[outside]
        return result


def with_straight_ends(inside: Learner, *, share: float = 0.5, coupled: bool = True) -> Learner:
    """Return a learner that goes on straight beyond the fitted range.

    Parameters
    ----------
    inside
        What predicts within the range.
    share
        Of the range of an axis, from its end: where slopes are estimated.
    coupled
        Whether the slope of an axis depends on the coordinates of the others.
    """
    how = "coupled straight ends" if coupled else "straight ends"

    def build(samples: Samples, rng: np.random.Generator) -> Fitted:
        trend = fit_trend(samples)
        ends, slopes = [], []
        for index, axis in enumerate(samples.axes):
            values = samples.x[:, index]
            low, high = (-np.inf, np.inf) if axis.is_categorical else (values.min(), values.max())
            ends.append((low, high))
            slopes.append([_slope(samples, trend, index, end, share, coupled) for end in (low, high)])
        return StraightEnds(inside.fit(samples, rng), samples.axes, np.array(ends), np.array(slopes))

    return learner(f"{inside.name}, {how} of {share:g}", build, inside.most)


def _slope(samples: Samples, trend: Trend, index: int, end: float, share: float, coupled: bool) -> Floats:
    """Return how the slope near an end depends on the columns of the trend, by least squares with a ridge."""
    owner = _column(samples.axes, index)
    slope = np.zeros(len(trend.slopes))
    if not np.isfinite(end) or np.ptp(samples.x[:, index]) == 0:
        return slope
    axis = samples.axes[index]
    slope[0] = trend.slopes[owner] / max(axis.high - axis.low, 1e-12)
    near = _near(samples.x[:, index], end, share)
    if near.sum() < _FEWEST:
        return slope
    part = samples.rows(near)
    columns = linear_columns(samples.axes, part.x)
    columns[:, owner] = 0.0
    distance = part.x[:, index] - end
    along = distance[:, None] * (columns if coupled else columns[:, :1])
    design = np.hstack([columns, along])
    gram = design.T @ design
    penalty = _RIDGE * np.maximum(np.diag(gram), 1e-9 * len(part))
    found = np.linalg.solve(gram + np.diag(penalty), design.T @ (part.y - trend.at(part.x)))
    slope[: along.shape[1]] += found[columns.shape[1] :]
    return slope


def _near(values: Floats, end: float, share: float) -> NDArray[np.bool_]:
    """Return which values are near the end: within a share of the range, or the last three values."""
    different = np.unique(np.abs(values - end))
    reach = max(share * np.ptp(values), different[min(2, len(different) - 1)])
    return np.asarray(np.abs(values - end) <= reach * (1 + 1e-12), np.bool_)


def _column(axes: tuple[Axis, ...], index: int) -> int:
    """Return the position of a numeric axis among `linear_columns`."""
    return 1 + sum(axis.width for axis in axes[:index])
