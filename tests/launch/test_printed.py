"""Numbers in what programs print, and patterns that take only a part of one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.campaign import loader
from orchestrator.errors import CampaignError
from orchestrator.launch import generic, printed
from orchestrator.launch.generic import Output, Program


def read(
    pattern: str, text: str, thousands: str | None = None, scale: float = 1.0, metric: str = "time"
) -> float:
    rule = Output(callpath="main", pattern=pattern, thousands=thousands, scale=scale, metric=metric)
    [sample] = generic.application(Program(output=(rule,)), {}).output({"stdout": text})
    return sample.value


@pytest.mark.parametrize(
    ("pattern", "text", "whole"),
    [
        (r"DDOT time: ([\d.]+)", "DDOT time: 1.25e-05\n", "1.25e-05"),
        (r"DDOT time: ([\d.]+)", "DDOT time: 1.25D+05 s", "1.25D+05"),
        (r"time: (\d+)", "time: 3e5", "3e5"),
        (r"time: (\d+)", "time: 12.5 s", "12.5"),
        (r"time: (\d{2})", "time: 125 s", "125"),
        (r"time: (\d+?)", "time: 125 s", "125"),
        (r"Lookups/s: ([\d.]+)", "Lookups/s: 1,020,200", "1,020,200"),
        (r"Lookups/s: (?P<value>[\d,]+)", "Lookups/s: 1,020,200.5", "1,020,200.5"),
        (r"time: *(\d+)\b", "time: 12.5", "12.5"),
        (r"([\d.]+) s$", "change: -1.5 s", "-1.5"),
        (r"(\d+) s$", "time 1.25 s", "1.25"),
        (r"(\d+) s$", "time .25 s", ".25"),
        (r"(\d+) s$", "time 1e-05 s", "1e-05"),
        (r"(\d+) s$", "time 1,020 s", "1,020"),
        (r"(\d{2}) s$", "time 125 s", "125"),
    ],
)
def test_a_part_of_a_number_is_refused_with_the_whole_of_it(pattern: str, text: str, whole: str) -> None:
    message = rf"^main: '.*', matched by '.*', is only a part of '{re.escape(whole)}': .* such as \(\\S\+\)"
    with pytest.raises(ValueError, match=message):
        read(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text", "value"),
    [
        (r"time: ([\d.]+)", "time: 1.25:", 1.25),
        (r"time: ([\d.]+)", "time: 1.25, 250", 1.25),
        (r"time: ([\d.]+)", "time: 1.25,250,300", 1.25),  # a list: no number has a point before a comma
        (r"time: ([\d.]+)", "time: 1.25s", 1.25),
        (r"time: ([\d.]+)", "time: 1.25 e", 1.25),
        (r"time: ([\d.]+)", "time: 5 elements", 5),
        (r"time: ([\d.]+)", "time: 5elements", 5),
        (r"version (\d+)\.", "version 12.5", 12),  # the pattern goes on: the part is meant
        (r"time: -?([\d.]+)", "time: -1.5", 1.5),
        (r"^(\d+),", "12,345,678", 12),
        (r"(\d+) s$", "step-12 s", 12),
        (r"(\d+) s$", "2-12 s", 12),
        (r"(\d+) s$", "time......12 s", 12),
        (r"(\d+) s$", "No.12 s", 12),
        (r"(\d+) s$", "v12 s", 12),
        (r"(\S+) s$", "time 1.0D-03 s", 1e-3),
    ],
)
def test_what_belongs_to_no_number_around_it_is_read(pattern: str, text: str, value: float) -> None:
    assert read(pattern, text) == value


@given(st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(10**12), 10**12)))
def test_a_number_that_is_read_is_the_one_that_was_printed(number: float) -> None:
    for pattern in (r"t = ([\d.]+)", r"t = (\S+)", r"([\d.]+) s", r"(\d+) s", r"t = -?(\d+)"):
        match = re.search(pattern, f"t = {number!r} s")
        if match is None:
            continue
        try:
            assert printed.number(match) == (abs(number) if "-?" in pattern else number)
        except ValueError as error:
            assert f"a part of {str(abs(number) if '-?' in pattern else number)!r}" in str(error)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1,097,991", 1097991), ("-12,345.5", -12345.5), ("1,020e3", 1020e3), ("999", 999), ("1.5", 1.5)],
)
def test_thousands_are_joined_where_that_is_asked(text: str, value: float) -> None:
    assert read(r"rate: (\S+)", f"rate: {text}\n", ",") == value


@pytest.mark.parametrize(
    ("thousands", "text", "value"),
    [
        (".", "1.097.991", 1097991),
        (".", "12.345,5", 12345.5),
        (".", "12,5", 12.5),
        ("'", "1'097'991.5", 1097991.5),
        ("'", "1\u2019097", 1097),
        (" ", "1 097 991 ", 1097991),
        (" ", "1\u202f097", 1097),
        ("_", "1_097_991", 1097991),
    ],
)
def test_thousands_as_other_locales_print_them(thousands: str, text: str, value: float) -> None:
    assert read(r"rate: (.+)", f"rate: {text}\n", thousands) == value


@pytest.mark.parametrize(
    ("thousands", "text"), [(".", "1.5"), (".", "1.0200"), ("'", "1'02"), (" ", "1 02"), ("_", "1_02")]
)
def test_separators_elsewhere_are_errors(thousands: str, text: str) -> None:
    with pytest.raises(ValueError, match=f'is not a number; thousands: "{thousands}" joins groups'):
        read(r"rate: (.+)", f"rate: {text}\n", thousands)


@pytest.mark.parametrize(
    ("thousands", "text", "whole"),
    [(None, "1'020'200", "1'020'200"), (" ", "1 020 200", "1 020 200"), ("_", "1_020", "1_020")],
)
def test_a_group_of_digits_is_part_of_a_number(thousands: str | None, text: str, whole: str) -> None:
    with pytest.raises(ValueError, match=f"is only a part of {re.escape(repr(whole))}"):
        read(r"rate: (\d+)", f"rate: {text}\n", thousands)


@pytest.mark.parametrize("text", ["12,34", "1,0200", "0,123", "1,,000", "1,020,", ",020", "1.5,000"])
def test_a_comma_elsewhere_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r'is not a number; thousands: "," joins groups of three digits'):
        read(r"rate: (\S+)", f"rate: {text}\n", ",")


def test_without_the_option_commas_are_errors_with_a_remedy() -> None:
    with pytest.raises(
        ValueError, match=r"'1,097,991', matched by .*is not a number; write thousands: \",\""
    ):
        read(r"rate: (\S+)", "rate: 1,097,991\n")
    with pytest.raises(ValueError, match=r"'0,5', matched by .*is not a number; where commas are decimal"):
        read(r"time: (\S+)", "time: 0,5\n")


CAMPAIGN = r"""
name: lookups
application: generic
executable: 'true'
program:
  arguments: ["{n}"]
  output: [{callpath: main, metric: rate, pattern: 'Lookups/s: (\S+)', thousands: ","}]
