"""One suite over every executor. See `tests.executors.under_test` for how one joins."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import registry
from orchestrator.executors.attempt import worker
from orchestrator.executors.attempt.directory import prepare
from orchestrator.executors.attempt.record import read_record
from orchestrator.types import AttemptState, Observation
from tests.executors.under_test import (
    EXECUTORS,
    WITH_PROCESSES,
    ExecutorUnderTest,
    assert_nothing_lives,
    run,
    wait_for_file,
    watch,
)

NASTY_NAME = 'it\'s "quoted", spaced\nbroken; $(touch oops) *ü'


def build(request: pytest.FixtureRequest, directory: Path) -> Iterator[ExecutorUnderTest]:
    under_test = EXECUTORS[request.param](request, directory)
    yield under_test
    if under_test.real:
        assert_nothing_lives(under_test.directory)


@pytest.fixture(params=EXECUTORS)
def tested(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ExecutorUnderTest]:
    """Every executor."""
    yield from build(request, tmp_path / "campaign")


@pytest.fixture(params=WITH_PROCESSES)
def real(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ExecutorUnderTest]:
    """Every executor that starts processes."""
    yield from build(request, tmp_path / "campaign")


def output(tested: ExecutorUnderTest, number: int = 0, name: str = "stdout") -> bytes:
    return (tested.requests[number].directory / name).read_bytes()


def exit_code(observation: Observation) -> int | None:
    assert observation.state is AttemptState.FINISHED, observation
    assert observation.record is not None
    return observation.record.exit_code


def test_every_registered_executor_is_tested() -> None:
    assert set(registry.names("executor")) <= set(EXECUTORS)


# --- what happens to an attempt -----------------------------------------------------------------------


def test_an_attempt_finishes_with_a_record(tested: ExecutorUnderTest) -> None:
    request = tested.request("echo hello\n")
    executor = tested.make()
    before = executor.now()
    [submitted] = executor.submit([request])
    assert submitted.state in {AttemptState.QUEUED, AttemptState.RUNNING}
    observation = watch(executor, [request])[request.attempt]
    assert exit_code(observation) == 0
    record = observation.record
    assert record is not None and record.finished is not None
    assert (record.run, record.attempt) == (request.attempt.run.id, 1)
    assert not record.timed_out and not observation.reason
    assert before <= record.started <= record.finished <= executor.now()
    if tested.real:
        assert output(tested) == b"hello\n"
        assert read_record(request.directory) == record


def test_input_files_are_there_before_the_start(real: ExecutorUnderTest) -> None:
    request = real.request("cat in.txt sub/x\n", files={"in.txt": "a\r\n", "sub/x": "ü\n"})
    run(real.make(), request)
    assert output(real) == "a\r\nü\n".encode()


def test_the_exit_code_of_the_script_is_passed_on(real: ExecutorUnderTest) -> None:
    request = real.request("echo why >&2\nexit 7\n")
    [observation] = run(real.make(), request)
    assert exit_code(observation) == 7
    assert output(real, name="stderr") == b"why\n"


def test_a_crash_is_recorded_with_its_signal(real: ExecutorUnderTest) -> None:
    [observation] = run(real.make(), real.request("kill -SEGV $$\n"))
    assert exit_code(observation) == 128 + 11


def test_an_attempt_ends_at_its_limit(real: ExecutorUnderTest) -> None:
    request = real.request("echo begun\nsleep 600\n", limit=real.short_limit)
    executor = real.make()
    [observation] = run(executor, request)
    record = observation.record
    assert record is not None and record.finished is not None
    assert record.timed_out and record.exit_code != 0
    assert output(real) == b"begun\n"
    elapsed = record.finished - record.started
    assert request.limit <= elapsed <= executor.reserved_seconds(request.limit)


def test_what_ignores_every_signal_ends_at_the_limit(real: ExecutorUnderTest) -> None:
    stubborn = "trap '' TERM INT HUP\nwhile :; do sleep 1; done\n"
    request = real.request(stubborn, limit=real.short_limit)
    executor = real.make()
    [observation] = run(executor, request)
    record = observation.record
    assert record is not None and record.finished is not None and record.timed_out
    assert record.finished - record.started <= executor.reserved_seconds(request.limit)


def test_a_running_attempt_can_be_cancelled(tested: ExecutorUnderTest) -> None:
    request = tested.request("echo begun\nsleep 600\n")
    executor = tested.make()
    executor.submit([request])
    if tested.real:
        wait_for_file(request.directory / "stdout")
    executor.cancel([request])
    observation = watch(executor, [request])[request.attempt]
    assert observation.reason  # without one it would count as a failure of the application
    if tested.real:
        assert exit_code(observation) != 0
        assert observation.record is not None and observation.record.cancelled


def test_what_daemonises_ends_with_the_attempt(real: ExecutorUnderTest) -> None:
    daemon = (
        f"{sys.executable} -c 'import os, time; os.fork() and os._exit(0); os.setsid(); time.sleep(600)'\n"
    )
    [observation] = run(real.make(), real.request(daemon + "echo over\n"))
    assert exit_code(observation) == 0
    assert_nothing_lives(real.directory)


def test_output_of_any_size_and_encoding_is_kept(real: ExecutorUnderTest) -> None:
    size = 50_000_000
    request = real.request(f"printf '\\377\\000\\200'\nhead -c {size} /dev/zero\n")
    [observation] = run(real.make(), request)
    assert exit_code(observation) == 0
    path = request.directory / "stdout"
    assert path.stat().st_size == size + 3
    with path.open("rb") as file:
        assert file.read(3) == b"\xff\x00\x80"
    path.unlink()


def test_a_script_needs_no_shebang(real: ExecutorUnderTest) -> None:
    request = real.request("echo plain\n", shebang="")
    [observation] = run(real.make(), request)
    assert exit_code(observation) == 0
    assert output(real) == b"plain\n"


def test_a_missing_interpreter_fails_the_attempt(real: ExecutorUnderTest) -> None:
    request = real.request(shebang="#!/no/such/shell\n")
    [observation] = run(real.make(), request)
    assert exit_code(observation) not in {0, None}
    assert b"run.sh" in output(real, name="stderr")


def test_the_directory_may_have_any_name(real: ExecutorUnderTest, tmp_path: Path) -> None:
    request = real.request("pwd\ntouch here\n", directory=real.directory / NASTY_NAME / "attempt-1")
    [observation] = run(real.make(), request)
    assert exit_code(observation) == 0
    assert (request.directory / "here").exists()
    assert output(real).decode() == f"{request.directory}\n"
    assert not list(tmp_path.rglob("oops"))


def test_a_directory_that_cannot_be_written_rejects_the_submission(real: ExecutorUnderTest) -> None:
    real.directory.mkdir()
    obstacle = real.directory / "runs"
    obstacle.write_text("a file where a directory should be")
    [observation] = real.make().submit([real.request()])
    assert observation.state is AttemptState.LOST
    assert observation.elapsed == 0
    assert str(obstacle) in observation.reason


# --- many ---------------------------------------------------------------------------------------------


def test_more_attempts_than_slots_wait_and_finish(tested: ExecutorUnderTest) -> None:
    requests = [tested.request(f"echo {i}\n") for i in range(5 * tested.slots)]
    executor = tested.make()
    observations = executor.submit(requests)
    assert [item.attempt for item in observations] == [item.attempt for item in requests]
    assert observations[-1].state is AttemptState.QUEUED
    last = watch(executor, requests)
    assert {exit_code(item) for item in last.values()} == {0}
    if tested.real:
        assert [output(tested, i) for i in range(len(requests))] == [
            f"{i}\n".encode() for i in range(len(requests))
        ]


def test_attempts_of_a_pack_end_each_for_itself(tested: ExecutorUnderTest) -> None:
    requests = [replace(tested.request(f"exit {code}\n"), pack="one") for code in (0, 3, 0)]
    observations = run(tested.make(), *requests)
    assert [item.attempt for item in observations] == [item.attempt for item in requests]
    assert [exit_code(item) for item in observations] == ([0, 3, 0] if tested.real else [0, 0, 0])


def test_a_pack_reserves_no_more_than_its_attempts_alone(tested: ExecutorUnderTest) -> None:
    executor = tested.make()
    single = executor.reserved_seconds(50.0)
    assert 2 * 50.0 <= executor.reserved_seconds(50.0, 50.0) <= 2 * single
    assert executor.reserved_seconds(50.0, 1.0) >= single


def test_one_that_fails_does_not_disturb_the_others(real: ExecutorUnderTest) -> None:
    requests = [real.request(script) for script in ("exit 3\n", "kill -KILL $$\n", "true\n")]
    assert [exit_code(item) for item in run(real.make(), *requests)] == [3, 128 + 9, 0]


def test_polling_answers_in_order_and_for_nothing(tested: ExecutorUnderTest) -> None:
    requests = [tested.request("sleep 600\n") for _ in range(3)]
    executor = tested.make()
    executor.submit(requests)
    backwards = list(reversed(requests))
    assert [item.attempt for item in executor.poll(backwards)] == [item.attempt for item in backwards]
    assert executor.poll([]) == [] == executor.find([])
    executor.cancel(requests)
    if tested.real:
        watch(executor, requests)


def test_a_waiting_attempt_can_be_cancelled(tested: ExecutorUnderTest) -> None:
    running = [tested.request("sleep 600\n") for _ in range(tested.slots)]
    waiting = tested.request("touch started\n")
    executor = tested.make()
    executor.submit([*running, waiting])
    watch(executor, running, lambda last: all(item.state is AttemptState.RUNNING for item in last.values()))
    executor.cancel([waiting])
    [observation] = executor.poll([waiting])
    executor.cancel(running)
    if tested.real:
        watch(executor, running)
        observation = watch(executor, [waiting])[waiting.attempt]
        assert observation.state is AttemptState.LOST
        assert observation.elapsed == 0
        assert not (waiting.directory / "started").exists()
    else:
        assert observation.state in {AttemptState.ABSENT, AttemptState.LOST}


# --- the controller dies ------------------------------------------------------------------------------


def test_a_new_controller_finds_what_finished(real: ExecutorUnderTest) -> None:
    request = real.request("exit 4\n")
    run(real.make(), request)
    [observation] = real.make().find([request])
    assert exit_code(observation) == 4


def test_a_new_controller_adopts_what_runs(real: ExecutorUnderTest) -> None:
    request = real.request("while [ ! -e go ]; do sleep 0.05; done\nexit 5\n")
    real.make().submit([request])
    executor = real.make()
    watch(executor, [request], lambda last: last[request.attempt].state is AttemptState.RUNNING)
    [observation] = executor.find([request])
    assert observation.state is AttemptState.RUNNING
    (request.directory / "go").touch()
    assert exit_code(watch(executor, [request])[request.attempt]) == 5


def test_a_new_controller_can_cancel_what_runs(real: ExecutorUnderTest) -> None:
    request = real.request("echo begun\nsleep 600\n")
    real.make().submit([request])
    wait_for_file(request.directory / "stdout")
    executor = real.make()
    executor.cancel([request])
    assert exit_code(watch(executor, [request])[request.attempt]) != 0


def test_what_was_never_submitted_is_absent(tested: ExecutorUnderTest) -> None:
    request = tested.request()
    [observation] = tested.make().find([request])
    assert observation.state is AttemptState.ABSENT
    assert not request.directory.exists()


def test_what_was_only_prepared_is_absent_and_can_be_submitted(real: ExecutorUnderTest) -> None:
    request = real.request("echo once >> times\n")
    prepare(request)
    executor = real.make()
    [observation] = executor.find([request])
    assert observation.state is AttemptState.ABSENT
    assert exit_code(run(executor, request)[0]) == 0
    assert output(real, name="times") == b"once\n"


def test_submitting_twice_executes_once(real: ExecutorUnderTest) -> None:
    request = real.request("echo once >> times\n")
    executor = real.make()
    executor.submit([request])
    executor.submit([request])
    watch(executor, [request])
    observations = [*executor.submit([request]), *real.make().submit([request])]
    assert {exit_code(watch(executor, [request])[item.attempt]) for item in observations} == {0}
    assert output(real, name="times") == b"once\n"


def test_what_a_controller_revoked_never_starts(real: ExecutorUnderTest) -> None:
    request = real.request("touch started\n")
    prepare(request)
    assert worker.claim(request.directory, "controller: a test")
    [observation] = run(real.make(), request)
    assert observation.state is AttemptState.LOST
    assert observation.elapsed == 0
    assert not (request.directory / "started").exists()


def test_a_second_execution_changes_nothing(real: ExecutorUnderTest) -> None:
    request = real.request("echo once >> times\n")
    run(real.make(), request)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in request.directory.iterdir()}
    second = subprocess.run(worker.command(str(request.directory)), capture_output=True, check=False)
    assert (second.returncode, second.stdout, second.stderr) == (worker.CLAIMED, b"", b"")
    assert {
        path: (path.read_bytes(), path.stat().st_mtime_ns) for path in request.directory.iterdir()
    } == before
