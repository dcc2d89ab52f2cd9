"""Coefficients of priors: robust, one-sided where noise is, and evidence that prefers what fits."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.models.hypotheses import Floats
from orchestrator.models.swc_fit import Times, fit, log_evidence

X = np.array([10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0])
TRUTH = 1e-4 + 1e-6 * X**2
DESIGN = np.column_stack([np.ones(len(X)), X**2])
COUNTED, FLOORED = np.array([0.0, 3.0]), np.array([False, True])


def times(factors: Floats) -> Times:
    """Runs with factors of shape (points, repetitions)."""
    logs = np.log(TRUTH[:, None] * factors)
    point, _ = np.nonzero(np.isfinite(logs))
    size = len(X)
    sigma = max(float(np.std(logs - logs.mean(axis=1, keepdims=True))), 1e-4)
    return Times(
        np.median(logs, axis=1),
        np.full(size, float(factors.shape[1])),
        sigma,
        float(factors.size - size),
        np.zeros((size, size)),
        logs.ravel(),
        point,
    )


def error(seed: int, slowed: bool) -> float:
    """Signed relative error far outside, where only the growing term counts."""
    rng = np.random.default_rng(seed)
    shape = (len(X), 4)
    if slowed:
        factors = 1 + 0.75 * rng.random(shape) * (rng.random(shape) < 0.5)
    else:
        factors = np.exp(rng.normal(0, 0.1, shape))
    coefficient = fit(DESIGN, COUNTED, FLOORED, times(factors)).coefficients[1]
    return float(coefficient) / 1e-6 - 1


def test_exact_times_give_exact_coefficients() -> None:
    found = fit(DESIGN, COUNTED, FLOORED, times(np.ones((len(X), 2))))
    assert found.coefficients == pytest.approx([1e-4, 1e-6], rel=1e-6)
    assert found.central == pytest.approx([1e-4, 1e-6], rel=1e-6)
    assert found.lack == 0.0


def test_runs_that_are_slowed_down_hardly_raise_the_model() -> None:
    """Half of the runs take 37 % more on average: the mean would be 19 % too high."""
    errors = [error(seed, slowed=True) for seed in range(40)]
    assert abs(np.median(errors)) < 0.05


def test_symmetric_noise_is_not_taken_for_one_sided() -> None:
    """The 0.4-quantile is a quarter of the standard deviation below the median."""
    errors = [error(seed, slowed=False) for seed in range(40)]
    assert -0.04 < np.mean(errors) < 0.0


def test_an_outlier_has_little_weight() -> None:
    factors = np.ones((len(X), 1))
    factors[-1] = 20.0
    found = fit(DESIGN, COUNTED, FLOORED, times(factors))
    assert found.coefficients[1] == pytest.approx(1e-6, rel=0.02)
    assert found.weights[-1] < 0.1 < found.weights[0]


def test_a_counted_term_keeps_a_share_of_the_time() -> None:
    design = np.column_stack([np.ones(len(X)), X**2, X**-1.0])
    found = fit(design, np.array([0.0, 3.0, 3.0]), np.array([False, True, True]), times(np.ones((len(X), 2))))
    assert found.coefficients[2] > 0
    assert found.coefficients[1] == pytest.approx(1e-6, rel=0.01)


def test_evidence_prefers_the_form_that_made_the_data() -> None:
    rng = np.random.default_rng(0)
    seen = times(np.exp(rng.normal(0, 0.05, (len(X), 3))))
    wrong = np.column_stack([np.ones(len(X)), X])
    ones = np.ones(len(X))
    right = fit(DESIGN, COUNTED, FLOORED, seen)
    other = fit(wrong, COUNTED, FLOORED, seen)
    gain = log_evidence(DESIGN, right.central, seen, ones) - log_evidence(wrong, other.central, seen, ones)
    assert gain > 5


def test_evidence_does_not_depend_on_units() -> None:
    seen = times(np.exp(np.random.default_rng(1).normal(0, 0.05, (len(X), 3))))
    ones = np.ones(len(X))
    found = fit(DESIGN, COUNTED, FLOORED, seen)
    scaled = DESIGN * np.array([1e3, 1e-6])
    assert log_evidence(scaled, found.central / [1e3, 1e-6], seen, ones) == pytest.approx(
        log_evidence(DESIGN, found.central, seen, ones)
    )
