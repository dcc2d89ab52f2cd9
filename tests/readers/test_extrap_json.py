from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import ReadError
from orchestrator.readers.extrap_json import read_json, read_json_lines
from orchestrator.types import Measurement, Measurements, Point
from tests.readers.test_extrap_text import complete_measurements

NEW = {
    "parameters": ["p", "s"],
    "measurements": {
        "main": {
            "time": [{"point": [8, 10], "values": [1.5, 2]}, {"point": [27, 10], "values": [3]}],
            "visits": [{"point": [27, 10], "values": [1]}],
        }
    },
}
OLD = {
    "parameters": [{"id": 2, "name": "s"}, {"id": 1, "name": "p"}],
    "callpaths": [{"id": 5, "name": "main"}],
    "metrics": [{"id": 1, "name": "time"}, {"id": 2, "name": "visits"}],
    "coordinates": [
        {
            "id": 7,
            "parameter_value_pairs": [
                {"parameter_id": 2, "parameter_value": 10},
                {"parameter_id": 1, "parameter_value": 8},
            ],
        },
        {
            "id": 9,
            "parameter_value_pairs": [
                {"parameter_id": 1, "parameter_value": 27},
                {"parameter_id": 2, "parameter_value": 10},
            ],
        },
    ],
    "measurements": [
        {"id": 1, "callpath_id": 5, "metric_id": 1, "coordinate_id": 7, "value": 1.5},
        {"id": 2, "callpath_id": 5, "metric_id": 1, "coordinate_id": 9, "value": 3},
        {"id": 3, "callpath_id": 5, "metric_id": 1, "coordinate_id": 7, "value": 2},
        {"id": 4, "callpath_id": 5, "metric_id": 2, "coordinate_id": 9, "value": 1},
    ],
}
EXPECTED = Measurements(
    ("p", "s"),
    (
        Measurement("main", "time", {Point.of(p=8, s=10): (1.5, 2.0), Point.of(p=27, s=10): (3.0,)}),
        Measurement("main", "visits", {Point.of(p=27, s=10): (1.0,)}),
    ),
)


@pytest.mark.parametrize("document", [NEW, OLD], ids=["current", "old"])
def test_both_json_formats_give_the_same(document: object) -> None:
    assert read_json(json.dumps(document), "in.json") == EXPECTED


def replaced(document: object, path: list[object], value: object) -> object:
    copy = json.loads(json.dumps(document))
    place = copy
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return copy


TIME: list[object] = ["measurements", "main", "time"]


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (["parameters"], None, "expected the keys 'parameters' and 'measurements', found measurements"),
        (["parameters"], "p", "'parameters' is not a list"),
        (["parameters"], [], "no parameters"),
        (["parameters"], ["p", 3], "the name 3 is not a text"),
        (["measurements"], {}, "no measurements"),
        (["measurements", "main"], 4, "'main' is not an object"),
        (TIME, {}, "'time' is not a list"),
        ([*TIME, 1, "point"], [27], r"measurements/main/time\[1\]: 1 coordinates for 2 parameters"),
        ([*TIME, 1, "point"], None, r"measurements/main/time\[1\]: 'point' is missing"),
        ([*TIME, 1, "point"], [27, [3]], r"time\[1\]/point: \[3\] is not a number"),
        ([*TIME, 1, "point"], ["a", 10], r"time\[1\]: parameter p is 'a' here but 8 before"),
        ([*TIME, 0, "values"], [], "0 values"),
        ([*TIME, 0, "values"], [1, "2"], r"time\[0\]/values: '2' is not a number"),
        ([*TIME, 0, "values"], [True], "True is not a number"),
        ([*TIME, 0, "values"], [10**400], "inf is not finite"),
    ],
)
def test_mistakes_in_the_current_format_are_told_with_their_place(
    path: list[object], value: object, reason: str
) -> None:
    with pytest.raises(ReadError, match=rf"in\.json: .*{reason}"):
        read_json(json.dumps(replaced(NEW, path, value)), "in.json")


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (["metrics"], None, "'metrics' is missing"),
        (["metrics", 1, "id"], 1, r"metrics\[1\]: the id 1 is given twice"),
        (["callpaths", 0, "name"], None, "'name' is missing"),
        (
            ["measurements", 2, "callpath_id"],
            77,
            r"measurements\[2\]: callpath_id is 77, but no entry has this id",
        ),
        (["measurements", 0, "value"], "fast", r"measurements\[0\]: 'fast' is not a number"),
        (
            ["coordinates", 0, "parameter_value_pairs", 0, "parameter_id"],
            3,
            r"coordinates, id 7: values of the",
        ),
        (["coordinates", 0], "x", r"coordinates\[0\]: 'id' is missing"),
    ],
)
def test_mistakes_in_the_old_format_are_told_with_their_place(
    path: list[object], value: object, reason: str
) -> None:
    with pytest.raises(ReadError, match=rf"in\.json: .*{reason}"):
        read_json(json.dumps(replaced(OLD, path, value)), "in.json")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[1, 2]", r"in\.json: the document is not a JSON object; other JSON is not read: write a"),
        ('{\n "parameters": [\n}', r"in\.json:3: not JSON: "),
        ('{"parameters": ["p"], "measurements": {"a": {}, "a": {}}}', "the key 'a' is given twice"),
        ("[" * 100_000, "not JSON: maximum recursion"),
        ("9" * 5000, "not JSON: "),
    ],
)
def test_what_is_not_json_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ReadError, match=reason):
        read_json(text, "in.json")


