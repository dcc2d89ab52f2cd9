"""Attempts that run side by side are bound to cores of their own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.executors.local import cores
from orchestrator.executors.local.executor import LocalExecutor
from orchestrator.types import AttemptRequest, AttemptState
from tests.executors.under_test import ExecutorUnderTest, wait_for_file, watch

SEE = 'grep Cpus_allowed_list /proc/self/status > "$PWD/seen"\nwhile [ ! -e go ]; do sleep 0.02; done\n'


def topology(folder: Path, siblings: dict[int, str]) -> Path:
    for cpu, text in siblings.items():
        place = folder / f"cpu{cpu}" / "topology"
        place.mkdir(parents=True)
        (place / "thread_siblings_list").write_text(f"{text}\n")
    return folder


def test_hyper_threads_are_one_core(tmp_path: Path) -> None:
    place = topology(tmp_path, {0: "0,4", 4: "0,4", 1: "1,5", 5: "1,5", 2: "2"})
    assert cores.physical({0, 1, 2, 4, 5}, place) == tuple(map(frozenset, ({0, 4}, {1, 5}, {2})))
    assert cores.physical({0, 1, 4}, place) == (frozenset({0, 4}), frozenset({1})), (
        "only CPUs that may be used"
    )
    assert cores.physical({7, 8}, place) == (frozenset({7}), frozenset({8})), "nothing is known of them"


@given(st.lists(st.integers(1, 7), max_size=12), st.integers(1, 6), st.integers(1, 2))
def test_no_two_attempts_share_a_cpu(wanted: list[int], number: int, threads: int) -> None:
    there = tuple(frozenset(range(i * threads, (i + 1) * threads)) for i in range(number))
    running: list[cores.CPUs] = []
    for size in wanted:
        chosen = cores.choose(there, running, size)
        free = number - sum(map(len, running)) // threads
        if chosen is None:
            assert free < min(size, number)
            continue
        assert len(chosen) == threads * min(size, number)
        assert not any(chosen & other for other in running)
        running.append(chosen)


def test_the_first_core_and_cores_to_avoid_are_chosen_last() -> None:
    there = tuple(frozenset({cpu}) for cpu in range(4))
    assert cores.choose(there, [], 1) == frozenset({3})
    assert cores.choose(there, [], 1, avoid=frozenset({3})) == frozenset({2})
    assert cores.choose(there, [], 4, avoid=frozenset({3})) == frozenset(range(4)), "waiting may last"


def bound(request: AttemptRequest) -> set[int]:
    """Return the CPUs that the program of an attempt may use."""
    text = wait_for_file(request.directory / "seen").split()[-1]
    ends = [list(map(int, part.split("-"))) for part in text.split(",")]
    return {cpu for end in ends for cpu in range(end[0], end[-1] + 1)}


@pytest.fixture
def two_cores() -> None:
    if len(cores.usable()) < 2:
        pytest.skip("one core")


@pytest.mark.usefixtures("two_cores")
def test_attempts_side_by_side_are_bound_to_different_cores(machine: ExecutorUnderTest) -> None:
    first, second = machine.request(SEE), machine.request(SEE)
    executor = LocalExecutor(slots=2)
    executor.submit([first, second])
    assert not bound(first) & bound(second)
    for request in (first, second):
        (request.directory / "go").touch()
    found = watch(executor, [first, second])
    assert {item.state for item in found.values()} == {AttemptState.FINISHED}


@pytest.mark.usefixtures("two_cores")
def test_the_cores_of_an_adopted_attempt_are_not_free(machine: ExecutorUnderTest) -> None:
    first, second = machine.request(SEE), machine.request(SEE)
    LocalExecutor(slots=2).submit([first])
    taken = bound(first)
    executor = LocalExecutor(slots=2)
    executor.find([first])
    executor.submit([second])
    assert not bound(second) & taken
    for request in (first, second):
        (request.directory / "go").touch()
    watch(executor, [first, second])


def test_what_wants_more_cores_than_there_are_runs_alone_on_all(machine: ExecutorUnderTest) -> None:
    there = cores.usable()
    large, small = machine.request(SEE, cores=len(there) + 1), machine.request("true\n")
    executor = LocalExecutor(slots=len(there) + 2)
    _, waiting = executor.submit([large, small])
    assert bound(large) == set(os.sched_getaffinity(0))
    assert waiting.state is AttemptState.QUEUED
    assert executor.poll([small])[0].state is AttemptState.QUEUED
    (large.directory / "go").touch()
    watch(executor, [large, small])


def test_cores_are_shared_where_the_campaign_says_so(machine: ExecutorUnderTest) -> None:
    requests = [machine.request(SEE) for _ in range(len(cores.usable()) + 1)]
    executor = LocalExecutor(slots=len(requests), share_cores=True)
    executor.submit(requests)
    for request in requests:
        assert bound(request) == set(os.sched_getaffinity(0))
        (request.directory / "go").touch()
    watch(executor, requests)


def test_attempts_run_one_at_a_time_where_nothing_can_be_bound(
    machine: ExecutorUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cores, "usable", lambda: ())
    first, second = machine.request(SEE), machine.request(SEE)
    executor = LocalExecutor(slots=2)
    states = [item.state for item in executor.submit([first, second])]
    assert states == [AttemptState.RUNNING, AttemptState.QUEUED]
    for request in (first, second):
        (request.directory / "go").touch()
    watch(executor, [first, second])
