"""What only the local executor promises: slots, waiting without delay, adoption, judging what is gone."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator import registry
from orchestrator.executors import attempt, files, processes
from orchestrator.executors.base import ExecutorContext
from orchestrator.executors.local import LocalExecutor
from orchestrator.types import AttemptRequest, AttemptState, Observation
from tests.executors.conftest import Prepared
from tests.executors.test_attempt import owners, start
from tests.executors.under_test import (
    ExecutorUnderTest,
    processes_of,
    run,
    wait_for_file,
    watch,
)
from tests.processes import wait_until_dead

UNTIL_GO = "echo begun\nwhile [ ! -e go ]; do sleep 0.02; done\n"


def one(executor: LocalExecutor, request: AttemptRequest) -> Observation:
    [observation] = executor.find([request])
    return observation


def edit_record(request: AttemptRequest, **changes: Any) -> None:
    path = request.directory / "attempt.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_campaign_says_how_many_slots(tmp_path: Path) -> None:
    executor = registry.load("executor", "local")(ExecutorContext(tmp_path, {"slots": 3}))
    assert isinstance(executor, LocalExecutor)
    assert executor.reserved_seconds(10.0) > 10.0


# --- slots --------------------------------------------------------------------------------------------


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
    assert most <= 3


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


# --- waiting ------------------------------------------------------------------------------------------


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


def wait_for_record(request: AttemptRequest) -> None:
    while files.read_record(request.directory) is None:
        time.sleep(0.01)


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


# --- judging what is gone -----------------------------------------------------------------------------


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
    last = time.time() - 5000
    executor = LocalExecutor(slots=1)
    for before, expected in ((30, 30 + attempt.HEARTBEAT), (1000, executor.reserved_seconds(request.limit))):
        edit_record(request, started=attempt.iso(last - before))
        for path in request.directory.iterdir():
            os.utime(path, (last, last))
        observation = one(executor, request)
        assert observation.state is AttemptState.LOST
        assert observation.elapsed == pytest.approx(expected, abs=1e-3)
        assert f"{expected:.0f} s" in observation.reason


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


def test_an_attempt_on_another_host_is_unknown(prepared: Prepared) -> None:
    request = killed(prepared, "echo begun\nexec sleep 600\n")
    edit_record(request, host="elsewhere")
    observation = one(LocalExecutor(slots=1), request)
    assert observation.state is AttemptState.UNKNOWN
    assert "elsewhere" in observation.reason


def test_an_attempt_in_another_container_is_unknown(prepared: Prepared) -> None:
    request = killed(prepared, "echo begun\nexec sleep 600\n")
    edit_record(request, namespace="pid:[1]")
    assert one(LocalExecutor(slots=1), request).state is AttemptState.UNKNOWN


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
    code = f"from orchestrator.executors import attempt; attempt.claim({str(request.directory)!r}, 'attempt')"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
    observation = one(LocalExecutor(slots=1), request)
    assert observation.state is AttemptState.LOST
    assert observation.elapsed == 0


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
    assert observation.elapsed is None
    assert not request.directory.exists()


def submit_patched(monkeypatch: pytest.MonkeyPatch, request: AttemptRequest, patch: str) -> int:
    """Submit an attempt whose process executes ``patch`` first; forget the executor, return the pid."""
    code = patch + attempt.command("")[-2]
    with monkeypatch.context() as context:
        context.setattr(attempt, "command", lambda path: [sys.executable, "-I", "-S", "-c", code, path])
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
    root = str(Path(__file__).parents[2])
    hang = (
        f"import sys, time; sys.path.append({root!r}); from orchestrator.executors import attempt\n"
        "attempt._reserve = lambda *x: time.sleep(600)\n"
    )
    guard = submit_patched(monkeypatch, request, hang)
    while len(pids := processes_of(request.directory)) < 2 or not (request.directory / "claim").exists():
        time.sleep(0.01)
    os.kill(guard, signal.SIGKILL)
    wait_until_dead(guard)
    observation = one(LocalExecutor(slots=1), request)
    assert observation.state is AttemptState.LOST
    assert observation.elapsed == 0
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
def test_files_that_say_nothing_are_judged_by_processes_and_patience(prepared: Prepared, name: str) -> None:
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
    observation = one(LocalExecutor(slots=1), request)
    assert observation.state is AttemptState.LOST
    assert observation.elapsed is None  # nobody knows: all that was reserved
    assert str(request.directory / name) in observation.reason


def test_trouble_with_proc_is_not_taken_for_death(
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


# --- the controller is killed -------------------------------------------------------------------------

CONTROLLER = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from orchestrator.executors.local import LocalExecutor
from tests.executors.under_test import ExecutorUnderTest, local
tested = local(None, Path(sys.argv[2]))
script = "echo $$ >> times\\nsleep 0.1\\n"
requests = [tested.request(script) for _ in range(4)]
executor = LocalExecutor(slots=2)
print("ready", flush=True)
executor.submit(requests)
while True:
    executor.wait(5)
"""


@pytest.mark.parametrize("seed", range(4))
def test_a_controller_killed_at_any_time_leaves_every_attempt_executed_once(
    machine: ExecutorUnderTest, seed: int
) -> None:
    root = str(Path(__file__).parents[2])
    controller = subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, root, str(machine.directory)], stdout=subprocess.PIPE
    )
    assert controller.stdout is not None
    with controller:
        controller.stdout.readline()
        time.sleep(random.Random(seed).uniform(0, 0.2))
        controller.kill()
    requests = [machine.request("echo $$ >> times\nsleep 0.1\n") for _ in range(4)]
    executor = LocalExecutor(slots=2)
    absent = [
        request
        for request, found in zip(requests, executor.find(requests), strict=True)
        if found.state is AttemptState.ABSENT
    ]
    executor.submit(absent)
    states = {item.state for item in watch(executor, requests).values()}
    assert states == {AttemptState.FINISHED}
    for request in requests:
        assert len((request.directory / "times").read_text().splitlines()) == 1
