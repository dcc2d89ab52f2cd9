"""What a model is, and the contract of a modeler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from orchestrator.types import Measurements, Point, format_value


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predicted values at points, with an interval (90 % unless said otherwise); arrays of one length."""

    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


class Model(Protocol):
    """A fitted model of one metric at one call path. Frozen; predicts anywhere in parameter space."""

    @property
    def callpath(self) -> str: ...  # noqa: D102

    @property
    def metric(self) -> str: ...  # noqa: D102

    @property
    def expression(self) -> str:
        """Readable form, e.g. ``0.3 + 2.1e-4 * p**0.5 * log2(p) * n``."""
        ...

    @property
    def normal_form(self) -> str:
        """``expression`` without the correction for what the terms do not fit: the part for humans."""
        ...

    @property
    def category(self) -> tuple[tuple[str, str], ...]:
        """Values of the categorical parameters that the model is for; empty without any."""
        ...

    @property
    def terms(self) -> list[dict[str, object]]:
        """JSON-ready terms: ``{"coefficient", "factors": [{"parameter", "exponent", "log_exponent"}]}``."""
        ...

    @property
    def smape(self) -> float:
        """SMAPE (0..200 %) of the model on the measurements it was fitted to."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know before trusting it (too few points, not monotone, ...)."""
        ...

    def predict(self, points: Sequence[Point]) -> Prediction:
        """Predict at points, with intervals."""
        ...

    def value(self, points: Sequence[Point]) -> NDArray[np.float64]:
        """Return the value of the expression at points, as `predict` does, without intervals: cheaper."""
        ...

    def expected(self, points: Sequence[Point]) -> NDArray[np.float64]:
        """Return the mean over all that the model thinks possible, as counts for costs; cheaper."""
        ...


def expected_total(models: Sequence[Model], points: Sequence[Point]) -> NDArray[np.float64]:
    """Return the expected sum over call paths at points, never negative; NaN where one cannot be evaluated.

    A category of which nothing is known yet is taken to be as dear as the dearest one that is known.
    """
    paths: dict[tuple[str, str], list[Model]] = {}
    for model in models:
        paths.setdefault((model.callpath, model.metric), []).append(model)
    total: NDArray[np.float64] = np.sum(
        [np.maximum(_expected(alternatives, points), 0.0) for alternatives in paths.values()], axis=0
    )
    return total


def _expected(alternatives: Sequence[Model], points: Sequence[Point]) -> NDArray[np.float64]:
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
    """Return a point in the category for which a model holds."""
    return Point.of({**dict(point.items), **dict(model.category)})


def expected_costs(
    models: Sequence[Model], cores: Callable[[Point], float]
) -> Callable[[Sequence[Point]], NDArray[np.float64]]:
    """Return what runs at points are expected to cost in core-seconds: `expected_total` times cores."""
    return lambda points: expected_total(models, points) * [cores(point) for point in points]


def holds_at(model: Model, point: Point) -> bool:
    """Tell whether a point is of the category for which a model holds."""
    return is_of(point, model.category)


def is_of(point: Point, category: Iterable[tuple[str, str]]) -> bool:
    """Tell whether a point is of a category: names of parameters with their values as text."""
    return all(format_value(point[name]) == text for name, text in category)


class Modeler(Protocol):
    """Fit one model per call path and metric."""

    def __call__(self, measurements: Measurements) -> tuple[Model, ...]:
        """Fit; call paths without usable values are left out. Raises ``ModelError`` if none can be fitted."""
        ...


Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