measure: {metrics: [rate]}
parameters: {n: [1, 2]}
stop: {budget: 1}
"""


def test_a_campaign_states_how_thousands_are_separated() -> None:
    application = loader.loads(CAMPAIGN).application_spec
    [sample] = application.output({"stdout": "Lookups/s: 1,020,200\n"})
    assert sample.value == 1020200
    with pytest.raises(CampaignError, match=r"thousands"):
        loader.loads(CAMPAIGN.replace('thousands: ","', 'thousands: ";"'))


@pytest.mark.parametrize(
    ("pattern", "text", "value"),
    [
        (r"WALL: (\S+)", "WALL: 1m29.21s", 89.21),
        (r"CPU +(\S+)s WALL", "PWSCF : 1m10.85s CPU 1m29.21s WALL", 89.21),
        (r"wall: (.+)", "wall: 1 day 2 hours 3 min 4 sec", 93784.0),
        (r"wall: (.+)", "wall: 1 minute 23.4", 83.4),
        (r"CPU +(.+)s WALL", "PWSCF : 0.85s CPU     0.91s WALL", 0.91),
        (r"CPU +(.+)s WALL", "PWSCF : 1m 0.85s CPU   1m 2.34s WALL", 62.34),
        (r"CPU +(.+) WALL", "PWSCF : 1h20m CPU     1h23m WALL", 4980),
        (r"CPU +(.+) WALL", "PWSCF : 0.85s CPU     0.91s WALL", 0.91),
        (r"time: (.+)", "time: 59.9 sec", 59.9),
        (r"time: (\S+)", "time: 2.5e-05s", 2.5e-05),
        (r"time: (\S+)", "time: 850.5ms", 0.8505),
        (r"time: (\S+)", "time: 85µs", 8.5e-5),
        (r"time: (\S+ \w+)", "time: 12 nanoseconds", 1.2e-8),
        (r"Total wall time: (\S+)", "Total wall time: 0:01:23", 83),
        (r"m:ss\): (\S+)", "Elapsed (wall clock) time (h:mm:ss or m:ss): 1:23.40", 83.4),
        (r"real\s+0m(\S+)s", "real\t0m1.250s", 1.25),
        (r"^(\d+)m", "2m3.5s", 2),  # the pattern goes on: minutes are meant
        (r"in (\S+) s", "5 m in 12.5 s", 12.5),
    ],
)
def test_a_duration_is_its_seconds(pattern: str, text: str, value: float) -> None:
    assert read(pattern, text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("pattern", "text", "whole"),
    [
        (r"CPU.*?([\d.]+)s WALL", "PWSCF : 1m10.85s CPU 1m29.21s WALL", "1m29.21s"),
        (r"real\s+\d+m([\d.]+)s", "real\t2m1.250s", "2m1.250s"),
        (r"wall: (\d+)", "wall: 1m 2.34s", "1m 2.34s"),
        (r"wall: (\d+)", "wall: 1 minute 2.34 seconds", "1 minute 2.34 seconds"),
        (r"wall: \d+d (.+?)s", "wall: 1d 2h 3m 4s", "1d 2h 3m 4s"),
        (r"wall: (\d+h \d+m)", "wall: 1h 2m 3s", "1h 2m 3s"),
        (r"wall: 1m(\S+)", "wall: 1m29.21s", "1m29.21s"),
        (r"wall: (\d+)", "wall: 3 h 1 min 2 s", "3 h 1 min 2 s"),
    ],
)
def test_a_part_of_a_duration_is_an_error(pattern: str, text: str, whole: str) -> None:
    with pytest.raises(ValueError, match=rf"is only a part of '{re.escape(whole)}'"):
        read(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text", "scale"),
    [
        (r"time: (\S+)", "time: 850 ms", 1.0),
        (r"time: (\S+)", "time: 1.25 s", 0.001),
        (r"time: ([\d.]+)", "time: 85µs", 0.001),
        (r"time: (\S+)", "time: 850ms", 0.001),
        (r"time: (\S+)", "time: 12 [ms]", 1.0),
    ],
)
def test_a_unit_that_is_not_that_of_the_scale_is_an_error(pattern: str, text: str, scale: float) -> None:
    with pytest.raises(ValueError, match=rf"main: '.*' has a unit .* scale: {scale:g} .* leave out scale"):
        read(pattern, text, scale=scale)


def test_a_unit_that_says_nothing_about_the_scale_is_none() -> None:
    assert read(r"time: (\S+)", "time: 850 ms", scale=0.001) == 0.85
    assert read(r"time: (\S+) ms", "time: 850 ms") == 850  # the pattern goes on: it is meant
    assert read(r"time: (\S+)", "time: 850 s of 10 steps", scale=0.1) == 85
    assert read(r"time: (\S+)", "time: 850 ms/step") == 850
    assert read(r"latency: (\S+)", "latency: 850 ms", metric="latency") == 850


def test_minutes_that_may_be_hours_are_no_duration() -> None:
    with pytest.raises(ValueError, match=r"'12:30', matched by .*is not a number"):
        read(r"wall: (\S+)", "wall: 12:30")
