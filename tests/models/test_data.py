from __future__ import annotations

import pickle
from collections.abc import Mapping

import numpy as np
import pytest

from orchestrator.errors import ModelError
from orchestrator.models.base import Category
from orchestrator.models.data import Group, groups
from orchestrator.models.pmnf.modeler import modeler
from orchestrator.types import Measurement, Measurements, Point
from tests.models.builders import measurements, point

NAN, INFINITE = float("nan"), float("inf")


def one(values: Mapping[Point, tuple[float, ...]], names: tuple[str, ...] = ("p",)) -> Measurements:
    return Measurements(names, (Measurement("main", "time", values),))


def grouped(known: Measurements) -> tuple[list[Group], list[tuple[str, str, Category]]]:
    return groups(known)


def test_callpaths_with_the_same_points_form_one_group() -> None:
    here = {point([2]): (1.0,), point([4]): (2.0,)}
    turned = {point([4]): (5.0,), point([2]): (4.0,)}
    other = {point([2]): (1.0,), point([8]): (2.0,)}
    found, zeros = grouped(measurements(1, here, turned, other))
    assert [group.labels for group in found] == [(("f0", "time"), ("f1", "time")), (("f2", "time"),)]
    assert found[0].values[1, :, 0].tolist() == [4.0, 5.0]
    assert zeros == []


def test_measurements_know_the_values_of_every_parameter_and_which_are_categories() -> None:
    values = {Point.of(p=2, s=7, kind="b"): (1.0,), Point.of(p=1, s=7, kind="a"): (3.0,)}
    known = Measurements(("p", "s", "kind"), (Measurement("main", "time", values),), frozenset({"s"}))
    assert [known.values_of(name) for name in known.parameters] == [(2, 1), (7,), ("b", "a")]
    assert [known.is_categorical(name) for name in known.parameters] == [False, True, True]
    assert pickle.loads(pickle.dumps(known)) == known


def test_repetitions_of_different_number_are_padded() -> None:
    found, _ = grouped(one({point([2]): (1.0, 2.0, 3.0), point([4]): (4.0,)}))
    assert np.isnan(found[0].values[0, 1]).tolist() == [False, True, True]


def test_points_written_in_another_order_are_repetitions_of_one_point() -> None:
    values = {Point.of(p=2, n=1): (1.0,), Point.of(n=1, p=2): (3.0, 5.0), Point.of(p=4, n=1): (7.0,)}
    found, _ = grouped(one(values, ("p", "n")))
    assert found[0].points.tolist() == [[2], [4]]
    assert sorted(found[0].values[0, 0][np.isfinite(found[0].values[0, 0])]) == [1, 3, 5]


def test_a_parameter_with_one_value_is_left_out_with_a_note() -> None:
    found, _ = grouped(one({Point.of(p=2, n=7): (1.0,), Point.of(p=4, n=7): (2.0,)}, ("p", "n")))
    assert found[0].parameters == ("p",)
    note = "n has the one value 7 and is not part of the model: what it does at other values is unknown"
    assert found[0].notes == ((note,),)


@pytest.mark.parametrize("bad", [NAN, INFINITE, -1.0])
def test_bad_values_are_left_out_with_a_note(bad: float) -> None:
    found, _ = grouped(one({point([2]): (1.0, bad), point([4]): (bad,), point([8]): (3.0,)}))
    assert found[0].points.ravel().tolist() == [2, 8]
    assert bool(found[0].notes[0]) == (not np.isnan(bad))


def test_zeros_are_left_out_with_a_note() -> None:
    found, zeros = grouped(one({point([1]): (0.0,), point([2]): (1.0,), point([4]): (2.0,)}))
    assert found[0].points.ravel().tolist() == [2, 4]
    assert "1 value is zero and was left out" in found[0].notes[0][0]
    assert zeros == []


def test_zeros_beside_a_few_ticks_of_a_coarse_clock_are_half_of_one() -> None:
    coarse = {point([1]): (0.0, 0.0), point([2]): (0.0, 0.01, 0.03), point([4]): (0.12, 0.11, 0.0)}
    found, zeros = grouped(one(coarse))
    assert found[0].points.ravel().tolist() == [2, 4]
    assert found[0].values[0, 0].tolist() == [0.005, 0.01, 0.03]
    assert np.isnan(found[0].values[0, 1, 2])  # where others have many ticks, one run must have failed
    assert found[0].notes[0] == (
        "values are multiples of 0.01: 1 zero beside others of their point count as half of it",
        "3 values are zero and were left out: a relative error has no meaning there",
    )
    assert zeros == []


