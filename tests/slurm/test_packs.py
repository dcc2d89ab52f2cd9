"""Attempts that share a job, on a real Slurm: in turn, each as if it were alone, and charged together."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.executors.slurm.options import JobOptions
from orchestrator.types import AttemptRequest, AttemptState, Observation
from tests.executors.under_test import (
    ExecutorUnderTest,
    assert_nothing_lives,
    settle,
    wait_for_file,
    watch,
)
from tests.slurm.cluster import SlurmCluster
from tests.slurm.fixtures import executor
from tests.slurm.test_cluster import accounted

pytestmark = pytest.mark.slurm


def pack(tested: ExecutorUnderTest, *scripts: str, limit: float = 60.0) -> list[AttemptRequest]:
    return [replace(tested.request(script, limit=limit), pack="one") for script in scripts]


def assert_charged(cluster: SlurmCluster, observations: Sequence[Observation]) -> None:
    """All of them have one job, whose seconds are divided among them."""
    [handle] = {item.handle for item in observations if item.handle}  # one settled at once may have none
    assert sum(item.elapsed or 0.0 for item in observations) == pytest.approx(
        sum(accounted(cluster, handle)), abs=1
    )


def test_they_are_executed_in_turn_and_settled_at_once(
    tested: ExecutorUnderTest, cluster: SlurmCluster
) -> None:
    log = tested.directory.parent / "log"
    requests = pack(tested, *(f"echo begin {i} >> {log}; sleep 1; echo end {i} >> {log}\n" for i in range(3)))
    ours = tested.make()
    ours.submit(requests)
    seen = watch(ours, requests, lambda last: last[requests[0].attempt].state is AttemptState.FINISHED)
    assert seen[requests[0].attempt].estimated
    assert seen[requests[2].attempt].state is AttemptState.QUEUED
    observations = settle(ours, requests)
    assert log.read_text().split("\n")[:-1] == [f"{word} {i}" for i in range(3) for word in ("begin", "end")]
    assert {item.record.exit_code for item in observations if item.record is not None} == {0}
    assert_charged(cluster, observations)
    for item in observations[1:]:
        assert item.elapsed == pytest.approx(1.0, abs=0.7)


def test_one_that_hangs_ends_at_its_limit_and_the_next_goes_on(
    tested: ExecutorUnderTest, cluster: SlurmCluster
) -> None:
    requests = pack(tested, "trap '' TERM\nsleep 600\n", "exit 3\n", "true\n", limit=0.5)
    ours = tested.make()
    ours.submit(requests)
    hung, failed, good = settle(ours, requests)
    assert hung.record is not None and hung.record.timed_out
    assert failed.record is not None and failed.record.exit_code == 3 and not failed.reason
    assert good.record is not None and good.record.exit_code == 0
    assert_charged(cluster, [hung, failed, good])


def test_after_one_that_was_suspended_the_next_goes_on(
    tested: ExecutorUnderTest, cluster: SlurmCluster
) -> None:
    requests = pack(tested, "echo begun\nsleep 600\n", "sleep 1\n")
    ours = tested.make()
    handle = ours.submit(requests)[0].handle
    wait_for_file(requests[0].directory / "stdout")
    cluster.run("scontrol", "suspend", handle)
    cluster.run("scontrol", "resume", handle)
    suspended, good = settle(ours, requests)
    assert suspended.record is not None and suspended.record.suspended and "was suspended" in suspended.reason
    assert good.record is not None and good.record.exit_code == 0 and not good.reason
    assert_charged(cluster, [suspended, good])


@pytest.mark.parametrize("how", ["cancelled", "node fails"])
def test_what_never_began_is_free_and_revoked(
    tested: ExecutorUnderTest, cluster: SlurmCluster, how: str
) -> None:
    requests = pack(tested, "true\n", "echo begun\nsleep 600\n", "touch started\n", "touch started\n")
    ours = executor(tested.directory, job=JobOptions(partition="debug", sbatch={"nodelist": "n3"}))
    ours.submit(requests)
    wait_for_file(requests[1].directory / "stdout")
    handle = ours.poll(requests)[1].handle
    if how == "cancelled":
        cluster.run("scancel", handle)
    else:
        cluster.kill_node("n3")
    try:
        first, second, *rest = settle(ours, requests)
    finally:
        if how != "cancelled":
            cluster.start_node("n3")
    assert first.state is AttemptState.FINISHED and not first.reason
    word = "CANCELLED" if how == "cancelled" else "NODE_FAIL"
    assert word in second.reason
    assert all(item.state is AttemptState.ABSENT and item.revoked for item in rest)
    assert not any((item.directory / "started").exists() for item in requests[2:])
    assert_charged(cluster, [first, second])


def test_what_is_cancelled_ends_and_does_not_begin(tested: ExecutorUnderTest, cluster: SlurmCluster) -> None:
    requests = pack(tested, "true\n", "echo begun\nsleep 600\n", "touch started\n")
    ours = tested.make()
    ours.submit(requests)
    wait_for_file(requests[1].directory / "stdout")
    ours.cancel(requests)
    first, second, third = settle(ours, requests)
    assert first.record is not None and first.record.exit_code == 0
    assert second.record is not None and second.record.cancelled
    assert third.revoked
    assert not (requests[2].directory / "started").exists()
    assert_charged(cluster, [first, second])


def test_one_whose_processes_are_killed_does_not_take_the_others_with_it(
    tested: ExecutorUnderTest, cluster: SlurmCluster
) -> None:
    requests = pack(tested, "echo begun\nsleep 600\n", "true\n")
    ours = tested.make()
    ours.submit(requests)
    wait_for_file(requests[0].directory / "stdout")
    for pid, _ in reversed(json.loads((requests[0].directory / "attempt.json").read_text())["processes"]):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    killed, good = settle(ours, requests)
    assert killed.state is AttemptState.LOST or (killed.record is not None and killed.record.exit_code)
    assert good.record is not None and good.record.exit_code == 0
    assert_charged(cluster, [item for item in (killed, good) if item.handle])


def test_a_new_controller_adopts_them(tested: ExecutorUnderTest, cluster: SlurmCluster) -> None:
    requests = pack(tested, "true\n", "while [ ! -e go ]; do sleep 0.05; done\n", "true\n")
    tested.make().submit(requests)
    wait_for_file(requests[0].directory / "attempt.json")
    ours = tested.make()
    watch(ours, requests, lambda last: last[requests[1].attempt].state is AttemptState.RUNNING)
    (requests[1].directory / "go").touch()
    observations = settle(tested.make(), requests)
    assert {item.state for item in observations} == {AttemptState.FINISHED}
    assert_charged(cluster, observations)


def test_a_requeued_job_executes_nothing_more(tested: ExecutorUnderTest, cluster: SlurmCluster) -> None:
    requests = pack(tested, "echo once >> times\necho begun\nsleep 600\n", "touch started\n")
    ours = tested.make()
    ours.submit(requests)
    wait_for_file(requests[0].directory / "stdout")
    handle = ours.poll(requests)[0].handle
    cluster.run("scontrol", "update", f"JobId={handle}", "Requeue=1")
    cluster.run("scontrol", "requeue", handle)
    cluster.run("scontrol", "update", f"JobId={handle}", "StartTime=now")
    first, second = settle(ours, requests)
    assert (requests[0].directory / "times").read_text() == "once\n"
    assert first.reason and second.revoked and not (requests[1].directory / "started").exists()


def test_without_accounting_they_are_charged_by_the_queue(
    slurm_cluster_without_accounting: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm_cluster_without_accounting.conf))
    directory = tmp_path / "campaign"
    tested = ExecutorUnderTest(lambda: executor(directory), directory)
    requests = pack(tested, "sleep 1\n", "sleep 1\n", "echo begun\nsleep 600\n", "true\n")
    ours = tested.make()
    ours.submit(requests)
    wait_for_file(requests[2].directory / "stdout")
    slurm_cluster_without_accounting.run("scancel", ours.poll(requests)[2].handle)
    observations = settle(ours, requests)
    assert [item.state for item in observations[:2]] == [AttemptState.FINISHED] * 2
    assert observations[2].reason and observations[3].revoked
    seconds = [item.elapsed or 0.0 for item in observations]
    # Slurm charges whole seconds, so what it charges may be a little less than a span.
    assert 0.5 <= seconds[1] <= 5 and 1.9 <= sum(seconds) <= 20
    assert_nothing_lives(directory)
