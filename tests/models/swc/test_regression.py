"""Coefficients of a prior: what disturbed runs do to them, and what their uncertainty is worth."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from orchestrator.evaluation.artificial_noise import factors
from orchestrator.models.swc.regression import Fit, fit
from orchestrator.models.swc.times import Times

X = np.repeat(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), 5)
DESIGN = np.stack([np.ones(25), X**2], axis=1)
TRUE = np.array([3.0, 2.0])
FAR = np.array([1.0, 36.0])


def located(
    log_value: NDArray[np.float64], count: float, runs: NDArray[np.float64], point: NDArray[np.intp]
) -> Times:
    """Times at 25 points, with the noise that is guessed for single runs."""
    return Times(
        log_value=log_value,
        count=np.full(25, count),
        sigma=0.025,
        freedom=1.0,
        smooth=np.zeros((25, 25)),
        runs=runs,
        point=point,
    )


def fitted(
    rng: np.random.Generator, runs: int, pattern: str, percent: float, noise: float, selected: float = 0.5
) -> Fit:
    shape = (25, runs)
    value = (DESIGN @ TRUE)[:, None] * np.exp(rng.normal(0, noise, shape))
    logs = np.log(value * factors(pattern, percent, shape, rng, selected))
    point = np.repeat(np.arange(25), runs)
    times = located(np.median(logs, axis=1), float(runs), logs.ravel(), point)
    return fit(DESIGN, np.array([0.0, 1.0]), np.array([False, True]), times)


def errors(
    runs: int, pattern: str, percent: float, noise: float = 0.01, selected: float = 0.5
) -> NDArray[np.float64]:
    rng = np.random.default_rng(7)
    fits = [fitted(rng, runs, pattern, percent, noise, selected) for _ in range(60)]
    return np.array([FAR @ f.coefficients / (FAR @ TRUE) - 1 for f in fits])


@pytest.mark.parametrize("pattern", ["uniform", "normal", "poisson", "exponential"])
@pytest.mark.parametrize("runs", [1, 5])
def test_disturbing_half_of_the_runs_hardly_moves_coefficients(pattern: str, runs: int) -> None:
    found = errors(runs, pattern, 75.0)
    assert np.median(np.abs(found)) < 0.01
    assert np.mean(np.abs(found)) < 0.012


@pytest.mark.parametrize("pattern", ["uniform", "normal", "poisson", "exponential"])
def test_even_where_most_runs_are_disturbed_the_others_are_found(pattern: str) -> None:
    """With one run per point, 17 of 25 on average: no quantile of the runs is safe then."""
    found = errors(1, pattern, 75.0, selected=0.68)
    assert np.median(np.abs(found)) < 0.012
    assert np.mean(np.abs(found) < 0.05) >= 0.9


def test_runs_that_look_like_outliers_below_may_be_the_undisturbed_ones() -> None:
    """35 of 50 runs are slowed by the same share: a mixture around these is no explanation of the others."""
    case = json.loads((Path(__file__).parents[2] / "data" / "mostly_disturbed.json").read_text())
    design, runs = np.array(case["design"]), np.array(case["runs"])
    times = Times(
        log_value=np.array(case["log_value"]),
        count=np.array(case["count"]),
        sigma=case["sigma"],
        freedom=case["freedom"],
        smooth=np.zeros((25, 25)),
        runs=runs,
        point=np.repeat(np.arange(25), 2),
    )
    found = fit(design, np.zeros(4), np.array(case["floored"]), times)
    slow = runs - np.log(design @ found.coefficients)[times.point] > 0.3
    assert np.count_nonzero(slow) == 35
    assert np.abs(runs - np.log(design @ found.coefficients)[times.point])[~slow].max() < 0.05
    assert np.all(np.isfinite(found.covariance))


@pytest.mark.parametrize("columns", [20, 30])
def test_of_a_prior_with_many_columns_not_every_choice_of_them_is_tried(columns: int) -> None:
    """There are a billion choices of 30 columns, and 25 runs cannot determine all of these."""
    rng = np.random.default_rng(3)
    design = rng.uniform(0.5, 1.5, (25, columns))
    logs = np.log(design.sum(axis=1) * factors("uniform", 75.0, (25,), rng))
    times = located(logs, 1.0, logs, np.arange(25))
    found = fit(design, np.zeros(columns), np.ones(columns, dtype=bool), times)
    assert np.all(np.isfinite(found.coefficients)) and np.all(found.coefficients > 0)


@pytest.mark.parametrize("runs", [1, 5])
def test_without_disturbance_the_median_is_fitted(runs: int) -> None:
    found = errors(runs, "none", 0.0, noise=0.1)
    assert abs(float(np.mean(found))) < 0.03


@pytest.mark.parametrize(("pattern", "percent"), [("none", 0.0), ("uniform", 10.0), ("poisson", 75.0)])
@pytest.mark.parametrize("runs", [1, 5])
def test_intervals_hold_the_truth_most_of_the_time(runs: int, pattern: str, percent: float) -> None:
    rng = np.random.default_rng(8)
    inside, spreads = [], []
    for _ in range(80):
        found = fitted(rng, runs, pattern, percent, 0.01)
        value = FAR @ found.coefficients
        spread = np.sqrt(FAR @ found.covariance @ FAR / value**2 + found.lack**2)
        inside.append(abs(np.log(value / (FAR @ TRUE))) < 1.645 * spread)
        spreads.append(spread)
    assert np.mean(inside) > 0.8
    assert np.median(spreads) < 0.05
