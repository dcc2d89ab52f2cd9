"""The model of a call path whose every value is zero: no family of models works with logarithms of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from orchestrator.models.base import Category, Floats, Key, document, inside
from orchestrator.models.belief import LogBelief
from orchestrator.models.intervals import FromPredictive, Predictive
from orchestrator.types import Point

_NOTHING = -700.0  # a logarithm whose exponential is as good as zero, but a number


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroModel(FromPredictive):
    """Zero wherever its category holds."""

    callpath: str
    metric: str
    category: Category  # value of each categorical parameter for which the model holds
    notes: tuple[str, ...] = ("every value is zero",)

    @classmethod
    def of(cls, key: Key) -> Self:
        """Return the model of a call path, metric and category."""
        callpath, metric, category = key
        return cls(callpath=callpath, metric=metric, category=category)

    @property
    def parameters(self) -> tuple[str, ...]:
        """None: zero depends on nothing."""
        return ()

    @property
    def noise(self) -> float:
        """None."""
        return 0.0

    @property
    def smape(self) -> float:
        """None."""
        return 0.0

    @property
    def terms(self) -> list[dict[str, Any]]:
        """A constant of zero."""
        return [{"coefficient": 0.0, "factors": []}]

    @property
    def normal_form(self) -> str:
        """The same as text."""
        return "0"

    @property
    def expression(self) -> str:
        """The same."""
        return self.normal_form

    def predictive(self, points: Sequence[Point]) -> Predictive:
        """Return that zero is certain; NaN at points of another category."""
        return Predictive.certain(self.value(points), self.noise)

    def value(self, points: Sequence[Point]) -> Floats:
        """Return zeros; NaN at points of another category."""
        return inside(points, self.category, np.zeros(len(points)))

    def expected(self, points: Sequence[Point]) -> Floats:
        """Return zeros; NaN at points of another category."""
        return self.value(points)

    def belief(self, points: Sequence[Point]) -> LogBelief:
        """Return a belief that knows everything."""
        logs = np.full((1, len(points)), _NOTHING)
        return LogBelief(
            weights=np.ones(1),
            mean=logs,
            factor=np.zeros((1, 0, len(points))),
            rough=np.zeros_like(logs),
            noise=self.noise,
        )

    def document(self) -> dict[str, Any]:
        """Return the model as a JSON-ready object."""
        return document(self)
