"""What runs are expected to cost, by the models of any family."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from orchestrator.models.base import Floats, Model, holds_at
from orchestrator.types import Point, by_callpath


def expected_costs(
    models: Sequence[Model], cores: Callable[[Point], float]
) -> Callable[[Sequence[Point]], Floats]:
    """Return what runs at points are expected to cost in core-seconds: `expected_total` times cores."""
    return lambda points: expected_total(models, points) * [cores(point) for point in points]


def expected_total(models: Sequence[Model], points: Sequence[Point]) -> Floats:
    """Return the expected sum over call paths at points, never negative; NaN where one cannot be evaluated.

    A category without a model is taken to be as expensive as the most expensive one that has a model.
    """
    paths = by_callpath(models).values()
    total: Floats = np.sum(
        [np.maximum(_expected(alternatives, points), 0.0) for alternatives in paths], axis=0
    )
    return total


def _expected(alternatives: Sequence[Model], points: Sequence[Point]) -> Floats:
    """Return the expected values of one call path, of which there are models for some categories."""
    values = np.full(len(points), np.nan)
    for model in alternatives:
        here = model.expected(points)
        values = np.where(np.isfinite(here), here, values)
    known = [any(holds_at(model, point) for model in alternatives) for point in points]
    unknown = [point for point, here in zip(points, known, strict=True) if not here]
    if unknown:
        elsewhere = [model.expected([_moved(point, model) for point in unknown]) for model in alternatives]
        values[~np.array(known)] = np.max(elsewhere, axis=0)
    return values


def _moved(point: Point, model: Model) -> Point:
    """Return a point in the category that a model is for."""
    return Point.of({**dict(point.items), **dict(model.category)})
