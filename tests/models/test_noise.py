from __future__ import annotations

import numpy as np
import pytest

from orchestrator.models.noise import CLOCK_NOISE, GUESSED_NOISE, LEAST_NOISE, locate, relocate


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


def test_where_only_exact_values_are_repeated_the_noise_of_the_others_is_a_guess() -> None:
    values = np.full((2, 6, 2), 7.0) * np.arange(1.0, 7.0)[:, None]
    values[1, :, 1] = np.nan
    located = locate(values)
    assert located.sigma[1] == GUESSED_NOISE
    assert located.freedom[1] == 1.0


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


@pytest.mark.parametrize("kind", ["exponential", "normal", "standard_cauchy"])
@pytest.mark.parametrize("repetitions", [4, 5, 7])
def test_the_order_of_repetitions_means_nothing(kind: str, repetitions: int) -> None:
    rng = np.random.default_rng(11)
    values = np.exp(0.05 * getattr(rng, kind)(size=(3, 25, repetitions)))
    values[0, 2, 1] = values[1, 3, 0] = values[1, 3, 2] = np.nan
    order = np.argsort(rng.random((1, 25, repetitions)), axis=2)  # of the runs: the same for all call paths
    first, again = locate(values), locate(np.take_along_axis(values, order, axis=2))
    assert first.aggregate == again.aggregate
    assert first.log_value == pytest.approx(again.log_value, rel=1e-9, abs=1e-12)
    assert first.count == pytest.approx(again.count)


def test_values_that_are_missing_between_others_do_no_harm() -> None:
    values = np.tile([1.0, np.nan, 1.02, np.nan, 1.03, np.nan, 1.01], (1, 25, 1))
    located = locate(values)
    assert np.all(np.isfinite(located.log_value)) and located.count.min() > 3


def test_of_four_runs_the_slow_one_is_left_out_instead_of_taking_the_fastest() -> None:
    rng = np.random.default_rng(12)
    chosen = []
    for _ in range(20):
        slow = np.where(rng.random((1, 25, 4)) < 0.05, rng.uniform(2, 5, (1, 25, 4)), 1.0)
        chosen.append(locate(lognormal(rng, (1, 25, 4), 0.02) * slow).aggregate)
    assert chosen.count("none") >= 18


def test_two_runs_that_agree_by_chance_in_all_callpaths_prove_little() -> None:
    """One point is repeated, and what disturbs its runs disturbs all call paths alike."""
    values = np.full((10, 11, 2), np.nan)
    values[:, :, 0] = 1.0
    values[:, 0, 1] = 1.001
    located = locate(values)
    assert np.all(located.sigma > 0.005) and np.all(located.freedom < 4)
    values[:, 0, 1] = 1.0
    assert np.all(locate(values).sigma > 0.005)


def test_callpaths_that_are_disturbed_apart_are_evidence_each() -> None:
    rng = np.random.default_rng(13)
    apart, alike = lognormal(rng, (40, 4, 2), 0.05), np.tile(lognormal(rng, (1, 4, 2), 0.05), (40, 1, 1))
    assert locate(apart).freedom.min() > 3 * locate(alike).freedom.max()


def test_counts_that_repeat_exactly_are_exact_and_times_are_as_good_as_the_clock() -> None:
    counts = np.arange(1, 6)[None, :, None] * np.full((1, 5, 3), 1234.0)
    assert locate(counts).sigma[0] == LEAST_NOISE
    assert locate(counts * np.pi).sigma[0] == pytest.approx(CLOCK_NOISE * np.sqrt(3))


def test_printed_times_are_as_good_as_their_digits() -> None:
    times = np.round(np.linspace(0.1, 0.5, 9), 3)[None, :, None] * np.ones((1, 9, 4))
    assert np.exp(locate(times).log_value)[0] == pytest.approx(times[0, :, 0])
    assert locate(times[:, 1:]).sigma[0] == pytest.approx(2 * 0.003)
    digits = np.array([0.123, 0.257, 0.391, 0.444, 0.5])[None, :, None] * np.ones((1, 5, 4))
    assert locate(digits).sigma[0] == pytest.approx(2 * 0.001 / np.sqrt(12) / 0.391)


def test_exact_counts_do_not_make_the_noise_of_times_look_smaller() -> None:
    rng = np.random.default_rng(7)
    times = lognormal(rng, (4, 6, 2), 0.05)
    counts = np.full((30, 6, 2), 5000.0)
    alone, together = locate(times), locate(np.concatenate([times, counts]))
    assert together.sigma[:4] == pytest.approx(alone.sigma)
    assert together.sigma[4:] == pytest.approx(np.full(30, LEAST_NOISE))


def test_exact_counts_do_not_change_where_times_lie() -> None:
    """They never differ, so that the minimum of times seemed to lie where their median does."""
    rng = np.random.default_rng(8)
    times = lognormal(rng, (6, 16, 8), 0.05) * np.where(rng.random((16, 8)) < 0.15, 1.6, 1.0)
    counts = np.broadcast_to(5000.0 + np.arange(12)[:, None, None], (12, 16, 8))
    alone, together = locate(times), locate(np.concatenate([times, counts]))
    assert alone.aggregate == together.aggregate == "min"
    assert together.log_value[:6] == pytest.approx(alone.log_value)
    assert together.log_value[6:] == pytest.approx(np.log(counts[:, :, 0]))


def test_few_call_paths_that_seem_alike_are_pooled_less_than_many() -> None:
    rng = np.random.default_rng(8)
    values = lognormal(rng, (60, 6, 2), 0.05)
    few, many = locate(values[:4]), locate(values)
    assert few.freedom.max() < 0.5 * many.freedom.max()


def test_the_minimum_of_values_that_never_differ_is_their_location() -> None:
    """That of others lies below their median, by a multiple of what was taken for rounding here."""
    slowed = np.exp(0.3 * np.abs(np.random.default_rng(0).standard_t(2, (12, 10))))
    located = locate(np.stack([slowed, np.full_like(slowed, 0.0025)]))
    assert located.aggregate == "min"
    np.testing.assert_allclose(np.exp(located.log_value[1]), 0.0025, rtol=1e-6)
