from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator import registry
from orchestrator.models.data import Group, groups
from orchestrator.models.thinning import thinned
from orchestrator.types import Measurement, Measurements, Point


def sampled(number: int, parameters: int, seed: int = 1) -> Measurements:
    """Return a product of powers at random points, two repetitions each."""
    rng = np.random.default_rng(seed)
    names = [f"x{k}" for k in range(parameters)]
    drawn = np.exp(rng.uniform(0, 5, (number, parameters)))
    values = {
        Point(tuple(zip(names, map(float, x), strict=True))): tuple(
            float(0.1 + 0.01 * x[0] * np.sqrt(x[-1]) * np.exp(rng.normal(0, 0.02))) for _ in range(2)
        )
        for x in drawn
    }
    return Measurements(tuple(names), (Measurement("main", "time", values),))


def grouped(known: Measurements) -> list[Group]:
    return groups(known)[0]


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 4000), st.integers(1, 12), st.integers(0, 9))
def test_the_ends_of_every_parameter_are_kept_and_values_stay_with_their_points(
    number: int, parameters: int, seed: int
) -> None:
    (before,) = grouped(sampled(number, parameters))
    (after,) = thinned([before], np.random.default_rng(seed))
    assert len(after.points) == min(number, max(min(3072 // parameters, 2048), 128))
    assert np.array_equal(after.points.min(axis=0), before.points.min(axis=0))
    assert np.array_equal(after.points.max(axis=0), before.points.max(axis=0))
    rows = [int(np.flatnonzero((before.points == point).all(axis=1))[0]) for point in after.points]
    assert rows == sorted(set(rows))
    assert np.array_equal(after.values, before.values[:, rows])
    assert (after is before) == (number == len(after.points))


def test_origins_stay_with_their_values_and_a_note_says_what_was_left_out() -> None:
    known = sampled(3000, 3)
    (item,) = known.items
    origins = {point: (f"job {k}", f"job {k + 1}") for k, point in enumerate(item.values)}
    item = Measurement("main", "time", item.values, origins)
    (before,) = grouped(Measurements(known.parameters, (item,)))
    (after,) = thinned([before], np.random.default_rng(0))
    assert before.origins is not None
    assert after.origins is not None
    rows = [int(np.flatnonzero((before.points == point).all(axis=1))[0]) for point in after.points]
    assert np.array_equal(after.origins, before.origins[:, rows])
    assert after.notes == (
        ("fitted to 1024 of 3000 points, drawn at random beside the ends of every parameter",),
    )


def test_categories_share_what_is_kept() -> None:
    known = sampled(8000, 2)
    (item,) = known.items
    kinds = ("a", "b")
    values = {
        Point((*point.items, ("kind", kinds[k % 2]))): found
        for k, (point, found) in enumerate(item.values.items())
    }
    both = grouped(Measurements((*known.parameters, "kind"), (Measurement("main", "time", values),)))
    assert [len(group.points) for group in thinned(both, np.random.default_rng(0))] == [768, 768]


@pytest.mark.parametrize(("family", "error"), [("pmnf", 0.02), ("curves", 0.15)])
def test_of_many_points_some_are_fitted_with_a_note_and_the_same_result_every_time(
    family: str, error: float
) -> None:
    known, inside = sampled(5000, 2), Point.of(x0=100.0, x1=100.0)
    first, again = (registry.load("model", family)()(known)[0] for _ in range(2))
    assert any("fitted to 1536 of 5000 points" in note for note in first.notes)
    expected = 0.1 + 0.01 * 100 * np.sqrt(100)
    assert first.value([inside])[0] == again.value([inside])[0] == pytest.approx(expected, rel=error)
