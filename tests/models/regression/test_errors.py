"""Errors of predictions are what is left of residuals without the noise of what was measured."""

import numpy as np
import pytest

from orchestrator.models.intervals import HALF_WIDTH
from orchestrator.models.regression.errors import UNKNOWN, Errors, Growth


def test_squares_of_errors_and_noise_add_up() -> None:
    residuals = 0.05 * np.random.default_rng(0).standard_normal(4000)
    assert Errors.of(residuals, 0.0).spread == pytest.approx(0.05, rel=0.05)
    assert Errors.of(residuals, 0.03).spread == pytest.approx(0.04, rel=0.05)


def test_large_errors_keep_their_size_where_noise_explains_the_others() -> None:
    rng = np.random.default_rng(1)
    residuals = np.where(rng.random(4000) < 0.1, 0.5, 0.02) * rng.standard_normal(4000)
    found = Errors.of(residuals, 0.02)
    ends = np.quantile(residuals, [0.005, 0.995])
    assert found.centres[[0, -1]] == pytest.approx(ends, rel=0.05)
    middle = np.abs(found.centres - np.median(residuals)).argmin()
    assert abs(found.centres[middle]) < 0.01


def test_noise_that_explains_everything_leaves_something() -> None:
    residuals = 0.02 * np.random.default_rng(2).standard_normal(500)
    assert 0.002 < Errors.of(residuals, 0.1).spread < 0.01


def test_errors_beyond_grow_as_the_sum_of_independent_steps() -> None:
    distances = np.full(4000, 0.5)
    residuals = np.hypot(0.1, 0.3) * np.random.default_rng(2).standard_normal(4000)
    found = Growth.of(distances, residuals, 0.1)
    assert found.at(np.array([0.0, 0.5, 2.0])) == pytest.approx([0.0, 0.3, 0.6], rel=0.1)
    assert found.times(2.0).at(distances[:1]) == pytest.approx([0.6], rel=0.1)


def test_large_errors_just_beyond_the_range_do_not_make_those_far_out_enormous() -> None:
    distances = np.linspace(0.001, 0.3, 40)
    residuals = np.where(distances < 0.1, 0.5, 0.1)
    assert Growth.of(distances, residuals, 0.1).at(np.array([1.2]))[0] < 1.0


def test_few_errors_beyond_say_little_of_others() -> None:
    """The largest of two, as of the last points of a line, is exceeded more often than once in ten."""
    rng = np.random.default_rng(4)
    for number in (1, 2, 5):
        seen = (Growth.of(np.ones(number), rng.standard_normal(number), 0.0).spread for _ in range(400))
        held = [abs(rng.standard_normal()) < HALF_WIDTH * spread for spread in seen]
        assert 0.8 < np.mean(held) < 0.96


def test_errors_that_nobody_saw_to_grow_do() -> None:
    distances = np.array([0.1, 0.2])
    many = Growth.of(np.tile(distances, 500), np.zeros(1000), 0.05)
    assert many.at(np.array([0.2, 0.8])) == pytest.approx([0.05, 0.1], rel=0.01)
    assert Growth.of(distances, np.zeros(2), 0.0).at(np.array([0.1]))[0] > 0
    assert Growth.of(distances, np.full(2, np.nan), 0.05) == UNKNOWN
