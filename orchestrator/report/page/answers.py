"""What a model gives at many points: asked once, because some families need long for a call of any size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.models.base import Model, Prediction
from orchestrator.types import Point


@dataclass(frozen=True, slots=True)
class Answers:
    """Predictions of one model; ``places`` says which of them belongs to a point."""

    places: Mapping[Point, int]
    found: Prediction

    def over(self, points: Sequence[Point]) -> Prediction:
        """Return the predictions at some of the points; raises ``KeyError`` at others."""
        index = np.array([self.places[point] for point in points], dtype=np.intp)
        value, low, high = (part[index] for part in (self.found.value, self.found.low, self.found.high))
        return Prediction(value, low, high, self.found.unit)

    def at(self, point: Point) -> tuple[float, float, float]:
        """Return value, low and high at one of the points."""
        found = self.over([point])
        return float(found.value[0]), float(found.low[0]), float(found.high[0])


def asked_at(model: Model, points: Sequence[Point]) -> Answers:
    """Ask a model at points, which are distinct."""
    return Answers({point: k for k, point in enumerate(points)}, model.predict(points))
