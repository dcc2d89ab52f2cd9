"""Oliveira's model: its equations, and whether both fits find what made the data."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from orchestrator.errors import ModelError
from orchestrator.models.regression.samples import arranged, encoded
from orchestrator.models.speedup import oliveira
from orchestrator.models.speedup.family import speedup_learner
from orchestrator.models.speedup.modeler import modeler
from orchestrator.models.speedup.oliveira import Oliveira, oliveira_least_squares, oliveira_swarm
from orchestrator.types import Measurement, Measurements, Point

TRUTH = Oliveira(np.array([0.99, -0.05, -0.2, 0.05, 0.002, 1e-4, 8.0]), 80.0)
P, N = (
    np.array(values, dtype=float)
    for values in zip(*product((2, 4, 8, 16, 32, 64), (10, 20, 40, 80)), strict=True)
)
FAR = np.array([200.0, 400.0]), np.array([100.0, 160.0])


def test_the_equations_by_hand() -> None:
    """f = 0.8 + 0.4 / 4 - 0.2 * 0.25^2 = 0.8875; Q = 0.05 + 0.01 * 4 / 2^2 = 0.06."""
    model = Oliveira(np.array([0.8, 0.4, -0.2, 0.25, 0.05, 0.01, 2.0]), 10.0)
    expected = 1 / (0.1125 + 0.8875 / 4 + 0.06)
    assert model.speedup(np.array([4.0]), np.array([20.0])) == pytest.approx([expected])


@pytest.mark.parametrize(("f1", "share"), [(1.7, 1.0), (-0.3, 0.0)])
def test_the_parallel_share_is_between_0_and_1(f1: float, share: float) -> None:
    model = Oliveira(np.array([f1, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0]), 1.0)
    assert model.speedup(np.array([8.0]), np.array([1.0])) == pytest.approx([1 / (1 - share + share / 8)])


def test_speedups_stay_finite_far_beyond_the_fitted_sizes() -> None:
    assert np.all(np.isfinite(TRUTH.speedup(np.array([2.0, 1e6]), np.array([1e9, 1e9]))))


def test_slopes_are_those_of_finite_differences() -> None:
    place = np.array([0.9, -0.1, -0.2, -3.0, 0.01, -6.0, 1.0])

    def speedup(at: np.ndarray, k: int) -> float:
        return float(oliveira._speedup(oliveira._coefficients(at), P[[k]], N[[k]] / 80)[0])

    found = oliveira._jacobian(oliveira._coefficients(place), P, N / 80)
    for k in (0, 7, 23):
        assert found[k] == pytest.approx(approx_fprime(place, speedup, 1e-6, k), rel=1e-4, abs=1e-4)


def test_least_squares_from_many_starts_recover_the_model() -> None:
    found = oliveira_least_squares(P, N, TRUTH.speedup(P, N), np.random.default_rng(3), starts=20)
    assert found.speedup(*FAR) == pytest.approx(TRUTH.speedup(*FAR), rel=1e-4)


def test_a_swarm_recovers_the_model() -> None:
    found = oliveira_swarm(P, N, TRUTH.speedup(P, N), np.random.default_rng(3))
    assert found.speedup(P, N) == pytest.approx(TRUTH.speedup(P, N), rel=0.02)
    assert found.speedup(*FAR) == pytest.approx(TRUTH.speedup(*FAR), rel=0.1)


def test_a_swarm_is_better_the_longer_it_searches() -> None:
    def error(iterations: int) -> float:
        found = oliveira_swarm(P, N, TRUTH.speedup(P, N), np.random.default_rng(3), iterations=iterations)
        return float(np.mean((found.speedup(P, N) - TRUTH.speedup(P, N)) ** 2))

    assert error(500) < error(20) / 5


@pytest.mark.parametrize("fit", [oliveira_swarm, oliveira_least_squares])
@pytest.mark.parametrize(
    ("p", "n", "s", "what"),
    [
        ([], [], [], "at least one run"),
        ([2.0, 4.0], [1.0], [1.0, 2.0], "one of each per run"),
        ([2.0, 4.0], [1.0, 1.0], [1.0, np.nan], "speedup is nan in sample 1"),
        ([0.0, 4.0], [1.0, 1.0], [1.0, 2.0], "processes is 0 in sample 0"),
    ],
)
def test_samples_that_cannot_be_used(
    fit: Callable[..., Oliveira], p: list[float], n: list[float], s: list[float], what: str
) -> None:
    with pytest.raises(ModelError, match=what):
        fit(np.array(p), np.array(n), np.array(s), np.random.default_rng(0))


def measured(time: Callable[[float, float], float]) -> Measurements:
    values = {
        Point.of(p=p, n=n): (time(p, n),) for p, n in product((1, 2, 4, 8, 16, 32, 64), (10, 20, 40, 80))
    }
    return Measurements(("p", "n"), (Measurement("main", "time", values),))


def strong(p: float, n: float) -> float:
    return float(0.01 * n**2 / (1 if p == 1 else TRUTH.speedup(np.array(p), np.array(n))))


@pytest.mark.parametrize(("overhead", "near"), [("oliveira", 0.02), ("oliveira-swarm", 0.1)])
def test_times_by_the_learner(overhead: str, near: float) -> None:
    known = measured(strong)
    learner = speedup_learner(known, overhead=overhead, most_processes=np.inf, largest={})
    [series], _ = arranged(known, "auto")
    found = learner.fitted(series.samples, np.random.default_rng(0))
    far = [Point.of(p=128, n=80), Point.of(p=256, n=80)]
    expected = [strong(128, 80), strong(256, 80)]
    assert np.exp(found.at(encoded(series.samples.axes, far))) == pytest.approx(expected, rel=near)
    assert "Oliveira's model" in found.text


@pytest.mark.parametrize("scaling", ["weak", "hybrid"])
def test_other_scaling_than_strong_is_refused(scaling: str) -> None:
    with pytest.raises(ModelError, match=f"for strong scaling, not for {scaling} scaling"):
        modeler(overhead="oliveira", scaling=scaling)