def test_json_lines_collect_repetitions_and_default_names() -> None:
    text = (
        '{"params": {"x": 1, "y": 2.5}, "value": 3}\n\n'
        '{"params": {"y": 2.5, "x": 1}, "value": [4, 5.5]}\n'
        '{"params": {"x": 2, "y": 2.5}, "metric": "time", "callpath": "main->f", "value": 1}\n'
    )
    point = Point.of(x=1, y=2.5)
    assert read_json_lines(text, "in.jsonl") == Measurements(
        ("x", "y"),
        (
            Measurement("<root>", "<default>", {point: (3.0, 4.0, 5.5)}),
            Measurement("main->f", "time", {Point.of(x=2, y=2.5): (1.0,)}),
        ),
    )


def test_categories_are_texts() -> None:
    text = '{"params": {"layout": "DGZ", "p": 2}, "value": 3}'
    assert read_json_lines(text, "in.jsonl").points == (Point.of(layout="DGZ", p=2),)


FIRST = '{"params": {"x": 1}, "value": 3}\n'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\n\n", r"in\.jsonl: no measurements"),
        ('{"params": {}, "value": 3}', r"in\.jsonl: no parameters"),
        (FIRST + "\n{", r"in\.jsonl:3: not JSON"),
        (FIRST + "7", r"in\.jsonl:2: 'params' is missing"),
        (
            '{"n": 1, "time": 2}\n',
            r"in\.jsonl:1: .*'params' and 'value', found n, time; other JSON is not read",
        ),
        (FIRST + '{"params": {"x": 1}}', r"in\.jsonl:2: 'value' is missing"),
        (FIRST + '{"params": {"x": 1}, "value": []}', r"in\.jsonl:2: 'value' is an empty list"),
        (FIRST + '{"params": {"x": 1}, "value": NaN}', r"in\.jsonl:2: the value nan is not finite"),
        (FIRST + '{"params": {"x": 1}, "value": [1, -Infinity]}', r"in\.jsonl:2: the value -inf"),
        (FIRST + '{"params": {"x": null}, "value": 1}', r"in\.jsonl:2: x: None is not a number"),
        (FIRST + '{"params": {"x": "1"}, "value": 1}', r"in\.jsonl:2: parameter x is '1' here but 1 before"),
        (FIRST + '{"params": {"x": 1, "y": 2}, "value": 1}', r"in\.jsonl:2: the parameters are x, y, but"),
        (FIRST + '{"params": {"x": 1}, "callpath": 3, "value": 1}', r"in\.jsonl:2: the name 3"),
        (FIRST + '{"params": {"x": 1, "x": 2}, "value": 1}', r"in\.jsonl:2: the key 'x' is given twice"),
    ],
)
def test_mistakes_in_json_lines_are_told_with_file_and_line(text: str, reason: str) -> None:
    with pytest.raises(ReadError, match=reason):
        read_json_lines(text, "in.jsonl")


@settings(deadline=None)
@given(complete_measurements())
def test_what_is_written_is_read(measurements: Measurements) -> None:
    table: dict[str, dict[str, list[object]]] = {}
    for item in measurements.items:
        table.setdefault(item.callpath, {})[item.metric] = [
            {"point": [value for _, value in point.items], "values": values}
            for point, values in item.values.items()
        ]
    text = json.dumps({"parameters": measurements.parameters, "measurements": table}, indent=1)
    got = read_json(text, "in.json")
    assert got.parameters == measurements.parameters
    assert set(map(repr, got.items)) == set(map(repr, measurements.items))


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(
            st.sampled_from([*NEW, *OLD, "params", "value", "point", "values", "id", "name", "x"]), below
        )
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(st.text() | documents.map(json.dumps))
def test_garbage_gives_measurements_or_a_read_error(text: str) -> None:
    for reader in (read_json, read_json_lines):
        try:
            got = reader(text, "in.json")
        except ReadError as error:
            assert "in.json" in str(error)
        else:
            assert got.items
