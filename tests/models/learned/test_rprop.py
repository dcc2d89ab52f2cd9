"""The ensemble of small networks: its gradients, its parts of the samples, and when it stops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.models.base import Floats
from orchestrator.models.learned.rprop import (
    Ensemble,
    Weights,
    backward,
    forward,
    rprop,
    shares,
    trained,
    with_one,
)
from orchestrator.models.regression.samples import Samples
from orchestrator.models.regression.trend import fit_trend
from tests.models.learned.spaces import space


def drawn(n: int, inputs: int, networks: int) -> tuple[Weights, Floats, Floats, Floats]:
    rng = np.random.default_rng(3)
    weights = Weights(rng.normal(size=(inputs + 1, networks, 4)), rng.normal(size=(networks, 5)))
    fitted = rng.uniform(size=(n, networks))
    return weights, rng.normal(size=(n, inputs)), rng.uniform(size=n), fitted


def half_squares(weights: Weights, inputs: Floats, targets: Floats, fitted: Floats) -> float:
    wrong = weights.outputs(inputs) - targets[:, None]
    return float((fitted * wrong**2).sum() / 2)


def test_gradients_are_those_of_finite_differences() -> None:
    weights, inputs, targets, fitted = drawn(7, 3, 2)
    units, output = forward(weights, with_one(inputs))
    slopes = backward(weights, with_one(inputs), units, output, fitted * (output - targets[:, None]))
    for name in ("hidden", "output"):
        table: Floats = getattr(weights, name)
        found: Floats = getattr(slopes, name)
        for place in np.ndindex(*table.shape):
            sides = []
            for shift in (1e-5, -1e-5):
                moved = table.copy()
                moved[place] += shift
                sides.append(half_squares(replace(weights, **{name: moved}), inputs, targets, fitted))
            assert found[place] == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-6, abs=1e-9)


def test_a_network_is_what_the_equation_says() -> None:
    weights, inputs, *_ = drawn(4, 3, 2)
    x, k = inputs[1], 1
    units = [1 / (1 + np.exp(-(x @ weights.hidden[:3, k, j] + weights.hidden[3, k, j]))) for j in range(4)]
    expected = 1 / (1 + np.exp(-(np.array(units) @ weights.output[k, :4] + weights.output[k, 4])))
    assert weights.outputs(inputs)[1, 1] == pytest.approx(expected)


def test_first_weights_are_small_and_differ() -> None:
    weights = Weights.drawn(3, 10, 16, np.random.default_rng(0))
    for table in (weights.hidden, weights.output):
        assert np.abs(table).max() <= 0.01
        assert len(np.unique(table)) == table.size


@pytest.mark.parametrize("n", [5, 10, 11, 100])
def test_every_sample_stops_one_network_judges_another_and_is_fitted_by_the_rest(n: int) -> None:
    fitted, stopping, judged = shares(n, np.random.default_rng(0))
    count = min(n, 10)
    assert fitted.shape == (n, count)
    for each in (fitted, stopping, judged):
        np.testing.assert_allclose(each.sum(axis=0), 1)
    assert np.all((fitted > 0) + (stopping > 0) + (judged > 0) == 1)
    assert np.all((stopping > 0).sum(axis=1) == 1) and np.all((judged > 0).sum(axis=1) == 1)
    # What judges a network stops the next one.
    np.testing.assert_array_equal(judged > 0, np.roll(stopping > 0, -1, axis=1))


def test_the_weights_kept_are_the_best_for_the_samples_that_stop() -> None:
    """Nothing can be learned of noise: what is kept is near the beginning, and no worse than it."""
    rng = np.random.default_rng(5)
    inputs, targets = rng.normal(size=(60, 2)), rng.uniform(0.2, 0.8, 60)
    fitted, stopping, _ = shares(60, rng)
    begun = Weights.drawn(2, 10, 16, rng)
    kept = trained(begun, inputs, targets, fitted, stopping)

    def errors(weights: Weights, part: Floats) -> Floats:
        return np.asarray((part * (weights.outputs(inputs) - targets[:, None]) ** 2).sum(axis=0))

    assert np.all(errors(kept, stopping) <= errors(begun, stopping))
    assert errors(kept, fitted).mean() > 0.5 * np.var(targets)


def test_networks_stop_without_a_largest_number_of_steps() -> None:
    rng = np.random.default_rng(5)
    inputs, targets = rng.normal(size=(60, 2)), rng.uniform(0.2, 0.8, 60)
    fitted, stopping, _ = shares(60, rng)
    trained(Weights.drawn(2, 10, 16, rng), inputs, targets, fitted, stopping, most=10**9)


def fitted_to(samples: Samples) -> Ensemble:
    found = rprop(steps=400).fitted(samples, np.random.default_rng(1))
    assert isinstance(found, Ensemble)
    return found


def test_mean_and_errors_are_of_the_ten() -> None:
    samples, other = space(200), space(100, seed=7)
    found = fitted_to(samples)
    each = found.each(other.x)
    assert each.shape == (100, 10)
    np.testing.assert_allclose(found.at(other.x), each.mean(axis=1))
    assert found.errors.shape == (10,)
    # Errors of single networks at samples that they had not seen are like those at other samples.
    apart = np.abs(each - other.y[:, None]).mean()
    assert found.errors.mean() == pytest.approx(apart, rel=0.5)
    # The mean of networks is better than they are.
    assert np.abs(found.at(other.x) - other.y).mean() < apart
    assert f"{found.errors.mean():.3f} ± " in found.text


def test_it_learns_what_no_trend_has() -> None:
    samples, other = space(300), space(200, seed=7)
    wave = np.sin(2 * samples.x[:, 0]) * (samples.x[:, 1] - 5)
    truth = np.sin(2 * other.x[:, 0]) * (other.x[:, 1] - 5)
    samples = samples.with_y(wave)
    error = np.abs(fitted_to(samples).at(other.x) - truth).mean()
    assert error < 0.5 * np.abs(fit_trend(samples).at(other.x) - truth).mean()
