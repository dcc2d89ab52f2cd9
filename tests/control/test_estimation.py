"""What decisions know of runs before they begin, by the models of durations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from orchestrator.control import assembly, estimation
from orchestrator.journal.measurements import ELAPSED, WHOLE_RUN
from orchestrator.models.base import Prediction
from orchestrator.types import Point
from tests.control.campaigns import load


@dataclass(frozen=True)
class _KnowsNothing:
    """A model that gives an upper end, and no value."""

    callpath: str = WHOLE_RUN
    metric: str = ELAPSED
    category: tuple[tuple[str, str], ...] = ()

    def predict(self, points: list[Point]) -> Prediction:
        nothing = np.full(len(points), np.nan)
        return Prediction(nothing, nothing, np.full(len(points), 5.0))

    def expected(self, points: list[Point]) -> Any:
        return np.full(len(points), np.nan)

    value = expected


def test_a_model_without_a_value_at_a_point_says_nothing_of_its_duration() -> None:
    built = assembly.assemble(load("measure.time_limit=60", "measure.limit_margin=2"))
    point = next(iter(built.campaign.space))
    model: Any = _KnowsNothing()
    found = estimation.at_points(built, [point], [model])[point]
    assert found.median is None
    assert found.too_long == ""
