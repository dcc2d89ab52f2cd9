"""THE uncertainty of a set of models, and which models count for it: one definition for everything shown.

The uncertainty at a point is the relative width of the 90 % intervals there, ``(high - low) / value``, as a
mean over the relevant models, weighted by predicted time. Stop rules, the reasons of choices, the status, the
log and the report show this figure and no other. A campaign without an evaluation point shows its median over
random points of the search space.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Model, finite
from orchestrator.types import Point

RELEVANT_SHARE = 0.01  # Ritter et al., section V: a kernel is relevant above one percent of the time
# Width of the central 90 % of a normal distribution, in standard deviations.
_CENTRAL = 3.29


def is_relevant(times: Sequence[float]) -> NDArray[np.bool_]:
    """Return whether each call path has more than 1 % of the total time; all of them where there is none."""
    total = sum(times)
    return np.array([total <= 0 or time > RELEVANT_SHARE * total for time in times], dtype=bool)


def relevant_models(models: Sequence[Model], point: Point | None) -> tuple[Model, ...]:
    """Return the models of times that predict a relevant share of their sum at ``point``."""
    chosen = _of_times(models)
    if point is None or not chosen:
        return chosen
    values = [max(0.0, float(model.predict([point]).value[0])) for model in chosen]
    return tuple(model for model, counts in zip(chosen, is_relevant(values), strict=True) if counts)


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """How wide the intervals at a point are, relative to the predicted values; None where that is unknown."""

    width: float | None = None  # the uncertainty: the mean over relevant models, weighted by value
    widest: float | None = None  # the largest of a relevant model
    # Width of the range that holds 90 % of single runs, by the models' noise: the mean, weighted by value.
    noise: float | None = None


def at(models: Sequence[Model], point: Point) -> Uncertainty:
    """Return the uncertainty of models at a point; with too few runs an interval may have no end."""
    chosen = relevant_models(models, point)
    predicted = [model.predict([point]) for model in chosen]
    values = np.array([abs(float(item.value[0])) for item in predicted])
    if not chosen or not values.all():
        return Uncertainty()
    spans = np.array([float(item.high[0] - item.low[0]) for item in predicted])
    noise = np.array([model.noise for model in chosen])
    total = values.sum()
    return Uncertainty(
        finite(float(spans.sum() / total)),
        finite(float((spans / values).max())),
        finite(float(_CENTRAL * (values * noise).sum() / total)),
    )


def over(models: Sequence[Model], points: Sequence[Point]) -> Uncertainty:
    """Return the median of the uncertainty at points, such as random ones of a search space.

    ``widest`` and ``noise`` are medians, too. A point at which no model predicts anything counts as
    infinitely uncertain, so there is no median until models are for half of the points.
    """
    chosen = _of_times(models)
    if not chosen or not points:
        return Uncertainty()
    predicted = [model.predict(points) for model in chosen]
    values = np.array([np.abs(item.value) for item in predicted])
    spans = np.array([item.high - item.low for item in predicted])
    values, spans = np.where(values > 0, values, 0.0), np.where(np.isnan(spans), np.inf, spans)
    with np.errstate(divide="ignore", invalid="ignore"):
        counts = values > RELEVANT_SHARE * values.sum(axis=0)
        values = np.where(counts, values, 0.0)
        total = values.sum(axis=0)
        noise = np.array([model.noise for model in chosen]) @ values / total
        width = np.where(counts, spans, 0.0).sum(axis=0) / total
        widest = np.where(counts, spans / values, 0.0).max(axis=0)
    unknown = total == 0
    return Uncertainty(
        finite(float(np.median(np.where(unknown, np.inf, width)))),
        finite(float(np.median(np.where(unknown, np.inf, widest)))),
        finite(float(np.median(np.where(unknown, np.inf, _CENTRAL * noise)))),
    )


def _of_times(models: Sequence[Model]) -> tuple[Model, ...]:
    """Return the models of times; without any, all."""
    return tuple(model for model in models if model.metric == "time") or tuple(models)
