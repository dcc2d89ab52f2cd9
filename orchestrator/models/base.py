"""What a model is, and the contract of a modeler.

Every family of models (a normal form, a regression, a decomposition) fits `Model`. What only some families
can do are separate abilities, and whoever needs one asks for it, as in ``isinstance(model, Symbolic)``:

- `orchestrator.models.symbolic.Symbolic`: to be read as a sum of terms, and compared by growth;
- `orchestrator.models.belief.Belief`: covariances of log values between points.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from orchestrator.errors import ModelError
from orchestrator.models.symbolic import Symbolic, terms_of
from orchestrator.types import Measurements, Point, format_value

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
Category = tuple[tuple[str, str], ...]
"""Names of categorical parameters with their values as text."""
Label = tuple[str, str]
"""Call path and metric."""
Key = tuple[str, str, Category]
"""Call path, metric and category: what is modelled, each by one model."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predicted values at points, with a 90 % interval; arrays of one length, NaN where nothing is known.

    ``unit`` is that of all three: ``s``, ``bytes``, or empty for a number and where the unit is unknown.
    """

    value: Floats
    low: Floats
    high: Floats
    unit: str = ""


class Model(Protocol):
    """A fitted model of one metric at one call path. Frozen; predicts anywhere in parameter space.

    A point has a value for every parameter of the measurements, numbers and categories. A family either fits
    one model per category, which then has that ``category`` and predicts NaN elsewhere, or one model for all,
    which has no ``category`` and takes the categories of a point into account itself.
    """

    @property
    def callpath(self) -> str: ...  # noqa: D102

    @property
    def metric(self) -> str: ...  # noqa: D102

    @property
    def parameters(self) -> tuple[str, ...]:
        """Numeric parameters on which the prediction may depend."""
        ...

    @property
    def category(self) -> Category:
        """Values of the categorical parameters that the model is for; empty if it is for all."""
        ...

    @property
    def expression(self) -> str:
        """One line for readers: ``0.3 + 2.1e-4 * p**0.5 * log2(p) * n``, or ``forest of 200 trees``."""
        ...

    @property
    def noise(self) -> float:
        """Relative standard deviation of a single repetition."""
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
        """Predict at points, with intervals; NaN at points of another category."""
        ...

    def value(self, points: Sequence[Point]) -> Floats:
        """Return the values of `predict` without intervals: cheaper."""
        ...

    def expected(self, points: Sequence[Point]) -> Floats:
        """Return the mean over all that the model considers possible, for costs; cheaper than `predict`."""
        ...

    def document(self) -> dict[str, Any]:
        """Return the model as a JSON-ready object: what `document` here gives, and what the family adds."""
        ...


class Modeler(Protocol):
    """Fit models to measurements: per call path and metric one, or one per category."""

    def __call__(self, measurements: Measurements) -> tuple[Model, ...]:
        """Fit; call paths without usable values are left out. Raises ``ModelError`` if none can be fitted."""
        ...


def document(model: Model) -> dict[str, Any]:
    """Return what every family says of a model, JSON-ready.

    The fields are the same for all: a model that is not `Symbolic` has no ``terms``, and its ``normal_form``
    is its ``expression``.
    """
    return {
        "callpath": model.callpath,
        "metric": model.metric,
        "category": dict(model.category),
        "expression": model.expression,
        "normal_form": model.normal_form if isinstance(model, Symbolic) else model.expression,
        "terms": terms_of(model),
        "smape": finite(model.smape),
        "notes": list(model.notes),
    }


_SECONDS = frozenset({"time", "elapsed"})


def one_of(option: str, value: str, allowed: Collection[str]) -> str:
    """Return the value of an option.

    Raises
    ------
    ModelError
        When it is none of those that are allowed.
    """
    if value not in allowed:
        raise ModelError(f"{option} is {value!r}: use one of {', '.join(allowed)}")
    return value


def unit_of(metric: str) -> str:
    """Return the unit in which readers give a metric: ``s``, ``bytes``, or empty."""
    if metric in _SECONDS:
        return "s"
    return "bytes" if metric.startswith("bytes") else ""


def smape_of(residuals: Floats) -> Floats:
    """Return the SMAPE, 0..200 %, from residuals of logarithms: the mean over the last axis."""
    return np.asarray(200 * np.tanh(np.abs(residuals) / 2).mean(axis=-1))


def coordinates(points: Sequence[Point], parameters: Sequence[str]) -> Floats:
    """Return the values of numeric parameters at points, shape (points, parameters)."""
    x = np.array([[point.number(name) for name in parameters] for point in points], dtype=float)
    return x.reshape(len(points), len(parameters))


def finite(value: float) -> float | None:
    """Return a number as JSON has it: None where it is not finite."""
    return float(value) if math.isfinite(value) else None


class _Labelled(Protocol):
    @property
    def callpath(self) -> str: ...

    @property
    def metric(self) -> str: ...


def label_of(item: _Labelled) -> Label:
    """Return call path and metric, of a model as of measurements."""
    return item.callpath, item.metric


def key_of(model: Model) -> Key:
    """Return what a model is of."""
    return model.callpath, model.metric, model.category


def holds_at(model: Model, point: Point) -> bool:
    """Return whether a point is of the category that a model is for."""
    return is_of(point, model.category)


def is_of(point: Point, category: Iterable[tuple[str, str]]) -> bool:
    """Return whether a point is of a category: names of parameters with their values as text."""
    return all(format_value(point[name]) == text for name, text in category)


def inside(points: Sequence[Point], category: Category, values: Floats) -> Floats:
    """Return values with NaN at points of another category."""
    if not category:
        return values
    here = [is_of(point, category) for point in points]
    return np.where(np.array(here, dtype=bool), values, np.nan)
