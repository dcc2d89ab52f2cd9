"""The learners of the family on functions that are known, and on samples that say little."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.models.cpr.family import candidates, extrapolators
from orchestrator.models.regression.samples import Axis, Samples
from orchestrator.models.regression.trend import fit_trend
from tests.models.cpr.cases import drawn, unit_axes, waves


def test_a_function_of_low_rank_is_found() -> None:
    samples, unseen = drawn(waves, 3, 800), drawn(waves, 3, 500, seed=1)
    errors = {
        learner.name: np.abs(learner.fitted(samples, np.random.default_rng(0)).at(unseen.x) - unseen.y).mean()
        for learner in candidates(samples)
    }
    trend = np.abs(fit_trend(samples).at(unseen.x) - unseen.y).mean()
    assert min(errors.values()) < 0.01 * trend


def test_names_are_unique() -> None:
    samples = drawn(waves, 3, 3000)
    for learners in (candidates(samples), extrapolators(samples)):
        names = [learner.name for learner in learners]
        assert len(set(names)) == len(names) > 0


def _hostile() -> dict[str, Samples]:
    rng = np.random.default_rng(0)
    ones = np.ones
    twelve = rng.random((40, 12))
    return {
        "one sample": Samples(axes=unit_axes(2), x=ones((1, 2)), y=ones(1), runs=ones(1)),
        "two samples": Samples(axes=unit_axes(2), x=rng.random((2, 2)), y=rng.random(2), runs=ones(2)),
        "constant": Samples(axes=unit_axes(2), x=rng.random((50, 2)), y=ones(50), runs=ones(50)),
        "one axis": Samples(axes=unit_axes(1), x=rng.random((50, 1)), y=rng.random(50), runs=ones(50)),
        "twelve axes": Samples(axes=unit_axes(12), x=twelve, y=twelve.sum(axis=1), runs=ones(40)),
        "duplicates": Samples(
            axes=unit_axes(2), x=np.repeat(rng.random((9, 2)), 5, axis=0), y=rng.random(45), runs=ones(45)
        ),
        "an axis with one value": Samples(
            axes=unit_axes(2), x=np.column_stack([rng.random(50), ones(50)]), y=rng.random(50), runs=ones(50)
        ),
    }


@pytest.mark.parametrize("name", list(_hostile()))
def test_samples_that_say_little_give_finite_predictions(name: str) -> None:
    samples = _hostile()[name]
    x = np.vstack([samples.x, samples.x.mean(axis=0), samples.x[:1] + 2])
    spread = max(float(np.ptp(samples.y)), 1e-6)
    for learner in (*candidates(samples), *extrapolators(samples)):
        values = learner.fitted(samples, np.random.default_rng(0)).at(x)
        assert np.isfinite(values).all(), learner.name
        inside = values[: len(samples.x)]
        assert inside.min() > samples.y.min() - spread, learner.name
        assert inside.max() < samples.y.max() + spread, learner.name


def test_an_unseen_category_has_no_prediction_and_others_have() -> None:
    rng = np.random.default_rng(0)
    axes = (Axis(name="solver", levels=("a", "b"), high=1), Axis(name="size"))
    x = np.column_stack([rng.integers(0, 2, 200), rng.random(200)]).astype(float)
    samples = Samples(axes=axes, x=x, y=x[:, 0] * np.sin(6 * x[:, 1]), runs=np.ones(200))
    for learner in (*candidates(samples), *extrapolators(samples)):
        fitted = learner.fitted(samples, np.random.default_rng(0))
        values = fitted.at(np.array([[np.nan, 0.5], [0.0, 0.5], [1.0, np.nan]]))
        assert np.isnan(values).tolist() == [True, False, True], learner.name
