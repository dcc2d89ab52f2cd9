"""Errors of predictions are what is left of residuals without the noise of what was measured."""

import numpy as np
import pytest

from orchestrator.models.regression.errors import Errors


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
