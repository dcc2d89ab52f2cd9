"""Which call paths steer the choice of points, with what weight, and how noisy they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Model
from orchestrator.models.uncertainty import is_relevant
from orchestrator.strategies.base import View
from orchestrator.types import Measurement, Point, by_callpath


@dataclass(frozen=True, slots=True)
class Relevant:
    """A call path that counts: its time measurements, models (one per category) and share of the time."""

    measurement: Measurement
    models: tuple[Model, ...]
    share: float

    def means(self) -> dict[Point, tuple[float, int]]:
        """Return mean time (s) and number of repetitions per point, where the mean is positive and finite."""
        means = {
            point: (float(np.mean(values)), len(values))
            for point, values in self.measurement.values.items()
            if values
        }
        return {point: mean for point, mean in means.items() if np.isfinite(mean[0]) and mean[0] > 0}


def relevant(view: View) -> tuple[Relevant, ...]:
    """Return the call paths with more than 1 % of the time, with their shares (which sum to 1).

    The time is what the models predict at P₊; where that is not known (no models yet, no evaluation
    point), it is the total measured so far. Without measurements of times every metric counts.
    """
    items = [item for item in view.measurements.items if item.metric == "time" and item.values]
    items = items or [item for item in view.measurements.items if item.values]
    models = by_callpath(view.models)
    paired = [(item, tuple(models.get((item.callpath, item.metric), ()))) for item in items]
    times = _at_target(view, paired)
    if times is None:
        times = [sum(map(sum, item.values.values())) for item in items]
    times = [time if np.isfinite(time) and time > 0 else 0.0 for time in times]
    kept = [(*pair, time) for pair, time in compress(zip(paired, times, strict=True), is_relevant(times))]
    whole = sum(time for *_, time in kept)
    return tuple(Relevant(item, own, time / whole) for item, own, time in kept) if whole > 0 else ()


def predicted(models: Sequence[Model], points: Sequence[Point]) -> NDArray[np.float64]:
    """Return predicted times of a call path at points; NaN where no model holds."""
    values = np.full(len(points), np.nan)
    for model in models:
        own = model.value(points)
        values = np.where(np.isfinite(own), own, values)
    return values


def _at_target(view: View, paired: list[tuple[Measurement, tuple[Model, ...]]]) -> list[float] | None:
    target = view.evaluation_point
    if target is None:
        return None
    times = [float(predicted(models, [target])[0]) for _, models in paired]
    return times if any(np.isfinite(time) and time > 0 for time in times) else None


def noise_percent(entries: tuple[Relevant, ...]) -> float:
    """Return n, the mean deviation from the arithmetic mean in percent (Ritter et al., section III-B).

    The mean over the points with repetitions, then over the call paths by their share; 0 without repetitions.
    """
    return sum(entry.share * _deviation(entry.measurement.values) for entry in entries)


def _deviation(values: Mapping[Point, tuple[float, ...]]) -> float:
    deviations = []
    for repetitions in values.values():
        mean = float(np.mean(repetitions)) if len(repetitions) > 1 else 0.0
        if np.isfinite(mean) and mean > 0:
            deviations.append(100.0 * float(np.mean(np.abs(np.array(repetitions) / mean - 1.0))))
    return float(np.mean(deviations)) if deviations else 0.0
