"""What holds for any data: units, orders, exactness, finiteness."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import ModelError
from orchestrator.models.pmnf.hypotheses import PAPER
from orchestrator.models.pmnf.modeler import modeler
from orchestrator.types import Measurement, Measurements, Point
from tests.models.builders import GRIDS, NAMES, Truth, fit, grid, point, series, terms, uniform, value

blocks = st.sampled_from(PAPER)
shares = st.floats(0.1, 1.0)


def block(x: float, exponents: tuple[float, float]) -> float:
    return float(x ** exponents[0] * np.log2(x) ** exponents[1])


@st.composite
def functions(draw: st.DrawFn, parameters: int) -> Truth:
    """A constant and a product or a sum of blocks, of comparable size at the middle of the grid."""
    chosen = [draw(blocks) for _ in range(parameters)]
    c0, *c = (draw(shares) for _ in range(parameters + 1))
    centre = [GRIDS[k][2] for k in range(parameters)]
    multiply = draw(st.booleans())

    def truth(*x: float) -> float:
        terms = [block(v, b) / block(m, b) for v, b, m in zip(x, chosen, centre, strict=True)]
        return c0 + (c[0] * float(np.prod(terms)) if multiply else sum(map(float.__mul__, c, terms)))

    return truth


@settings(max_examples=40, deadline=None)
@given(functions(1), st.integers(1, 3))
def test_exact_functions_of_one_parameter_are_recovered(truth: Truth, repetitions: int) -> None:
    (model,) = fit(1, series(truth, grid(1), repetitions=repetitions))
    assert value(model, 1024) == pytest.approx(truth(1024), rel=1e-3)


@settings(max_examples=40, deadline=None)
@given(functions(2), st.integers(1, 2))
def test_exact_functions_of_two_parameters_are_recovered(truth: Truth, repetitions: int) -> None:
    (model,) = fit(2, series(truth, grid(2), repetitions=repetitions))
    assert value(model, 4096, 20) == pytest.approx(truth(4096, 20), rel=1e-3)
    assert model.smape < 1e-3


@settings(max_examples=10, deadline=None)
@given(functions(3))
def test_exact_functions_of_three_parameters_are_recovered(truth: Truth) -> None:
    (model,) = fit(3, series(truth, grid(3), repetitions=2))
    assert value(model, 1024, 12, 60) == pytest.approx(truth(1024, 12, 60), rel=1e-2)


@settings(max_examples=15, deadline=None)
@given(functions(2), st.floats(1e-9, 1e12), st.integers(0, 100))
def test_the_unit_of_time_does_not_matter(truth: Truth, unit: float, seed: int) -> None:
    known = series(truth, grid(2), uniform(np.random.default_rng(seed), 0.05), 2)
    scaled = {p: tuple(unit * v for v in values) for p, values in known.items()}
    one, other = fit(2, known)[0], fit(2, scaled)[0]
    assert value(other, 1024, 12) == pytest.approx(unit * value(one, 1024, 12), rel=1e-6)
    assert other.smape == pytest.approx(one.smape, rel=1e-6)
    assert [t["factors"] for t in other.terms] == [t["factors"] for t in one.terms]


@settings(max_examples=15, deadline=None)
@given(functions(2), st.permutations(range(25)), st.integers(0, 100))
def test_the_order_of_points_does_not_matter(truth: Truth, order: list[int], seed: int) -> None:
    known = series(truth, grid(2), uniform(np.random.default_rng(seed), 0.05), 2)
    turned = {list(known)[k]: known[list(known)[k]] for k in order}
    assert value(fit(2, turned)[0], 1024, 12) == pytest.approx(value(fit(2, known)[0], 1024, 12), rel=1e-9)


@settings(max_examples=15, deadline=None)
@given(functions(2), st.integers(0, 100))
def test_the_order_of_parameters_does_not_matter(truth: Truth, seed: int) -> None:
    known = series(truth, grid(2), uniform(np.random.default_rng(seed), 0.05), 2)
    turned = Measurements(("q", "p"), (Measurement("f0", "time", known),))
    (model,) = modeler()(turned)
    assert value(fit(2, known)[0], 1024, 12) == pytest.approx(
        float(model.predict([point([1024, 12])]).value[0]), rel=1e-6
    )


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 3),
    st.lists(
        st.tuples(
            st.tuples(*(st.sampled_from([0.0, 0.5, 1.0, 2.0, 7.0, 1e3, 1e6]) for _ in range(3))),
            st.lists(st.floats(1e-9, 1e12), min_size=1, max_size=3),
        ),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(["auto", True, False]),
)
def test_any_positive_measurements_have_finite_predictions(
    parameters: int, data: list[tuple[tuple[float, ...], list[float]]], negative: Any
) -> None:
    values = {point(x[:parameters]): tuple(v) for x, v in data}
    (model,) = fit(parameters, values, negative_exponents=negative)
    far = [point([2.0**k] * parameters) for k in range(0, 24, 3)]
    prediction = model.predict([*values, *far])
    for array in (prediction.value, prediction.low, prediction.high):
        assert not np.any(np.isnan(array))
    assert np.all(prediction.low <= prediction.value) and np.all(prediction.value <= prediction.high)
    assert np.all(np.isfinite(model.predict(list(values)).value))


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e12])
@pytest.mark.parametrize("span", [1.001, 4.0, 1e9])
def test_ranges_of_any_size_and_width(size: float, span: float) -> None:
    xs = np.geomspace(size, size * span, 6)
    (model,) = fit(1, series(lambda x: 2 + (x / xs[0]), [(x,) for x in xs], repetitions=2))
    assert value(model, xs[-1]) == pytest.approx(2 + span, rel=0.02)
    logarithms = [f["log_exponent"] for t in terms(model) for f in t["factors"]]
    assert size >= 1 or not any(logarithms)


def test_a_parameter_with_value_zero_has_powers_only() -> None:
    (model,) = fit(1, series(lambda x: 3 + x**2, [(x,) for x in (0, 1, 2, 3, 4)], repetitions=2))
    assert model.expression == "3 + 1 * p**2"
    assert value(model, 0) == pytest.approx(3)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("exponents", "every", "unknown exponent set 'every'"),
        ("exponents", [], "exponents: the list holds no pair"),
        ("negative_exponents", "sometimes", "negative_exponents is 'sometimes'"),
        ("aggregate", "mode", "aggregate is 'mode'"),
        ("members", 0, "members is 0"),
    ],
)
def test_options_without_sense_are_refused(option: str, value: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        modeler(**{option: value})


def test_listed_exponents_are_the_only_ones() -> None:
    (model,) = fit(1, series(lambda p: 1 + p**1.5, grid(1), repetitions=2), exponents=[[1, 0], [2, 0]])
    exponents = {f["exponent"] for t in terms(model) for f in t["factors"]}
    assert exponents <= {1.0, 2.0}


def test_names_of_parameters_are_those_of_the_measurements() -> None:
    values = {Point.of(ranks=p): (float(p),) for p in (2, 4, 8, 16, 32)}
    (model,) = modeler()(Measurements(("ranks",), (Measurement("main", "time", values),)))
    assert model.expression == "1 * ranks"
    assert NAMES[0] not in model.expression.replace("ranks", "")
