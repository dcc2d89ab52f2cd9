"""Changed rules are told as users write them."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.journal.differences import differences


def stop(**rules: Any) -> dict[str, Any]:
    return {"stop": {"budget": "36000.0 core-seconds", "wall_time": None, "unit": "core-hours", **rules}}


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (stop(), stop(budget="43200.0 core-seconds"), "stop.budget: 10 -> 12 core-hours"),
        (
            stop(),
            stop(budget="43200.0 core-seconds", unit="core-minutes"),
            "stop.budget: 600 -> 720 core-minutes",
        ),
        (stop(), stop(budget="36000.36 core-seconds"), "stop.budget: 10 -> 10.0001 core-hours"),
        (stop(), stop(wall_time=7200.0), "stop.wall_time: none -> 2 h"),
        (stop(width=0.25), stop(width=None), "stop.width: 0.25 -> none"),
        ({"validate": False}, {"validate": True}, "validate: false -> true"),
        ({"model": {"sizes": [1.0, 2]}}, {"model": {"sizes": ["a"]}}, "model.sizes: [1, 2] -> [a]"),
        (
            {"notify": None},
            {"notify": {"command": "mail", "timeout": 5.0}},
            "notify: none -> {command: mail, timeout: 5}",
        ),
        (
            {"program": {"output": [{"callpath": "a", "pattern": "x"}, {"callpath": "b", "pattern": "y"}]}},
            {"program": {"output": [{"callpath": "a", "pattern": "x"}, {"callpath": "b", "pattern": "z"}]}},
            "program.output.1.pattern: y -> z",
        ),
        ({"measure": {"time_limit": 90.0}}, {"measure": {"time_limit": "2 * n"}}, ": 1 min 30 s -> 2 * n"),
        ({"measure": {"time_limit": "90.0"}}, {"measure": {"time_limit": 60}}, "1 min 30 s -> 1 min"),
    ],
)
def test_values_are_told_with_their_units(old: dict[str, Any], new: dict[str, Any], text: str) -> None:
    (found,) = differences(old, new)
    assert found.endswith(text)


def test_long_values_are_told_where_they_differ() -> None:
    folder = "/project/" + "long/" * 30
    (found,) = differences({"executable": f"{folder}old/app"}, {"executable": f"{folder}new/app"})
    assert found.startswith("executable: ...") and found.endswith("new/app") and "old/app -> ..." in found
    (cut,) = differences({"template": "a" * 200}, {"template": "b" * 200})
    assert cut == f"template: {'a' * 80}... -> {'b' * 80}..."


def test_the_unit_of_costs_is_no_rule() -> None:
    assert differences(stop(), stop(unit="core-minutes")) == []
