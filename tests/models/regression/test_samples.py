import numpy as np
import pytest

from orchestrator.errors import ModelError
from orchestrator.models.regression.samples import arranged, encoded
from orchestrator.types import Measurement, Measurements, Point

POINTS = {
    Point.of(p=p, solver=solver, level=level): (p * 2.0, p * 2.0)
    for p in (1, 2, 4)
    for solver in ("cg", "lu")
    for level in (0, 1)
}


def measurements(**more: object) -> Measurements:
    return Measurements(("p", "solver", "level"), (Measurement("main", "time", POINTS),), **more)  # type: ignore[arg-type]


def test_categories_are_rows_of_one_series() -> None:
    [series], zeros = arranged(measurements())
    assert not zeros and len(series.samples) == 12
    p, solver, level = series.samples.axes
    assert p.logarithmic and p.high == pytest.approx(np.log(4)) and not p.is_categorical
    assert solver.levels == ("cg", "lu") and level.levels is None and not level.logarithmic
    assert np.exp(series.samples.y) == pytest.approx(2 * np.exp(series.samples.x[:, 0]))


def test_numbers_may_be_categories() -> None:
    [series], _ = arranged(measurements(categorical=frozenset({"level"})))
    assert series.samples.axes[2].levels == ("0", "1")


def test_an_unknown_category_has_no_coordinate() -> None:
    [series], _ = arranged(measurements())
    x = encoded(
        series.samples.axes, [Point.of(p=2, solver="qr", level=0), Point.of(p=0, solver="lu", level=1)]
    )
    assert np.isnan(x[0, 1]) and np.isnan(x[1, 0]) and x[1, 1] == 1 and x[0, 0] == pytest.approx(np.log(2))


def test_repetitions_count_and_what_is_zero_is_left_out() -> None:
    values = {Point.of(p=1): (1.0, 1.0, 1.0), Point.of(p=2): (2.0,), Point.of(p=4): (0.0,)}
    items = (Measurement("f", "time", values), Measurement("g", "time", {Point.of(p=1): (0.0,)}))
    [series], zeros = arranged(Measurements(("p",), items))
    assert zeros == [("g", "time", ())] and len(series.samples) == 2
    assert series.samples.runs[0] > series.samples.runs[1]
    assert any("zero" in note for note in series.notes)


def test_the_first_run_of_a_point_is_the_first_that_has_a_value() -> None:
    values = {Point.of(p=p): (float(p),) for p in range(1, 9)} | {Point.of(p=2): (-1.0, 3.0)}
    known = Measurements(("p",), (Measurement("f", "time", values),))
    [series], _ = arranged(known)
    assert np.exp(series.first().y) == pytest.approx([1, 3, 3, 4, 5, 6, 7, 8])


def test_nothing_usable_is_an_error() -> None:
    item = Measurement("f", "time", {Point.of(p=1): (-1.0,), Point.of(p=2): (float("nan"),)})
    with pytest.raises(ModelError, match="no call path has a usable measurement"):
        arranged(Measurements(("p",), (item,)))
