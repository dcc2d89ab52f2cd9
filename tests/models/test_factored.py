"""Laws of some parameters that are exact, times whatever the others do."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest

from orchestrator import registry
from orchestrator.models.base import Model, Modeler
from orchestrator.models.belief import has_belief
from orchestrator.models.factored import FactoredModel, laws_of
from orchestrator.models.noise import GUESSED
from orchestrator.types import Measurement, Measurements, Point

SIZES = (4, 6, 8, 10)
# Neither smooth nor a formula: what a partition of a mesh leaves to the fullest rank.
IRREGULAR = {
    (x, y): float(v)
    for (x, y), v in zip(
        product(SIZES, SIZES), np.random.default_rng(3).integers(5000, 20000, 16).tolist(), strict=True
    )
}


def fitted(law: Callable[[float], float], steps: Sequence[float]) -> Model:
    runs = {
        Point.of(x=float(x), y=float(y), t=float(t)): (rest * law(t),) * 2
        for ((x, y), rest), t in product(IRREGULAR.items(), steps)
    }
    modeler: Modeler = registry.load("model", "auto")()
    (model,) = modeler(Measurements(("x", "y", "t"), (Measurement("f", "basic_blocks", runs),)))
    return model


@pytest.mark.parametrize(
    ("law", "steps"),
    [
        (lambda t: 1, (5, 10, 15)),
        (lambda t: t, (5, 10)),
        (lambda t: t**2, (2, 3, 7)),
    ],
)
def test_where_the_others_were_measured_the_law_is_exact(
    law: Callable[[float], float], steps: Sequence[float]
) -> None:
    model = fitted(law, steps)
    assert isinstance(model, FactoredModel)
    at = [Point.of(x=float(x), y=float(y), t=100.0) for x, y in IRREGULAR]
    found = model.predict(at)
    truth = [rest * law(100) for rest in IRREGULAR.values()]
    for values in (found.value, found.low, found.high, model.value(at), model.expected(at)):
        assert values == pytest.approx(truth, rel=1e-9)


def test_elsewhere_there_is_doubt() -> None:
    model = fitted(lambda t: t, (5, 10, 20))
    elsewhere = Point.of(x=14.0, y=14.0, t=20.0)
    at = model.predict([elsewhere])
    assert at.high[0] > 1.2 * at.low[0]
    assert model.value([elsewhere])[0] == pytest.approx(at.value[0])
    assert has_belief(model)
    variance = model.belief([elsewhere, Point.of(x=4.0, y=4.0, t=90.0)]).variance
    assert variance[0] > 1e-3 and variance[1] < 1e-9


def test_the_model_reads_as_what_it_is() -> None:
    model = fitted(lambda t: t, (5, 10, 20))
    assert isinstance(model, FactoredModel)
    assert model.expression.endswith("* t") and model.document()["expression"] == model.expression
    assert "proportional to t, exactly: known at the 16 measured values of x, y" in model.notes
    assert model.noise < 1e-6 and GUESSED not in model.notes
    assert pickle.loads(pickle.dumps(model)).expression == model.expression
    inside = [Point.of(x=5.0, y=5.0, t=t) for t in (5.0, 50.0)]
    values = model.value(inside)
    assert values[1] == pytest.approx(10 * values[0])


def test_laws_of_some_parameters() -> None:
    points = np.array(list(product((1.0, 2.0, 4.0), (3.0, 5.0, 7.0), (0.0, 1.0))))
    a, b, c = points.T
    assert laws_of(points, b**2 * (a + 3) ** 2) == (None, 2.0, 0.0)
    assert laws_of(points, np.sqrt(a) / b * (1 + c)) == (0.5, -1.0, None)
    assert laws_of(points, b**1.1) == (0.0, None, 0.0)


def test_two_values_show_only_the_usual_laws() -> None:
    points = np.array(list(product((1.0, 2.0), (3.0, 5.0, 7.0))))
    a, b = points.T
    assert laws_of(points, a * b**1.7) == (1.0, None)
    assert laws_of(points, a**2 * b**1.7) == (None, None)


def test_values_that_no_line_compares_have_no_law() -> None:
    points = np.array([[1.0, 1.0], [2.0, 1.0], [3.0, 1.0], [9.0, 2.0]])
    assert laws_of(points, np.array([1.0, 2.0, 3.0, 9.0]))[0] is None


def test_what_deviates_at_one_point_has_no_law() -> None:
    points = np.array(list(product((1.0, 2.0, 3.0), (1.0, 2.0, 3.0))))
    values = 100 * points[:, 0] * np.array([1.0, 4.0, 7.0] * 3)
    values[-1] += 1
    assert laws_of(points, values) == (None, None)
