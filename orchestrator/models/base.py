"""What a model is, and the contract of a modeler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from orchestrator.types import Measurements, Point


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
    """Return the expected sum over call paths at points, never negative; NaN where one has no model."""
    paths: dict[tuple[str, str], NDArray[np.float64]] = {}
    for model in models:
        here = model.expected(points)
        label = model.callpath, model.metric
        paths[label] = np.where(np.isfinite(here), here, paths[label]) if label in paths else here
    total: NDArray[np.float64] = np.sum([np.maximum(values, 0.0) for values in paths.values()], axis=0)
    return total


def expected_costs(
    models: Sequence[Model], cores: Callable[[Point], float]
) -> Callable[[Sequence[Point]], NDArray[np.float64]]:
    """Return what runs at points are expected to cost in core-seconds: `expected_total` times cores."""
    return lambda points: expected_total(models, points) * [cores(point) for point in points]


class Modeler(Protocol):
    """Fit one model per call path and metric."""

    def __call__(self, measurements: Measurements) -> tuple[Model, ...]:
        """Fit; call paths without usable values are left out. Raises ``ModelError`` if none can be fitted."""
        ...
