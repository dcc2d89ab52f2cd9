"""Uncertainty: weights, intervals, covariances."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.models.base import coordinates
from orchestrator.models.pmnf.hypotheses import PAPER
from orchestrator.models.pmnf.model import PmnfModel
from tests.models.builders import GRIDS, Truth, fit, grid, point, series, uniform, value

BEYOND = (1024, 12)


def draws(count: int, seed: int) -> list[Truth]:
    """Draw functions as the modeler expects them: any structure, any blocks, uniform shares."""
    rng = np.random.default_rng(seed)
    result: list[Truth] = []
    for _ in range(count):
        a, b = (PAPER[rng.integers(len(PAPER))] for _ in range(2))
        shares = rng.dirichlet(np.ones(3))
        multiply = rng.random() < 0.5

        def truth(
            p: float,
            q: float,
            a: tuple[float, float] = a,
            b: tuple[float, float] = b,
            s: np.ndarray = shares,
            multiply: bool = multiply,
        ) -> float:
            middle = GRIDS[0][2], GRIDS[1][2]
            u, v = (
                (x / m) ** e[0] * (np.log2(x) / np.log2(m)) ** e[1]
                for x, m, e in zip((p, q), middle, (a, b), strict=True)
            )
            return float(s[0] + ((s[1] + s[2]) * u * v if multiply else s[1] * u + s[2] * v))

        result.append(truth)
    return result


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "repetitions", "share"), [(0.05, 5, 1.0), (0.1, 2, 1.0), (0.05, 2, 0.5), (0.05, 1, 1.0)]
)
def test_ninety_percent_of_the_truths_lie_in_the_intervals(
    noise: float, repetitions: int, share: float
) -> None:
    rng = np.random.default_rng(1)
    truths = draws(300, 2)
    points = [c for c in grid(2) if rng.random() <= share]
    models = fit(2, *(series(t, points, uniform(rng, noise), repetitions) for t in truths))
    inside = []
    for model, truth in zip(models, truths, strict=True):
        prediction = model.predict([point(BEYOND)])
        inside.append(prediction.low[0] <= truth(*BEYOND) <= prediction.high[0])
    # Binomial standard deviation 1.7 %; the aim is 85 to 95 %.
    assert 0.84 <= np.mean(inside) <= 0.97


def test_weights_are_the_frequencies_with_which_hypotheses_are_true() -> None:
    rng = np.random.default_rng(3)
    truths = draws(300, 4)
    models = fit(2, *(series(t, grid(2), uniform(rng, 0.05), 3) for t in truths))
    best = np.array([m.posterior.weights[0] for m in models])
    near = np.array(
        [abs(value(m, *BEYOND) / t(*BEYOND) - 1) < 0.03 for m, t in zip(models, truths, strict=True)]
    )
    sure = best > 0.9
    assert np.count_nonzero(sure) > 30
    assert np.mean(near[sure]) > 0.9 > np.mean(near[best < 0.2])


def one(noise: float = 0.05, repetitions: int = 3, seed: int = 0) -> PmnfModel:
    rng = np.random.default_rng(seed)
    known = series(lambda p, q: 1 + 0.02 * p * q, grid(2), uniform(rng, noise), repetitions)
    return fit(2, known)[0]


def test_the_posterior_is_normalised_and_ordered() -> None:
    posterior = one().posterior
    assert posterior.weights.sum() == pytest.approx(1)
    assert np.all(np.diff(posterior.weights) <= 0)


def test_intervals_grow_with_the_distance_and_shrink_with_repetitions() -> None:
    def width(model: PmnfModel, *x: float) -> float:
        prediction = model.predict([point(x)])
        return float(np.log(prediction.high[0] / prediction.low[0]))

    assert width(one(), 64, 4) < width(one(), 2048, 20) < width(one(), 65536, 100)
    assert width(one(repetitions=10), *BEYOND) < width(one(repetitions=2), *BEYOND)


def test_wider_levels_give_wider_intervals() -> None:
    there = one().predictive([point(BEYOND)])
    (low, high), (lower, higher) = there.of_mean(50), there.of_mean(99)
    assert lower < low < high < higher


def test_noise_of_a_repetition_is_on_the_model() -> None:
    assert one(0.05, 5).noise == pytest.approx(0.05 / np.sqrt(3), rel=0.2)


def test_belief_agrees_with_a_simulation() -> None:
    model = one()
    points = [point(c) for c in [(32, 2), (512, 10), BEYOND, (64, 8)]]
    mixture = model.belief(points)
    rng = np.random.default_rng(7)
    members = rng.choice(len(mixture.weights), 40_000, p=mixture.weights)
    inner = rng.normal(size=(len(members), mixture.factor.shape[1]))
    own = rng.normal(size=(len(members), len(points)))
    logs = mixture.mean[members] + np.einsum("sq,sqn->sn", inner, mixture.factor[members])
    logs += own * mixture.rough[members]
    scale = np.sqrt(np.outer(mixture.variance, mixture.variance))
    for target in range(len(points)):
        sampled = np.cov(logs.T)[target]
        assert mixture.covariance(target) / scale[target] == pytest.approx(sampled / scale[target], abs=0.03)
    assert mixture.variance == pytest.approx(np.var(logs, axis=0), rel=0.05)
    assert mixture.centre == pytest.approx(logs.mean(axis=0), abs=1e-2)


def test_covariance_with_itself_is_the_variance() -> None:
    mixture = one().belief([point(BEYOND), point((32, 2))])
    assert mixture.covariance(0)[0] == pytest.approx(mixture.variance[0])


def test_belief_moments_are_those_of_predictions() -> None:
    model = one()
    mixture = model.belief([point(BEYOND)])
    prediction = model.predict([point(BEYOND)])
    assert np.exp(mixture.mean[0, 0]) == pytest.approx(prediction.value[0])
    half = np.log(prediction.high[0] / prediction.low[0]) / 2
    assert half == pytest.approx(1.645 * np.sqrt(mixture.variance[0]), rel=0.5)


def test_belief_takes_thousands_of_points() -> None:
    points = [point((p, q)) for p in range(2, 102) for q in range(2, 52)]
    mixture = one().belief(points)
    assert mixture.covariance(len(points) - 1).shape == (len(points),)
    assert np.all(mixture.variance > 0)


def test_value_is_that_of_predict_and_the_mean_lies_between_the_members() -> None:
    rng = np.random.default_rng(3)
    exact, bent = (
        series(lambda p, q: 1 + p * q, grid(2)),
        series(lambda p, q: 1 + p * q * q ** np.log(p), grid(2)),
    )
    for model in fit(2, exact, bent, series(lambda p, q: 2 + p, grid(2)[:6], uniform(rng, 0.05))):
        points = [point((p, q)) for p, q in ((32, 2), (512, 10), (1024, 12))]
        assert model.value(points) == pytest.approx(model.predict(points).value)
        members = np.exp(model.posterior.log_moments(coordinates(points, model.parameters))[0])
        assert np.all(model.expected(points) >= members.min(axis=0) * 0.99)
