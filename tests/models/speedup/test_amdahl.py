"""Amdahl's law for any ratio of sizes, and its fit."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats
from orchestrator.models.speedup.amdahl import fit_fraction, fit_fractions, relative_time

N = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 64.0])


def speedup(processes: Floats, ratio: Floats | float, fraction: float) -> Floats:
    """Return equation 2."""
    return np.asarray(ratio / relative_time(processes, fraction), np.float64)


def test_without_a_change_of_the_problem_it_is_amdahls_law() -> None:
    assert relative_time(N, 0.9) == pytest.approx(0.1 + 0.9 / N)


@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.9, 0.999, 0.9999999, 1.0])
def test_the_fraction_of_exact_speedups_is_found(fraction: float) -> None:
    assert fit_fraction(N, 1.0, speedup(N, 1.0, fraction)) == pytest.approx(fraction, abs=1e-7)


def test_the_fraction_is_that_of_least_squares() -> None:
    rng = np.random.default_rng(3)
    measured = speedup(N, 1.0, 0.93) * np.exp(rng.normal(0, 0.1, len(N)))
    measured[0] = 1.0  # the reference
    found = fit_fraction(N, 1.0, measured)
    grid = np.linspace(0, 1, 100_001)
    errors = [np.sum((measured - speedup(N, 1.0, p)) ** 2) for p in grid]
    assert found == pytest.approx(grid[np.argmin(errors)], abs=2e-5)


def test_time_that_grows_and_speedups_above_n_are_at_the_ends() -> None:
    assert fit_fraction(N, 1.0, 1 / N) == 0.0
    assert fit_fraction(N, 1.0, 1.2 * N) == 1.0


def test_weak_scaling() -> None:
    assert fit_fraction(N, 1 / N, speedup(N, 1 / N, 0.8)) == pytest.approx(0.8, abs=1e-7)


def test_speedups_relative_to_several_processes() -> None:
    relative = speedup(N, 1.0, 0.95) / speedup(np.array([4.0]), 1.0, 0.95)
    assert fit_fraction(N[2:], 1.0, relative[2:], reference=4.0) == pytest.approx(0.95, abs=1e-7)


def test_every_problem_has_its_own() -> None:
    measured = np.concatenate([speedup(N, 1.0, 0.5), speedup(N, 1.0, 0.99), [1.0]])
    problem = np.repeat([0, 1, 2], [len(N), len(N), 1])
    found = fit_fractions(np.concatenate([N, N, [1.0]]), 1.0, measured, problem)
    assert found == pytest.approx({0: 0.5, 1: 0.99}, abs=1e-7)  # nothing is known of one run


def test_nothing_to_compare() -> None:
    with pytest.raises(ModelError, match="no run has more processes"):
        fit_fraction(np.ones(3), 1.0, np.ones(3))
    with pytest.raises(ModelError, match="not positive"):
        fit_fraction(N, 1.0, -N)
