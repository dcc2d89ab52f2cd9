"""What a round was worth, and what is measured of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import pytest

from orchestrator.journal import events
from orchestrator.journal.replay import apply
from orchestrator.journal.state import State
from orchestrator.models.base import Model, Prediction
from orchestrator.policy.progress import Quality, assess, enough, fits_better, gain
from orchestrator.types import Point

HERE = Point.of(p=64)


@dataclass(frozen=True)
class Known:
    """A model of which only the prediction at one point matters."""

    value: float
    span: float
    smape: float = 5.0
    metric: str = "time"
    noise: float = 0.0

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
        (Quality(), Quality(smape=5.0, width=0.5), "first"),
        (Quality(), Quality(smape=5.0, width=None), "first"),
        (Quality(smape=5.0, width=0.5), Quality(smape=4.8, width=0.6), "fit"),
        (Quality(smape=5.0, width=None), Quality(smape=4.8, width=None), "fit"),
        (Quality(smape=5.0, width=0.5), Quality(smape=4.95, width=0.5), ""),
        (Quality(smape=5.0, width=0.5), Quality(smape=5.1, width=0.4), "intervals"),
        (Quality(smape=5.0, width=0.5), Quality(smape=5.1, width=0.49), ""),
        (Quality(smape=5.0, width=0.5), Quality(smape=5.1, width=0.6), ""),
        (Quality(smape=11.28, width=0.40), Quality(smape=12.26, width=1.02), "surprise"),
        (Quality(smape=5.0, width=None), Quality(smape=5.0, width=3.0), "intervals"),
        (Quality(smape=5.0, width=3.0), Quality(smape=5.0, width=None), "surprise"),
        (Quality(smape=5.0, width=None), Quality(smape=5.0, width=None), ""),
        (Quality(smape=0.3, width=0.009), Quality(smape=0.2, width=0.004), ""),
        (Quality(smape=1e-12, width=0.5), Quality(smape=1e-13, width=0.5), ""),
        (Quality(smape=5.0, width=0.5), Quality(), ""),
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


def test_the_noise_is_the_range_of_single_runs_weighted_by_time() -> None:
    found = quality(Known(75.0, 1.0, noise=0.02), Known(25.0, 1.0, noise=0.1))
    assert found.noise == pytest.approx(3.29 * 0.04, rel=1e-3)


@pytest.mark.parametrize(
    ("noise", "width"), [(None, 0.01), (0.0, 0.01), (0.08, 0.04), (0.16, 0.08), (2.0, 0.1)]
)
def test_half_the_range_of_single_runs_is_narrow_enough_within_bounds(
    noise: float | None, width: float
) -> None:
    assert enough(noise) == width


@pytest.mark.parametrize(
    ("before", "now", "worth"),
    [
        (Quality(), Quality(smape=5.0, width=0.5), "first"),
        (Quality(smape=5.0, width=0.5), Quality(smape=4.999, width=9.0), "fit"),
        (Quality(smape=5.0, width=0.5), Quality(smape=5.0, width=0.1), ""),
        (Quality(smape=5.0, width=0.5), Quality(), ""),
    ],
)
def test_by_the_rule_of_the_papers_only_the_fit_counts(before: Quality, now: Quality, worth: str) -> None:
    assert fits_better(now, before) == worth


def gains(*rounds: Quality) -> list[str]:
    """Return what each round of a campaign was worth."""
    state, found = State(), []
    for number, now in enumerate(rounds, 1):
        worth = gain(now, Quality(smape=state.smape, width=state.width))
        done = events.RoundCompleted(
            round=number,
            smape=now.smape,
            width=now.width,
            improved=bool(worth),
            measured=True,
            widest=now.widest,
            gain=worth,
        )
        state = apply(state, done, 0.0)
        found.append(worth)
    return found


def test_small_steps_count_together() -> None:
    widths = [0.50, 0.49, 0.48, 0.47, 0.46, 0.45, 0.44]
    worth = gains(*(Quality(smape=5.0, width=width) for width in widths))
    assert worth == ["first", "", "", "intervals", "", "", "intervals"]


def test_widths_that_only_swing_are_worth_nothing() -> None:
    worth = gains(*(Quality(smape=5.0, width=width) for width in [0.5, 0.6, 0.5, 0.65, 0.49, 0.55, 0.5]))
    assert worth == ["first", "", "", "", "", "", ""]


def test_after_a_surprise_intervals_may_narrow_again() -> None:
    worth = gains(*(Quality(smape=5.0, width=width) for width in [0.4, 1.0, 1.1, 0.7, 0.5]))
    assert worth == ["first", "surprise", "", "intervals", "intervals"]
