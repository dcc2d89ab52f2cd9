"""The status as text: why points were chosen, and what the strategy could not use."""

from __future__ import annotations

from orchestrator.report.status_text import _jobs_line, _reason_lines

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
