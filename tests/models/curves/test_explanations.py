"""Explanations: their algebra is that of Gaussian processes, what they follow, and what they doubt."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats
from orchestrator.models.belief import mixture_quantile
from orchestrator.models.curves.design import Design
from orchestrator.models.curves.evidence import Formulas
from orchestrator.models.curves.explanations import LIKELY, Explanations, standing_for_all
from orchestrator.models.curves.features import KINDS, Features
from orchestrator.models.curves.prior import Sizes, alone, beside, exact, learned, log_price
from orchestrator.models.curves.scatter import Scatter
from orchestrator.models.curves.sizes import ALL, WITHOUT
from orchestrator.models.curves.weighing import explain
from orchestrator.models.noise import GUESS_WEIGHT
from tests.models.curves.known import POINTS, RIGHT, WRONG, Known, grid


def explained(
    log_value: Floats,
    formulas: Formulas | None = None,
    count: Floats | None = None,
    sigma: float = 0.02,
    points: Floats = POINTS,
) -> Explanations:
    count = np.full(len(points), 2.0) if count is None else count
    design = Design.of(points, count)
    scatter = [Scatter(sigma=sigma, freedom=25.0)]
    known = None if formulas is None else [formulas]
    (found,) = explain(design, log_value[None], scatter, known, learned())
    return found


def spread_at(found: Explanations, x: Floats) -> Floats:
    """Mean standard deviation over all members."""
    weights, _, spread = found.mixture(x)
    return np.asarray(weights @ spread)


def covariance(found: Explanations, draw: int) -> Floats:
    design, draws = found.process.design, found.process.draws
    scale = draws.sizes[draw][design.features.component] ** 2
    phi = design.features(design.points)
    return np.asarray((phi * scale) @ phi.T + np.diag(draws.noise[draw] ** 2 / design.precision))


def test_the_draws_are_the_same_every_time_and_have_a_size_per_component() -> None:
    for bank in (alone(2, learned()), beside(2), exact(2, 9)):
        assert bank.sizes.shape == (len(bank.noise), 1 + len(KINDS) * 2 + 1)
    assert (alone(2, learned()).sizes > 0).all()
    assert not exact(2, 9).sizes.any()
    first = alone(2, learned()).sizes
    alone.cache_clear()
    assert np.array_equal(alone(2, learned()).sizes, first)


@pytest.mark.parametrize("points", [9, 25, 125, 625, 2500])
def test_scatters_around_an_exact_formula_are_close_enough_to_each_other(points: int) -> None:
    """How probable values are, but for their unit, hardly depends on where between two draws they scatter."""
    noise = exact(1, points).noise[:, None]
    seen = 10 ** np.linspace(-3, -1, 400)
    logs = -points * (np.log(noise / seen) + (seen / noise) ** 2 / 2)
    evidence = logsumexp(logs, axis=0) - np.log(len(noise))
    assert np.ptp(evidence) < 1


def test_sizes_are_learned_with_and_without_every_family() -> None:
    assert learned() == Sizes(**ALL)
    for family, others in WITHOUT.items():
        assert learned(f"without {family}") == Sizes(**{**ALL, **others})
        assert all(ALL[name] != size for name, size in others.items())
    with pytest.raises(ModelError, match="sizes is 'without mine': use one of all"):
        learned("without mine")


def test_a_formula_costs_more_with_more_factors_and_points() -> None:
    factors = np.array([1, 2])
    one, two = log_price(factors, 9, 2)
    assert one > two > log_price(factors, 20, 2)[1]
    assert log_price(factors, 100, 2)[0] == log_price(factors, 1000, 2)[0]


def test_few_points_of_several_parameters_do_not_make_a_formula_cheap() -> None:
    factors = np.array([2])
    assert log_price(factors, 3, 1) > log_price(factors, 5, 1)
    assert log_price(factors, 5, 2) == log_price(factors, 6, 2) < log_price(factors, 6, 1)


def test_curves_are_those_of_a_gaussian_process() -> None:
    """The projected regression against the formulas with the covariance of the values themselves."""
    rng = np.random.default_rng(1)
    log_value, count = rng.normal(size=len(POINTS)), rng.uniform(1, 3, len(POINTS))
    found = explained(log_value, count=count)
    new = grid((128.0,), (60.0, 70.0))
    mean, factor = found.moments(new)
    target, centre = found.process.design.features(new), log_value.mean()
    for k in np.flatnonzero(found.added < 0)[:5]:
        draw = found.draws[k]
        scale = found.process.draws.sizes[draw][found.process.design.features.component] ** 2
        inner = covariance(found, int(draw))
        cross = (target * scale) @ found.process.design.features(POINTS).T
        wanted = centre + cross @ np.linalg.solve(inner, log_value - centre)
        assert mean[k] == pytest.approx(wanted, rel=1e-6)
        left = (target * scale) @ target.T - cross @ np.linalg.solve(inner, cross.T)
        assert factor[k].T @ factor[k] == pytest.approx(left, rel=1e-4, abs=1e-7)


def test_formulas_times_curves_are_a_gaussian_process_with_coefficients() -> None:
    rng = np.random.default_rng(2)
    formulas = Known((RIGHT, WRONG))
    log_value = formulas.at(POINTS)[0][0] + rng.normal(0, 0.05, len(POINTS))
    found = explained(log_value, formulas)
    new = grid((128.0,), (60.0, 70.0))
    mean, factor = found.moments(new)
    target, phi = found.process.design.features(new), found.process.design.features(POINTS)
    for k in np.flatnonzero(found.formula == 0)[:5]:
        draw = int(found.draws[k])
        scale = found.process.draws.sizes[draw][found.process.design.features.component] ** 2
        (here, slopes), (there, far) = formulas.at(POINTS), formulas.at(new)
        scale_of_terms = found.scale[0, :2]
        slopes, far = slopes[0].T * scale_of_terms, far[0].T * scale_of_terms
        inner = covariance(found, draw) + slopes @ slopes.T
        cross = (target * scale) @ phi.T + far @ slopes.T
        wanted = there[0] + cross @ np.linalg.solve(inner, log_value - here[0])
        assert mean[k] == pytest.approx(wanted, rel=1e-6)
        left = (target * scale) @ target.T + far @ far.T - cross @ np.linalg.solve(inner, cross.T)
        assert factor[k].T @ factor[k] == pytest.approx(left, rel=1e-4, abs=1e-7)


def test_the_right_formula_is_found_beside_a_wrong_one_and_curves() -> None:
    rng = np.random.default_rng(3)
    formulas = Known((RIGHT, WRONG))
    found = explained(formulas.at(POINTS)[0][0] + rng.normal(0, 0.01, len(POINTS)), formulas)
    assert found.share > 0.8
    wrong = explained(formulas.at(POINTS)[0][0] + rng.normal(0, 0.01, len(POINTS)), Known((WRONG,)))
    assert wrong.share < found.share


def test_formulas_of_no_explanation_are_not_kept() -> None:
    rng = np.random.default_rng(3)
    log_value = Known((RIGHT,)).at(POINTS)[0][0] + rng.normal(0, 0.01, len(POINTS))
    many, one = explained(log_value, Known((RIGHT,) * 200)), explained(log_value, Known((RIGHT,)))
    assert many.formulas is not None
    kept = len(many.formulas.weights)
    assert 1 < kept <= 65  # no more than explanations, and the most probable one
    assert many.formula.max() < kept + len(many.odds)
    new = grid((128.0,), (60.0, 70.0))
    assert many.weights @ many.mean(new) == pytest.approx(one.weights @ one.mean(new), rel=1e-3)


def test_every_formula_has_members_for_its_share_of_the_probability() -> None:
    rng = np.random.default_rng(3)
    formulas = Known((RIGHT,) * 5)
    found = explained(formulas.at(POINTS)[0][0] + rng.normal(0, 0.02, len(POINTS)), formulas)
    assert found.share > 0.5
    for few in (found, found.fewer(24)):
        each = [few.weights[few.formula == k].sum() for k in range(5)]
        assert each == pytest.approx([found.share / 5] * 5, abs=1 / len(few.weights))


def test_what_a_formula_leaves_over_is_followed_by_curves_around_it() -> None:
    """A formula with a bump of 10 % in the middle of one parameter."""
    formulas = Known((RIGHT,))
    bump = np.where(POINTS[:, 0] == 16, 0.1, 0.0)
    found = explained(formulas.at(POINTS)[0][0] + bump, formulas, sigma=0.002)
    there = found.weights @ found.mean(POINTS) - formulas.at(POINTS)[0][0]
    assert np.abs(there - bump).max() < 0.03


def test_points_may_scatter_more_than_repetitions_say_and_the_truth_then_does() -> None:
    rng = np.random.default_rng(4)
    scattered = np.log(POINTS[:, 0]) + rng.normal(0, 0.2, len(POINTS))
    new = grid((24.0,), (25.0,))
    spread = [
        float(spread_at(found, new)[0])
        for found in (explained(scattered, sigma=sigma) for sigma in (0.01, 0.28))
    ]
    assert spread[0] > 0.15
    assert spread[1] < spread[0] / 1.5


def test_without_repetitions_all_scatter_may_be_that_of_the_truth() -> None:
    rng = np.random.default_rng(4)
    scattered = np.log(POINTS[:, 0]) + rng.normal(0, 0.004, len(POINTS))
    design, new = Design.of(POINTS, np.ones(len(POINTS))), grid((24.0,), (25.0,))
    once, repeated = (
        explain(design, scattered[None], [Scatter(sigma=0.025, freedom=freedom)], None, learned())[0]
        for freedom in (GUESS_WEIGHT, 25.0)
    )
    assert spread_at(once, new)[0] > 0.004, "0.025 is a guess, which says nothing"
    assert repeated.weights @ repeated.rough < repeated.weights @ repeated.process.draws.noise[repeated.draws]


def test_the_smallest_value_may_be_a_case_of_its_own() -> None:
    rng = np.random.default_rng(5)
    far = np.array([[2 * POINTS[:, 0].max(), 60.0]])
    truth = np.log(0.1 * POINTS[:, 0] ** 0.3 * POINTS[:, 1]) + rng.normal(0, 0.1, len(POINTS))
    alone_on_one = np.where(POINTS[:, 0] == POINTS[:, 0].min(), truth - 4.0, truth)  # nobody to wait for
    wanted = np.log(0.1 * far[0, 0] ** 0.3 * 60.0)
    found = explained(alone_on_one, sigma=0.14)
    weights, mean, _ = found.mixture(far)
    assert float(weights @ mean[:, 0]) == pytest.approx(wanted, abs=0.2)
    assert spread_at(found, far)[0] < 2.5 * spread_at(explained(truth, sigma=0.14), far)[0]


def test_of_three_values_none_is_a_case_of_its_own() -> None:
    three, four = (Features.of(grid(values, (10.0, 20.0, 30.0))) for values in ((1, 2, 4), (1, 2, 4, 8)))
    here = 1 + KINDS.index("start")
    at_one = grid((1.0,), (10.0,))
    assert three(at_one)[:, three.component == here] == 0
    assert four(at_one)[:, four.component == here] == 1
    assert not four(grid((2.0, 16.0), (10.0,)))[:, four.component == here].any()


def test_a_walk_has_independent_increments_at_the_measured_values() -> None:
    features = Features.of(POINTS)
    walk = features(POINTS)[:, features.component == 4]  # of the first parameter
    product_ = walk @ walk.T
    u = np.log(POINTS[:, 0])
    for i, j in ((0, 24), (3, 17)):
        distance = product_[i, i] + product_[j, j] - 2 * product_[i, j]
        assert distance == pytest.approx(abs(u[i] - u[j]))


def test_a_power_law_is_continued_with_a_narrow_interval() -> None:
    rng = np.random.default_rng(2)
    truth = np.log(0.1 * POINTS[:, 0] ** 0.5 * POINTS[:, 1] ** 1.2)
    found = explained(truth + rng.normal(0, 0.01, len(truth)), sigma=0.014)
    weights, mean, spread = found.mixture(np.array([[128.0, 60.0]]))
    wanted = np.log(0.1 * 128**0.5 * 60**1.2)
    assert float(weights @ mean[:, 0]) == pytest.approx(wanted, abs=0.05)
    assert float(weights @ spread[:, 0]) < 0.2


def test_doubt_grows_with_the_distance_from_what_was_measured() -> None:
    rng = np.random.default_rng(3)
    steps = np.where(POINTS[:, 0] >= 32, 1.0, 0.0) + 0.05 * rng.normal(size=len(POINTS))
    found = explained(steps, sigma=0.05)
    spread = spread_at(found, grid((64.0, 128.0, 512.0, 4096.0), (50.0,)))
    assert (np.diff(spread) > 0).all()


def test_curves_leave_what_they_say_more_often_than_a_normal_distribution_does() -> None:
    """The same core, but heavier tails; an exact formula has none."""
    rng = np.random.default_rng(5)
    curves = explained(np.log(POINTS[:, 0]) + rng.normal(0, 0.1, len(POINTS)), sigma=0.1)
    weights, mean, spread = curves.mixture(np.array([[128.0, 60.0]]))
    quantiles = [mixture_quantile(weights, mean, spread, q)[0] for q in (0.25, 0.75, 0.01, 0.99)]
    core, tails = quantiles[1] - quantiles[0], quantiles[3] - quantiles[2]
    assert tails / core > 1.2 * norm.ppf(0.99) / norm.ppf(0.75)
    assert weights.sum() == pytest.approx(1.0)
    formulas = Known((RIGHT,))
    sure = explained(formulas.at(POINTS)[0][0] + rng.normal(0, 1e-6, len(POINTS)), formulas, sigma=1e-6)
    assert len(sure.mixture(POINTS[:1])[0]) == len(sure.weights)
    scattered = explained(formulas.at(POINTS)[0][0] + rng.normal(0, 0.1, len(POINTS)), formulas, sigma=1e-3)
    assert len(scattered.mixture(POINTS[:1])[0]) == 2 * len(scattered.weights), "no formula explains that"


def test_a_decomposition_that_does_not_converge_is_made_in_another_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """LAPACK's fast one failed for 660 points of six parameters, all numbers finite."""

    def failing(*_: object, **__: object) -> None:
        raise np.linalg.LinAlgError("SVD did not converge")

    usual = Design.of(POINTS, np.ones(len(POINTS)))
    monkeypatch.setattr(np.linalg, "svd", failing)
    other = Design.of(POINTS, np.ones(len(POINTS)))
    assert np.allclose(other.basis.T @ other.basis, usual.basis.T @ usual.basis)


