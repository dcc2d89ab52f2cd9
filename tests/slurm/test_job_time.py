"""What a job does with the time that it asked Slurm for."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.executors.attempt import worker
from orchestrator.executors.slurm import job


def left(seconds: float) -> str:
    return str(int(worker.uptime() + seconds + worker.OVERRUN + 0.5))


@pytest.mark.parametrize(("seconds", "holds"), [(90.0, False), (110.0, True)])
def test_a_run_begins_only_if_the_rest_of_its_job_holds_its_limit(
    seconds: float, holds: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / worker.REQUEST).write_text('{"limit": 100.0}')
    monkeypatch.setenv(worker.JOB_ENDS, left(seconds))
    assert job._has_time(str(tmp_path)) is holds


def test_where_a_job_does_not_say_when_it_ends_every_run_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / worker.REQUEST).write_text('{"limit": 100.0}')
    monkeypatch.delenv(worker.JOB_ENDS, raising=False)
    assert job._has_time(str(tmp_path))


@pytest.mark.parametrize(("seconds", "limit"), [(40.0, 40.0), (500.0, 100.0), (-20.0, 1.0)])
def test_a_slow_start_shortens_the_limit_of_the_attempt_so_that_slurm_need_not_end_it(
    seconds: float, limit: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(worker.JOB_ENDS, left(seconds))
    attempt = worker._Attempt(str(tmp_path), {"limit": 100.0, "run": "r", "attempt": 1})
    assert attempt.limit == pytest.approx(limit, abs=2.0)
