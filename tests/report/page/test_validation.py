"""What the head says of the validation: all of it where there is little, a summary where there is much."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.report.page.numerals import figure, powers
from orchestrator.report.page.validation import facts, of_run, warnings


def rows(count: int, outside: int) -> list[dict[str, Any]]:
    """Return rows whose first ones are outside their intervals; errors grow by 1 % each."""
    return [
        {
            "point": {"p": 64},
            "callpath": f"main->f{k}",
            "metric": "time",
            "measured": 9.0 if k < outside else 2.0,
            "predicted": 2.0,
            "low": 1.99,
            "high": 2.01,
            "run_low": 1.9,
            "run_high": 2.1,
            "error_percent": float(k) * (-1) ** k,
        }
        for k in range(count)
    ]


def seconds(metric: str) -> str:
    assert metric == "time"
    return "s"


def test_figures_have_units_and_are_written_as_in_tables() -> None:
    small = {"measured": 3.864e-6, "predicted": 2e-6, "run_low": 1.9e-6, "run_high": 2.1e-6}
    [row] = rows(1, 1)
    [text] = warnings([row | small], seconds)
    assert "measured as 3.864×10⁻⁶ s, outside the 1.900×10⁻⁶ to 2.100×10⁻⁶ s predicted" in text
    [text] = warnings([row | small], lambda metric: "")
    assert "measured as 3.864×10⁻⁶, outside the" in text
    assert [figure(value) for value in (12345.6, 1e7, -0.25, 0.0, None)] == [
        "12\u202f346",
        "1.000×10⁷",
        "−0.25",
        "0",
        "–",
    ]
    assert powers("counts are predicted within 9e-14 %, sha256 12e4567") == (
        "counts are predicted within 9×10⁻¹⁴ %, sha256 12e4567"
    )


def test_few_rows_are_facts_of_their_own() -> None:
    found = list(facts(rows(3, 1), seconds))
    assert [item["list"] for item in found] == [[], [], []]
    assert found[2]["value"] == "main->f2 time: measured 2 s"
    assert found[2]["detail"] == "predicted for a run 2 [1.9, 2.1] s, +2.0 %"
    assert len(warnings(rows(3, 1), seconds)) == 1


def test_many_rows_are_one_fact_with_a_list() -> None:
    [found] = facts(rows(21, 5), seconds)
    assert found["value"] == "16 of 21 values within the 90 % interval of a run"
    assert found["detail"].startswith("median error 10.0 %, largest +20.0 % (main->f20 time)")
    assert len(found["list"]) == 21


def test_many_values_outside_are_one_warning() -> None:
    [text] = warnings(rows(21, 5), seconds)
    assert text.startswith("validation: 5 of 21 measured values are outside")
    assert "farthest off is main->f4 time" in text
    assert warnings(rows(21, 0), seconds) == []


def test_a_run_is_compared_with_what_a_run_may_take_not_with_the_mean() -> None:
    [row] = rows(1, 0)
    assert warnings([row | {"measured": 2.05}], seconds) == []
    earlier = {key: value for key, value in row.items() if not key.startswith("run_")}
    assert len(warnings([earlier | {"measured": 2.05}], seconds)) == 1, (
        "all that was kept is the interval of the mean"
    )


def test_rows_without_intervals_and_errors_are_only_counted() -> None:
    bare = [row | {"run_low": None, "run_high": None, "error_percent": None} for row in rows(5, 0)]
    [found] = facts(bare, seconds)
    assert found["value"] == "5 values measured" and found["detail"] is None


def test_a_run_is_the_sum_of_the_call_paths_that_it_is_made_of() -> None:
    found = rows(3, 1)
    whole = of_run(found, ["main->f0", "main->f1"], "time")
    assert whole is not None and whole.measured == 11.0
    assert (whole.low, whole.high) == pytest.approx((3.8, 4.2))
    assert whole.document()["inside"] is False
    assert of_run(found, ["main->f0", "main"], "time") is None  # main was not measured
    assert of_run(found, ["main->f0"], "bytes") is None
    assert of_run(found, [], "time") is None


def test_what_a_program_rounds_when_it_prints_is_not_outside() -> None:
    [row] = rows(1, 1)
    count = {"measured": 1737940000.0, "run_low": 1737935714.0, "run_high": 1737936286.0}
    assert warnings([row | count], lambda metric: "") == []
    assert len(warnings([row | count | {"measured": 1738000000.0}], lambda metric: "")) == 1
