"""Every learner of the family: what it learns, and what it makes of poor samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.models.learned.family import candidates, extrapolators, paper_grid
from orchestrator.models.learned.kernels import KERNELS, gaussian_process
from orchestrator.models.learned.networks import networks
from orchestrator.models.regression.learner import Learner
from orchestrator.models.regression.trend import fit_trend, on_trend
from tests.models.learned.spaces import kernel_time, space

TRAIN, TEST = space(256), space(200, seed=7)


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


@pytest.mark.parametrize("choose", [candidates, extrapolators])
@pytest.mark.parametrize("count", [1, 30, 9000])
def test_names_are_unique(choose: object, count: int) -> None:
    assert callable(choose)
    names = [learner.name for learner in choose(space(count))]
    assert len(names) == len(set(names))
    assert 5 <= len(names) <= 30


def test_the_paper_s_grid() -> None:
    names = [learner.name for learner in paper_grid(TRAIN)]
    assert len(names) == len(set(names)) == 2 * (6 + 3 * 16 + 5 + 4 + 4 * 6 * 2)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_fits(kernel: str) -> None:
    fitted = on_trend(gaussian_process(kernel, by_relevance=False)).fitted(TRAIN, rng())
    error = np.abs(fitted.at(TEST.x) - TEST.y).mean()
    assert error < 1.05 * np.abs(fit_trend(TRAIN).at(TEST.x) - TEST.y).mean()


def test_many_samples_stop_networks_early() -> None:
    fitted = on_trend(networks(count=1, width=16)).fitted(space(3000), rng())
    assert np.abs(fitted.at(TEST.x) - TEST.y).mean() < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("learner", (*candidates(TRAIN), *extrapolators(TRAIN)), ids=lambda each: each.name)
def test_every_choice_learns(learner: Learner) -> None:
    error = np.abs(learner.fitted(TRAIN, rng()).at(TEST.x) - TEST.y).mean()
    assert error < 1.01 * np.abs(fit_trend(TRAIN).at(TEST.x) - TEST.y).mean()


def test_a_value_without_logarithm_is_unseen() -> None:
    axes = (replace(TRAIN.axes[0]), *TRAIN.axes[1:])
    samples = replace(TRAIN, axes=axes).rows(np.arange(60))
    x = np.array([[np.nan, np.log(64.0), 0.0], [np.log(64.0), np.log(64.0), 0.0]])
    predicted = candidates(samples)[0].fitted(samples, rng()).at(x)
    assert np.isnan(predicted[0])
    assert predicted[1] == pytest.approx(kernel_time(x[1:])[0], abs=1.0)
