from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import ReadError
from orchestrator.readers.extrap_text import read_text
from orchestrator.types import Measurement, Measurements, Point

GOOD = """\
# LULESH
PARAMETER p s

POINTS (8 10) ( 8 20 )
POINTS (27 10.5)

METRIC time
REGION main->solve
DATA 1.5 1.25
  # a comment between
DATA\t2
DATA 3e1 .5 4.
REGION setup
DATA 1
DATA 2
DATA 3
METRIC visits
DATA 10
DATA 20
DATA 30
"""


def read(text: str) -> Measurements:
    return read_text(text, "in.txt")


def test_points_regions_metrics_and_repetitions() -> None:
    got = read(GOOD)
    assert got.parameters == ("p", "s")
    a, b, c = Point.of(p=8, s=10), Point.of(p=8, s=20), Point.of(p=27, s=10.5)
    assert got.items == (
        Measurement("main->solve", "time", {a: (1.5, 1.25), b: (2.0,), c: (30.0, 0.5, 4.0)}),
        Measurement("setup", "time", {a: (1.0,), b: (2.0,), c: (3.0,)}),
        Measurement("setup", "visits", {a: (10.0,), b: (20.0,), c: (30.0,)}),
    )


def test_one_parameter_needs_no_parentheses_and_no_metric() -> None:
    got = read("PARAMETER p\nPOINTS 10 20\nPOINTS (30) ( 40 )\nREGION  a   b \n" + "DATA 1\n" * 4)
    assert [point["p"] for point in got.points] == [10, 20, 30, 40]
    assert [(item.callpath, item.metric) for item in got.items] == [("a b", "<default>")]


def test_inner_parentheses_are_allowed_and_parameters_may_follow_each_other() -> None:
    got = read("PARAMETER p\nPARAMETER n m\nPOINTS ((1) (2) (3)) (4 5 (6))\nREGION a\nDATA 1\nDATA 2\n")
    assert got.points == (Point.of(p=1, n=2, m=3), Point.of(p=4, n=5, m=6))


def test_five_parameters_are_no_limit() -> None:
    got = read("PARAMETER a b c d e\nPOINTS (1 2 3 4 5)\nREGION x\nDATA 1\n")
    assert len(got.parameters) == 5


