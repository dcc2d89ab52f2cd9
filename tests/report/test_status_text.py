"""The status as text: why points were chosen, and what the strategy could not use."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from orchestrator.report.metrics import described, wanted_of
from orchestrator.report.status_text import _given_up_lines, _jobs_line, _left_out_lines, _reason_lines
from orchestrator.report.tables import models_table, validation_table

NO_BELIEF = "their models give no covariances between points, so chosen as gpr does"


def chosen(run: str, reason: str) -> dict[str, str]:
    return {"run": run, "status": "waiting", "reason": reason}


def test_a_strategy_that_cannot_use_models_says_so_in_the_status() -> None:
    found = _reason_lines(
        [
            chosen("p=8,s=10/time-1", f"{NO_BELIEF}: cheap"),
            chosen("p=8,s=10/time-2", f"{NO_BELIEF}: cheap"),
            chosen("p=8,s=20/time-1", f"{NO_BELIEF}: cheap"),
            chosen("p=27,s=20/time-1", "far from all others"),
        ]
    )
    assert found == [
        "last round:",
        f"  p=8,s=10 p=8,s=20: {NO_BELIEF}: cheap",
        "  p=27,s=20: far from all others",
    ]


def test_many_reasons_are_counted() -> None:
    found = _reason_lines([chosen(f"p={p}/time-1", f"reason {p}") for p in range(9)])
    assert len(found) == 7
    assert found[-1] == "  and 4 other reasons: status --json"


def test_nothing_is_said_before_the_first_round() -> None:
    assert _reason_lines([]) == []


def test_nothing_is_said_of_waiting_where_all_runs_shared_jobs() -> None:
    jobs = {"in_flight": 0, "overhead_seconds": 1.5, "wait_seconds": None, "runs_that_shared_one": 4}
    line = _jobs_line(jobs)
    assert "4 measured runs shared a job" in line and "1.5 s" in line and "waits" not in line
    assert _jobs_line({**jobs, "wait_seconds": 20.0}).endswith("its own time and waits 20 s")


def checked(measured: float, low: float | None, high: float | None) -> dict[str, Any]:
    return {
        "point": {"p": 8},
        "callpath": "main",
        "metric": "time",
        "measured": measured,
        "predicted": 2.0,
        "low": 1.9,
        "high": 2.1,
        "run_low": low,
        "run_high": high,
        "error_percent": -10.0,
    }


def printed(table: object) -> list[list[str]]:
    console = Console(width=120)
    with console.capture() as capture:
        console.print(table)
    return [
        [cell.strip() for cell in line.replace("┃", "│").split("│")] for line in capture.get().splitlines()
    ]


def test_validation_says_which_values_lie_outside_their_intervals() -> None:
    lines = printed(
        validation_table([checked(2.0, 1.0, 3.0), checked(4.0, 1.0, 3.0), checked(4.0, None, None)])
    )
    assert lines[1] == ["call path", "metric", "measured", "predicted, one run", "error %", "inside"]
    assert [line[-1] for line in lines[3:]] == ["yes", "no", "-"]
    assert lines[3][1] == "time / s"


def test_models_name_the_unit_of_their_metric() -> None:
    model = {
        "callpath": "main",
        "category": {},
        "metric": "rate",
        "expression": "n",
        "normal_form": "n",
        "smape": 1.0,
        "predictions": [],
    }
    assert printed(models_table([model], {"rate": "cells/s"}))[3][1] == "rate / cells/s"


def test_counts_are_shown_where_the_campaign_asks_for_them() -> None:
    time, calls = ({"callpath": "main", "metric": metric} for metric in ("time", "calls"))
    asked = described({"measure": {"metrics": ["time", "calls"]}})
    assert wanted_of([time, calls], asked) == [time, calls]
    assert wanted_of([time, calls], described({"measure": {"metrics": ["time"]}})) == [time]
    assert wanted_of([calls], ()) == [calls]


def test_values_that_models_were_fitted_without_are_named() -> None:
    zeros = "2 values are zero and were left out: a relative error has no meaning there"
    rows = [{"callpath": f"f{k}", "metric": "time", "notes": ["p has 2 values", zeros]} for k in range(7)]
    lines = _left_out_lines(rows)
    assert lines[0] == f"note: f0 time: {zeros}" and len(lines) == 6
    assert lines[-1] == "and 2 other notes: status --json"
    assert _left_out_lines([{"callpath": "f", "metric": "time", "notes": ["p has 2 values"]}]) == []
    (line,) = _left_out_lines([{**rows[0], "category": {"solver": "cg"}}])
    assert line.startswith("note: f0 [solver=cg] time: ")


def test_runs_that_were_given_up_for_one_cause_share_a_line() -> None:
    reason = "parse: r/runs/n={}/time-1/attempt-1/stdout: main: nothing in stdout matches; read {} lines"
    given_up = [{"run": f"n={n}/time-1", "reason": reason.format(n, 3 * n)} for n in (1, 20, 300)]
    lines = _given_up_lines([*given_up, {"run": "n=4/time-1", "reason": "timeout"}])
    assert lines == [
        f"given up: n=1/time-1 and 2 other runs, alike: {given_up[0]['reason']}",
        "given up: n=4/time-1: timeout",
    ]
    causes = [{"run": f"n={n}/time-1", "reason": "cause " + "x" * n} for n in range(7)]
    assert _given_up_lines(causes)[-1] == "and 2 other runs given up: orchestrator log"
