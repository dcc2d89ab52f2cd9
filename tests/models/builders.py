"""Synthetic measurements of known functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.pmnf.modeler import modeler
from orchestrator.types import Measurement, Measurements, Point

Truth = Callable[..., float]
NAMES = "pqrs"
GRIDS: tuple[tuple[float, ...], ...] = (
    (32, 64, 128, 256, 512),
    (2, 4, 6, 8, 10),
    (10, 20, 30, 40, 50),
    (3, 5, 7, 9, 11),
)


def grid(parameters: int) -> list[tuple[float, ...]]:
    return list(product(*GRIDS[:parameters]))


def point(coordinates: Sequence[float]) -> Point:
    return Point.of(dict(zip(NAMES, coordinates, strict=False)))


def series(
    truth: Truth,
    coordinates: Sequence[Sequence[float]],
    noise: Callable[[int], Sequence[float]] = lambda size: [1.0] * size,
    repetitions: int = 1,
) -> dict[Point, tuple[float, ...]]:
    """Measure a function; ``noise(n)`` gives n factors."""
    return {point(c): tuple(float(truth(*c) * f) for f in noise(repetitions)) for c in coordinates}


def uniform(rng: np.random.Generator, level: float) -> Callable[[int], Sequence[float]]:
    return lambda size: list(1 + rng.uniform(-level, level, size))


def measurements(parameters: int, *values: Mapping[Point, tuple[float, ...]]) -> Measurements:
    items = tuple(Measurement(f"f{k}", "time", v) for k, v in enumerate(values))
    return Measurements(tuple(NAMES[:parameters]), items)


def fit(parameters: int, *values: Mapping[Point, tuple[float, ...]], **options: Any) -> list[PmnfModel]:
    models = modeler(**options)(measurements(parameters, *values))
    assert all(isinstance(m, PmnfModel) for m in models)
    return [m for m in models if isinstance(m, PmnfModel)]


def value(model: PmnfModel, *coordinates: float) -> float:
    return float(model.predict([point(coordinates)]).value[0])


def terms(model: PmnfModel) -> list[dict[str, Any]]:
    """Return the terms of a model, to be used as the untyped JSON that they are."""
    return model.terms
