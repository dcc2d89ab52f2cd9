"""The local executor: classifying attempts by what is left of them."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator import storage
from orchestrator.executors.attempt import processes, worker
from orchestrator.executors.attempt import record as files
from orchestrator.executors.local.executor import LocalExecutor
from orchestrator.types import AttemptRequest, AttemptState
from tests.executors.attempt.attempts import ROOT, UNTIL_GO, one, owners, start
from tests.executors.conftest import Prepared
from tests.executors.under_test import (
    ExecutorUnderTest,
    processes_of,
    run,
    wait_for_file,
    watch,
)
from tests.processes import wait_until_dead


def edit_record(request: AttemptRequest, **changes: Any) -> None:
    path = request.directory / "attempt.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def killed(prepared: Prepared, script: str) -> AttemptRequest:
    """Return an attempt whose two owners were killed at once."""
    request = prepared(script)
    with start(request) as process:
        wait_for_file(request.directory / "stdout")
        pids = owners(request)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        process.wait(60)
        wait_until_dead(pids[1])
    return request


def test_what_was_killed_with_its_owners_is_lost_and_charged_up_to_its_last_sign_of_life(
    prepared: Prepared,
) -> None:
    request = killed(prepared, "echo begun\nexec sleep 600\n")
    wait_until_dead(*processes.marked(request.directory))  # what still dies would be a sign of life
    last = time.time() - 5000
    executor = LocalExecutor(slots=1)
    for before, expected in ((30, 30 + worker.HEARTBEAT), (1000, executor.reserved_seconds(request.limit))):
        edit_record(request, started=storage.iso(last - before))
        for path in request.directory.iterdir():
            os.utime(path, (last, last))
        observation = one(executor, request)
        assert observation.state is AttemptState.LOST
        assert observation.elapsed == pytest.approx(expected, abs=1e-3)
        assert f"{expected:.0f} s" in observation.reason


@pytest.mark.parametrize("exit_code", [0, 3])
def test_a_power_failure_that_took_what_was_printed_is_no_failure_of_the_application(
    machine: ExecutorUnderTest, exit_code: int
) -> None:
    request = machine.request(f"echo time: 3; exit {exit_code}\n")
    run(LocalExecutor(slots=1), request)
    assert not one(LocalExecutor(slots=1), request).reason
    os.truncate(request.directory / "stdout", 0)
    found = one(LocalExecutor(slots=1), request)
    assert found.state is AttemptState.FINISHED
    assert found.reason == "the file system does not show the 8 bytes that it printed"


def test_what_began_later_than_the_clock_says_now_is_charged_what_was_reserved(prepared: Prepared) -> None:
    request = killed(prepared, "echo begun\nexec sleep 600\n")
    edit_record(request, started=storage.iso(time.time() + 3600))
    executor = LocalExecutor(slots=1)
    assert one(executor, request).elapsed == executor.reserved_seconds(request.limit)


def test_what_outlived_its_owners_is_ended_before_it_is_called_lost(prepared: Prepared) -> None:
    request = killed(prepared, "setsid sleep 600 &\nsleep 0.2\necho begun\nsleep 600\n")
    assert processes_of(request.directory)
    executor = LocalExecutor(slots=1)
    observation = one(executor, request)
    assert observation.state is AttemptState.LOST
    assert not processes_of(request.directory)
    assert observation.elapsed is not None
    assert 0 < observation.elapsed <= executor.reserved_seconds(request.limit)
    assert one(executor, request).state is AttemptState.LOST


ELSEWHERE = ({"host": "elsewhere", "boot": "another"}, {"host": "elsewhere", "namespace": "pid:[1]"})


@pytest.mark.parametrize("place", ELSEWHERE, ids=["another host", "another container"])
def test_an_attempt_elsewhere_is_unknown_while_it_gives_signs_of_life(
    place: dict[str, str], prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = killed(prepared, "echo begun\nexec sleep 600\n")
    edit_record(request, **place)
    executor, clock = LocalExecutor(slots=1), [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    for _ in range(20):
        clock[0] += 100.0
        os.utime(request.directory / "claim")
        observation = one(executor, request)
        assert observation.state is AttemptState.UNKNOWN and "elsewhere" in observation.reason
    clock[0] += 170.0
    assert one(executor, request).state is AttemptState.UNKNOWN
    clock[0] += 20.0
    assert one(executor, request).state is AttemptState.LOST


def test_a_machine_that_was_renamed_knows_its_attempts(prepared: Prepared) -> None:
    request = prepared(UNTIL_GO)
    with start(request):
        wait_for_file(request.directory / "stdout")
        edit_record(request, host="formerly")
        assert one(LocalExecutor(slots=1), request).state is AttemptState.RUNNING
        (request.directory / "go").touch()


def test_neither_a_recycled_pid_nor_another_boot_is_mistaken_for_a_living_attempt(prepared: Prepared) -> None:
    request = killed(prepared, "echo begun\nexec sleep 600\n")
    me = processes.identity()
    for changes in ({"processes": [[me[0], me[1] - 1]]}, {"processes": [me], "boot": "another"}):
        edit_record(request, **changes)
        assert one(LocalExecutor(slots=1), request).state is AttemptState.LOST
    edit_record(request, boot=processes.place()["boot"], processes=[me])
    assert one(LocalExecutor(slots=1), request).state is AttemptState.RUNNING


def test_claimed_but_killed_before_the_record_costs_nothing(prepared: Prepared) -> None:
    request = prepared()
    code = (
        "from orchestrator.executors.attempt import worker; "
        f"worker.claim({str(request.directory)!r}, worker.OWNER)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
    observation = one(LocalExecutor(slots=1), request)
    assert (observation.state, observation.revoked) == (AttemptState.ABSENT, True)


def test_an_attempt_whose_directory_is_deleted_is_charged_what_was_reserved(
    machine: ExecutorUnderTest,
) -> None:
    request = machine.request(UNTIL_GO)
    executor = LocalExecutor(slots=1)
    executor.submit([request])
    wait_for_file(request.directory / "stdout")
    pids = owners(request)
    shutil.rmtree(request.directory)
    for pid in (*pids, *processes_of(request.directory)):
        processes.kill(pid, signal.SIGKILL)
    observation = watch(executor, [request])[request.attempt]
    assert observation.state is AttemptState.LOST
    assert observation.elapsed == executor.reserved_seconds(request.limit)
    assert not request.directory.exists()


def submit_patched(monkeypatch: pytest.MonkeyPatch, request: AttemptRequest, patch: str) -> int:
    """Submit an attempt whose process executes ``patch`` first; forget the executor, return the pid."""
    code = patch + worker.command("")[-2]
    with monkeypatch.context() as context:
        context.setattr(worker, "command", lambda path: [sys.executable, "-I", "-S", "-c", code, path])
        [observation] = LocalExecutor(slots=1).submit([request])
    return int(observation.handle)


def test_an_attempt_has_a_session_of_its_own(machine: ExecutorUnderTest) -> None:
    request = machine.request(UNTIL_GO)
    executor = LocalExecutor(slots=1)
    [observation] = executor.submit([request])
    assert os.getsid(int(observation.handle)) == int(observation.handle)
    wait_for_file(request.directory / "stdout")
    (request.directory / "go").touch()
    watch(executor, [request])


def test_a_worker_whose_guard_was_killed_before_the_record_starts_nothing(
    machine: ExecutorUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = machine.request("touch started\n")
    hang = (
        f"import sys, time; sys.path.append({ROOT!r})\n"
        "from orchestrator.executors.attempt import worker as attempt\n"
        "attempt._reserve = lambda *x: time.sleep(600)\n"
    )
    guard = submit_patched(monkeypatch, request, hang)
    while len(pids := processes_of(request.directory)) < 2 or not (request.directory / "claim").exists():
        time.sleep(0.01)
    os.kill(guard, signal.SIGKILL)
    wait_until_dead(guard)
    observation = one(LocalExecutor(slots=1), request)
    assert (observation.state, observation.revoked) == (AttemptState.ABSENT, True)
    for pid in pids:
        wait_until_dead(pid)
    assert not (request.directory / "started").exists()


def test_an_attempt_about_to_claim_is_not_absent(
    machine: ExecutorUnderTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    request = machine.request("echo once >> times\n")
    late = f"import os, time\nwhile not os.path.exists({str(tmp_path / 'now')!r}): time.sleep(0.01)\n"
    submit_patched(monkeypatch, request, late)
    executor = LocalExecutor(slots=1)
    assert one(executor, request).state is AttemptState.QUEUED
    assert executor.submit([request])[0].state is AttemptState.QUEUED
    (tmp_path / "now").touch()
    assert watch(executor, [request])[request.attempt].state is AttemptState.FINISHED
    assert (request.directory / "times").read_text() == "once\n"


def test_what_began_and_ended_between_two_looks_is_not_absent(
    machine: ExecutorUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = machine.request("exit 3\n")
    run(LocalExecutor(slots=1), request)
    for name in ("owners", "read_record"):
        answers: Iterator[Any] = iter([None, getattr(files, name)(request.directory)])
        monkeypatch.setattr(files, name, lambda directory, answers=answers: next(answers))
    assert one(LocalExecutor(slots=1), request).state is AttemptState.FINISHED


@pytest.mark.parametrize("name", ["attempt.json", "claim"])
def test_unreadable_files_are_classified_by_processes_and_patience(prepared: Prepared, name: str) -> None:
    request = prepared(UNTIL_GO)
    with start(request):
        wait_for_file(request.directory / "stdout")
        (request.directory / "attempt.json").rename(request.directory / "kept")
        (request.directory / name).write_text("")
        executor = LocalExecutor(slots=1)
        assert one(executor, request).state is AttemptState.RUNNING
        (request.directory / "go").touch()
    (request.directory / "attempt.json").unlink()
    (request.directory / name).write_text("")
    assert one(LocalExecutor(slots=1), request).state is AttemptState.UNKNOWN
    for path in request.directory.iterdir():
        os.utime(path, (0, 0))
    executor = LocalExecutor(slots=1)
    observation = one(executor, request)
    assert observation.state is AttemptState.LOST
    # No record will ever say more: the charge is final.
    assert observation.elapsed == executor.reserved_seconds(request.limit)
    assert str(request.directory / name) in observation.reason


def test_an_error_of_proc_is_not_taken_for_death(
    machine: ExecutorUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = machine.request(UNTIL_GO)
    LocalExecutor(slots=1).submit([request])
    wait_for_file(request.directory / "stdout")

    def exhausted(pid: int) -> tuple[str, int, int]:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(processes, "_stat", exhausted)
        assert one(LocalExecutor(slots=1), request).state is AttemptState.UNKNOWN
    (request.directory / "go").touch()
    assert watch(LocalExecutor(slots=1), [request])[request.attempt].state is AttemptState.FINISHED


def test_a_copy_of_the_directory_leaves_the_original_alone(machine: ExecutorUnderTest) -> None:
    original = machine.request(UNTIL_GO)
    LocalExecutor(slots=1).submit([original])
    wait_for_file(original.directory / "stdout")
    copy = replace(original, directory=machine.directory / "copy")
    shutil.copytree(original.directory, copy.directory, copy_function=os.link)
    executor = LocalExecutor(slots=1)
    executor.cancel([copy])
    observation = one(executor, copy)
    assert observation.state is AttemptState.LOST
    assert "copy" in observation.reason
    (original.directory / "go").touch()
    observation = watch(LocalExecutor(slots=1), [original])[original.attempt]
    assert observation.record is not None and observation.record.exit_code == 0


def test_a_directory_that_was_moved_keeps_its_attempt(machine: ExecutorUnderTest) -> None:
    request = machine.request(UNTIL_GO)
    LocalExecutor(slots=1).submit([request])
    wait_for_file(request.directory / "stdout")
    moved = replace(request, directory=machine.directory / "moved")
    request.directory.rename(moved.directory)
    request.directory.mkdir()  # of another campaign, that was begun in its place
    executor = LocalExecutor(slots=1)
    assert one(executor, moved).state is AttemptState.RUNNING
    executor.cancel([moved])
    for pid in owners(moved):
        wait_until_dead(pid)
    assert one(executor, moved).state is AttemptState.FINISHED
    assert not list(request.directory.iterdir())


@pytest.mark.parametrize(
    ("named", "belongs"), [("here", True), ("link", True), ("copy", False), ("gone", True), (None, True)]
)
def test_whose_a_process_is_that_only_its_environment_tells(
    tmp_path: Path, named: str | None, belongs: bool
) -> None:
    for name in ("here", "copy"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("here")
    environment = {name: value for name, value in os.environ.items() if name != processes.MARK}
    mark = {} if named is None else {processes.MARK: str(tmp_path / named)}
    with subprocess.Popen(["sleep", "600"], env={**environment, **mark}, stdin=subprocess.DEVNULL) as process:
        try:
            while not Path(f"/proc/{process.pid}/environ").read_bytes():  # still within execve
                time.sleep(0.01)
            assert processes.belongs(process.pid, tmp_path / "here") is belongs
        finally:
            process.kill()


def test_a_claim_that_a_full_disk_left_empty_costs_nothing_once_its_process_ended(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for more of it, and the whole reservation of a run that never began is not charged."""
    request = prepared("true")

    def broken(directory: Path, cpus: object) -> int:
        (directory / worker.CLAIM).touch()
        return subprocess.Popen(["/bin/sh", "-c", f"exit {worker.BROKEN}"]).pid

    monkeypatch.setattr("orchestrator.executors.local.executor.detached.start", broken)
    executor = LocalExecutor(slots=1)
    executor.submit([request])
    deadline = time.monotonic() + 20
    while (
        found := executor.poll([request])[0]
    ).state is AttemptState.RUNNING and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (found.state, found.elapsed) == (AttemptState.LOST, 0.0)
    assert "it never began" in found.reason and "is empty" in found.reason
