from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from orchestrator.evaluation.artificial_noise import mixed, slowed


def test_noise_is_bounded_centred_and_takes_the_shape() -> None:
    factors = mixed(5.0, (1000, 40), np.random.default_rng(1))

    assert factors.shape == (1000, 40)
    assert factors.min() >= 0.95
    assert factors.max() <= 1.05
    assert factors.mean() == pytest.approx(1.0, abs=5e-4)
    assert factors.std() == pytest.approx(0.02, abs=0.003)


def test_noise_is_neither_normal_nor_symmetric() -> None:
    factors = mixed(10.0, (20_000,), np.random.default_rng(2))

    assert stats.skew(factors) > 0.1  # slow runs stand out more than fast ones
    assert stats.normaltest(factors).pvalue < 1e-6


def test_no_noise_is_exactly_one() -> None:
    assert (mixed(0.0, (3, 3), np.random.default_rng(0)) == 1.0).all()


def test_some_runs_are_slowed_down_and_the_others_are_not_touched() -> None:
    factors = slowed(10.0, (100, 100), np.random.default_rng(3))
    hit = factors > 1
    assert 0.08 < hit.mean() < 0.12
    assert factors[hit].min() >= 2 and factors[hit].max() <= 5 and np.all(factors[~hit] == 1)
    assert np.all(slowed(0.0, (50,), np.random.default_rng(3)) == 1)
