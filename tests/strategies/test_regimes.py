"""Formula or change of regime: the run that tells them apart is what the strategy proposes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from orchestrator import registry
from orchestrator.models.base import Model, coordinates
from orchestrator.models.belief import LogBelief, has_belief
from orchestrator.strategies.base import View
from orchestrator.strategies.information import strategy
from orchestrator.strategies.information.stakes import Weighted
from orchestrator.types import Measurement, Measurements, Parameter, Point
from tests.strategies.views import Box, TrueModel, make_view

SPACE = Box((Parameter("p", (4, 8, 16, 32, 64)), Parameter("s", (10, 20, 30, 40, 50))))
PLUS = Point.of(p=128, s=60)
MEASURED = {
    **{Point.of(p=p, s=10): 2 for p in (4, 8, 16, 32)},
    **{Point.of(p=4, s=s): 2 for s in (20, 30, 40, 50)},
    **{Point.of(p=8, s=20): 1, Point.of(p=32, s=30): 1},
}


def seconds(point: Point) -> float:
    """A power law up to 32 processes; whether it goes on, no measurement shows."""
    return float(3 * point.number("s") ** 1.2 * point.number("p") ** 0.8)


def core_seconds(point: Point) -> float:
    return point.number("p") * seconds(point)


def after_the_lines(budget: float) -> View:
    """±0.5 % of noise; all but the runs with 64 processes were made."""
    noise = np.random.default_rng(3)
    times = {
        point: tuple(seconds(point) * (1 + 0.005 * float(noise.normal())) for _ in range(runs))
        for point, runs in MEASURED.items()
    }
    view = make_view(
        SPACE,
        done=MEASURED,
        evaluation_point=PLUS,
        batch_size=1,
        budget_left=budget,
        maximum_repetitions=10,
        round=9,
        cost=core_seconds,
    )
    return replace(view, measurements=Measurements(("p", "s"), (Measurement("main", "time", times),)))


def proposed(view: View, model: Model) -> Point:
    assert has_belief(model)
    (choice,) = strategy.most_informative(view, [Weighted(model, 1.0)], overhead=0.0)
    return choice.point


@dataclass(frozen=True)
class TwoRegimes(TrueModel):
    """The time goes on growing with p, or stops growing at 32: equally probable."""

    def belief(self, points: Sequence[Point]) -> LogBelief:
        x = coordinates(points, ("p", "s"))
        growing = np.log(3) + 0.8 * np.log(x[:, 0]) + 1.2 * np.log(x[:, 1])
        flat = growing - 0.8 * np.log(np.maximum(x[:, 0] / 32, 1))
        return LogBelief(
            weights=np.full(2, 0.5),
            mean=np.array([growing, flat]),
            factor=np.zeros((2, 0, len(points))),
            rough=np.zeros((2, len(points))),
            noise=0.005,
        )


@pytest.mark.parametrize("budget", [1e5, 1e6])
def test_the_run_that_tells_two_regimes_apart_is_proposed_where_it_is_cheapest(budget: float) -> None:
    """Up to 32 processes both say the same, and runs there are cheaper by far."""
    model = TwoRegimes("main", parameters=("p", "s"))
    assert proposed(after_the_lines(budget), model) == Point.of(p=64, s=10)


def test_curves_ask_for_the_run_that_shows_whether_it_goes_on() -> None:
    """A formula fits, and would ask for a further repetition of a small run."""
    view = after_the_lines(budget=1e5)
    (model,) = registry.load("model", "curves")()(view.measurements)
    assert proposed(view, model)["p"] == 64
