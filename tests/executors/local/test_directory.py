"""The local executor where the campaign directory is full, or the directories of attempts are deleted."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.executors.attempt import directory as files
from orchestrator.executors.attempt import worker
from orchestrator.executors.attempt.directory import DirectoryUnwritable
from orchestrator.executors.local.executor import LocalExecutor
from orchestrator.types import AttemptState
from tests.executors.attempt.attempts import UNTIL_GO, one
from tests.executors.under_test import ExecutorUnderTest, run, wait_for_file, watch


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
