"""The local executor: waiting without delay and without a busy loop; nothing is leaked."""

from __future__ import annotations

import errno
import json
import os
import time
from pathlib import Path

import pytest

from orchestrator.executors.local.executor import LocalExecutor
from orchestrator.types import AttemptState
from tests.executors.attempt.attempts import one, wait_for_record
from tests.executors.under_test import ExecutorUnderTest, run
from tests.processes import wait_until_dead


@pytest.mark.parametrize("pidfd", [True, False], ids=["pidfd", "old kernel"])
@pytest.mark.parametrize("adopted", [False, True], ids=["child", "adopted"])
def test_waiting_ends_with_an_attempt_and_burns_no_time(
    machine: ExecutorUnderTest, monkeypatch: pytest.MonkeyPatch, pidfd: bool, adopted: bool
) -> None:
    if not pidfd:

        def missing(pid: int) -> int:
            raise OSError(errno.ENOSYS, "Function not implemented")

        monkeypatch.setattr(os, "pidfd_open", missing)
    request = machine.request("sleep 0.5\n")
    executor = LocalExecutor(slots=1)
    executor.submit([request])
    if adopted:
        wait_for_record(request)
        executor = LocalExecutor(slots=1)
        assert one(executor, request).state is AttemptState.RUNNING
    begin, cpu = time.monotonic(), time.process_time()
    executor.wait(600)
    assert time.monotonic() - begin < 300
    assert time.process_time() - cpu < 0.25, "a busy loop"
    assert executor.poll([request])[0].state is AttemptState.FINISHED


def test_waiting_returns_at_once_for_what_ended_unnoticed(machine: ExecutorUnderTest) -> None:
    seen, unseen = machine.request(), machine.request()
    executor = LocalExecutor(slots=2)
    executor.submit([seen, unseen])
    while executor.poll([seen])[0].state is not AttemptState.FINISHED:
        time.sleep(0.01)
    wait_for_record(unseen)
    wait_until_dead(json.loads((unseen.directory / "attempt.json").read_text())["pid"])
    begin = time.monotonic()
    executor.wait(600)
    assert time.monotonic() - begin < 300
    assert executor.poll([unseen])[0].state is AttemptState.FINISHED


def test_waiting_tells_of_an_end_once_and_then_waits(machine: ExecutorUnderTest) -> None:
    executor = LocalExecutor(slots=1)
    executor.submit([machine.request()])
    executor.wait(600)
    begin = time.monotonic()
    executor.wait(0.2)
    assert time.monotonic() - begin >= 0.2


def test_waiting_for_nothing_takes_as_long_as_it_was_told(machine: ExecutorUnderTest) -> None:
    begin = time.monotonic()
    LocalExecutor(slots=1).wait(0.2)
    assert time.monotonic() - begin >= 0.2


def test_descriptors_and_children_are_given_back(machine: ExecutorUnderTest) -> None:
    executor = LocalExecutor(slots=2)
    run(executor, machine.request())
    before = held()
    run(executor, *[machine.request() for _ in range(5)])
    assert held() == before


def held() -> tuple[int, set[str]]:
    """Return how many descriptors and which children, zombies too, this process has."""
    children = {
        pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()
    }
    return len(list(Path("/proc/self/fd").iterdir())), children
