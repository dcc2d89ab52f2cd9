from __future__ import annotations

import math
import time
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import common


def surface(grid: tuple[int, ...]) -> int:
    a, b, c = grid
    return a * b + b * c + a * c


@given(st.integers(1, 4096))
def test_most_cubic_is_a_factorisation_largest_first(count: int) -> None:
    grid = common.most_cubic(count)
    assert grid[0] * grid[1] * grid[2] == count
    assert list(grid) == sorted(grid, reverse=True)


@pytest.mark.parametrize("count", range(1, 65))
def test_no_grid_has_a_smaller_surface_than_most_cubic(count: int) -> None:
    divisors = [d for d in range(1, count + 1) if count % d == 0]
    grids = [grid for grid in product(divisors, repeat=3) if grid[0] * grid[1] * grid[2] == count]
    assert surface(common.most_cubic(count)) == min(map(surface, grids))


@pytest.mark.parametrize(
    ("count", "grid"), [(1, (1, 1, 1)), (7, (7, 1, 1)), (8, (2, 2, 2)), (12, (3, 2, 2)), (1000, (10, 10, 10))]
)
def test_known_grids(count: int, grid: tuple[int, int, int]) -> None:
    assert common.most_cubic(count) == grid


@given(st.integers(1, 10_000))
def test_most_square_is_a_factorisation_smallest_first(count: int) -> None:
    rows, columns = common.most_square(count)
    assert rows * columns == count and rows <= columns


@pytest.mark.parametrize(("count", "grid"), [(1, (1, 1)), (7, (1, 7)), (12, (3, 4)), (36, (6, 6))])
def test_known_squares(count: int, grid: tuple[int, int]) -> None:
    assert common.most_square(count) == grid


def test_more_ranks_than_mpi_can_number_are_refused_at_once() -> None:
    assert common.ranks({"p": 2**31 - 1}) == 2**31 - 1
    with pytest.raises(ValueError, match="at most 2147483647"):
        common.ranks({"p": 2**63})


def test_the_largest_grids_are_found_at_once() -> None:
    begin = time.process_time()
    assert common.most_cubic(2**31 - 1) == (2**31 - 1, 1, 1)  # a prime number
    highly_composite = 2_095_133_040  # 1600 divisors, the most below 2**31
    assert math.prod(common.most_cubic(highly_composite)) == highly_composite
    assert math.prod(common.most_square(highly_composite)) == highly_composite
    assert time.process_time() - begin < 2.0


@pytest.mark.parametrize("text", ["4,2,1", "4x2x1", " 4, 2, 1 "])
def test_three_numbers_are_written_with_commas_or_x(text: str) -> None:
    assert common.triple({"grid": text}, "grid") == (4, 2, 1)


@pytest.mark.parametrize("text", ["4,2", "4,2,1,1", "4,2,0", "4,-2,1", "a,b,c", "", "4,2,", "4,2,1;ls", 8])
def test_anything_but_three_positive_numbers_is_refused(text: str | int) -> None:
    with pytest.raises(ValueError, match="grid must be three whole numbers"):
        common.triple({"grid": text}, "grid")


def test_a_grid_must_have_p_ranks() -> None:
    assert common.rank_grid({"p": 8, "grid": "8,1,1"}, "grid") == (8, 1, 1)
    assert common.rank_grid({"p": 8}, "grid") == (2, 2, 2)
    with pytest.raises(ValueError, match="grid 2,2,1 has 4 ranks, but p is 8"):
        common.rank_grid({"p": 8, "grid": "2,2,1"}, "grid")


def test_the_size_is_given_per_rank_for_the_whole_or_per_dimension() -> None:
    assert common.cells({"s": 5}, (4, 2, 1), "zones") == (20, 10, 5)
    assert common.cells({"n": 12}, (4, 2, 1), "zones") == (12, 12, 12)
    assert common.cells({"zones": "7,8,9"}, (4, 2, 1), "zones") == (7, 8, 9)


@pytest.mark.parametrize(
    "settings", [{"s": 5, "n": 12}, {"n": 12, "zones": "7,8,9"}, {"s": 1, "n": 1, "zones": "7,8,9"}]
)
def test_two_sizes_contradict_each_other(settings: common.Settings) -> None:
    with pytest.raises(ValueError, match="all give the problem size"):
        common.cells(settings, (1, 1, 1), "zones")


def test_no_size_is_an_error_that_names_the_choices() -> None:
    with pytest.raises(ValueError, match=r"s \(per rank\), n or zones"):
        common.cells({}, (1, 1, 1), "zones")


def test_a_complaint_on_stderr_wins_over_an_empty_stdout() -> None:
    with pytest.raises(ValueError, match="reports on stderr: ERROR: no input"):
        common.output_text({"stdout": "", "stderr": "x\n  ERROR: no input\n"}, "ERROR")


def test_what_is_missing_is_said_with_where_the_output_ends() -> None:
    with pytest.raises(ValueError, match="the output has no 'total'; it ends with 'last line'"):
        common.only("^total", "first line\nlast line\n\n", "'total'")


@pytest.mark.parametrize("value", ["nan", "inf", "-0.1", -1.0])
def test_a_time_is_finite_and_not_negative(value: str | float) -> None:
    with pytest.raises(ValueError, match="main"):
        common.seconds("main", value)
