"""Which call paths a formula alone explains: those that follow it, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.models.base import Floats
from orchestrator.models.curves.design import Design
from orchestrator.models.curves.prior import learned
from orchestrator.models.curves.scatter import Scatter
from orchestrator.models.curves.screening import screened
from orchestrator.models.noise import GUESS_WEIGHT
from tests.models.curves.known import POINTS, RIGHT, Known

CALLPATHS = 40


def suffices(log_value: Floats, sigma: float = 0.02, freedom: float = 25.0) -> list[bool]:
    """Return whether the right formula suffices for each call path: means of two repetitions."""
    design = Design.of(POINTS, np.full(len(POINTS), 2.0))
    scatter = [Scatter(sigma=sigma, freedom=freedom)] * len(log_value)
    found = screened(design, log_value, scatter, Known((RIGHT,) * len(log_value)), learned())
    return [bool(one) for one in found.suffices]


def noisy(noise: float) -> Floats:
    """Return the logarithm of the right formula with noise, shape (call paths, points)."""
    rng = np.random.default_rng(1)
    scatter = rng.normal(0, noise, (CALLPATHS, len(POINTS)))
    return np.asarray(Known((RIGHT,)).at(POINTS)[0] + scatter, np.float64)


def test_a_formula_suffices_where_points_scatter_around_it_as_repetitions_do() -> None:
    found = suffices(noisy(0.02 / np.sqrt(2)))
    assert sum(found) >= 0.9 * CALLPATHS


@pytest.mark.parametrize("noise", [0.1, 0.3])
def test_no_formula_suffices_where_points_scatter_far_more_than_repetitions(noise: float) -> None:
    assert not any(suffices(noisy(noise)))


def test_no_formula_suffices_where_values_take_a_step_from_it() -> None:
    step = np.where(POINTS[:, 0] >= 16, 0.3, 0.0)
    assert not any(suffices(noisy(0.01) + step))


def test_single_runs_have_to_follow_a_formula_more_closely() -> None:
    """What nobody repeated may be noise or not: a formula suffices nowhere else, and in fewer call paths."""
    log_value = noisy(0.03)
    repeated, single = (suffices(log_value, 0.03 * np.sqrt(2), freedom) for freedom in (25.0, GUESS_WEIGHT))
    assert all(one >= other for one, other in zip(repeated, single, strict=True))
    assert sum(single) < sum(repeated)