HEAD = "PARAMETER p\nPOINTS 1 2\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", r"in\.txt: no parameters"),
        ("PARAMETER p\n", r"in\.txt: no measurements"),
        (HEAD, r"in\.txt: no measurements"),
        ("PARAMETER p\nPOINT 1\n", r"in\.txt:2: unknown keyword 'POINT': did you mean POINTS\?"),
        ("PARAMETER p\nXYZZY 1\n", r"in\.txt:2: unknown keyword 'XYZZY': known: PARAMETER"),
        ("PARAMETER\n", r"in\.txt:1: PARAMETER without a value"),
        ("POINTS 1\n", r"in\.txt:1: POINTS before PARAMETER"),
        (f"{HEAD}REGION a\nPARAMETER time\nDATA 1\n", r"in\.txt:4: PARAMETER time after POINTS"),
        (
            "PARAMETER p p\nPOINTS (1 1)\nREGION a\nDATA 1\n",
            r"in\.txt: every parameter needs a name of its own",
        ),
        ("PARAMETER p s\nPOINTS (1)\n", r"in\.txt:2: point \(1\) has 1 values for 2 parameters \(p, s\)"),
        ("PARAMETER p s\nPOINTS 1 2\n", r"in\.txt:2: point \(1\) has 1 values"),
        ("PARAMETER p\nPOINTS (1 2)\n", r"in\.txt:2: point \(1 2\) has 2 values"),
        ("PARAMETER p\nPOINTS 1 x\n", r"in\.txt:2: 'x' is not a number"),
        ("PARAMETER p\nPOINTS 1 nan\n", r"in\.txt:2: 'nan' is not a number"),
        ("PARAMETER p\nPOINTS 1 1e999\n", r"in\.txt:2: the value inf is not finite"),
        ("PARAMETER p\nPOINTS (1 (2)\n", r"in\.txt:2: a parenthesis is not closed"),
        ("PARAMETER p\nPOINTS (1)) (2)\n", r"in\.txt:2: unbalanced parentheses"),
        ("PARAMETER p\nPOINTS (1) 2 (3)\n", r"in\.txt:2: unbalanced parentheses at '2'"),
        ("PARAMETER p\nPOINTS 1 2 1.0\n", r"in\.txt:2: point \(1\.0\) is listed twice"),
        (HEAD + "DATA 1\n", r"in\.txt:3: DATA before the first REGION"),
        (HEAD + "REGION a\nDATA 1\nDATA\n", r"in\.txt:5: DATA without a value"),
        (HEAD + "REGION a\nDATA 1\nDATA 2 # new\n", r"in\.txt:5: '#' is not a number"),
        (
            HEAD + "REGION a\nDATA 1\n\nREGION b\n",
            r"in\.txt:4: region 'a'.* ends after 1 DATA lines.* 2 POINTS",
        ),
        (HEAD + "REGION a\nDATA 1\n", r"in\.txt:4: region 'a'.* ends after 1"),
        (
            HEAD + "REGION a\nDATA 1\nDATA 2\nDATA 3\n",
            r"in\.txt:6: more DATA lines for region 'a'.*POINTS \(2\)",
        ),
        (
            HEAD + "REGION a\nDATA 1\nDATA 2\nREGION a\nDATA 3\nDATA 4\n",
            r"in\.txt:7: region 'a'.* given before, at in\.txt:4",
        ),
    ],
)
def test_mistakes_are_told_with_file_and_line(text: str, reason: str) -> None:
    with pytest.raises(ReadError, match=reason):
        read(text)


words = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=8)
numbers = st.integers(-(10**6), 10**6) | st.floats(allow_nan=False, allow_infinity=False, width=64)


@st.composite
def complete_measurements(draw: st.DrawFn) -> Measurements:
    parameters = draw(st.lists(words, min_size=1, max_size=3, unique=True))
    coordinates = st.tuples(*[numbers] * len(parameters))
    points = [
        Point(tuple(zip(parameters, values, strict=True)))
        for values in draw(st.lists(coordinates, min_size=1, max_size=4, unique=True))
    ]
    keys = draw(st.lists(st.tuples(words, words), min_size=1, max_size=3, unique=True))
    values = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=3).map(tuple)
    items = tuple(
        Measurement(callpath, metric, {point: draw(values) for point in points}) for callpath, metric in keys
    )
    return Measurements(tuple(parameters), items)


def written(measurements: Measurements) -> str:
    lines = [f"PARAMETER {' '.join(measurements.parameters)}"]
    lines += [f"POINTS ( {' '.join(repr(value) for _, value in p.items)} )" for p in measurements.points]
    for item in measurements.items:
        lines += ["", f"METRIC {item.metric}", f"REGION {item.callpath}"]
        lines += [f"DATA {' '.join(map(repr, item.values[point]))}" for point in measurements.points]
    return "\n".join(lines)


@settings(deadline=None)
@given(complete_measurements())
def test_what_is_written_is_read(measurements: Measurements) -> None:
    assert read(written(measurements)) == measurements


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(["PARAMETER", "POINTS", "METRIC", "REGION", "DATA", "#"]).flatmap(
            lambda keyword: st.text("01.e-() #a\t", max_size=12).map(lambda rest: f"{keyword} {rest}")
        ),
        max_size=8,
    ).map("\n".join)
    | st.text()
)
def test_garbage_gives_measurements_or_a_read_error(text: str) -> None:
    try:
        got = read(text)
    except ReadError as error:
        assert "in.txt" in str(error)
    else:
        assert got.items
