"""What metrics mean, and which of them count effort."""

from __future__ import annotations

from orchestrator.report.metrics import described, meanings, units, with_unit
from orchestrator.report.status import effort
from orchestrator.types import Measurement, Measurements, Point

A, B = Point.of(p=1), Point.of(p=2)


def measured(*metrics: str) -> Measurements:
    return Measurements(("p",), tuple(Measurement("main", name, {A: (1.0,), B: (2.0,)}) for name in metrics))


def test_visits_of_a_profile_are_no_counted_effort() -> None:
    assert effort(measured("time", "visits")) is None
    found = effort(measured("time", "visits", "basic_blocks"))
    assert found == {"callpaths": 1, "irreproducible": 0, "unmatched_percent": 0.0}


def test_an_inverse_has_the_opposite_unit_and_direction() -> None:
    rate = {"name": "rate", "unit": "cells/s", "better": "higher", "model": "inverse"}
    found = described({"measure": {"metrics": ["time", "visits", rate]}})
    assert [(item["metric"], item["unit"], item["better"]) for item in found] == [
        ("time", "s", "lower"),
        ("visits", "", "lower"),
        ("1/rate", "s/cells", "lower"),
    ]
    assert meanings(found) == ["metrics: 1/rate in s/cells (lower is better)"]
    assert meanings(found[:2]) == []


def test_tables_name_the_unit_behind_the_metric() -> None:
    rate = {"name": "rate", "unit": "cells/s", "better": "higher"}
    known = units(described({"measure": {"metrics": ["time", "visits", rate]}}))
    assert [with_unit(name, known) for name in ("time", "visits", "rate")] == [
        "time / s",
        "visits",
        "rate / cells/s",
    ]
    assert with_unit("time") == "time / s" and with_unit("rate") == "rate"


def test_campaigns_without_the_section_have_no_metrics() -> None:
    assert described({}) == []
