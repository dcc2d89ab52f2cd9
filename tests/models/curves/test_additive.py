"""Curves that add up: what they are, and that they are found where the time is a sum, and only there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from orchestrator.models.base import Floats
from orchestrator.models.curves import explanations, kinds
from orchestrator.models.curves.additive import Additive, Structure, structures
from orchestrator.models.curves.design import Design, Process
from orchestrator.models.curves.evidence import of_curves, of_values
from orchestrator.models.curves.explanations import Explanations
from orchestrator.models.curves.features import KINDS, Features
from orchestrator.models.curves.model import CurveModel
from orchestrator.models.curves.modeler import modeler
from orchestrator.models.curves.prior import Draws, alone, learned
from orchestrator.models.curves.scatter import Scatter
from orchestrator.models.curves.weighing import explain
from orchestrator.models.formulas import modeler as formulas
from orchestrator.models.noise import GUESS_WEIGHT
from orchestrator.types import Measurement, Measurements, Point
from tests.models.curves.known import grid

SUM = Structure((0, 1), 1.0)


TWO = grid((4, 8, 16, 32, 64), (10, 20, 30, 40, 50))
THREE = grid((2, 4, 8, 16), (1, 2, 3), (10, 20, 40))


def bumpy(x: Floats, size: float = 0.15) -> Floats:
    """A factor that no power law is: up and down along a parameter."""
    return np.asarray(np.exp(size * np.sin(2.3 * np.log(x))))


def f(x: Floats) -> Floats:
    return np.asarray(3 * x**0.6 * bumpy(x))


def g(x: Floats) -> Floats:
    return np.asarray(0.3 * x**1.3 * bumpy(x))


def design_of(points: Floats, repetitions: float = 3.0) -> Design:
    return Design.of(points, np.full(len(points), repetitions))


def explained(truth: Callable[[Floats], Floats], points: Floats, noise: float = 0.005) -> Explanations:
    rng = np.random.default_rng(1)
    log_value = np.log(truth(points)) + rng.normal(0, noise / np.sqrt(3), len(points))
    scatter = [Scatter(sigma=noise, freedom=2.0 * len(points))]
    (found,) = explain(design_of(points), log_value[None], scatter, None, learned())
    return found


def share_of_sums(found: Explanations) -> float:
    return float(found.weights[found.added >= 0].sum())


def fitted(structure: Structure, log_value: Floats, points: Floats = TWO) -> Additive:
    draws = alone(points.shape[1], learned())
    return Additive.of(design_of(points), structure, log_value, draws.sizes[0], 0.003)


def mean_at(found: Additive, x: Floats) -> Floats:
    """Return the mean logarithm at points of as many parameters as the structure has."""
    draws = Draws(alone(x.shape[1], learned()).sizes[:1], np.array([0.003]))
    mean, _ = found.mean(found.design.features(x), found.design.gains(draws))
    return np.asarray(mean[0], np.float64)


def test_to_one_parameter_only_a_constant_adds() -> None:
    assert structures(0) == []
    assert {item.text("p") for item in structures(1)} == {"constant + p"}


def test_with_three_parameters_one_may_add_to_or_multiply_the_others() -> None:
    assert {item.text("ab") for item in structures(2)} == {"a + b", "constant + a * b"}
    assert {item.text("pnm") for item in structures(3)} == {
        "p + n + m",
        "n * m + p",
        "p * m + n",
        "p * n + m",
        "p * (n + m)",
        "n * (p + m)",
        "m * (p + n)",
        "constant + p * n * m",
    }
    assert len({item.text("abcde") for item in structures(5)}) == 12


def test_features_belong_to_the_part_of_their_parameter() -> None:
    features = Features.of(THREE)
    part = features.by_part((0, 1, 1), -1)
    assert part[0] == -1, "the constant"
    of_parameter = (features.component[1:-3] - 1) // len(KINDS)
    assert np.array_equal(part[1:-3], np.array([0, 1, 1])[of_parameter])
    assert part[-3:].tolist() == [-1, -1, 1], "products: of the last two parameters within a part"


def test_evidence_of_one_call_path_is_the_density_of_a_normal_distribution() -> None:
    rng = np.random.default_rng(2)
    design, values = design_of(TWO), rng.normal(0, 0.3, len(TWO))
    bank = alone(2, learned())
    few = Draws(bank.sizes[:5], bank.noise[:5])
    phi = design.features(TWO)
    for sizes, noise, found in zip(few.sizes, few.noise, of_values(design, few, values), strict=True):
        scaled = phi * sizes[design.features.component]
        covariance = scaled @ scaled.T + np.diag(noise**2 / design.precision)
        assert found == pytest.approx(multivariate_normal(cov=covariance).logpdf(values), rel=1e-6)
    assert of_values(design, few, values - values.mean()) == pytest.approx(
        of_curves(design, few, values[None])[:, 0]
    )


@pytest.mark.parametrize("structure", [*structures(2), *structures(3)])
def test_slopes_are_those_of_the_mean(structure: Structure) -> None:
    """The linear model around the most probable curves, against small changes of the coefficients."""
    points = TWO if len(structure.parts) == 2 else THREE
    log_value = np.log(f(points[:, 0]) + g(points[:, -1]))
    found = fitted(structure, log_value, points)
    draws = alone(points.shape[1], learned())
    gains = found.design.gains(Draws(draws.sizes[:1], np.array([0.003])))
    phi = found.design.features(points[:7] * 1.3)
    (mean,), (slopes,) = found.mean(phi, gains)
    rng = np.random.default_rng(3)
    for _ in range(3):
        change = 1e-4 * rng.normal(size=len(found.design.basis))
        moved = found.values + change @ found.design.projection / np.sqrt(found.design.precision)
        (there,), _ = replace(found, values=moved).mean(phi, gains)
        assert there - mean == pytest.approx(slopes @ (gains[0] @ change), abs=1e-6)


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_a_sum_is_followed_at_the_measured_points(power: float) -> None:
    log_value = np.log(f(TWO[:, 0]) ** power + g(TWO[:, 1]) ** power) / power
    found = fitted(Structure((0, 1), power), log_value)
    assert mean_at(found, TWO) == pytest.approx(log_value, abs=0.02)


def test_bumpy_sums_are_found_and_continued_as_sums() -> None:
    def truth(x: Floats) -> Floats:
        return f(x[:, 0]) + g(x[:, 1])

    found = explained(truth, TWO)
    assert share_of_sums(found) > 0.95
    text, probability = found.sum_of_parts("pn") or ("", 0.0)
    assert text == "p + n"
    assert probability > 0.95
    # From the smallest values: a long way on one axis, and what the other has there.
    corner = np.array([[64.0, 50.0]])
    assert found.weights @ found.mean(corner)[:, 0] == pytest.approx(np.log(truth(corner))[0], abs=0.02)


def test_bumpy_products_remain_products() -> None:
    found = explained(lambda x: f(x[:, 0]) * g(x[:, 1]), TWO)
    assert share_of_sums(found) < 0.05


def test_a_constant_is_found_beside_a_product_and_its_growth_continued() -> None:
    """Hardly any growth at first; a product would be far less at four times both."""

    def truth(x: Floats) -> Floats:
        return 400 + f(x[:, 0]) * g(x[:, 1])

    found = explained(truth, TWO)
    text, probability = found.sum_of_parts("pn") or ("", 0.0)
    assert text == "constant + p * n"
    assert probability > 0.8
    corner = np.array([[256.0, 200.0]])
    middle = float(found.weights @ found.mean(corner)[:, 0])
    of_products = found.mean(corner)[found.added < 0, 0]
    assert middle == pytest.approx(np.log(truth(corner))[0], abs=0.5)
    assert not len(of_products) or middle > of_products.mean()


def test_a_constant_beside_one_parameter() -> None:
    x = np.array([[4.0], [8.0], [16.0], [32.0], [64.0], [128.0]])
    found = explained(lambda x: 300 + 0.1 * x[:, 0] ** 2 * bumpy(x[:, 0]), x)
    far = np.array([[1024.0]])
    rising = found.mean(far)[:, 0]
    assert found.weights[found.added >= 0].sum() > 0.3
    assert found.weights @ rising == pytest.approx(np.log(300 + 0.1 * 1024**2), abs=0.7)


def test_curves_beside_a_constant_do_not_make_formulas_less_probable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine single runs on two lines, of which neither is certain."""
    lines = TWO[(TWO[:, 0] == 4) | (TWO[:, 1] == 10)]
    rng = np.random.default_rng(6)
    times = (40 + 0.2 * lines[:, 0] * lines[:, 1]) * np.exp(rng.normal(0, 0.03, len(lines)))
    values = {Point.of({"p": a, "n": b}): (value,) for (a, b), value in zip(lines, times, strict=True)}
    measurements = Measurements(("p", "n"), (Measurement("main", "time", values),))

    def probability() -> float:
        (model,) = formulas()(measurements)
        assert isinstance(model, CurveModel)
        return model.share

    with_constants = probability()
    without = [item for item in structures(2) if not item.constant]
    monkeypatch.setattr(kinds, "structures", lambda parameters: without)
    assert 0.5 < with_constants < 0.95
    assert with_constants >= probability() - 0.01


