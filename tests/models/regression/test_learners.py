"""What every learner promises, of whatever family: what it learns, and what it makes of poor samples."""

from __future__ import annotations

import io
import warnings
from dataclasses import replace

import joblib
import numpy as np
import pytest

from orchestrator.models.learned.ends import with_straight_ends
from orchestrator.models.learned.kernels import gaussian_process, support_vectors
from orchestrator.models.learned.linear import lasso, least_squares, ridge
from orchestrator.models.learned.neighbours import nearest
from orchestrator.models.learned.networks import networks
from orchestrator.models.learned.rprop import rprop
from orchestrator.models.learned.trees import (
    extra_trees,
    gradient_boosting,
    histogram_boosting,
    random_forest,
)
from orchestrator.models.regression.learner import Learner
from orchestrator.models.regression.samples import Axis, Samples
from orchestrator.models.regression.trend import fit_trend, on_trend
from orchestrator.models.splines import family as splines
from orchestrator.models.splines.fitting import SAMPLINGS, Recipe
from tests.models.learned.spaces import space

TRAIN, TEST = space(256), space(200, seed=7)
# One of each kind, small: the machines that run tests are slow.
LEARNING = (
    ridge(2),
    least_squares(3),
    lasso(2),
    extra_trees(trees=8, leaf=2, products=True, alignment=True),
    on_trend(nearest(4)),
    on_trend(nearest(3, weighted=False, by_relevance=False, trend=True)),
    on_trend(random_forest(trees=8, depth=9, values=True)),
    on_trend(gradient_boosting(trees=30, products=True)),
    on_trend(histogram_boosting(trees=30, products=True)),
    on_trend(histogram_boosting(trees=60, share=0.5, absolute=True)),
    on_trend(gaussian_process(products=True)),
    on_trend(gaussian_process("rbf", own_lengths=True, by_relevance=False)),
    support_vectors(products=True),
    on_trend(support_vectors("poly", degree=2, by_relevance=True)),
    on_trend(networks(count=2, width=16)),
    on_trend(networks(count=1, layers=1, width=16, activation="tanh", by_relevance=False, products=True)),
    on_trend(rprop(steps=200)),
    with_straight_ends(on_trend(extra_trees(trees=8, products=True))),
    *(splines.learner(Recipe(sampling=how)) for how in SAMPLINGS),
    *(splines.learner(Recipe(response="sqrt", sampling=how)) for how in SAMPLINGS[1:]),
)
LEARNERS = (
    *LEARNING,
    splines.learner(Recipe(response="sqrt")),
    splines.learner(Recipe(interactions=(), knots=0)),
)
EVERY = pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.name)


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


@pytest.mark.parametrize("learner", LEARNING, ids=lambda learner: learner.name)
def test_it_learns_more_than_the_trend(learner: Learner) -> None:
    fitted = learner.fitted(TRAIN, rng())
    error = np.abs(fitted.at(TEST.x) - TEST.y).mean()
    of_trend = np.abs(fit_trend(TRAIN).at(TEST.x) - TEST.y).mean()
    assert error < 0.9 * of_trend


@EVERY
def test_the_same_generator_gives_the_same(learner: Learner) -> None:
    some = TRAIN.rows(np.arange(80))
    once, again = (learner.fitted(some, rng()).at(TEST.x) for _ in range(2))
    np.testing.assert_array_equal(once, again)


@EVERY
def test_it_survives_a_file(learner: Learner) -> None:
    fitted = learner.fitted(TRAIN.rows(np.arange(80)), rng())
    file = io.BytesIO()
    joblib.dump(fitted, file)
    file.seek(0)
    np.testing.assert_array_equal(joblib.load(file).at(TEST.x), fitted.at(TEST.x))
    assert fitted.text


@EVERY
def test_an_unseen_category_has_no_prediction(learner: Learner) -> None:
    x = TEST.x[:4].copy()
    x[1, 2] = np.nan
    predicted = learner.fitted(TRAIN.rows(np.arange(80)), rng()).at(x)
    assert np.isnan(predicted).tolist() == [False, True, False, False]


@EVERY
@pytest.mark.parametrize("count", [1, 2, 5, 12, 20])
def test_few_samples_give_finite_predictions(learner: Learner, count: int) -> None:
    predicted = learner.fitted(TRAIN.rows(np.arange(count)), rng()).at(TEST.x)
    assert np.isfinite(predicted).all()
    assert predicted.min() > TRAIN.y.min() - 30
    assert predicted.max() < TRAIN.y.max() + 30


@EVERY
def test_a_constant_response_stays_constant(learner: Learner) -> None:
    fitted = learner.fitted(TRAIN.rows(np.arange(60)).with_y(np.full(60, 1.5)), rng())
    np.testing.assert_allclose(fitted.at(TEST.x), 1.5, atol=1e-3)


@EVERY
def test_repeated_rows_do_no_harm(learner: Learner) -> None:
    twice = TRAIN.rows(np.repeat(np.arange(40), 2))
    assert np.isfinite(learner.fitted(twice, rng()).at(TEST.x)).all()


@EVERY
def test_one_axis(learner: Learner) -> None:
    x = np.log(np.arange(1.0, 41.0))[:, None]
    axis = Axis(name="p", logarithmic=True, low=0.0, high=float(x.max()))
    samples = Samples(axes=(axis,), x=x, y=np.sin(x[:, 0]), runs=np.ones(40))
    predicted = learner.fitted(samples, rng()).at(np.log(np.array([[2.5], [30.5], [80.0]])))
    assert np.isfinite(predicted).all()


@EVERY
def test_no_axis(learner: Learner) -> None:
    samples = Samples(axes=(), x=np.empty((6, 0)), y=np.arange(6.0), runs=np.ones(6))
    np.testing.assert_allclose(learner.fitted(samples, rng()).at(np.empty((2, 0))), 2.5)


@EVERY
def test_twelve_axes(learner: Learner) -> None:
    samples = space(150, axes=12)
    predicted = learner.fitted(samples, rng()).at(space(100, seed=3, axes=12).x)
    assert np.isfinite(predicted).all()


@EVERY
def test_coordinates_far_away_have_predictions(learner: Learner) -> None:
    x = TEST.x[:3].copy()
    x[:, 0] = np.log(1e9)
    assert np.isfinite(learner.fitted(TRAIN.rows(np.arange(80)), rng()).at(x)).all()


def test_no_warnings_of_the_library_reach_the_terminal() -> None:
    samples = space(60)
    alike = samples.x[:, 1] + np.random.default_rng(1).normal(scale=1e-3, size=len(samples))
    samples = replace(samples, x=np.column_stack([alike, samples.x[:, 1:]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for learner in LEARNERS:
            learner.fit(samples, rng())
