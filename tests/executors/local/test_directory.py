"""The local executor where the campaign directory is full, or the directories of attempts are deleted."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.executors.attempt import directory as files
from orchestrator.executors.attempt import processes, worker
from orchestrator.executors.attempt.directory import DirectoryUnwritable
from orchestrator.executors.local import detached
from orchestrator.executors.local.executor import LocalExecutor
from orchestrator.types import AttemptRequest, AttemptState
from tests.executors.attempt.attempts import UNTIL_GO, one
from tests.executors.under_test import ExecutorUnderTest, run, wait_for_file, watch
from tests.processes import wait_until_dead


def full(number: int) -> Callable[..., Any]:
    def fail(*arguments: object, **options: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
@pytest.mark.parametrize(
    ("where", "name"),
    [(Path, "mkdir"), (files, "write_atomically"), (os, "posix_spawn")],
    ids=lambda item: str(item),
)
def test_a_full_disk_fails_no_attempt_and_can_be_continued(
    machine: ExecutorUnderTest, monkeypatch: pytest.MonkeyPatch, number: int, where: Any, name: str
) -> None:
    request = machine.request("echo once >> times\n")
    machine.directory.mkdir(exist_ok=True)
    with monkeypatch.context() as patch:
        patch.setattr(where, name, full(number))
        with pytest.raises(DirectoryUnwritable, match=os.strerror(number)) as stopped:
            LocalExecutor(slots=1).submit([request])
    assert stopped.value.exit_code == 3
    executor = LocalExecutor(slots=1)
    assert one(executor, request).state is AttemptState.ABSENT
    assert run(executor, request)[0].state is AttemptState.FINISHED
    assert (request.directory / "times").read_text() == "once\n"


def test_no_room_for_the_claim_fails_no_attempt(
    machine: ExecutorUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = machine.request()
    with monkeypatch.context() as patch:
        patch.setattr(worker, "command", lambda path: ["/bin/false"])
        patch.setattr(Path, "write_bytes", full(errno.ENOSPC))
        executor = LocalExecutor(slots=1)
        executor.submit([request])
        with pytest.raises(DirectoryUnwritable):
            watch(executor, [request])
    assert one(LocalExecutor(slots=1), request).state is AttemptState.ABSENT


def test_no_room_for_the_record_fails_no_attempt(
    machine: ExecutorUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = machine.request("touch started\n")
    files.prepare(request)
    (request.directory / "attempt.json.next").mkdir()
    executor = LocalExecutor(slots=1)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full(errno.ENOSPC))
        executor.submit([request])
        with pytest.raises(DirectoryUnwritable):
            watch(executor, [request])
    assert one(executor, request).state is AttemptState.LOST, "there is room, so it was something else"
    found = one(LocalExecutor(slots=1), request)
    assert (found.state, found.revoked) == (AttemptState.ABSENT, True)
    assert not (request.directory / "started").exists()


def _kill(pids: list[int]) -> None:
    """Kill processes at once: none can act on the death of another."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            processes.kill(pid, number)
    wait_until_dead(*pids)


GONE = [
    pytest.param("rm -rf ./*", id="emptied"),
    pytest.param('rm -rf "$PWD"', id="deleted"),
    pytest.param('mv "$PWD" "$PWD-elsewhere"', id="moved"),
]
"""What a program does to its working directory."""


@pytest.mark.parametrize("script", GONE)
def test_a_new_controller_adopts_what_runs_in_a_directory_without_its_files(
    machine: ExecutorUnderTest, tmp_path: Path, script: str
) -> None:
    log, go = tmp_path / "log", tmp_path / "go"
    request = machine.request(f"{script}; echo begun >> {log}; until [ -e {go} ]; do sleep 0.1; done\n")
    LocalExecutor(slots=1).submit([request])
    wait_for_file(log)
    executor = LocalExecutor(slots=1)
    assert [item.state for item in executor.find([request])] == [AttemptState.RUNNING]
    executor.cancel([request])
    wait_until_dead(*processes.marked(request.directory))
    assert log.read_text() == "begun\n"


def _killed_after(script: str, machine: ExecutorUnderTest, log: Path) -> AttemptRequest:
    """Submit a script, and kill all its processes once it has done what it does."""
    request = machine.request(f"{script}; echo begun >> {log}; exec sleep 600\n")
    LocalExecutor(slots=1).submit([request])
    wait_for_file(log)
    _kill(processes.marked(request.directory))
    return request


@pytest.mark.parametrize("script", GONE)
def test_what_began_is_not_absent_though_its_files_and_owners_are_gone(
    machine: ExecutorUnderTest, tmp_path: Path, script: str
) -> None:
    request = _killed_after(script, machine, tmp_path / "log")
    executor = LocalExecutor(slots=1)
    found = one(executor, replace(request, begun=True))
    assert (found.state, found.elapsed) == (AttemptState.LOST, executor.reserved_seconds(request.limit))
    assert "deleted" in found.reason


@pytest.mark.parametrize("names", ["*.json", "attempt.json claim"])
def test_what_printed_began_though_its_record_is_deleted(
    machine: ExecutorUnderTest, tmp_path: Path, names: str
) -> None:
    request = _killed_after(f"rm -f {names}", machine, tmp_path / "log")
    executor = LocalExecutor(slots=1)
    found = one(executor, request)
    assert (found.state, found.elapsed) == (AttemptState.LOST, executor.reserved_seconds(request.limit))


def test_a_directory_that_a_program_closed_is_not_waited_for(machine: ExecutorUnderTest) -> None:
    request = machine.request("echo begun\n")
    run(LocalExecutor(slots=1), request)
    (request.directory / "attempt.json").unlink()
    (request.directory / "attempt.json").mkdir()  # the tests' user may read whatever its mode is
    executor = LocalExecutor(slots=1)
    assert one(executor, request).state is AttemptState.UNKNOWN
    request.directory.chmod(0)
    found = one(executor, request)
    request.directory.chmod(0o700)
    assert (found.state, found.elapsed) == (AttemptState.LOST, executor.reserved_seconds(request.limit))


def test_what_a_program_left_in_an_emptied_directory_is_ended(
    machine: ExecutorUnderTest, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    request = machine.request(f"rm -rf ./*; setsid sleep 600 & echo begun >> {log}; exec sleep 600\n")
    LocalExecutor(slots=1).submit([request])
    wait_for_file(log)
    _kill(detached.owners(request.directory))
    executor = LocalExecutor(slots=1)
    assert one(executor, request).state is AttemptState.LOST
    assert not processes.marked(request.directory)


def test_what_waited_for_cores_when_its_directory_was_deleted_begins_again(
    machine: ExecutorUnderTest,
) -> None:
    first, second = machine.request(UNTIL_GO), machine.request("echo once >> times\n")
    executor = LocalExecutor(slots=1)
    executor.submit([first, second])
    wait_for_file(first.directory / "stdout")
    shutil.rmtree(second.directory)
    (first.directory / "go").touch()
    watch(executor, [first])
    assert one(executor, second).state is AttemptState.ABSENT
    assert run(executor, second)[0].state is AttemptState.FINISHED
    assert (second.directory / "times").read_text() == "once\n"
