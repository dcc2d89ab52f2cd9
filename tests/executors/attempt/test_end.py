"""The process that owns one attempt: what it kills, what kills it."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace

import pytest

from orchestrator.executors.attempt import record as files
from orchestrator.executors.attempt.worker import DONE, OVERRUN
from tests.executors.attempt.attempts import (
    FAST,
    STUBBORN,
    UNTIL_GO,
    charged,
    document,
    execute,
    owners,
    start,
)
from tests.executors.conftest import Prepared
from tests.executors.under_test import processes_of, wait_for_file
from tests.processes import wait_until_dead

# --- limits and cancellation --------------------------------------------------------------------------


def test_at_the_limit_everything_ends_within_what_is_reserved(prepared: Prepared) -> None:
    request = prepared(STUBBORN, limit=0.5)
    record = execute(request, FAST)
    assert record.timed_out and not record.cancelled
    assert record.exit_code == 128 + signal.SIGKILL
    assert not processes_of(request.directory)
    assert charged(record) <= request.limit + OVERRUN


def test_a_limit_may_be_longer_than_any_timer(prepared: Prepared) -> None:
    assert execute(prepared(limit=1e100)).exit_code == 0


def test_a_program_may_clean_up_at_the_limit(prepared: Prepared) -> None:
    request = prepared("trap 'sleep 0.1; echo clean; exit 9' TERM\nwhile :; do sleep 0.02; done\n", limit=0.3)
    record = execute(request)
    assert record.timed_out
    assert record.exit_code == 9
    assert (request.directory / "stdout").read_text() == "clean\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_cancels(prepared: Prepared, number: int) -> None:
    request = prepared("echo begun\nsleep 600\n")
    with start(request) as process:
        wait_for_file(request.directory / "stdout")
        process.send_signal(number)
    record = files.read_record(request.directory)
    assert record is not None and record.cancelled and not record.timed_out
    assert record.exit_code == 128 + signal.SIGTERM
    assert not processes_of(request.directory)


def test_a_directory_that_is_moved_while_the_attempt_runs_gets_its_record(prepared: Prepared) -> None:
    request = prepared(UNTIL_GO + "echo done\n")
    moved = replace(request, directory=request.directory.with_name("moved"))
    with start(request) as process:
        wait_for_file(request.directory / "stdout")
        request.directory.rename(moved.directory)
        (moved.directory / "go").touch()
        assert process.wait(60) == DONE
    record = files.read_record(moved.directory)
    assert record is not None and record.exit_code == 0 and record.moved
    assert files.output_seen(moved.directory, record)
    assert not request.directory.exists()


def test_a_link_where_the_directory_was_makes_up_for_a_move(prepared: Prepared) -> None:
    request = prepared(UNTIL_GO)
    moved = request.directory.with_name("moved")
    with start(request) as process:
        wait_for_file(request.directory / "stdout")
        request.directory.rename(moved)
        request.directory.symlink_to(moved)
        (moved / "go").touch()
        process.wait(60)
    record = files.read_record(moved)
    assert record is not None and not record.moved


@pytest.mark.parametrize(("code", "variables"), [(1, {}), (0, {"SLURM_JOB_ID": "7"})])
def test_a_signal_that_ends_the_script_first_cancels_too(
    prepared: Prepared, code: int, variables: dict[str, str]
) -> None:
    request = prepared(f"trap 'exit {code}' TERM\necho $$\nwhile :; do sleep 0.01; done\n")
    with start(request, "processes._AFTERMATH = 30.0", **variables) as process:
        script = int(wait_for_file(request.directory / "stdout"))
        os.kill(script, signal.SIGTERM)
        wait_until_dead(script)
        process.terminate()
    record = files.read_record(request.directory)
    assert record is not None and record.cancelled
    assert record.exit_code == code


@pytest.mark.parametrize("told", ["all", "guard"])
@pytest.mark.parametrize("limit", [600.0, 0.5])
def test_a_run_that_was_suspended_is_ended_when_it_is_resumed(
    prepared: Prepared, told: str, limit: float
) -> None:
    request = prepared("echo $$\nsleep 600\n", limit=limit)
    with start(request, FAST) as process:
        script = int(wait_for_file(request.directory / "stdout"))
        guard, worker = owners(request)
        for pid in (script, worker, guard):
            os.kill(pid, signal.SIGSTOP)
        time.sleep(1.5 * limit if limit < 1 else 0.05)
        # Where control groups are frozen, only the first process of a job is sent a signal.
        for pid in (script, worker, guard) if told == "all" else (guard,):
            os.kill(pid, signal.SIGCONT)
        assert process.wait(60) == DONE
    record = files.read_record(request.directory)
    assert record is not None and record.suspended and record.cancelled and not record.timed_out
    assert not processes_of(request.directory)


@pytest.mark.parametrize(("seconds", "sleeps"), [(0.1, False), (28800.0, True)])
def test_a_run_while_which_the_machine_slept_is_no_measurement(
    prepared: Prepared, seconds: float, sleeps: bool
) -> None:
    request = prepared("exit 0\n")
    asleep = f"processes.slept = (lambda seen: lambda: {seconds} * len(seen.append(0) or seen))([])"
    with start(request, asleep) as process:
        assert process.wait(60) == DONE
    record = files.read_record(request.directory)
    assert record is not None and record.suspended is record.cancelled is sleeps
    assert record.finished is not None and record.finished - record.started < 60  # sleep is not charged


@pytest.mark.parametrize("busy", [0.0, 0.3])
def test_a_cancellation_that_begins_with_a_continuation_is_no_suspension(
    prepared: Prepared, busy: float
) -> None:
    request = prepared("echo begun\nsleep 600\n")
    with start(request) as process:
        wait_for_file(request.directory / "stdout")
        process.send_signal(signal.SIGCONT)
        time.sleep(busy)
        process.terminate()
    record = files.read_record(request.directory)
    assert record is not None and record.cancelled and not record.suspended


def test_leftovers_are_counted(prepared: Prepared) -> None:
    request = prepared("(setsid sleep 600 &)\n(setsid sleep 600 &)\n")
    assert execute(request).exit_code == 0
    assert document(request)["leftover"] == 2
    assert not processes_of(request.directory)


def test_a_fork_bomb_of_bounded_size_ends(prepared: Prepared) -> None:
    bomb = "import os, time\nfor _ in range(5): os.fork()\nif os.getpid() % 2: os.setsid()\ntime.sleep(600)"
    request = prepared(f"{sys.executable} -c '{bomb}' & sleep 0.5\n")
    execute(request, FAST)
    assert not processes_of(request.directory)


# --- sudden deaths ------------------------------------------------------------------------------------


@pytest.mark.parametrize("victim", ["guard", "worker"])
def test_if_one_of_the_two_is_killed_the_other_ends_and_records_it(prepared: Prepared, victim: str) -> None:
    request = prepared(STUBBORN)
    with start(request, FAST) as process:
        wait_for_file(request.directory / "stdout")
        guard, worker = owners(request)
        assert guard == process.pid
        os.kill(guard if victim == "guard" else worker, signal.SIGKILL)
        process.wait(60)
        wait_until_dead(worker)
    record = files.read_record(request.directory)
    assert record is not None and record.cancelled
    assert record.exit_code == 128 + signal.SIGKILL
    assert 0 < charged(record) <= request.limit + OVERRUN
    assert not processes_of(request.directory)


def test_if_the_worker_is_killed_after_it_wrote_the_end_that_stands(prepared: Prepared) -> None:
    record = execute(
        prepared("exit 5\n"),
        """
