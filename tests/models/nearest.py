"""A family for tests: the value of the nearest measured point. It only predicts, and knows categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models.base import Category, Floats, Model, Modeler, Prediction, document, unit_of
from orchestrator.models.refits import refitted
from orchestrator.types import Measurement, Measurements, Point, format_value


@dataclass(frozen=True, slots=True, eq=False)
class Nearest:
    """Distances are those of logarithms; another category is as far as a factor of a thousand."""

    callpath: str
    metric: str
    parameters: tuple[str, ...]
    noise: float
    known: tuple[tuple[Point, float], ...]
    category: Category = ()
    smape: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def expression(self) -> str:
        return f"nearest of {len(self.known)} points"

    def value(self, points: Sequence[Point]) -> Floats:
        return np.array([self._nearest(point) for point in points], float)

    expected = value

    def predict(self, points: Sequence[Point]) -> Prediction:
        value = self.value(points)
        margin = np.exp(2 * self.noise)
        return Prediction(value, value / margin, value * margin, unit_of(self.metric))

    def document(self) -> dict[str, Any]:
        return document(self)

    def _nearest(self, point: Point) -> float:
        return min(self.known, key=lambda known: _distance(point, known[0]))[1]


def _distance(one: Point, other: Point) -> float:
    total = 0.0
    for name, value in one.items:
        there = other[name]
        if isinstance(value, str) or isinstance(there, str):
            total += 0.0 if format_value(value) == format_value(there) else np.log(1000.0)
        else:
            total += abs(float(np.log(value) - np.log(there)))
    return total


def modeler(*, refits: int = 0) -> Modeler:
    """Return the modeler, with a belief from so many refits if there are any."""

    def model(measurements: Measurements) -> tuple[Model, ...]:
        found = [_fit(item, measurements) for item in measurements.items]
        models = tuple(item for item in found if item is not None)
        if not models:
            raise ModelError("no usable value")
        return models

    return refitted(model, refits=refits) if refits else model


def _fit(item: Measurement, measurements: Measurements) -> Nearest | None:
    logs = {p: np.log([v for v in values if np.isfinite(v) and v > 0]) for p, values in item.values.items()}
    logs = {point: values for point, values in logs.items() if len(values)}
    if not logs:
        return None
    deviations = [values - values.mean() for values in logs.values()]
    noise = max(float(np.std(np.concatenate(deviations))), 1e-3)
    known = sorted(((point, float(np.exp(v.mean()))) for point, v in logs.items()), key=lambda e: str(e[0]))
    numeric = tuple(name for name in measurements.parameters if not measurements.is_categorical(name))
    return Nearest(item.callpath, item.metric, numeric, noise, tuple(known))
