"""Predictions beyond the measured range: along lines through the last part of what was fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.regression.learner import Fit, Fitted, Learner
from orchestrator.models.regression.samples import Axis, Samples

_POINTS = 5  # on each line


@dataclass(frozen=True, slots=True)
class Continued:
    """A function that goes on beyond the range of every axis as it went in the last part of it."""

    inside: Fitted  # what holds within the range
    axes: tuple[Axis, ...]  # with their ranges
    part: float  # share of a range that the line is fitted to, in coordinates; 0 holds the value at the end

    @property
    def text(self) -> str:
        """What it is."""
        how = f"lines through the last {self.part:.0%}" if self.part else "the values at the ends"
        return f"{self.inside.text}, continued by {how}"

    def at(self, x: Floats) -> Floats:
        """Return logarithms at coordinates (n, axes), shape (n,), anywhere."""
        numeric = [not axis.is_categorical for axis in self.axes]
        low = np.where(numeric, [axis.low for axis in self.axes], -np.inf)
        high = np.where(numeric, [axis.high for axis in self.axes], np.inf)
        end = np.clip(x, low, high)
        values = np.array(self.inside.at(end), np.float64)
        if not self.part:
            return values
        for k in np.flatnonzero((x != end).any(axis=0) & numeric):
            beyond = np.flatnonzero((x[:, k] < low[k]) | (x[:, k] > high[k]))
            slopes = self._slopes(end[beyond], int(k), np.sign(x[beyond, k] - end[beyond, k]))
            values[beyond] += slopes * np.abs(x[beyond, k] - end[beyond, k])
        return values

    def _slopes(self, end: Floats, k: int, outwards: Floats) -> Floats:
        """Return the slopes outwards of lines along an axis that stop at its end."""
        length = self.part * (self.axes[k].high - self.axes[k].low)
        steps = np.linspace(-length, 0, _POINTS)
        lines = np.repeat(end[None], _POINTS, axis=0)
        lines[:, :, k] += steps[:, None] * outwards
        values = self.inside.at(lines.reshape(-1, end.shape[1])).reshape(_POINTS, -1)
        centred = steps - steps.mean()
        square = max(float(centred @ centred), 1e-300)
        return np.asarray(centred @ values / square, np.float64)


def continued_by(learner: Learner, parts: Sequence[float]) -> tuple[Learner, ...]:
    """Return learners whose functions go on along lines through the last part of each range.

    Parameters
    ----------
    learner
        What holds within the range. It is fitted once to the same samples, whatever the part.
    parts
        Share of each range that lines are fitted to, a learner for each; 0 holds the value at the end.
    """
    inside = _Once(learner)
    return tuple(_continued(learner, inside, part) for part in parts)


class _Once:
    """Fits a learner once to the same samples; a copy in another process begins with none."""

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self._known: WeakKeyDictionary[Samples, Fitted] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[type[_Once], tuple[Learner]]:
        return _Once, (self._learner,)

    def __call__(self, samples: Samples, rng: np.random.Generator) -> Fitted:
        if samples not in self._known:
            self._known[samples] = self._learner.fit(samples, rng)
        return self._known[samples]


def _continued(learner: Learner, inside: Fit, part: float) -> Learner:
    def fit(samples: Samples, rng: np.random.Generator) -> Fitted:
        return Continued(inside(samples, rng), samples.axes, part)

    how = f"line through {part:.0%}" if part else "end held"
    return Learner(family=learner.family, name=f"{learner.name}, {how}", fit=fit, most=learner.most)
