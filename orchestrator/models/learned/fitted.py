"""What a learner of scikit-learn has learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.blas import one_sklearn_thread
from orchestrator.models.regression.learner import NO_LIMIT, Estimator, Fit, Fitted, Learner
from orchestrator.models.regression.samples import Samples, where_known
from orchestrator.models.regression.trend import only_trend

FAMILY = "learned"


class Map(Protocol):
    """A map from coordinates to columns."""

    def at(self, x: Floats) -> Floats:
        """Return the columns at coordinates (n, axes), shape (n, columns)."""
        ...


@dataclass(frozen=True, slots=True)
class Estimate:
    """A regressor of scikit-learn on columns. Points with an unknown coordinate (NaN) have no prediction."""

    text: str
    columns: Map
    estimator: Estimator

    def at(self, x: Floats) -> Floats:
        """Return logarithms at coordinates (n, axes), shape (n,)."""
        return where_known(x, self._known_at)

    def _known_at(self, x: Floats) -> Floats:
        with one_sklearn_thread():
            return self.estimator.predict(self.columns.at(x))


@dataclass(frozen=True, slots=True)
class Rescaled:
    """What was learned of a response of mean zero and variance one."""

    rest: Fitted
    shift: float
    scale: float

    @property
    def text(self) -> str:
        """What it is."""
        return self.rest.text

    def at(self, x: Floats) -> Floats:
        """Return logarithms at coordinates (n, axes), shape (n,)."""
        return self.shift + self.scale * self.rest.at(x)


def learner(name: str, build: Fit, most: int = NO_LIMIT) -> Learner:
    """Return a learner that falls back to the trend where there is nothing to learn."""

    def fit(samples: Samples, rng: np.random.Generator) -> Fitted:
        return only_trend(samples) or build(samples, rng)

    return Learner(family=FAMILY, name=name, fit=fit, most=most)


def estimated(text: str, columns: Map, estimator: Any, samples: Samples) -> Estimate:
    """Fit a regressor of scikit-learn to the columns of samples."""
    with one_sklearn_thread():
        estimator.fit(columns.at(samples.x), samples.y)
    return Estimate(text, columns, estimator)


def unit_response(samples: Samples) -> tuple[Samples, Callable[[Fitted], Rescaled]]:
    """Return samples with a response of mean zero and variance one, and the way back for what is fitted."""
    shift, scale = float(samples.y.mean()), float(samples.y.std()) or 1.0
    return samples.with_y((samples.y - shift) / scale), lambda rest: Rescaled(rest, shift, scale)


def named(what: str, *how: str | bool, **derived: bool) -> str:
    """Return a name that says what a learner is, how it learns as far as that is said, and from what columns.

    False stands for what is not the case: ``by_relevance and "by relevance"``.
    """
    name = ", ".join([what, *(word for word in how if isinstance(word, str))])
    return " + ".join([name, *(key for key, used in derived.items() if used)])