def test_zeros_beside_values_that_no_coarse_clock_gives_are_left_out() -> None:
    found, _ = grouped(one({point([2]): (0.0, 1.37, 1.41), point([4]): (2.6, 0.0)}))
    assert np.isnan(found[0].values[0, :, :2]).tolist() == [[True, False], [False, True]]
    assert found[0].notes[0][0].startswith("2 values are zero and were left out")


def test_parameters_that_were_only_varied_together_are_named() -> None:
    weak = {point([p, 1000 * p]): (float(p),) for p in (4, 8, 16, 32)}
    note = "p and q were only varied together: measure other combinations to know what each does"
    assert grouped(one(weak, ("p", "q")))[0][0].notes == ((note,),)
    apart = {**weak, point([8, 4000]): (5.0,)}
    assert grouped(one(apart, ("p", "q")))[0][0].notes == ((),)


def test_of_parameters_that_follow_from_others_one_is_to_be_left_out() -> None:
    """Columns nx, ny and points = nx * ny: there are no other combinations."""
    grid = {point([nx, ny, nx * ny]): (float(nx),) for nx in (4, 8, 16) for ny in (10, 20, 40)}
    ((note,),) = grouped(one(grid, ("p", "q", "r")))[0][0].notes
    assert note.startswith("p, q and r follow from each other: leave out the one that does")


def test_a_parameter_of_small_range_is_not_tied_to_others() -> None:
    clocks = {point([p, hertz]): (float(p),) for p in (4, 8, 16) for hertz in (2.400e9, 2.401e9)}
    assert "together" not in str(grouped(one(clocks, ("p", "q")))[0][0].notes)


@pytest.mark.parametrize("values", [(NAN,), (-1.0, INFINITE), ()])
def test_nothing_usable_is_an_error_with_a_remedy(values: tuple[float, ...]) -> None:
    with pytest.raises(ModelError, match="another metric"):
        grouped(one({point([2]): values, point([4]): values}))


@pytest.mark.parametrize("coordinate", [NAN, INFINITE])
def test_impossible_coordinates_are_named(coordinate: float) -> None:
    with pytest.raises(ModelError, match=r"P\(p=.*finite parameters"):
        grouped(one({point([coordinate]): (1.0,), point([4]): (2.0,)}))


def test_only_the_normal_form_refuses_parameters_below_zero() -> None:
    known = one({point([-1]): (1.0,), point([4]): (2.0,)})
    assert grouped(known)[0][0].points.ravel().tolist() == [-1, 4]
    with pytest.raises(ModelError, match=r"P\(p=-1\): p is -1, but the normal form needs parameters >= 0"):
        modeler()(known)


@pytest.mark.parametrize("unset", [5e-324, 6.9e-310, 2.8e302])
def test_numbers_of_variables_that_were_never_set_are_left_out(unset: float) -> None:
    found, zeros = grouped(one({point([1]): (unset,), point([2]): (1.0, unset), point([4]): (2.0,)}))
    assert found[0].points.ravel().tolist() == [2, 4] and zeros == []
    assert found[0].values[0, 0].tolist() == pytest.approx([1.0, NAN], nan_ok=True)
    [note] = found[0].notes[0]
    assert note.startswith("2 values are below 1e-100 or above 1e+100 and were left out: such numbers")


def test_categories_have_models_of_their_own() -> None:
    values = {
        Point.of(p=p, layout=layout): (float(p if layout == "DGZ" else 5),)
        for p in (2, 4, 8, 16, 32)
        for layout in ("DGZ", "ZGD")
    }
    models = modeler()(one(values, ("p", "layout")))
    assert [m.category for m in models] == [(("layout", "DGZ"),), (("layout", "ZGD"),)]
    assert [m.expression for m in models] == ["1 * p", "5"]
    here, there = Point.of(p=64, layout="DGZ"), Point.of(p=64, layout="ZGD")
    assert models[0].predict([here, there]).value == pytest.approx([64, NAN], nan_ok=True)


def test_a_parameter_that_is_a_number_at_some_points_is_categorical() -> None:
    values = {Point.of(p=2, gset=1): (1.0,), Point.of(p=2, gset="auto"): (2.0,)}
    found, _ = grouped(one(values, ("p", "gset")))
    assert [group.category for group in found] == [(("gset", "1"),), (("gset", "auto"),)]


def test_numbers_may_be_categories() -> None:
    values = {Point.of(k=k, n=n): (float(k * n),) for k in (1, 2) for n in (1, 2, 3)}
    known = Measurements(("k", "n"), (Measurement("main", "time", values),), frozenset({"k"}))
    found, _ = grouped(known)
    assert [(group.category, group.parameters) for group in found] == [
        ((("k", "1"),), ("n",)),
        ((("k", "2"),), ("n",)),
    ]
