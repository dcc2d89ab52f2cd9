"""Curves: what the process can follow, what it doubts, and that its algebra is that of a Gaussian process."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from orchestrator.models.base import Floats
from orchestrator.models.curves import regression
from orchestrator.models.curves.features import Features
from orchestrator.models.curves.prior import draws


def grid(*values: tuple[float, ...]) -> Floats:
    return np.array(list(product(*values)), dtype=float)


POINTS = grid((4, 8, 16, 32, 64), (10, 20, 30, 40, 50))


def test_the_draws_are_the_same_every_time_and_have_a_size_per_component() -> None:
    sizes, noise = draws(2)
    assert sizes.shape == (len(noise), 1 + 4 * 2 + 1)
    assert np.array_equal(draws(2)[0], sizes)
    assert (sizes > 0).all()


def test_evidence_and_curves_are_those_of_a_gaussian_process() -> None:
    """The regression on features against the formulas with the covariance of the values themselves."""
    rng = np.random.default_rng(1)
    log_value = rng.normal(size=(1, len(POINTS)))
    count = rng.uniform(1, 3, len(POINTS))
    (found,) = regression.fit(POINTS, log_value, count)
    new = grid((128.0,), (60.0, 70.0))
    mean, factor = found.factors(new)
    features = Features.of(POINTS)
    phi, target = features(POINTS), features(new)
    for k, draw in enumerate(found.draws[:5]):
        scale = found.design.sizes[draw][features.component] ** 2
        covariance = (phi * scale) @ phi.T + np.diag(found.design.noise[draw] ** 2 / count)
        cross = (target * scale) @ phi.T
        z = log_value[0] - log_value[0].mean()
        assert mean[k] == pytest.approx(
            log_value[0].mean() + cross @ np.linalg.solve(covariance, z), rel=1e-6
        )
        left = (target * scale) @ target.T - cross @ np.linalg.solve(covariance, cross.T)
        assert factor[k].T @ factor[k] == pytest.approx(left, rel=1e-4, abs=1e-7)


def test_a_walk_has_independent_increments_at_the_measured_values() -> None:
    features = Features.of(POINTS)
    walk = features(POINTS)[:, features.component == 4]  # of the first parameter
    covariance = walk @ walk.T
    u = np.log(POINTS[:, 0])
    for i, j in ((0, 24), (3, 17)):
        distance = covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
        assert distance == pytest.approx(abs(u[i] - u[j]))


def test_a_power_law_is_continued_with_a_narrow_interval() -> None:
    rng = np.random.default_rng(2)
    truth = np.log(0.1 * POINTS[:, 0] ** 0.5 * POINTS[:, 1] ** 1.2)
    (found,) = regression.fit(
        POINTS, (truth + rng.normal(0, 0.01, len(truth)))[None], np.full(len(truth), 2.0)
    )
    mean, spread = found.moments(np.array([[128.0, 60.0]]))
    wanted = np.log(0.1 * 128**0.5 * 60**1.2)
    assert float(found.weights @ mean[:, 0]) == pytest.approx(wanted, abs=0.05)
    assert float(found.weights @ spread[:, 0]) < 0.15


def test_doubt_grows_with_the_distance_from_what_was_measured() -> None:
    rng = np.random.default_rng(3)
    steps = np.where(POINTS[:, 0] >= 32, 1.0, 0.0) + 0.05 * rng.normal(size=len(POINTS))
    (found,) = regression.fit(POINTS, steps[None], np.full(len(steps), 2.0))
    spread = found.moments(grid((64.0, 128.0, 512.0, 4096.0), (50.0,)))[1]
    assert (np.diff(found.weights @ spread) > 0).all()


def test_zeros_and_single_points_are_no_obstacle() -> None:
    zeros = grid((0.0, 1.0, 2.0, 4.0))
    (found,) = regression.fit(zeros, np.log1p(zeros).T, np.ones(4))
    assert np.isfinite(found.moments(grid((0.0, 8.0)))[0]).all()
    (single,) = regression.fit(POINTS[:1], np.ones((1, 1)), np.ones(1))
    mean, spread = single.moments(POINTS[:2])
    assert np.isfinite(mean).all()
    assert (spread > 0).all()


def test_callpaths_fitted_together_are_as_alone() -> None:
    rng = np.random.default_rng(4)
    log_value, count = rng.normal(size=(3, len(POINTS))), np.full(len(POINTS), 2.0)
    together = regression.fit(POINTS, log_value, count)
    for row, found in zip(log_value, together, strict=True):
        (alone,) = regression.fit(POINTS, row[None], count)
        assert found.evidence == pytest.approx(alone.evidence)
        assert found.coefficients == pytest.approx(alone.coefficients)
