"""Figures of merit as their inverse."""

from __future__ import annotations

import pytest

from orchestrator.errors import ReadError
from orchestrator.readers.inverse import inverse_unit, inverted, with_inverses
from orchestrator.types import Measurement, Measurements, Point

A, B = Point.of(p=1), Point.of(p=2)


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("cells/s", "s/cells"),
        ("1/s", "s"),
        ("s", "1/s"),
        ("", ""),
        (" GFlop / s ", "s/GFlop"),
        ("unknowns/(second/iteration)", "1/(unknowns/(second/iteration))"),
    ],
)
def test_units_are_turned_over(unit: str, expected: str) -> None:
    assert inverse_unit(unit) == expected


def test_measurements_of_some_metrics_are_inverted() -> None:
    items = (
        Measurement("main", "fom", {A: (2.0, 4.0), B: (8.0,)}),
        Measurement("main", "time", {A: (2.0,), B: (1.0,)}),
    )
    found = inverted(Measurements(("p",), items), ["fom"])
    assert [(item.metric, item.values) for item in found.items] == [
        ("1/fom", {A: (0.5, 0.25), B: (0.125,)}),
        ("time", {A: (2.0,), B: (1.0,)}),
    ]
    with pytest.raises(ReadError, match="no measurements of speed to invert; there are fom, time"):
        inverted(Measurements(("p",), items), ["speed"])


def test_zero_has_no_inverse() -> None:
    with pytest.raises(ReadError, match="run-1: main: fom is 0, which has no inverse"):
        with_inverses({("main", "fom"): 0.0}, ["fom"], "run-1")
    assert with_inverses({("main", "fom"): 0.0}, [], "run-1") == {("main", "fom"): 0.0}
