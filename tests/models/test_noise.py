from __future__ import annotations

import numpy as np
import pytest

from orchestrator.models.noise import GUESSED_NOISE, LEAST_NOISE, locate, relocate


def lognormal(rng: np.random.Generator, shape: tuple[int, ...], sigma: float) -> np.ndarray:
    return np.exp(rng.normal(0, sigma, shape))


def test_noise_is_estimated_from_repetitions() -> None:
    located = locate(lognormal(np.random.default_rng(0), (50, 25, 4), 0.05))
    assert located.sigma == pytest.approx(np.full(50, 0.05), rel=0.15)
    assert np.all(located.freedom > 50)


def test_callpaths_with_few_repetitions_borrow_from_the_others() -> None:
    values = lognormal(np.random.default_rng(1), (200, 3, 2), 0.05)
    alone = np.array([locate(row[None]).sigma[0] for row in values])
    together = locate(values).sigma
    assert np.std(together) < 0.5 * np.std(alone)
    assert np.median(together) == pytest.approx(0.05, rel=0.1)


def test_callpaths_that_differ_in_noise_stay_different() -> None:
    rng = np.random.default_rng(2)
    values = np.concatenate([lognormal(rng, (20, 25, 3), 0.01), lognormal(rng, (20, 25, 3), 0.2)])
    sigma = locate(values).sigma
    assert sigma[:20].max() < 0.02 and sigma[20:].min() > 0.1


def test_without_repetitions_the_noise_is_a_guess() -> None:
    located = locate(np.ones((2, 5, 1)))
    assert located.sigma.tolist() == [GUESSED_NOISE] * 2
    assert located.freedom.tolist() == [1.0, 1.0]


def test_exact_repetitions_have_the_least_noise() -> None:
    assert locate(np.full((1, 5, 4), 7.0)).sigma[0] == LEAST_NOISE


def test_location_is_that_of_the_values() -> None:
    located = locate(np.full((3, 4, 5), 2.0) * np.arange(1, 4)[:, None, None])
    assert np.exp(located.log_value[:, 0]) == pytest.approx([2, 4, 6])
    assert located.count == pytest.approx(np.full((3, 4), 5.0))


def test_a_slow_run_hardly_moves_the_location() -> None:
    rng = np.random.default_rng(3)
    clean = lognormal(rng, (1, 25, 5), 0.03)
    slow = clean.copy()
    slow[0, 7, 2] *= 4
    moved = locate(slow, "none").log_value - locate(clean, "none").log_value
    assert abs(moved[0, 7]) < 0.05
    assert locate(slow).sigma[0] == pytest.approx(locate(clean).sigma[0], rel=0.3)


def test_of_two_values_far_apart_the_faster_is_believed() -> None:
    clean = lognormal(np.random.default_rng(4), (1, 25, 2), 0.02)
    clean[0, 3] = (1.0, 3.0)
    assert np.exp(locate(clean).log_value[0, 3]) == pytest.approx(1.0, abs=0.05)


def test_a_model_tells_which_value_is_the_outlier() -> None:
    values = lognormal(np.random.default_rng(5), (1, 25, 1), 0.02)
    values[0, 3] = 3.0
    located = relocate(values, locate(values), np.zeros((1, 25)), np.array([0.02]))
    assert located.count[0, 3] < 0.01
    assert located.count[0, 4] > 0.5


@pytest.mark.parametrize(("aggregate", "expected"), [("mean", 3.0), ("median", 2.0), ("min", 1.0)])
def test_aggregates_are_what_they_are_called(aggregate: str, expected: float) -> None:
    values = np.tile([1.0, 2.0, 6.0], (1, 4, 1))
    assert np.exp(locate(values, aggregate).log_value) == pytest.approx(np.full((1, 4), expected))


def test_auto_takes_the_minimum_of_noise_that_only_slows_down() -> None:
    rng = np.random.default_rng(6)
    values = 1 + rng.exponential(0.2, (40, 25, 8)) ** 2
    located = locate(values)
    assert located.aggregate == "min"
    # ... on the scale of the median.
    assert np.exp(located.log_value).mean() == pytest.approx(np.median(values), rel=0.02)
    assert located.log_value.std() < 0.5 * locate(values, "mean").log_value.std()


def test_auto_keeps_every_repetition_of_symmetric_noise() -> None:
    assert locate(lognormal(np.random.default_rng(7), (20, 25, 5), 0.05)).aggregate == "none"


def test_auto_survives_odd_numbers_of_repetitions() -> None:
    values = lognormal(np.random.default_rng(8), (4, 8, 6), 0.05)
    values[:, ::2, 3:] = np.nan
    assert np.all(np.isfinite(locate(values).log_value))
