"""A report that ReFrame 4.10.4 wrote, whole and changed (see `tests/data/reframe`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import ReadError
from orchestrator.readers.load import load
from orchestrator.readers.reading import Reading
from orchestrator.readers.reframe import read
from orchestrator.types import Point

FILE = Path(__file__).parents[1] / "data" / "reframe" / "report.json"


def changed(place: int = 0, **keys: Any) -> str:
    """Return the report with keys of one test case replaced."""
    document = json.loads(FILE.read_text())
    document["runs"][0]["testcases"][place].update(keys)
    return json.dumps(document)


def test_performance_values_of_cases_that_passed_are_measurements() -> None:
    found = load([FILE])
    assert found.parameters == ("n", "p")
    a, b, c = Point.of(n=1, p=1), Point.of(n=1, p=2), Point.of(n=2, p=2)
    assert {(item.callpath, item.metric): dict(item.values) for item in found.items} == {
        ("work", "solve"): {a: (0.5, 0.5), b: (0.25, 0.25), c: (0.5, 0.5)},  # written in ms
        ("work", "rate"): {a: (2, 2), b: (4, 4), c: (4, 4)},
    }


@pytest.mark.parametrize(("unit", "seconds"), [("milliseconds", 0.001), ("min", 60.0), ("hours", 3600.0)])
def test_every_unit_of_time_becomes_seconds(unit: str, seconds: float) -> None:
    record = {"generic:default:wall": [2, 0, None, None, unit, "pass"]}
    [item] = [item for item in read(changed(perfvalues=record), "report.json").items if item.metric == "wall"]
    assert item.values[Point.of(n=1, p=1)] == (2 * seconds,)


def test_a_value_that_could_not_be_extracted_is_left_out() -> None:
    record = {"generic:default:solve": [None, 0, None, None, "ms", "fail"]}
    [item] = [
        item for item in read(changed(perfvalues=record), "report.json").items if item.metric == "solve"
    ]
    assert len(item.values[Point.of(n=1, p=1)]) == 1  # of the second run alone


def test_platforms_that_differ_are_categories() -> None:
    found = read(changed(partition="gpu"), "report.json")
    assert found.parameters == ("n", "p", "partition")
    assert {point["partition"] for point in found.points} == {"default", "gpu"}


def test_parameters_and_fields_may_be_named() -> None:
    assert load([FILE], Reading(parameters=["num_tasks"])).points == (Point.of(num_tasks=1),)
    with pytest.raises(ReadError, match=r"test case work %n=1 %p=1: no parameter s; there are"):
        load([FILE], Reading(parameters=["s"]))


def test_reports_of_older_versions_list_parameters_by_themselves() -> None:
    document = json.loads(FILE.read_text())
    for run in document["runs"]:
        for case in run["testcases"]:
            case["check_params"] = {"n": case.pop("n"), "p": case.pop("p")}
            case["name"] = case["display_name"] = "work"
            case["result"] = "success" if case["result"] == "pass" else case["result"]
    found = read(json.dumps(document), "report.json")
    assert found.parameters == ("n", "p")
    assert [item.values for item in found.items] == [item.values for item in load([FILE]).items]


@pytest.mark.parametrize(
    "text", ["[]", '{"runs": 1}', '{"runs": [{}]}', '{"runs": [{"testcases": [1]}]}', ""]
)
def test_what_is_no_report_is_refused(text: str) -> None:
    with pytest.raises(ReadError, match=r"report\.json: not (a run report of ReFrame|JSON)"):
        read(text, "report.json")


def test_a_report_without_values_is_refused() -> None:
    with pytest.raises(ReadError, match="no performance value of a test case that passed"):
        read('{"runs": [{"testcases": []}]}', "report.json")