def test_zeros_and_single_points_are_no_obstacle() -> None:
    zeros = grid((0.0, 1.0, 2.0, 4.0))
    found = explained(np.log1p(zeros[:, 0]), points=zeros)
    assert np.isfinite(found.mean(grid((0.0, 8.0)))).all()
    _, mean, spread = explained(np.ones(1), points=POINTS[:1]).mixture(POINTS[:2])
    assert np.isfinite(mean).all()
    assert (spread > 0).all()


def test_callpaths_weighed_together_are_as_alone() -> None:
    rng = np.random.default_rng(4)
    log_value, count = rng.normal(size=(70, len(POINTS))), np.full(len(POINTS), 2.0)
    design = Design.of(POINTS, count)
    scatter = [Scatter(sigma=0.02, freedom=25.0)] * len(log_value)
    together = explain(design, log_value, scatter, None, learned())
    for row, found in list(zip(log_value, together, strict=True))[::23]:
        alone = explained(row)
        assert np.array_equal(found.draws, alone.draws)
        assert found.weights == pytest.approx(alone.weights)


def test_callpaths_with_formulas_weighed_together_are_as_alone() -> None:
    """Some have more formulas than others; all have regimes, which have more coefficients."""
    rng = np.random.default_rng(6)
    known = [Known((RIGHT,)), Known((WRONG, RIGHT)), Known((RIGHT, WRONG, RIGHT))]
    log_value = np.array([known[0].at(POINTS)[0][0] + rng.normal(0, 0.02, len(POINTS)) for _ in known])
    design, scatter = Design.of(POINTS, np.full(len(POINTS), 2.0)), [Scatter(sigma=0.02, freedom=25.0)] * 3
    together = explain(design, log_value, scatter, known, learned())
    far = grid((128.0,), (60.0, 70.0))
    for row, formulas, found in zip(log_value, known, together, strict=True):
        alone = explained(row, formulas)
        assert np.array_equal(found.formula, alone.formula)
        assert found.odds == pytest.approx(alone.odds)
        assert found.mean(far) == pytest.approx(alone.mean(far))
        assert np.abs(found.moments(far)[1]).sum() == pytest.approx(np.abs(alone.moments(far)[1]).sum())


