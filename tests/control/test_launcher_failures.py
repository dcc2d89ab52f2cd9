"""A launcher that fails is not the application's fault, and is tried again as such."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from orchestrator.errors import ReadError
from orchestrator.journal.events import Samples
from orchestrator.types import AttemptRequest, FailureClass, Observation
from tests.control.finishing import finished


@pytest.mark.parametrize(
    ("words", "failure"),
    [
        ("srun: error: Unable to create step for job 7: Socket timed out", FailureClass.INFRASTRUCTURE),
        ("srun: error: Unable to confirm allocation for job 7", FailureClass.INFRASTRUCTURE),
        ("slurmstepd: error: *** STEP 7.0 CANCELLED DUE TO NODE FAILURE ***", FailureClass.INFRASTRUCTURE),
        ("connection to the data base timed out", FailureClass.APPLICATION),
        # The job ends in good order: only its step was out of memory.
        (
            "slurmstepd-n1: error: Detected 1 oom-kill event(s) in StepId=1019.0. Some of your processes may "
            "have been killed by the cgroup out-of-memory handler.",
            FailureClass.MEMORY,
        ),
        (
            "slurmstepd: error: Detected 3 oom_kill events in StepId=7.0. Some of",
            FailureClass.MEMORY,
        ),
        ("srun: error: n1: task 0: Out Of Memory", FailureClass.MEMORY),
        ("my solver: Out Of Memory", FailureClass.APPLICATION),
    ],
)
def test_who_failed_is_told_by_the_last_words(words: str, failure: FailureClass, tmp_path: Path) -> None:
    (tmp_path / "stderr").write_text(f"starting\n{words}\n")
    event = finished(1, tmp_path)
    assert event.failure is failure and words in event.reason


@pytest.mark.parametrize(
    "words",
    [
        "slurmstepd-n1: error: execve(): /nfs/prog: No such file or directory",
        "/x/attempt-1/run.sh: line 12: /nfs/prog: No such file or directory",
        "Executable: /nfs/prog",
    ],
)
def test_a_program_that_was_away_did_not_fail(words: str, tmp_path: Path) -> None:
    """Its file system was, or it is built again: that says nothing about the point."""
    (tmp_path / "stderr").write_text(f"{words}\n")
    away, there = {"path": "/nfs/prog"}, {"path": "/nfs/prog", "size": 9, "mtime_ns": 1}
    event = finished(127, tmp_path, executable=away)
    assert event.failure is FailureClass.INFRASTRUCTURE
    assert event.reason.startswith("exit code 127; its program was not there when it began; last line of")
    for never in (
        finished(127, tmp_path, executable=there),
        finished(127, tmp_path, executable=away, ran=False),
    ):
        assert never.failure is FailureClass.APPLICATION
    (tmp_path / "stderr").write_text("no input\n")
    assert finished(127, tmp_path, executable=away).failure is FailureClass.APPLICATION, "in a container"


def test_an_exit_code_that_srun_reports_is_the_applications(tmp_path: Path) -> None:
    (tmp_path / "stderr").write_text("no input\nsrun: error: n1: task 0: Exited with exit code 1\n")
    event = finished(1, tmp_path)
    assert event.failure is FailureClass.APPLICATION
    assert event.reason == "exit code 1; last line of stderr: no input"


def test_a_pipe_in_place_of_an_output_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "stderr")
    writer = threading.Thread(target=(tmp_path / "stderr").write_text, args=["no input"], daemon=True)
    writer.start()
    try:
        assert finished(1, tmp_path).reason == "exit code 1"
        writer.join(0.2)
        assert writer.is_alive(), "nobody opened the pipe"
    finally:
        reader = os.open(tmp_path / "stderr", os.O_RDONLY | os.O_NONBLOCK)
        writer.join(10)
        os.close(reader)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (1, "exit code 1"),
        (139, "exit code 139 (signal 11, SIGSEGV)"),
        (134, "exit code 134 (signal 6, SIGABRT)"),
        (137, "exit code 137 (signal 9, SIGKILL: perhaps it used too much memory)"),
        (255, "exit code 255"),
    ],
)
def test_a_signal_is_told_by_its_name(code: int, reason: str, tmp_path: Path) -> None:
    assert finished(code, tmp_path).reason == reason


def test_the_reason_of_a_failure_is_what_the_program_said_before_its_launcher(tmp_path: Path) -> None:
    banner = "-" * 74
    (tmp_path / "stdout").write_text("step 1\n")
    (tmp_path / "stderr").write_text(
        f"error: 3 x 5 does not fit\n{banner}\nPrimary job  terminated normally, but 1 process returned\n"
        f"a non-zero exit code. Per user-direction, the job has been aborted.\n{banner}\n"
    )
    assert finished(3, tmp_path).reason == "exit code 3; last line of stderr: error: 3 x 5 does not fit"


def test_the_reason_of_a_failure_is_what_stands_below_its_heading(tmp_path: Path) -> None:
    (tmp_path / "stderr").write_text(
        "--> FOAM FATAL ERROR: \nno mesh\n\n    From function a\n\nFOAM exiting\n"
    )
    assert finished(1, tmp_path).reason == "exit code 1; stderr: --> FOAM FATAL ERROR: no mesh"


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ("nothing in stdout matches", "it printed: ERROR: no memory; nothing in stdout matches"),
        ("the application reports: ERROR: no memory", "the application reports: ERROR: no memory"),
    ],
)
def test_what_a_program_said_is_told_though_its_script_ended_in_good_order(
    missing: str, told: str, tmp_path: Path
) -> None:
    def unreadable(request: AttemptRequest, observation: Observation) -> Samples:
        raise ReadError(missing)

    (tmp_path / "stdout").write_text("")
    assert finished(0, tmp_path, collect=unreadable).reason == missing, "it said nothing"
    (tmp_path / "stderr").write_text("starting\nERROR: no memory\n")
    event = finished(0, tmp_path, collect=unreadable)
    assert (event.failure, event.reason) == (FailureClass.PARSE, told)


def test_the_reason_of_a_timeout_has_the_last_words_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("step 1\n")
    (tmp_path / "stderr").write_text("Signal: Aborted (6)\n")  # the launcher then hung
    event = finished(143, tmp_path, timed_out=True)
    assert event.failure == FailureClass.TIMEOUT
    assert event.reason == "ended at its time limit of 60 s; last line of stderr: Signal: Aborted (6)"


@pytest.mark.parametrize(("exit_code", "moved"), [(0, True), (3, True), (0, False), (3, False)])
def test_what_was_written_to_where_a_moved_directory_was_is_no_failure_of_the_application(
    exit_code: int, moved: bool, tmp_path: Path
) -> None:
    def collect(request: AttemptRequest, observation: Observation) -> Samples:
        raise ReadError("no profile")

    event = finished(exit_code, tmp_path, moved=moved, collect=collect)
    own = FailureClass.PARSE if exit_code == 0 else FailureClass.APPLICATION
    assert event.failure is (FailureClass.INFRASTRUCTURE if moved else own)
    assert ("was moved while it ran" in event.reason) is moved
