"""A job of several runs does not begin the next one with ``srun`` while Slurm's controller is away."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.executors.attempt import worker
from orchestrator.executors.attempt.directory import prepare
from orchestrator.executors.attempt.record import read_record
from orchestrator.executors.slurm import job
from tests.slurm.fake_slurm import FakeSlurm

ASK_QUICKLY = (
    "import sys; from orchestrator.executors.slurm import job; job._ASK_AGAIN = 0.2; job.run(*sys.argv[1:])"
)


def execute(fake: FakeSlurm, scripts: list[str], ends_in: float) -> subprocess.CompletedProcess[str]:
    directories = []
    for script in scripts:
        request = fake.request(script, limit=10.0)
        prepare(request)
        directories.append(str(request.directory))
    ends = f"{worker.uptime() + ends_in:.0f}"
    environment = {"PATH": f"{fake.folder}:/usr/bin:/bin", worker.JOB_ENDS: ends}
    return subprocess.run(
        [sys.executable, "-c", ASK_QUICKLY, *directories],
        env=environment,
        cwd=Path(job.__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def begun(fake: FakeSlurm) -> list[bool]:
    return [(request.directory / worker.RECORD).exists() for request in fake.requests]


@pytest.fixture
def away(fake: FakeSlurm) -> FakeSlurm:
    srun = fake.folder / "srun"
    srun.write_text('#!/bin/sh\nexec "$@"\n')
    srun.chmod(0o755)
    fake.answer("scontrol", "Slurmctld(primary) is DOWN\n")
    return fake


def test_the_next_run_waits_for_the_controller(away: FakeSlurm) -> None:
    # Away when it is first asked, back when it is asked again.
    away.answer("scontrol", "it is DOWN\n", script="cat scontrol.out\necho 'it is UP' > scontrol.out\nexit 0")
    done = execute(away, ["srun true\n", "exec srun true\n"], ends_in=600.0)
    assert len(away.calls("scontrol")) == 2
    assert begun(away) == [True, True], done.stderr


def test_without_time_to_wait_the_runs_are_left_unbegun(away: FakeSlurm) -> None:
    done = execute(away, ["srun true\n", "/usr/bin/srun true\n", "srun true\n"], ends_in=30.0)
    assert begun(away) == [True, False, False]
    assert "slurmctld does not answer: 2 runs are left for another job" in done.stderr


@pytest.mark.parametrize("script", ["mpiexec -n 1 true || true\n", "echo srunning\n"])
def test_a_run_that_needs_no_job_step_does_not_wait(away: FakeSlurm, script: str) -> None:
    execute(away, ["srun true\n", script], ends_in=30.0)
    assert begun(away) == [True, True]
    assert not away.calls("scontrol")


def test_where_only_the_first_process_of_a_job_is_told_that_it_was_suspended(fake: FakeSlurm) -> None:
    """Slurm freezes control groups, and signals nothing else when they go on."""
    parent = "$(ps -o ppid= -p {})".format
    execute(fake, [f"kill -CONT {parent(parent('$PPID'))}\nsleep 60\n", "true\n"], ends_in=600.0)
    first, second = (read_record(request.directory) for request in fake.requests)
    assert first is not None and first.suspended
    assert second is not None and second.exit_code == 0 and not second.cancelled


def test_a_machine_without_scontrol_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert job.controller_answers()


def test_a_clock_that_is_set_ends_no_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(worker.JOB_ENDS, f"{worker.uptime() + 100:.0f}")
    monkeypatch.setattr("time.time", lambda: 4e9)
    assert 100 - worker.OVERRUN - 5 < worker.seconds_left() < 100
