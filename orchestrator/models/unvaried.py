"""Parameters that were measured at one value: nothing is known of what they do, and intervals say so.

A call path may have been measured at one number of processes only, or all lines of a table have the same one.
Then a model does not contain it, and predicts for other values what it does for the measured one.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.belief import LogBelief
from orchestrator.models.intervals import Predictive
from orchestrator.types import Point

# Standard deviation of the power of such a parameter: times that do not depend on it, are proportional to it
# or fall with it are all usual. Chosen by hand; not derived.
_POWER = 1.0
# Logarithm of the distance of values that have none, as from zero.
_NO_LOGARITHM = 1.0


@dataclass(frozen=True, slots=True)
class Unvaried:
    """Names of numeric parameters, each with the one value at which it was measured."""

    at: tuple[tuple[str, float], ...] = ()

    def without(self, names: Container[str]) -> Self:
        """Return those that have other names, such as categories that numbers stand for."""
        return replace(self, at=tuple((name, value) for name, value in self.at if name not in names))

    def predictive(self, own: Predictive, points: Sequence[Point]) -> Predictive:
        """Return what a model that does not contain the parameters says, wider where they differ."""
        if not self.at:
            return own
        return replace(own, spread=np.hypot(own.spread, np.linalg.norm(self._deviations(points), axis=0)))

    def belief(self, own: LogBelief, points: Sequence[Point]) -> LogBelief:
        """Return the belief of such a model: one run at another value says something of all others."""
        return own.with_causes(self._deviations(points)) if self.at else own

    def _deviations(self, points: Sequence[Point]) -> Floats:
        """Return the standard deviation of the logarithm by each parameter, shape (parameters, points).

        Its sign says in which direction a point lies from the measured value. A point that does not name a
        parameter is at that value.
        """
        measured = np.array([[value] for _, value in self.at])
        given = [point.as_dict() for point in points]
        x = np.array([[values.get(name, value) for values in given] for name, value in self.at], float)
        known = (x > 0) & (measured > 0)
        ratio = np.where(known, x, 1.0) / np.where(known, measured, 1.0)
        return _POWER * np.where(known, np.log(ratio), _NO_LOGARITHM * np.sign(x - measured))
