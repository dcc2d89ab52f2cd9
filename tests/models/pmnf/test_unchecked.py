"""What exact sums say where no measured value checks them: there the doubt of other models is theirs."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest

from orchestrator import registry
from orchestrator.models.base import Model, Modeler
from orchestrator.models.belief import has_belief
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.pmnf.unchecked import gains
from orchestrator.types import Measurement, Measurements, Point

Count = Callable[[int, int], float]
FAMILIES = pytest.mark.parametrize("family", ["auto", "pmnf"])
NO, ONE, TWO, THREE = (0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (3.0, 0.0)


def stairs(n: int, steps: int) -> float:
    """Cells of a cube whose edge grows with every second n."""
    return float(steps * (4 * ((n + 1) // 2)) ** 3)


def refined(levels: int, steps: int) -> float:
    """Every level of a mesh has eight times the cells of the one before."""
    return float(steps * (7 * 8**levels + 12))


def fitted(count: Count, *values: Sequence[int], family: str = "auto") -> Model:
    runs = {Point.of(n=float(n), t=float(t)): (float(count(n, t)),) * 2 for n, t in product(*values)}
    modeler: Modeler = registry.load("model", family)()
    (model,) = modeler(Measurements(("n", "t"), (Measurement("f", "basic_blocks", runs),)))
    return model


def said(model: Model, n: float, t: float) -> tuple[float, float, float]:
    found = model.predict([Point.of(n=n, t=t)])
    return float(found.low[0]), float(found.value[0]), float(found.high[0])


@FAMILIES
@pytest.mark.parametrize(
    ("count", "values"), [(stairs, (5, 6, 7, 8)), (refined, (1, 2, 3)), (lambda n, t: 24 * 4**n * t, (1, 2))]
)
def test_more_values_of_another_parameter_prove_no_law(
    family: str, count: Count, values: Sequence[int]
) -> None:
    """As many terms as values of n go through them, however many values of t there are."""
    model = fitted(count, values, (10, 20, 30, 50), family=family)
    low, value, high = said(model, values[-1] + 1, 50)
    assert high > 1.4 * low
    assert value > count(values[-1], 50) / 10
    for n, t in ((values[0], 70), (values[-1], 700)):
        assert said(model, n, t) == pytest.approx((count(n, t),) * 3, rel=1e-5)


@pytest.mark.parametrize(("values", "count"), [((5, 6, 7, 8), stairs), ((1, 2), lambda n, t: 24 * 4**n * t)])
def test_the_interval_of_an_unproven_law_holds_for_the_next_value(
    values: Sequence[int], count: Count
) -> None:
    low, _, high = said(fitted(count, values, (10, 20, 30, 50)), values[-1] + 1, 60)
    assert low <= count(values[-1] + 1, 60) <= high


@FAMILIES
@pytest.mark.parametrize("count", [lambda n, t: 96 * n * t, lambda n, t: 96 * t])
def test_two_values_are_enough_for_what_is_usual(family: str, count: Count) -> None:
    model = fitted(count, (1, 2), (2, 4, 6, 8), family=family)
    assert said(model, 3, 9) == pytest.approx((count(3, 9),) * 3, rel=1e-5)


def test_notes_say_where_nothing_checks_a_sum() -> None:
    model = fitted(lambda n, t: 24 * 4**n * t, (1, 2), (2, 4, 6, 8))
    assert any(note.startswith("one term explains all 8 values") for note in model.notes)
    assert any(note.startswith("only the measured values of n check the sum") for note in model.notes)
    assert not any("check the sum" in note for note in fitted(stairs, (5, 7, 9, 11), (2, 4, 6, 8)).notes)


@FAMILIES
def test_a_count_is_never_negative(family: str) -> None:
    """A checked sum has its end, too: 100 n - n² cells are none from 100 on."""
    model = fitted(lambda n, t: t * n * (100 - n) + 3 * n, (10, 20, 30, 40, 50), (1, 2, 3, 4), family=family)
    assert said(model, 60, 8) == pytest.approx((8 * 60 * 40 + 180,) * 3, rel=1e-5)
    low, value, high = said(model, 150, 8)
    assert 1 < low < value < high


def test_all_that_a_model_says_agrees() -> None:
    model = fitted(refined, (1, 2, 3), (10, 20, 30, 50))
    there = [Point.of(n=n, t=t) for n, t in ((2.0, 5.0), (4.0, 5.0), (3.0, 90.0), (6.0, 90.0))]
    assert model.value(there) == pytest.approx(model.predict(there).value)
    assert model.value(there[1:2]) == pytest.approx(model.value(there)[1:2])
    assert model.expected(there)[[0, 2]] == pytest.approx(model.value(there)[[0, 2]], rel=1e-5)
    assert has_belief(model)
    belief = model.belief(there)
    assert belief.weights.sum() == pytest.approx(1)
    spread = np.sqrt(belief.variance)
    assert spread[[0, 2]].max() < 1e-3 < 0.1 < spread[[1, 3]].min()
    assert np.exp(belief.centre) == pytest.approx(model.value(there), rel=0.5)
    checked = model.belief(there[::2])  # strategies ask for candidates and the evaluation point apart
    assert checked.weights == pytest.approx(belief.weights)
    assert checked.mean == pytest.approx(belief.mean[:, ::2])
    assert checked.factor == pytest.approx(belief.factor[:, :, ::2])
    assert pickle.loads(pickle.dumps(model)).value(there) == pytest.approx(model.value(there))


def free(
    levels: Sequence[float], blocks: Sequence[tuple[float, float]], coefficients: Sequence[float]
) -> bool:
    points = np.array(list(product(levels, (1.0, 2.0, 3.0))))
    terms = [(block, ONE) for block in blocks]
    found = gains(points, terms, np.array(coefficients))
    assert np.isinf(found[:, 1]).all()
    return bool((found[:, 0] < 10).all())


def test_as_many_terms_as_values_are_checked_only_by_how_round_they_are() -> None:
    cubic = (THREE, TWO, ONE, NO)
    assert not free((8, 16, 24, 32, 40), cubic, (0.1234, -3.3, 7.01, 2.2))
    assert free((8, 16, 24, 32), cubic, (0.1234, -3.3, 7.01, 2.2))
    # Cells of a cube of 8 to 32 points, without its faces: shorter than the four counts.
    assert not free((8, 16, 24, 32), cubic, (3, -18, 36, -24))
    # Whole numbers at neighbouring whole numbers always give sixths.
    assert free((5, 6, 7, 8), cubic, (-5824 / 3, 37856, -735280 / 3, 531728))


def test_one_block_at_two_values_is_a_law_only_where_it_is_usual() -> None:
    assert not free((1, 2), (ONE,), (96,))
    assert not free((1, 2), (NO,), (96,))
    assert free((1, 2), (TWO,), (96,))
    assert free((1, 2), (ONE, NO), (96, 5))
    assert not free((1, 2, 3), (TWO,), (96,))
    # Of all numbers that there are, these two are hardly cubes by chance.
    assert not free((35, 50), (THREE,), (1,))


def test_both_largest_values_together_stay_exact() -> None:
    """Every value of either parameter was measured, only the corner was not."""
    count = refined
    points = list(product((1, 2, 3), (10, 20, 30, 50)))[:-1]
    runs = {Point.of(n=float(n), t=float(t)): (float(count(n, t)),) * 2 for n, t in points}
    (model,) = registry.load("model", "auto")()(
        Measurements(("n", "t"), (Measurement("f", "basic_blocks", runs),))
    )
    assert said(model, 3, 50) == pytest.approx((count(3, 50),) * 3, rel=1e-5)


def test_a_small_part_that_nothing_checks_costs_little() -> None:
    """Three values of n say nothing of the small part beyond them, but the large one is known."""

    def count(n: int, t: int) -> float:
        return 4000 * n * t**3 + (n - 2) ** 2 * t + 5 * n * t

    model = fitted(count, (1, 8, 27), (6, 8, 10, 12, 14))
    assert isinstance(model, PmnfModel)
    low, value, high = said(model, 64, 14)
    assert value == pytest.approx(count(64, 14), rel=0.01)
    assert low <= count(64, 14) <= high < 1.2 * low
