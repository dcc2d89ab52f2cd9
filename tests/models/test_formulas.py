"""Formulas and curves together: each where it is right, and both where that is not known."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from orchestrator.models import formulas, selection
from orchestrator.models.base import Modeler
from orchestrator.models.belief import of_answer
from orchestrator.models.curves.explanations import Explanations
from orchestrator.models.curves.model import CurveModel
from orchestrator.models.formulas import modeler
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.pmnf.modeler import modeler as pmnf
from orchestrator.models.pmnf.normal_forms import NormalForms
from orchestrator.models.pmnf.posterior import Posterior
from orchestrator.types import Measurement, Measurements, Point
from tests.models.builders import grid, measurements, series

RANKS, SIZES = (4, 8, 16, 32, 64), (10, 20, 30, 40, 50)
INSIDE = [Point.of(p=p, n=n) for p, n in product(RANKS, SIZES)]
FAR = Point.of(p=128, n=60)


def measured(
    truth: Callable[[float, float], float], noise: float = 0.02, seed: int = 0, repetitions: int = 3
) -> Measurements:
    rng = np.random.default_rng(seed)
    values = {
        Point.of(p=p, n=n): tuple(
            float(truth(p, n) * np.exp(rng.normal(0, noise))) for _ in range(repetitions)
        )
        for p, n in product(RANKS, SIZES)
    }
    return Measurements(("p", "n"), (Measurement("main", "time", values),))


def fitted(known: Measurements) -> CurveModel:
    (model,) = modeler()(known)
    assert isinstance(model, CurveModel)
    return model


def short(p: float, n: float) -> float:
    return float(0.5 + 1e-3 * p**0.5 * n)


def test_a_formula_that_explains_the_measurements_is_the_model_alone() -> None:
    (model,) = modeler()(measured(short, noise=0.005))
    assert isinstance(model, PmnfModel)


@pytest.mark.parametrize("noise", [0.015, 0.022, 0.025, 0.04, 0.05])
def test_on_a_large_grid_a_formula_is_the_model_alone_whatever_the_noise(noise: float) -> None:
    truth = grid(4)
    rng = np.random.default_rng(4)
    values = series(
        lambda p, q, r, s: 3 + 1e-3 * p**0.5 * q * r + 0.02 * s**2,
        truth,
        lambda size: list(np.exp(rng.normal(0, noise, size))),
        repetitions=5,
    )
    (model,) = modeler()(measurements(4, values))
    assert isinstance(model, PmnfModel)


@pytest.mark.parametrize("fit", [modeler(), selection.modeler()])
def test_where_a_parameter_is_below_0_curves_are_the_model(fit: Modeler) -> None:
    values = {
        Point.of(cache=cache, n=n): (float(n) * (1.2 if cache < -4000 else 1.0),)
        for cache, n in product((-64000, -8000, -2000), SIZES)
    }
    [model] = fit(Measurements(("cache", "n"), (Measurement("main", "time", values),)))
    assert isinstance(model, CurveModel)
    [note] = [note for note in model.notes if note.startswith("no formula")]
    assert "values below 0: cache; the expression holds near the largest values only" in note
    found = model.predict([Point.of(cache=-8000, n=35)])
    assert found.low[0] < 42 < found.high[0]


def test_without_repetitions_a_formula_may_miss_what_begins_beyond_the_range() -> None:
    """One hundredth per doubling, but not of values that it explains to rounding."""

    def widths(known: Measurements) -> list[float]:
        (model,) = modeler()(known)
        points = [Point.of(p=p, n=n) for p, n in ((64, 50), (128, 50), (256, 50), (256, 100))]
        found = model.predict(points)
        return list(np.log(found.high / found.low))

    once, repeated = (measured(short, noise=0.002, repetitions=number) for number in (1, 3))
    assert isinstance(modeler()(repeated)[0], PmnfModel)
    assert isinstance(modeler()(once)[0], PmnfModel)
    at_edge, *beyond = widths(once)
    for width, doublings in zip(beyond, (1.0, 2.0, 5**0.5), strict=True):
        assert 2 * 1.645 * 0.009 * doublings < width < 2 * 1.645 * 0.02 * doublings
    assert at_edge < 0.01 and max(widths(repeated)) < 0.01
    exact = widths(measured(short, noise=0.0, repetitions=1))
    assert max(exact) - min(exact) < 1e-4


@pytest.mark.parametrize("growth", [0.0, 0.5])
def test_away_from_parameters_that_were_varied_together_nothing_is_certain(growth: float) -> None:
    rng = np.random.default_rng(4)
    values = {
        Point.of(p=p, n=50 * p): tuple(p**growth * np.exp(0.02 * rng.standard_normal(3)))
        for p in (4, 8, 16, 32, 64, 128)
    }
    (model,) = modeler()(Measurements(("p", "n"), (Measurement("main", "time", values),)))
    found = model.predict([Point.of(p=256, n=50 * 256), Point.of(p=256, n=50 * 64)])
    on_line, beside = found.high / found.low
    assert on_line < 2
    # With n / p for the whole truth a quarter of the size takes a quarter of the time.
    assert beside > 16
    assert "p and n were only varied together" in model.notes[0]


def test_a_count_that_is_always_the_same_is_so_away_from_them_too() -> None:
    values = {Point.of(p=p, n=50 * p): (1000.0, 1000.0) for p in (4, 8, 16, 32, 64)}
    (model,) = modeler()(Measurements(("p", "n"), (Measurement("main", "visits", values),)))
    found = model.predict([Point.of(p=256, n=50)])
    assert (found.low[0], found.high[0]) == pytest.approx((1000, 1000))


def test_a_formula_is_not_the_model_alone_where_points_scatter_more_than_their_repetitions() -> None:
    rng = np.random.default_rng(1)
    own: dict[tuple[float, float], float] = {
        place: float(np.exp(rng.normal(0, 0.02))) for place in product(RANKS, SIZES)
    }
    known = measured(lambda p, n: short(p, n) * own[p, n], noise=0.001)
    assert fitted(known).share > 0.9
    (formula,) = pmnf()(known)
    wide, narrow = (model.predict([FAR]) for model in (fitted(known), formula))
    assert np.log(wide.high[0] / wide.low[0]) > 1.2 * np.log(narrow.high[0] / narrow.low[0])
    assert wide.value[0] == pytest.approx(narrow.value[0], rel=0.1)


def widely(noise: float, seed: int) -> Measurements:
    """Single runs of a formula over four decades, which curves explain far worse."""
    rng = np.random.default_rng(seed)
    values = {
        Point.of(p=p, n=n): (float((1 + 1e-3 * p**0.5 * n) * np.exp(rng.normal(0, noise))),)
        for p, n in product(RANKS, 4.0 ** np.arange(2, 9))
    }
    return Measurements(("p", "n"), (Measurement("main", "time", values),))


@pytest.mark.parametrize("seed", range(3))
def test_a_formula_misses_as_much_per_doubling_as_it_leaves_unexplained_of_single_runs(seed: int) -> None:
    (model,) = modeler()(widely(0.03, seed))
    assert isinstance(model, PmnfModel)
    found, doublings = model.predict([Point.of(p=32, n=4.0**10)]), 4
    width = np.log(found.high / found.low)[0] / (2 * 1.645)
    assert doublings * model.smape / 100 * 0.99 < width < doublings * model.smape / 100 + 0.05


@pytest.mark.parametrize("seed", range(3))
def test_a_formula_is_not_the_model_alone_where_single_runs_scatter_far_more_than_runs_do(seed: int) -> None:
    """Two and a half hundredths are guessed for what was not repeated."""
    model = fitted(widely(0.08, seed))
    assert model.share > 0.9 and model.answer is not None
    found = model.predict([Point.of(p=256, n=4.0**10)])
    assert found.high[0] / found.low[0] > 2


def test_every_hypothesis_that_remains_possible_is_weighed() -> None:
    few = measured(short, noise=0.1, repetitions=2)
    lines = {
        point: runs for point, runs in few.items[0].values.items() if point["p"] == 4 or point["n"] == 10
    }
    (form,) = pmnf()(Measurements(few.parameters, (Measurement("main", "time", lines),)))
    assert isinstance(form, PmnfModel)
    known = NormalForms.of(form.posterior)
    assert len(known.weights) > 100 and known.weights.sum() == pytest.approx(1.0)
    assert (np.diff(known.weights[1:]) <= 0).all()


def bent(p: float, n: float) -> float:
    """Nearly of the normal form: 4 % more in the middle of p."""
    return short(p, n) * (1.04 if p == 16 else 1.0)


def test_what_a_formula_leaves_over_is_followed_by_curves_around_it() -> None:
    model = fitted(measured(bent, noise=0.003))
    assert 0.5 < model.share <= 1.0
    assert model.document()["probability_of_formula"] == model.share
    assert "p" in model.normal_form
    truth = np.array([bent(point.number("p"), point.number("n")) for point in INSIDE])
    assert np.abs(np.log(model.value(INSIDE) / truth)).max() < 0.03
    said = model.predict([FAR])
    assert said.low[0] < bent(128, 60) < said.high[0]


def test_a_formula_is_doubted_beside_call_paths_of_the_metric_that_none_explains() -> None:
    """One that is uncertain beside eight that a formula explains, and beside eight that none does."""

    def share(others: Callable[[float, float], float], metric: str) -> float:
        (item,) = measured(bent, noise=0.1, seed=2, repetitions=2).items
        beside = [measured(others, 0.1, seed, repetitions=2).items[0] for seed in range(10, 18)]
        named = [replace(other, callpath=f"f{k}", metric=metric) for k, other in enumerate(beside)]
        model, *_ = modeler()(Measurements(("p", "n"), (item, *named)))
        assert isinstance(model, CurveModel) and model.callpath == "main"
        return model.share

    doubted, alone, beside_formulas = share(steps, "time"), share(steps, "bytes"), share(short, "time")
    assert doubted < alone - 0.1
    assert beside_formulas == pytest.approx(share(short, "bytes"))


@pytest.mark.parametrize(("share", "alone"), [(0.4, False), (0.6, True)])
def test_runs_are_chosen_by_the_formula_where_it_is_the_answer(share: float, alone: bool) -> None:
    """Its belief, from which intervals of sums are, keeps all explanations."""
    found = fitted(measured(bent))
    model = replace(found, explained=replace(found.explained, share=share))
    assert isinstance(model.form, PmnfModel)
    formula, every = model.form.belief([FAR]), model.belief([FAR])
    assert every.variance[0] != formula.variance[0]
    assert of_answer(model, [FAR]).variance[0] == (formula if alone else every).variance[0]


@pytest.mark.parametrize(
    ("share", "quantile", "off", "answers"),
    [
        (0.6, 0.3, 0.5, True),  # probable, and between the quartiles, however far from the median
        (0.6, 0.2, 0.1, False),
        (0.4, 0.45, 0.1, False),
    ],
)
def test_a_formula_is_the_prediction_where_it_is_probable_and_near_the_median(
    share: float, quantile: float, off: float, answers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = fitted(measured(steps))
    spread = -off / norm.ppf(quantile)
    mixture = np.ones(1), np.zeros((1, 1)), np.full((1, 1), spread)
    monkeypatch.setattr(Explanations, "mixture", lambda self, x: mixture)
    monkeypatch.setattr(Explanations, "formula_at", lambda self, x: np.full(len(x), -off))
    model = replace(found, explained=replace(found.explained, share=share))
    assert model.value([FAR]) == pytest.approx(np.exp(-off) if answers else 1.0, rel=1e-6)


def steps(p: float, n: float) -> float:
    """Time that jumps where a message no longer fits a buffer, then stays."""
    return float((1.0 if p < 16 else 3.1) * (1.0 if n < 25 else 1.7) * (1.3 if p == 64 and n < 35 else 1.0))


def test_steps_are_followed_by_curves_and_the_interval_holds() -> None:
    known = measured(steps)
    model, (formula,) = fitted(known), pmnf()(known)
    predicted = model.predict([FAR])
    assert predicted.low[0] < steps(128, 60) < predicted.high[0]
    truth = np.array([steps(point.number("p"), point.number("n")) for point in INSIDE])
    own, other = (np.abs(np.log(item.value(INSIDE) / truth)).mean() for item in (model, formula))
    assert own < other / 2


def test_waiting_gets_a_wide_interval_and_no_steep_exponent() -> None:
    """Non-monotonic, noisy: what a barrier takes depends on who comes late."""
    rng = np.random.default_rng(6)
    late = {(p, n): float(np.exp(rng.normal(0, 0.7))) for p, n in product(RANKS, SIZES)}
    model = fitted(measured(lambda p, n: late[int(p), int(n)], noise=0.3))
    said = model.predict([FAR])
    assert said.high[0] / said.low[0] > 4
    assert 0.2 < said.value[0] < 5


def test_a_small_bump_does_not_become_a_steep_exponent() -> None:
    """Flat but for 2 % at one value of p, far beyond the noise: further out it stays nearly flat."""
    model = fitted(measured(lambda p, n: 4000.0 * (1.02 if p == 32 else 1.0), noise=0.003))
    far = Point.of(p=128, n=50)
    said = model.predict([far])
    assert said.value[0] == pytest.approx(4000, rel=0.05)
    assert said.low[0] < 4000 < said.high[0]


def test_a_rise_that_only_the_last_value_shows_is_doubted() -> None:
    """A step at the largest p: nobody knows whether it goes on."""
    model = fitted(measured(lambda p, n: 1e-3 if p < 64 else 2e-3, noise=0.03))
    said = model.predict([Point.of(p=128, n=50)])
    assert said.low[0] < 2e-3 < said.high[0]
    assert not any("largest tried" in note for note in model.notes)


def test_counts_are_exact_and_stay_so() -> None:
    (model,) = modeler()(measured(lambda p, n: 72 + 2193 * p * n + 9 * p, noise=0.0, repetitions=2))
    said = model.predict([FAR])
    truth = 72 + 2193 * 128 * 60 + 9 * 128
    assert said.value[0] == pytest.approx(truth, rel=1e-3)
    assert said.high[0] / said.low[0] < 1.01


def test_a_model_survives_a_journey_to_another_process() -> None:
    model = fitted(measured(bent, noise=0.003))
    there = pickle.loads(pickle.dumps(model))
    assert there.value([FAR]) == pytest.approx(model.value([FAR]))


def test_zeros_are_a_model_of_zero() -> None:
    values = dict.fromkeys(INSIDE, (0.0, 0.0))
    (model,) = modeler()(Measurements(("p", "n"), (Measurement("main", "time", values),)))
    assert model.predict([FAR]).value[0] == 0.0
    assert model.notes == ("every value is zero",)


def _forms(exponents: list[list[list[tuple[float, float]]]]) -> NormalForms:
    """Formulas of given exponents (formulas, terms, parameters), all terms with a coefficient but (0, 0)."""
    found = np.array(exponents, dtype=float)
    used = (found != 0).any(axis=(2, 3))
    return NormalForms(
        Posterior(
            weights=np.ones(len(found)) / len(found),
            exponents=found,
            coefficients=np.concatenate([np.ones((len(found), 1)), used], axis=1),
            covariance=np.empty((len(found), 0, 0)),
            misfit=np.empty(0),
        )
    )


def test_common_formulas_of_one_parameter_are_more_probable_beforehand() -> None:
    none, doubled = (0, 0), np.array([[8.0], [16.0], [32.0]])
    common = _forms([[[none], [none]], [[(1, 0)], [none]], [[none], [(-1, 0)]], [[(0, 1)], [none]]])
    others = _forms([[[(0.5, 0)], [none]], [[(1, 1)], [none]], [[(1, 0)], [(2, 0)]], [[(4, 0)], [none]]])
    probable, prior = common.log_prior(doubled), others.log_prior(doubled)
    assert np.ptp(probable) == 0
    assert np.all(probable[:3] > prior[:3])
    assert prior[3] < prior[0], "steeper than real programs are"
    two = _forms([[[(1, 0), none]], [[(0.5, 0), (1, 1)]]]).log_prior(np.array([[8.0, 8.0], [16.0, 16.0]]))
    assert np.ptp(two) == 0, "of two parameters"


def test_terms_that_only_the_last_value_supports_are_improbable() -> None:
    none = (0.0, 0.0)
    forms = [[[(3.0, 2.0), (1.0, 0.0)]], [[(0.5, 0.0), (1.0, 0.0)]]]
    doubled, coarse = (
        _forms(forms).log_prior(np.array([[x, y] for x in values for y in (2.0, 3.0, 4.0)]))
        for values in ((256.0, 512.0, 1024.0), (64.0, 256.0, 1024.0))
    )
    assert np.all(doubled == 0), "twelvefold or less from the second largest value to the largest"
    assert coarse[0] < -6, "a hundredfold"
    assert coarse[1] == 0
    from_one = _forms([[[none, (3.0, 0.0)]]]).log_prior(np.array([[1.0, 1.0], [2.0, 4.0], [3.0, 64.0]]))
    assert from_one[0] < -2


def test_steep_terms_are_improbable_where_one_ratio_is_all_that_tells() -> None:
    """On two lines and at a point off them a product has two values of p: log2(n) is 0 at n = 1."""
    lines = [[p, 1.0] for p in (1.0, 2.0, 4.0, 8.0)] + [[1.0, n] for n in (2.0, 4.0)] + [[2.0, 2.0]]
    powers = ((0.5, 0.0), (1.0, 0.0), (3.0, 0.0), (1.0, 1.0))
    known = _forms([[[power, (0.0, 1.0)]] for power in powers])
    gentle, proportional, steep, logarithm = known.log_prior(np.array(lines))
    assert gentle == proportional == 0
    assert steep < -10
    assert logarithm < -5
    assert np.all(known.log_prior(np.array([*lines, [4.0, 2.0]]))[:3] == 0), "three values of p"
    assert np.all(_forms([[[power, (1.0, 0.0)]] for power in powers]).log_prior(np.array(lines)) == 0)
    two = np.array(list(product((1.0, 2.0), (1.0, 2.0, 4.0))))
    assert np.all(known.log_prior(two) == 0), "of a grid of two values nothing is hidden"


def test_a_jump_at_the_one_point_off_two_lines_is_no_steep_product() -> None:
    """`log2(p) * n**3 * log2(n)` explains it, and says 500 000 at a point that is not far."""
    rng = np.random.default_rng(1)
    times = {Point.of(p=1, n=n): 1.0 for n in (64, 146, 338, 776, 1783)}
    times |= {Point.of(p=p, n=64): 1.0 + 0.2 * np.log2(p) for p in (2, 4, 8, 16)}
    values = {point: (float(time + 0.03 * rng.normal()),) for point, time in times.items()}
    values[Point.of(p=2, n=146)] = (4.0,)
    (model,) = modeler()(Measurements(("p", "n"), (Measurement("main", "time", values),)))
    assert model.predict([Point.of(p=32, n=4096)]).value[0] < 1000


def with_a_slow_point(point: Point, seed: int) -> Measurements:
    """Return measurements of a short formula of which those at one point took three times as long."""
    known = measured(short, noise=0.03, seed=seed, repetitions=2)
    (item,) = known.items
    slow = tuple(3 * value for value in item.values[point])
    return replace(known, items=(replace(item, values={**item.values, point: slow}),))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("point", [Point.of(p=16, n=30), Point.of(p=64, n=40)])
def test_curves_do_not_follow_what_a_formula_takes_for_an_outlier(point: Point, seed: int) -> None:
    (model,) = modeler()(with_a_slow_point(point, seed))
    assert any(f"taken for outliers: {point}" in note for note in model.notes)
    found = model.predict([FAR])
    assert found.value[0] == pytest.approx(short(128, 60), rel=0.2)
    assert found.high[0] / found.low[0] < 1.4


@pytest.mark.parametrize("seed", range(4))
def test_of_an_outlier_with_nothing_beyond_it_nobody_knows_whether_something_begins_there(seed: int) -> None:
    model = fitted(with_a_slow_point(INSIDE[-1], seed))
    assert model.corner == (64, 50)
    found = model.predict([FAR])
    assert found.low[0] < short(128, 60) < 3 * short(128, 60) < found.high[0]


def test_more_than_a_few_are_no_outliers() -> None:
    """An eighth of the points at most."""
    points = np.array([[p, n] for p, n in product(RANKS, SIZES)], dtype=float)
    assert formulas.contradicted((3, 7), points) == (3, 7)
    assert formulas.contradicted((3, 7, 11, 12), points) == ()
    assert formulas.contradicted((7, 24), points) == (7,), "nothing is beyond the last one"
