"""Both sides of a comparison: their curves are those of the models, their runs those that were measured."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator import registry
from orchestrator.models.comparison.pairs import aligned
from orchestrator.report.comparison import Question
from orchestrator.report.comparison import document as compared
from orchestrator.report.comparison_facts import side_by_side
from orchestrator.report.page.comparison import document
from orchestrator.types import Measurement, Measurements, Point
from tests.report.page.sample import unpacked

POINTS = [Point.of(p=p, n=n) for p in (2, 4, 8, 16, 32) for n in (10, 20, 40)]


def side(factor: float, kinds: tuple[str, ...] = ()) -> Measurements:
    points = [Point.of({**q.as_dict(), "kind": kind}) for kind in kinds for q in POINTS] if kinds else POINTS
    items = tuple(
        Measurement(
            path, "time", {q: (factor * q.number(name), 1.01 * factor * q.number(name)) for q in points}
        )
        for path, name, factor in (("same", "n", 1.0), ("slower", "p", factor))
    )
    return Measurements(("p", "n", "kind") if kinds else ("p", "n"), items)


def test_curves_and_runs_are_those_of_each_side() -> None:
    both = aligned(side(1.0), side(3.0))
    models = tuple(registry.load("model", "pmnf")()(known) for known in (both.first, both.second))
    found = compared(both, models, Question(points=[Point.of(p=64, n=80)])) | {"facts": []}
    shown = document(found, ("a", "b"), both, models)["comparison"]
    assert [row["callpath"] for row in shown["rows"]] == ["slower", "same"]  # what changed comes first
    a, b = shown["pairs"][0]
    assert np.nanmax(unpacked(a["measured"])) == pytest.approx(1.01 * 32)
    assert np.nanmax(unpacked(b["measured"])) == pytest.approx(3 * 1.01 * 32)
    line = shown["lines"][b["curves"][0]["line"]]
    assert line["parameter"] == "p" and line["x"][-1] == 64
    expected = models[1][1].predict([Point.of(p=64, n=line["at"]["n"])])
    assert unpacked(b["curves"][0]["value"])[-1] == pytest.approx(float(expected.value[0]), rel=1e-6)


def test_without_models_there_are_runs_alone_each_of_its_category() -> None:
    both = aligned(side(1.0, ("x", "y")), side(2.0, ("x", "y")))
    point = Point.of(p=32, n=40, kind="x")
    found = compared(both, ((), ()), Question(points=[point])) | {"facts": []}
    shown = document(found, ("a", "b"), both, ((), ()))["comparison"]
    assert len(shown["pairs"]) == len(shown["rows"]) == 4  # two call paths in two categories
    for pair in shown["pairs"]:
        assert all(known["curves"] == [] for known in pair)
        assert np.isfinite(unpacked(pair[0]["measured"])).sum() == 2 * len(POINTS)


def test_facts_are_those_of_the_tables_in_the_terminal() -> None:
    both = aligned(side(1.0), side(3.0))
    rehearsal = {"executor: name": "simulated", "measured from": "1970-01-01T00:00:07+00:00"}
    facts = side_by_side({**rehearsal, "program": "x" * 100}, {**rehearsal, "program": "x" * 100})
    found = compared(both, ((), ()), Question(points=[Point.of(p=64, n=20)])) | {"facts": facts}
    shown = document(found, ("a", "b"), both, ((), ()))["comparison"]["facts"]
    assert [(item["label"], item["a"]) for item in shown] == [
        ("executor: name", "simulated"),
        ("measured from", "rehearsal, after 7 s"),
    ]


def test_lines_go_through_the_point_where_other_lines_have_as_many_points() -> None:
    both = aligned(side(1.0), side(3.0))
    found = compared(both, ((), ()), Question(points=[Point.of(p=64, n=20)])) | {"facts": []}
    shown = document(found, ("a", "b"), both, ((), ()))["comparison"]
    assert [line["at"] for line in shown["lines"] if line["parameter"] == "p"] == [{"n": 20}]
