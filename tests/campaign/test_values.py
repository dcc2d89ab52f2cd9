"""Values of parameters: lists, ranges, categories."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.campaign import values as campaign_values
from orchestrator.campaign.schema import Values
from orchestrator.errors import ExpressionError
from orchestrator.types import Parameter


def parameter(**section: Any) -> Parameter:
    return campaign_values.parameter("p", Values.model_validate(section), {"base": 2, "mode": "fast"})


@given(st.sets(st.one_of(st.integers(-100, 100), st.floats(-100, 100)), min_size=1).map(tuple))
def test_numbers_are_sorted_and_keep_their_values(values: tuple[float, ...]) -> None:
    found = parameter(values=values)
    assert found.values == tuple(sorted(values))
    assert not found.categorical
    kinds = {type(value) for value in found.values}
    assert kinds == ({int} if all(value == int(value) for value in values) else {float})


@given(st.integers(-1000, 1000), st.integers(1, 500), st.integers(0, 200), st.integers(0, 3))
def test_steps_are_exact_multiples_of_what_is_written(first: int, step: int, count: int, digits: int) -> None:
    scale = 10**digits
    start, width = first / scale, step / scale
    end = (first + count * step) / scale
    found = parameter(**{"from": start, "to": end, "step": width}).values
    assert found == tuple(float(Fraction(first + i * step, scale)) for i in range(count + 1))


def test_a_step_of_a_tenth_contains_three_tenths() -> None:
    assert 0.3 in parameter(**{"from": 0, "to": 1, "step": 0.1}).values
    assert len(parameter(**{"from": 0, "to": 1, "step": 0.1}).values) == 11


@given(st.integers(1, 50), st.integers(2, 5), st.integers(0, 8), st.floats(0, 0.99))
def test_factors_are_exact_powers(first: int, factor: int, count: int, excess: float) -> None:
    end = first * factor**count * (1 + excess)
    assert parameter(**{"from": first, "to": end, "factor": factor}).values == tuple(
        first * factor**i for i in range(count + 1)
    )


def test_fractional_factors_meet_the_whole_numbers() -> None:
    values = parameter(**{"from": 8, "to": 64, "factor": math.sqrt(2)}).values
    assert values[::2] == (8, 16, 32, 64)
    whole = parameter(**{"from": 1, "to": 10, "factor": 1.3, "type": "integer"}).values
    assert whole == (1, 2, 3, 4, 5, 6, 8)


def test_a_range_of_a_million_values() -> None:
    assert len(parameter(**{"from": 1, "to": 10**6}).values) == 10**6
    cubes = parameter(**{"from": 1, "to": 10**6, "constraint": "round(p ** (1/3)) ** 3 == p"}).values
    assert cubes == tuple(i**3 for i in range(1, 101))


def test_categories_keep_their_order() -> None:
    found = parameter(values=("GDZ", "DGZ", "on", "1"))
    assert found == Parameter("p", ("GDZ", "DGZ", "on", "1"), categorical=True)
    assert parameter(values=(3, 1, 2), type="categorical") == Parameter("p", (3, 1, 2), categorical=True)


def test_per_value_constraints_see_settings_and_text() -> None:
    assert parameter(values=(1, 2, 3, 4), constraint="p % base == 0 and mode == 'fast'").values == (2, 4)
    assert parameter(values=("a", "b"), constraint="p != 'a'").values == ("b",)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"values": ()}, "values is empty"),
        ({"values": (), "type": "categorical"}, "values is empty"),
        ({"values": (1, 2, 1.0)}, "has 1 twice"),
        ({"values": ("a", "a")}, "has a twice"),
        ({"values": (1, "a")}, "mix text and numbers"),
        ({"values": (1, 2.5), "type": "integer"}, "2.5 is not a whole number"),
        ({"values": ("a",), "type": "float"}, "type float does not fit text"),
        ({"values": (1,), "from": 1}, "has both values and from"),
        ({"values": (1,), "step": 1}, "has both values and step"),
        ({}, "needs either values"),
        ({"from": 1}, "needs either values"),
        ({"from": 3, "to": 1}, "swap them"),
        ({"from": 1, "to": 3, "step": 0}, "step 0 must be positive"),
        ({"from": 1, "to": 3, "step": 1, "factor": 2}, "keep one"),
        ({"from": 1, "to": 3, "factor": 1}, "factor 1 must be greater than 1"),
        ({"from": 0, "to": 3, "factor": 2}, "from 0 greater than 0"),
        ({"from": 0, "to": 1, "step": 1e-9}, r"1e\+09 values, at most 1000000"),
        ({"from": 1, "to": 2, "factor": 1 + 1e-9}, "values, at most 1000000"),
        ({"from": 1, "to": 3, "constraint": "p > 3"}, "excludes all 3 values 1 .. 3"),
        ({"from": 1, "to": 3, "constraint": "p + 3"}, "neither true nor false"),
    ],
)
def test_mistakes(section: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parameter(**section)


def test_a_constraint_may_not_use_other_parameters() -> None:
    with pytest.raises(ExpressionError, match="unknown name 's'"):
        parameter(values=(1, 2), constraint="p < s")