def test_lines_alone_do_not_tell_sums_from_products() -> None:
    """Both are possible, and as many predictions lie between: the interval is wide where they differ."""
    lines = TWO[(TWO[:, 0] == 4) | (TWO[:, 1] == 10)]
    found = explained(lambda x: f(x[:, 0]) + g(x[:, 1]), lines)
    assert 0.2 < share_of_sums(found) < 0.8
    far = np.array([[64.0, 50.0]])
    of_sums = found.mean(far)[found.added >= 0, 0]
    of_products = found.mean(far)[found.added < 0, 0]
    assert np.median(of_products) > np.median(of_sums) + 0.2


def test_a_point_off_the_lines_tells_them_apart() -> None:
    few = TWO[(TWO[:, 0] == 4) | (TWO[:, 1] == 10) | ((TWO[:, 0] == 32) & (TWO[:, 1] == 40))]
    assert share_of_sums(explained(lambda x: f(x[:, 0]) + g(x[:, 1]), few)) > 0.9
    assert share_of_sums(explained(lambda x: f(x[:, 0]) * g(x[:, 1]), few)) < 0.1


def test_a_parameter_may_multiply_a_sum_of_two_others() -> None:
    found = explained(lambda x: bumpy(x[:, 0]) * (f(x[:, 1]) + g(x[:, 2])), THREE)
    text, probability = found.sum_of_parts("pnm") or ("", 0.0)
    assert text == "p * (n + m)"
    assert probability > 0.8


