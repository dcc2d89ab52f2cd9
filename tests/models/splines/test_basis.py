"""Knots and columns of restricted cubic splines."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.models.splines.basis import MOST_KNOTS, bends, columns, cubes_of, knots

UNIFORM = np.linspace(0, 1, 1001)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (3, (0.1, 0.5, 0.9)),
        (4, (0.05, 0.35, 0.65, 0.95)),
        (5, (0.05, 0.275, 0.5, 0.725, 0.95)),
        (7, (0.025, 0.1833, 0.3417, 0.5, 0.6583, 0.8167, 0.975)),
    ],
)
def test_knots_are_at_harrell_s_quantiles(number: int, expected: tuple[float, ...]) -> None:
    assert knots(UNIFORM, number) == pytest.approx(expected, abs=1e-3)


def test_outer_knots_of_few_values_are_the_fifth_ones() -> None:
    assert knots(np.arange(60.0), 4)[::3] == (4.0, 55.0)


def test_few_different_values_have_no_more_knots_than_values() -> None:
    values = np.repeat([1.0, 2.0, 4.0], 50)
    assert knots(values, 5) == (1.0, 2.0, 4.0)
    assert knots(np.repeat([1.0, 2.0], 50), 5) == ()
    assert knots(np.ones(50), 5) == ()


def test_quantiles_that_coincide_are_those_of_the_different_values() -> None:
    values = np.concatenate([np.zeros(900), np.arange(1.0, 8.0)])
    found = knots(values, 4)
    assert len(found) == 4 and found[0] == 0 and found[-1] == 7
    assert min(np.diff(found)) > 1


def test_columns_are_harrell_s() -> None:
    """The second column of three knots as his equation 2.26 has it, divided by the squared distance."""
    x, (a, b, c) = np.array([0.0, 1.5, 2.5, 7.0]), (1.0, 2.0, 5.0)
    of_a, of_b, of_c = (np.maximum(x - knot, 0) ** 3 for knot in (a, b, c))
    expected = (of_a - of_b * (c - a) / (c - b) + of_c * (b - a) / (c - b)) / (c - a) ** 2
    np.testing.assert_allclose(columns(x, (a, b, c)), np.column_stack([x, expected]))


@pytest.mark.parametrize("number", range(3, MOST_KNOTS + 1))
def test_a_spline_is_straight_outside_and_smooth_everywhere(number: int) -> None:
    places = knots(UNIFORM, number)
    step = 1e-3
    for tail in (np.linspace(-2, places[0], 9), np.linspace(places[-1], 3, 9)):
        for bend in bends(tail, places):
            np.testing.assert_allclose(np.diff(bend, 2), 0, atol=1e-9)
    x = np.arange(-0.5, 1.5, step)
    for bend in bends(x, places):
        second = np.diff(bend, 2) / step**2
        # Cubic pieces that meet with equal second derivatives: these are straight lines without jumps.
        assert np.abs(np.diff(second)).max() < 0.02 * max(np.abs(second).max(), 1)
    assert np.linalg.matrix_rank(np.column_stack([np.ones_like(x), columns(x, places)])) == number


def test_no_knots_are_a_straight_line() -> None:
    assert columns(UNIFORM, ()).shape == (1001, 1)
    assert cubes_of(()) == []
