"""What a round was worth, and what is measured of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import pytest

from orchestrator.models.base import Model, Prediction
from orchestrator.progress import Quality, assess, gain
from orchestrator.types import Point

HERE = Point.of(p=64)


@dataclass(frozen=True)
class Known:
    """A model of which only the prediction at one point matters."""

    value: float
    span: float
    smape: float = 5.0
    metric: str = "time"

    def predict(self, points: list[Point]) -> Prediction:
        one = np.ones(len(points))
        return Prediction(
            self.value * one, (self.value - self.span / 2) * one, (self.value + self.span / 2) * one
        )


def quality(*models: Known) -> Quality:
    return assess([cast(Model, model) for model in models], HERE)


@pytest.mark.parametrize(
    ("before", "now", "worth"),
    [
        (Quality(), Quality(5.0, 0.5), "fit"),
        (Quality(5.0, 0.5), Quality(4.9, 0.6), "fit"),
        (Quality(5.0, 0.5), Quality(5.0, 0.4), "intervals"),
        (Quality(5.0, 0.5), Quality(5.1, 0.49), ""),
        (Quality(5.0, 0.5), Quality(5.1, 0.51), ""),
        (Quality(11.28, 0.40), Quality(12.26, 1.02), "surprise"),
        (Quality(5.0, None), Quality(5.0, 3.0), "intervals"),
        (Quality(5.0, 3.0), Quality(5.0, None), "surprise"),
        (Quality(5.0, None), Quality(5.0, None), ""),
        (Quality(5.0, 0.5), Quality(), ""),
    ],
)
def test_what_a_round_was_worth(before: Quality, now: Quality, worth: str) -> None:
    assert gain(now, before) == worth


def test_the_mean_width_is_weighted_by_time_and_the_widest_is_that_of_any_relevant_call_path() -> None:
    found = quality(Known(97.0, 9.7), Known(3.0, 15.0), Known(0.1, 10.0))
    assert found.width == pytest.approx(24.7 / 100)
    assert found.widest == pytest.approx(5.0)


def test_an_interval_without_end_is_not_narrow() -> None:
    found = quality(Known(97.0, 9.7), Known(3.0, np.inf))
    assert found.smape == 5.0 and found.width is None and found.widest is None