def test_parts_that_fall_far_give_no_nonsense() -> None:
    """Their continuation as a sum would be negative far out."""
    found = explained(lambda x: 100 / x[:, 0] ** 1.5 + 50 / x[:, 1] + 0.01, TWO)
    far = grid((4.0, 4096.0), (10.0, 5000.0))
    mean, factor = found.moments(far)
    assert np.isfinite(mean).all()
    assert np.isfinite(factor).all()


def test_where_a_sum_would_be_negative_there_is_none() -> None:
    """A product of two parameters that fall: much smaller at the corner than any sum of both lines."""
    log_value = np.log(1e6 / TWO[:, 0] ** 4 / TWO[:, 1] ** 4)
    assert share_of_sums(explained(lambda x: np.exp(-4 * np.log(x).sum(axis=1)), TWO)) < 0.01
    draws = alone(2, learned())
    found = Additive.of(design_of(TWO), SUM, log_value, draws.sizes[0], 1e-3)
    assert np.isfinite(mean_at(found, TWO)).all()


def test_more_points_than_features_are_no_obstacle() -> None:
    """The most probable curves are found in the space of the smaller of both."""
    many = grid(tuple(2.0 ** np.arange(1, 13)), tuple(5.0 * np.arange(1, 31)))
    log_value = np.log(f(many[:, 0]) + g(many[:, 1]))
    found = fitted(SUM, log_value, many)
    assert len(many) > len(found.part)
    assert mean_at(found, many) == pytest.approx(log_value, abs=0.05)


def measured(truth: Callable[[Floats], Floats], repetitions: int) -> Measurements:
    rng = np.random.default_rng(4)
    values = {
        Point.of({"p": a, "n": b}): tuple(value * np.exp(rng.normal(0, 0.005, repetitions)))
        for (a, b), value in zip(TWO, truth(TWO), strict=True)
    }
    return Measurements(("p", "n"), (Measurement("main", "time", values),))


def test_a_note_says_that_parts_add_up() -> None:
    (sums,) = modeler()(measured(lambda x: f(x[:, 0]) + g(x[:, 1]), 3))
    assert any("parts add up (p + n) with a probability of" in note for note in sums.notes)
    (products,) = modeler()(measured(lambda x: f(x[:, 0]) * g(x[:, 1]), 3))
    assert not any("parts add up" in note for note in products.notes)