import os
write = attempt._write_final
def write_and_die(directory, record):
    write(directory, record)
    os.kill(os.getpid(), 9)
attempt._write_final = write_and_die
""",
    )
    assert record.exit_code == 5
    assert not record.cancelled


def test_if_the_worker_is_stopped_the_guard_keeps_the_limit(prepared: Prepared) -> None:
    request = prepared(STUBBORN, limit=1.0)
    with start(request, FAST) as process:
        wait_for_file(request.directory / "stdout")
        os.kill(owners(request)[1], signal.SIGSTOP)
        assert process.wait(60) == DONE
    record = files.read_record(request.directory)
    assert record is not None and record.timed_out
    assert request.limit <= charged(record) <= request.limit + OVERRUN
    assert not processes_of(request.directory)


def test_if_both_are_killed_the_script_dies_with_them(prepared: Prepared) -> None:
    request = prepared("echo $$\nexec sleep 600\n")
    with start(request) as process:
        script = int(wait_for_file(request.directory / "stdout"))
        for pid in reversed(owners(request)):
            os.kill(pid, signal.SIGKILL)
        process.wait(60)
        wait_until_dead(script)
    record = files.read_record(request.directory)
    assert record is not None and record.finished is None
    holder = files.owners(request.directory)
    assert holder is not None and holder.alive() == ()


def test_the_guard_gives_signs_of_life(prepared: Prepared) -> None:
    request = prepared("while [ ! -e go ]; do sleep 0.02; done\n")
    with start(request, "attempt.HEARTBEAT = 0.02"):
        claim = request.directory / "claim"
        while not claim.exists():
            time.sleep(0.01)
        first = claim.stat().st_mtime_ns
        deadline = time.monotonic() + 30
        while claim.stat().st_mtime_ns == first and time.monotonic() < deadline:
            time.sleep(0.02)
        assert claim.stat().st_mtime_ns > first
        (request.directory / "go").touch()
