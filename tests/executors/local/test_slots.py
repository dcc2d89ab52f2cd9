"""The local executor: what runs at once, what has to wait, what is refused."""

from __future__ import annotations

import errno
import os

import pytest

from orchestrator import registry
from orchestrator.executors.base import ExecutorContext
from orchestrator.executors.local.executor import LocalExecutor
from orchestrator.types import AttemptState
from tests.executors.attempt.attempts import UNTIL_GO, one, wait_for_record
from tests.executors.under_test import ExecutorUnderTest, run, watch


def test_a_campaign_says_how_many_slots(machine: ExecutorUnderTest) -> None:
    context = ExecutorContext(directory=machine.directory, options={"slots": 3})
    executor = registry.load("executor", "local")(context)
    [fits] = run(executor, machine.request(cores=3))
    assert fits.state is AttemptState.FINISHED
    [too_large] = executor.submit([machine.request(cores=4)])
    assert too_large.state is AttemptState.LOST and "it needs 4 cores" in too_large.reason


def test_no_more_cores_run_at_once_than_there_are_slots(machine: ExecutorUnderTest) -> None:
    requests = [machine.request("sleep 0.05\n", cores=1 + i % 3) for i in range(9)]
    observations = run(LocalExecutor(slots=3), *requests)
    changes = []
    for request, observation in zip(requests, observations, strict=True):
        record = observation.record
        assert record is not None and record.finished is not None
        changes += [(record.started, request.resources.cores), (record.finished, -request.resources.cores)]
    used, most = 0, 0
    for _, cores in sorted(changes):
        used += cores
        most = max(most, used)
    assert most == 3


def test_small_attempts_do_not_overtake_a_big_one(machine: ExecutorUnderTest) -> None:
    requests = [machine.request("sleep 0.1\n"), machine.request(cores=2), machine.request()]
    records = [item.record for item in run(LocalExecutor(slots=2), *requests)]
    starts = [record.started for record in records if record is not None]
    assert starts == sorted(starts)


def test_what_never_fits_is_rejected_with_the_remedy(machine: ExecutorUnderTest) -> None:
    request = machine.request(cores=4)
    [observation] = LocalExecutor(slots=3).submit([request])
    assert observation.state is AttemptState.LOST
    assert observation.elapsed == 0
    assert "executor.slots" in observation.reason
    assert not request.directory.exists()


def test_adopted_attempts_occupy_their_slots(machine: ExecutorUnderTest) -> None:
    first, second = machine.request(UNTIL_GO), machine.request()
    LocalExecutor(slots=1).submit([first])
    wait_for_record(first)
    executor = LocalExecutor(slots=1)
    assert one(executor, first).state is AttemptState.RUNNING
    assert executor.submit([second])[0].state is AttemptState.QUEUED
    (first.directory / "go").touch()
    assert {item.state for item in watch(executor, [first, second]).values()} == {AttemptState.FINISHED}


def test_submitting_what_ended_starts_nothing(machine: ExecutorUnderTest) -> None:
    request = machine.request("echo once >> times\n")
    run(LocalExecutor(slots=1), request)
    assert LocalExecutor(slots=1).submit([request])[0].state is AttemptState.FINISHED


def test_without_a_process_to_be_had_the_attempt_is_lost(
    machine: ExecutorUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = machine.request()

    def no_more(*args: object, **options: object) -> int:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "posix_spawn", no_more)
    executor = LocalExecutor(slots=1)
    [observation] = executor.submit([request])
    assert observation.state is AttemptState.LOST
    assert observation.elapsed == 0
    assert "Resource temporarily unavailable" in observation.reason
    assert one(executor, request).state is AttemptState.LOST