def test_members_that_stand_for_all_keep_their_sums() -> None:
    found = explained(lambda x: (f(x[:, 0]) ** 0.5 + g(x[:, 1]) ** 0.5) ** 2, TWO[::2])
    few = found.fewer(12)
    assert abs(share_of_sums(few) - share_of_sums(found)) < 0.15
    for k, added in enumerate(few.added):
        assert added < len(few.additive), k
    far = np.array([[128.0, 60.0]])
    assert few.weights @ few.mean(far)[:, 0] == pytest.approx(found.weights @ found.mean(far)[:, 0], abs=0.05)


def test_single_runs_have_sums_too() -> None:
    log_value = np.log(f(TWO[:, 0]) + g(TWO[:, 1]))
    scatter = [Scatter(sigma=0.025, freedom=GUESS_WEIGHT)]
    (found,) = explain(design_of(TWO, 1.0), log_value[None], scatter, None, learned())
    assert share_of_sums(found) > 0.95


def test_slopes_of_sums_may_span_another_number_of_directions_than_features() -> None:
    """Both are projected onto what they span, but for rounding: of many close values that may differ."""
    found = explained(lambda x: f(x[:, 0]) + g(x[:, 1]), TWO)
    there = np.array([[64.0, 50.0], [6.0, 15.0]])
    mean, factor = found.moments(there)
    first, *rest = found.additive
    phi = first.design.features(TWO)
    one_less = replace(
        first, design=first.design.with_slopes(np.where(np.arange(len(TWO))[:, None] < 5, phi, 0))
    )
    assert len(one_less.design.basis) < len(found.process.design.basis)
    others = found.added != 0
    fewer = replace(found, additive=(one_less, *rest)).moments(there)
    assert np.array_equal(fewer[0][others], mean[others])
    assert np.array_equal(fewer[1][others], factor[others])
    smaller = replace(
        found.process.design, basis=one_less.design.basis, projection=one_less.design.projection
    )
    process = Process.of(smaller, [found.process.draws])
    onto = found.residuals[:, : len(smaller.basis)]
    more = replace(found, process=process, residuals=onto).moments(there)
    assert np.array_equal(more[0][~others], mean[~others])
    assert np.array_equal(more[1][~others], factor[~others])


def test_many_points_are_looked_at_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    found = explained(lambda x: f(x[:, 0]) + g(x[:, 1]), TWO)
    far = grid((4.0, 64.0), (10.0, 50.0, 70.0))
    at_once = found.mixture(far)
    monkeypatch.setattr(explanations, "_TOGETHER", 1)
    for whole, part in zip(at_once, found.mixture(far), strict=True):
        assert part == pytest.approx(whole, rel=1e-9)
    assert [item.shape[-1] for item in found.mixture(far[:0])[1:]] == [0, 0]


def with_slow_runs() -> tuple[Floats, Floats]:
    """Return scattered points and logarithms of times: divided work, and four slow runs at the end."""
    rng = np.random.default_rng(3)
    processes, per_node = np.exp(rng.uniform(np.log(14), np.log(227), 100)), rng.integers(2, 36, 100)
    points = np.column_stack([np.round(processes), per_node])
    log_value = np.log(2000 * points[:, 0] ** -0.8 * (1 + 0.01 * per_node)) + rng.normal(0, 0.08, 100)
    log_value[rng.choice(np.argsort(processes)[-12:], 4, replace=False)] += 1.3
    return points, log_value


def test_steps_lead_to_more_probable_curves() -> None:
    """Whole steps from a straight line went back and forth between curves that follow nothing."""
    points, log_value = with_slow_runs()
    for structure in structures(2):
        for sizes in alone(2, learned()).sizes[:6]:
            found = Additive.of(design_of(points), structure, log_value, sizes, 0.2)
            gains = found.design.gains(Draws(sizes[None], np.array([0.2])))
            (mean,), _ = found.mean(found.design.features(points), gains)
            assert np.sqrt(np.mean((mean - log_value) ** 2)) < np.std(log_value)


def test_sums_that_do_not_follow_the_values_are_not_probable() -> None:
    """They would if all were linear, as it is near the curves of one draw only."""
    points, log_value = with_slow_runs()
    scatter = [Scatter(sigma=0.27, freedom=2.0)]
    (found,) = explain(design_of(points), log_value[None], scatter, None, learned())
    assert share_of_sums(found) > 0
    assert np.abs(np.median(found.mean(points) - log_value, axis=1)).max() < 0.1
