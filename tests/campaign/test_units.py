"""Durations and core-hours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import units


@given(st.integers(0, 10**10))
def test_durations_round_trip_to_the_millisecond(milliseconds: int) -> None:
    text = units.format_duration(milliseconds / 1000)
    assert round(units.parse_duration(text) * 1000) == milliseconds


@given(st.floats(0, 1e9))
def test_plain_numbers_are_seconds_and_core_hours(number: float) -> None:
    assert units.parse_duration(number) == number
    assert units.parse_cost(number) == number * 3600
    assert units.parse_cost(f"{number!r} core-seconds") == number


@given(st.floats(1e-3, 1e9))
def test_costs_round_trip_to_four_digits(core_seconds: float) -> None:
    assert units.parse_cost(units.format_cost(core_seconds)) == pytest.approx(core_seconds, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90 s", 90),
        ("90s", 90),
        ("10 min", 600),
        ("1.5 h", 5400),
        ("1 h 30 min", 5400),
        ("2 d", 172800),
        ("1:30:00", 5400),
        ("0:00:01.5", 1.5),
        ("2-12:00:00", 216000),
        ("5 ms", 0.005),
        ("1e3 s", 1000),
        (" 3 Hours ", 10800),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert units.parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "s", "90", "12:30", "1:60:00", "5 parsecs", "5 m s h", "-5 s", "1 h,", "nan s", True]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"write|unknown unit"):
        units.parse_duration(text)


def test_an_unknown_unit_is_told_from_those_that_are_known() -> None:
    with pytest.raises(
        ValueError, match=r"unknown unit 'minuts' in '5 minuts'; known: ms, s, min, h, d; write"
    ):
        units.parse_duration("5 minuts")
    known = "core-seconds, core-minutes, core-hours, core-days; write for example 50 core-hours"
    with pytest.raises(ValueError, match=f"unknown unit 'core-weeks' in '1 core-weeks'; known: {known}"):
        units.parse_cost("1 core-weeks")
    for unit in ("seconds", "minutes", "hours", "days", "s", "min", "h", "d"):
        assert units.parse_cost(f"2 core-{unit}") == units.parse_duration(f"2 {unit}")


def test_ambiguous_clock_times_are_explained() -> None:
    with pytest.raises(ValueError, match="may mean minutes or hours; write 12:30:00"):
        units.parse_duration("12:30")


@pytest.mark.parametrize(
    ("text", "core_seconds"),
    [("50 core-hours", 180000), ("30 core-minutes", 1800), ("100 core-seconds", 100), ("1 core hour", 3600),
     ("0.5 core-h", 1800), ("1e2 core-hours", 360000)],
)  # fmt: skip
def test_costs(text: str, core_seconds: float) -> None:
    assert units.parse_cost(text) == core_seconds


@pytest.mark.parametrize(
    "text", ["50", "50 hours", "node-hours", "5 node-hours", "-1 core-hours", "5 core-apples", True]
)
def test_what_is_no_cost(text: str) -> None:
    with pytest.raises(ValueError, match=r"write|unknown unit"):
        units.parse_cost(text)


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("5 node-hours", "node-hours times the cores of a node"),
        ("5 GPU-hours", "divided by the GPUs of a node"),
    ],
)
def test_how_other_budgets_are_core_hours(text: str, how: str) -> None:
    with pytest.raises(ValueError, match=f"'{text}' is not a budget; write core-hours, the .*{how}"):
        units.parse_cost(text)


def test_formats() -> None:
    assert units.format_duration(5400) == "1 h 30 min"
    assert units.format_duration(0) == "0 s"
    assert units.format_duration(-0.25) == "-0.25 s"
    assert units.format_duration(59.9999) == "1 min"
    assert units.format_cost(3600 * 12.3456) == "12.35 core-hours"
    assert units.format_cost(3600 * 123456) == "123456 core-hours"
    assert units.format_cost(60.0, "core-seconds") == "60 core-seconds"
    assert units.format_cost(5400.0, "core-minutes") == "90 core-minutes"
    assert units.format_cost(12345.6, "core-seconds", 3) == "12346 core-seconds"
    assert units.format_cost(1.7e-11, "core-seconds") == "0 core-seconds"  # what sums of floats leave
    assert units.hours_in(1 / 60, "core-seconds") == "60"
    assert units.cost_at_least(1.00001, "core-seconds") == "1.001 core-seconds"


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.187, "18.7 %"),
        (9.99, "999 %"),
        (14.4, "14.4 times the value"),
        (2e5, "more than 1000 times the value"),
    ],
)
def test_uncertainties_have_no_exponents(share: float, text: str) -> None:
    assert units.uncertainty(share) == text


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        (50, "core-hours"),
        ("60 core-seconds", "core-seconds"),
        ("60 core-s", "core-seconds"),
        ("2 core-MIN", "core-minutes"),
        ("2 core min", "core-minutes"),
        ("1 core-h", "core-hours"),
        ("0.5 core-days", "core-days"),
        ("5 core-ms", "core-hours"),
        ("much", "core-hours"),
    ],
)
def test_the_unit_of_a_cost(text: object, unit: str) -> None:
    assert units.cost_unit(text) == unit
