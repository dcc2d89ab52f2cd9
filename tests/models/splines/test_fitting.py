"""Regressions: what they find, what they say of their terms, and what they make of poor samples."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log

import numpy as np
import pytest

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats
from orchestrator.models.regression.samples import Samples, decoded
from orchestrator.models.regression.trend import OnlyTrend, fit_trend
from orchestrator.models.splines.design import correlation, design_of
from orchestrator.models.splines.family import candidates, extrapolators, learners
from orchestrator.models.splines.fitting import Recipe, Splines, fit, named_pairs
from orchestrator.models.splines.response import response_of, strata
from tests.models.learned.spaces import LOW, kernel_time, space

TRAIN, TEST = space(300), space(200, seed=7)
EVERY = pytest.mark.parametrize(
    "recipe",
    [
        Recipe(),
        Recipe(sampling="stratified"),
        Recipe(sampling="regional"),
        Recipe(response="sqrt"),
        Recipe(response="sqrt", sampling="stratified"),
        Recipe(response="sqrt", sampling="regional"),
        Recipe(interactions=(("m", "n"), ("n", "solver")), knots=5),
        Recipe(interactions=(), knots=0),
    ],
    ids=lambda recipe: f"{recipe.name}, {recipe.interactions}",
)


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def fitted(samples: Samples, recipe: Recipe = Recipe()) -> Splines:  # noqa: B008
    found = fit(samples, recipe, rng())
    assert isinstance(found, Splines)
    return found


def error(found: Splines, truth: Floats = TEST.y) -> float:
    return float(np.abs(found.at(TEST.x) - truth).mean())


def test_splines_and_interactions_follow_what_the_trend_cannot() -> None:
    plain = fitted(TRAIN, Recipe(interactions=()))
    of_trend = float(np.abs(fit_trend(TRAIN).at(TEST.x) - TEST.y).mean())
    assert error(plain) < 0.8 * of_trend
    assert error(fitted(TRAIN)) < 0.8 * error(plain)


def test_a_spline_that_is_the_truth_is_found_exactly() -> None:
    truth = fitted(TRAIN, Recipe(interactions=(("m", "n"),)))
    again = fitted(TRAIN.with_y(truth.at(TRAIN.x)), Recipe(interactions=(("m", "n"),)))
    np.testing.assert_allclose(again.at(TEST.x), truth.at(TEST.x), atol=1e-6)


def test_only_pairs_that_interact_are_chosen() -> None:
    noise = 0.02 * np.random.default_rng(5).normal(size=len(TRAIN))
    together = (TRAIN.x[:, 0] - 6) * (TRAIN.x[:, 1] - 6)
    found = fitted(TRAIN.with_y(TRAIN.x[:, 0] + together + noise))
    assert found.design.pairs == ((0, 1),)
    apart = fitted(TRAIN.with_y(2 * TRAIN.x[:, 0] + TRAIN.x[:, 1] + (TRAIN.x[:, 2] == 1) + noise))
    assert apart.design.pairs == ()
    by_category = fitted(TRAIN.with_y(TRAIN.x[:, 1] * (1 + (TRAIN.x[:, 2] == 1)) + noise))
    assert by_category.design.pairs == ((1, 2),)


def test_given_pairs_are_used_in_any_order_and_once() -> None:
    assert named_pairs(TRAIN, [("n", "m"), ("m", "n"), ("solver", "m")]) == ((0, 1), (0, 2))
    with pytest.raises(
        ModelError, match=r"interactions: 'q' does not vary; parameters that do: m, n, solver"
    ):
        named_pairs(TRAIN, [("m", "q")])


def test_the_predictor_with_the_highest_rank_correlation_has_five_knots() -> None:
    design = design_of(TRAIN.with_y(TRAIN.x[:, 1] ** 3 + 0.1 * TRAIN.x[:, 0]))
    assert [len(item.knots) for item in design.predictors] == [4, 5, 0]
    assert [len(item.knots) for item in design_of(TRAIN, 6).predictors] == [6, 6, 0]


def test_few_samples_have_fewer_knots() -> None:
    numbers = {n: [len(p.knots) for p in design_of(space(n)).predictors[:2]] for n in (12, 35, 200)}
    assert numbers[12] == [0, 0]
    assert max(numbers[35]) <= 4 and sum(numbers[35]) < sum(numbers[200]) == 9


def test_rank_correlation_is_spearman_s() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    y = np.array([2.0, 1.0, 4.0, 3.0, 50.0])
    assert correlation(x, y) == pytest.approx(1 - 6 * 4 / (5 * 24))
    assert correlation(np.ones(5), y) == 0.0


def test_stratified_samples_count_by_their_inverse_values() -> None:
    weights = strata(np.log([1.0, 10.0, 100.0]))
    assert weights[0] / weights[1] == pytest.approx(10) and weights[1] / weights[2] == pytest.approx(10)
    assert weights.mean() == pytest.approx(1)
    # As if every sample were there so often.
    y = np.log(np.array([1.0, 1.0, 2.0, 4.0, 2.0, 4.0, 1.0, 4.0, 2.0, 1.0]))
    x = np.linspace(0, 1, 10)[:, None]
    axis = replace(TRAIN.axes[0], low=0.0, high=1.0)
    samples = Samples(axes=(axis,), x=x, y=y, runs=np.ones(10))
    straight = Recipe(response="sqrt", sampling="stratified", interactions=(), knots=0)
    often = samples.rows(np.repeat(np.arange(10), np.round(4 / np.exp(y)).astype(int)))
    copied = fitted(often, replace(straight, sampling="plain"))
    np.testing.assert_allclose(fitted(samples, straight).at(x), copied.at(x), atol=1e-9)


def test_stratification_helps_small_values_of_a_square_root() -> None:
    small = TEST.y < np.median(TEST.y)
    plain, stratified = (
        fitted(TRAIN, Recipe(response="sqrt", sampling=how)).at(TEST.x) for how in ("plain", "stratified")
    )
    apart = [np.abs(found - TEST.y)[small].mean() for found in (plain, stratified)]
    assert apart[1] < 0.7 * apart[0]


def test_regions_follow_what_changes_along_a_parameter() -> None:
    """Waves that four knots cannot follow."""
    wave = [np.sin(3 * x[:, 0]) * np.where(x[:, 0] > 6, 1, 0.2) for x in (TRAIN.x, TEST.x)]
    plain, regional = (
        fitted(TRAIN.with_y(wave[0]), Recipe(sampling=how, interactions=())) for how in ("plain", "regional")
    )
    assert error(regional, wave[1]) < 0.8 * error(plain, wave[1])


@EVERY
def test_the_formula_is_the_regression(recipe: Recipe) -> None:
    found = replace(fitted(TRAIN, recipe), region=None)
    points = decoded(TRAIN.axes, TEST.x[:20])
    names = {"exp": exp, "log": log, "max": max}
    values = [eval(found.formula, {**names, **point.as_dict()}) for point in points]
    np.testing.assert_allclose(np.log(values), found.at(TEST.x[:20]), rtol=1e-6, atol=1e-6)


def test_the_text_is_short_and_names_every_term() -> None:
    text = fitted(TRAIN, Recipe(interactions=(("m", "n"),))).text
    assert text in {
        f"exp(rcs(log(m), {a}) + rcs(log(n), {b}) + solver + log(m):log(n))" for a, b in ((4, 5), (5, 4))
    }


def test_terms_that_matter_are_told_from_those_that_do_not() -> None:
    rows = space(300, axes=5)
    y = 2 * rows.x[:, 0] + np.sin(2 * rows.x[:, 1]) + 0.1 * np.random.default_rng(2).normal(size=300)
    tests = {test.term: test for test in fitted(rows.with_y(y), Recipe(interactions=(("m", "n"),))).tests}
    assert tests["m"].p < 1e-16 and tests["n"].p < 1e-16 and tests["bends of n"].p < 1e-16
    for idle in ("solver", "idle0", "idle1", "bends of m", "m:n"):
        assert tests[idle].p > 1e-3
    # Three indicators beside a constant; m has 5 knots, n has 4, and bends interact with lines alone.
    assert tests["solver"].freedom == 2
    assert (tests["bends of m"].freedom, tests["bends of n"].freedom) == (3 + 3, 2 + 2)
    assert tests["m:n"].freedom == 1 + 3 + 2


def test_an_f_test_is_that_of_two_nested_regressions() -> None:
    y = TRAIN.y + 0.1 * np.random.default_rng(2).normal(size=len(TRAIN))
    found = fitted(TRAIN.with_y(y), Recipe(interactions=(), knots=0))
    columns = np.column_stack([np.ones(len(y)), TRAIN.x[:, :2], TRAIN.x[:, 2] == 1, TRAIN.x[:, 2] == 2])

    def squares(some: Floats) -> float:
        return float(((y - some @ np.linalg.lstsq(some, y, rcond=None)[0]) ** 2).sum())

    full, without = squares(columns), squares(columns[:, :3])
    test = next(test for test in found.tests if test.term == "solver")
    assert (test.freedom, test.rest) == (2, len(y) - 5)
    assert test.f == pytest.approx((without - full) / 2 / (full / (len(y) - 5)), rel=1e-6)


@EVERY
def test_a_constant_response_stays_constant(recipe: Recipe) -> None:
    found = fit(TRAIN.with_y(np.full(len(TRAIN), 1.5)), recipe, rng())
    assert isinstance(found, OnlyTrend)
    np.testing.assert_allclose(found.at(TEST.x), 1.5, atol=1e-3)


@EVERY
def test_beyond_the_range_predictions_are_finite_and_logarithms_straight(recipe: Recipe) -> None:
    x = np.tile(TEST.x[:1], (3, 1))
    x[:, 0] += np.array([10.0, 20.0, 30.0])
    found = fitted(TRAIN, recipe).at(x)
    assert np.isfinite(found).all()
    if recipe.response == "log" and recipe.sampling != "regional":
        assert np.diff(found, 2) == pytest.approx(0, abs=1e-6)


def test_values_of_any_size_are_fitted() -> None:
    for shift in (-600.0, 600.0):
        for recipe in (Recipe(), Recipe(response="sqrt", sampling="stratified")):
            moved = fitted(TRAIN.with_y(TRAIN.y + shift), recipe).at(TEST.x) - shift
            np.testing.assert_allclose(moved, fitted(TRAIN, recipe).at(TEST.x), atol=1e-5)


def test_square_roots_stay_positive() -> None:
    response = response_of(np.log([1.0, 4.0, 9.0]), "sqrt")
    np.testing.assert_allclose(response.logarithm(response.of(np.log([1.0, 4.0, 9.0]))), np.log([1, 4, 9]))
    assert response.logarithm(np.array([-3.0]))[0] == pytest.approx(np.log(0.25))


def test_names_are_unique_and_equal_recipes_are_one_learner() -> None:
    for choose in (candidates, extrapolators):
        names = [learner.name for learner in choose(TRAIN)]
        assert len(names) == len(set(names)) > 0
    assert set(extrapolators(TRAIN)) <= set(candidates(TRAIN))
    [one] = learners(responses=("log",), samplings=("stratified",))
    assert one.name == "splines, log response, stratified"


def test_the_space_of_these_tests_has_what_they_need() -> None:
    assert kernel_time(np.array([[LOW, LOW, 1.0]]))[0] > 2 * LOW - 12
