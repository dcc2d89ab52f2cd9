"""Quantiles of mixtures: many at once are found another way, which gives the same."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from orchestrator.models.belief import mixture_quantile


@pytest.mark.parametrize("q", [0.001, 0.05, 0.5, 0.95])
def test_many_points_have_the_quantiles_of_each_alone(q: float) -> None:
    rng = np.random.default_rng(4)
    weights = rng.dirichlet(np.ones(30))
    mean, spread = rng.normal(0, 0.3, (30, 200)), rng.uniform(0.01, 0.5, (30, 200))
    together = mixture_quantile(weights, mean, spread, q)
    alone = [mixture_quantile(weights, mean[:, [k]], spread[:, [k]], q)[0] for k in range(200)]
    assert together.tolist() == alone
    assert weights @ ndtr((together - mean) / spread) == pytest.approx(q, abs=1e-5)


def test_members_far_apart_and_unknown_ones_do_no_harm() -> None:
    weights = np.array([0.3, 0.3, 0.4])
    mean = np.tile([[0.0], [100.0], [200.0]], 300)
    mean[:, 7] = np.nan
    found = mixture_quantile(weights, mean, np.full((3, 300), 1e-3), 0.5)
    assert np.isnan(found[7])
    assert np.delete(found, 7) == pytest.approx(100.0, abs=0.01)


def test_equal_members_are_one() -> None:
    found = mixture_quantile(np.full(4, 0.25), np.zeros((4, 300)), np.ones((4, 300)), 0.05)
    assert found == pytest.approx(-1.6448536, abs=1e-5)