@pytest.mark.parametrize("formulas", [None, Known((WRONG,)), Known((RIGHT,))])
def test_what_is_left_over_is_that_of_the_formula_or_of_the_mean_curve(formulas: Known | None) -> None:
    rng = np.random.default_rng(7)
    log_value = Known((RIGHT,)).at(POINTS)[0][0] + rng.normal(0, 0.02, len(POINTS))
    found = explained(log_value, formulas, count=rng.uniform(1, 3, len(POINTS)))
    if found.share >= LIKELY:
        followed = found.formula_at(POINTS)
    else:
        few, weights = standing_for_all(found.weights, 8)
        followed = weights @ found.mean(POINTS)[few]
    assert found.left_over == pytest.approx(log_value - followed)


def test_fewer_members_stand_for_all() -> None:
    rng = np.random.default_rng(5)
    found = explained(np.log(POINTS[:, 0]) + rng.normal(0, 0.05, len(POINTS)))
    few = found.fewer(12)
    assert len(few.weights) <= 12
    assert few.weights.sum() == pytest.approx(1.0)
    far = np.array([[128.0, 60.0]])
    whole, part = (float(item.weights @ item.mean(far)[:, 0]) for item in (found, few))
    assert part == pytest.approx(whole, abs=0.05)


def test_what_begins_beyond_the_range_may_cost_more_and_no_measurement_shows_it() -> None:
    """Falling and growing curves alike: further up than down there, and as far within the range."""
    rng = np.random.default_rng(5)
    inside, beyond = np.array([[16.0, 30.0]]), np.array([[256.0, 30.0], [1024.0, 30.0]])
    for slope in (-0.8, 0.8):
        log_value = slope * np.log(POINTS[:, 0]) + rng.normal(0, 0.1, len(POINTS))
        curves = explained(log_value, sigma=0.1)
        weights, mean, spread = curves.mixture(beyond)
        risen = curves.risen(beyond)
        assert not curves.risen(inside).any()
        assert risen.shape == mean.shape and (risen >= 0).all()
        middle = mixture_quantile(weights, mean, spread, 0.5)
        down, up = (abs(mixture_quantile(weights, mean + risen, spread, q) - middle) for q in (0.05, 0.95))
        assert (up > 1.15 * down).all()
        assert up[1] - down[1] > up[0] - down[0], "the further, the more may have begun"


def test_an_exact_formula_does_not_rise() -> None:
    rng = np.random.default_rng(5)
    right = Known((RIGHT,))
    sure = explained(right.at(POINTS)[0][0] + rng.normal(0, 1e-6, len(POINTS)), right, sigma=1e-6)
    assert not sure.risen(np.array([[1024.0, 30.0]])).any()
