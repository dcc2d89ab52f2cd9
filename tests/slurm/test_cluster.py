"""The executor on a real Slurm: ends from outside, dying nodes, requeues, killed controllers, charges."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from orchestrator.executors.attempt import worker
from orchestrator.executors.base import Executor
from orchestrator.executors.slurm.executor import SlurmExecutor
from orchestrator.executors.slurm.options import JobOptions
from orchestrator.types import AttemptRequest, AttemptState, Observation, Resources
from tests.executors.under_test import (
    ExecutorUnderTest,
    assert_nothing_lives,
    run,
    settle,
    wait_for_file,
    watch,
)
from tests.requirements import need
from tests.slurm.cluster import SlurmCluster
from tests.slurm.daemons import wait_for
from tests.slurm.fixtures import executor

pytestmark = pytest.mark.slurm


@dataclass
class Overdue:
    """An attempt that does not keep its limit, as far as Slurm knows."""

    executor: SlurmExecutor
    request: AttemptRequest
    handle: str


@pytest.fixture(scope="module", autouse=True)
def overdue(cluster: SlurmCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Overdue]:
    """Begun first and looked at last: Slurm takes half a minute to notice.

    It ends seconds after Slurm has ended its job, so that its charge is estimated before it is known.
    """
    directory = tmp_path_factory.mktemp("overdue") / "c"
    tested = ExecutorUnderTest(lambda: executor(directory), directory)
    request = tested.request("trap 'sleep 3' TERM\necho begun\nsleep 600 & wait\n", limit=600)
    ours = executor(tested.directory, job=JobOptions(partition="debug", sbatch={"nodelist": "n4"}))
    [observation] = ours.submit([request])
    wait_for_file(request.directory / "stdout")
    cluster.run("scontrol", "update", f"JobId={observation.handle}", "EndTime=now+1second")
    yield Overdue(ours, request, observation.handle)
    ours.cancel([request])  # for when its own test was not selected
    assert_nothing_lives(tested.directory)


def last(ours: Executor, request: AttemptRequest) -> Observation:
    """Return what an attempt ended as; what it cost may first be estimated, when Slurm ended it."""
    [observation] = settle(ours, [request])
    return observation


def running(ours: Executor, request: AttemptRequest) -> Observation:
    """Submit an attempt that says when it has begun."""
    ours.submit([request])
    wait_for_file(request.directory / "stdout")
    return watch(ours, [request], lambda seen: seen[request.attempt].state is AttemptState.RUNNING)[
        request.attempt
    ]


def accounted(cluster: SlurmCluster, handle: str) -> list[float]:
    """Return the seconds in accounting of every start of a job, once it has ended."""
    fields = ("--format=ElapsedRaw,End", "--starttime=2020-01-01", "--duplicates", "-X", "-n", "-P")

    def rows() -> list[list[str]]:
        return [line.split("|") for line in cluster.run("sacct", "-j", handle, *fields).splitlines()]

    wait_for(lambda: bool(rows()) and all(end != "Unknown" for _, end in rows()), f"accounting of {handle}")
    return [float(elapsed) for elapsed, _ in rows()]


def test_the_charge_is_what_accounting_says(tested: ExecutorUnderTest, cluster: SlurmCluster) -> None:
    requests = [tested.request(f"sleep {seconds}\n") for seconds in (0, 1, 2.5)]
    ours = tested.make()
    ours.submit(requests)
    for observation in settle(ours, requests):
        assert [observation.elapsed] == pytest.approx(accounted(cluster, observation.handle), abs=1)


@pytest.mark.parametrize("launcher", ["srun", "mpirun"])
def test_an_attempt_spans_nodes(tested: ExecutorUnderTest, cluster: SlurmCluster, launcher: str) -> None:
    need(shutil.which(launcher), launcher)
    root = "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n"
    plain = tested.request(f"{root}{launcher} -n 4 sh -c 'echo rank on $SLURMD_NODENAME'\n")
    request = replace(plain, resources=Resources(ranks=4, threads=2, nodes=2, ranks_per_node=2, cores=8))
    [observation] = run(tested.make(), request)
    assert observation.record is not None and len(observation.record.nodes) == 2
    lines = (request.directory / "stdout").read_text().splitlines()
    assert sorted(lines) == sorted(f"rank on {node}" for node in 2 * observation.record.nodes)
    accounted(cluster, observation.handle)
    fields = ("--format=AllocCPUS", "-X", "-n", "-P")
    assert cluster.run("sacct", "-j", observation.handle, *fields).strip() == "8"


def test_a_job_cancelled_from_outside_is_not_a_failure_of_the_application(
    tested: ExecutorUnderTest, cluster: SlurmCluster
) -> None:
    ours, request = tested.make(), tested.request("echo begun\nsleep 600\n")
    handle = running(ours, request).handle
    cluster.run("scancel", handle)
    observation = last(ours, request)
    assert observation.state is AttemptState.FINISHED
    assert observation.record is not None and observation.record.cancelled
    assert "CANCELLED" in observation.reason
    assert [observation.elapsed] == pytest.approx(accounted(cluster, handle), abs=1)


def test_a_job_that_was_suspended_is_no_measurement(tested: ExecutorUnderTest, cluster: SlurmCluster) -> None:
    ours, request = tested.make(), tested.request("echo begun\nsleep 3\necho late\n")
    handle = running(ours, request).handle
    cluster.run("scontrol", "suspend", handle)
    time.sleep(3)
    cluster.run("scontrol", "resume", handle)
    observation = last(ours, request)
    assert observation.state is AttemptState.FINISHED
    assert "was suspended" in observation.reason


def test_a_waiting_job_cancelled_from_outside_is_lost_at_no_cost(
    tested: ExecutorUnderTest, cluster: SlurmCluster
) -> None:
    job = JobOptions(partition="debug", sbatch={"begin": "now+1hour"})
    ours, request = executor(tested.directory, job=job), tested.request("touch started\n")
    [observation] = ours.submit([request])
    cluster.run("scancel", observation.handle)
    observation = last(ours, request)
    assert (observation.state, observation.elapsed) == (AttemptState.LOST, 0)
    assert not (request.directory / "started").exists()


def test_an_attempt_on_a_dying_node_is_lost_and_its_node_is_used_again(
    tested: ExecutorUnderTest, cluster: SlurmCluster
) -> None:
    ours = executor(tested.directory, job=JobOptions(partition="debug", sbatch={"nodelist": "n3"}))
    request, later = tested.request("echo begun\nsleep 600\n"), tested.request("echo again\n")
    handle = running(ours, request).handle
    cluster.kill_node("n3")
    try:
        observation = last(ours, request)
        assert observation.state is AttemptState.LOST
        assert "NODE_FAIL" in observation.reason
        assert [observation.elapsed] == pytest.approx(accounted(cluster, handle), abs=1)
    finally:
        cluster.start_node("n3")
    [observation] = run(ours, later)
    assert observation.state is AttemptState.FINISHED


def test_a_requeued_job_executes_nothing_twice(tested: ExecutorUnderTest, cluster: SlurmCluster) -> None:
    ours, request = tested.make(), tested.request("echo once >> times\necho begun\nsleep 600\n")
    handle = running(ours, request).handle
    cluster.run("scontrol", "update", f"JobId={handle}", "Requeue=1")
    cluster.run("scontrol", "requeue", handle)
    cluster.run("scontrol", "update", f"JobId={handle}", "StartTime=now")
    observation = last(ours, request)
    assert (request.directory / "times").read_text() == "once\n"
    assert observation.reason
    # Whether it starts again before it is cancelled depends on who is faster.
    assert observation.elapsed == pytest.approx(sum(accounted(cluster, handle)), abs=2)


def test_accounting_may_be_away(tested: ExecutorUnderTest, cluster: SlurmCluster) -> None:
    ours, request = tested.make(), tested.request("sleep 1\n")
    cluster.stop_accounting()
    try:
        [observation] = run(ours, request)
    finally:
        cluster.start_accounting()
    assert observation.state is AttemptState.FINISHED
    assert observation.elapsed is not None and 1 <= observation.elapsed <= 5


def test_a_submit_limit_is_kept_by_submitting_later(tested: ExecutorUnderTest, cluster: SlurmCluster) -> None:
    # The site says two, so arrays of two are submitted; the second one has to wait for the first.
    ours = executor(tested.directory, job=JobOptions(partition="debug", qos="few"))
    requests = [tested.request("sleep 1\n") for _ in range(3)]
    observations = ours.submit(requests)
    assert [bool(item.handle) for item in observations] == [True, True, False]
    assert "QOSMaxSubmitJobPerUserLimit" in observations[2].reason
    assert {item.state for item in watch(ours, requests).values()} == {AttemptState.FINISHED}


def test_what_slurm_refuses_is_lost_with_its_words(tested: ExecutorUnderTest) -> None:
    ours = executor(tested.directory, job=JobOptions(partition="nope"))
    [observation] = ours.submit([tested.request()])
    assert (observation.state, observation.elapsed) == (AttemptState.LOST, 0)
    assert "invalid partition specified: nope" in observation.reason


# --- the controller is killed within the call of sbatch -----------------------------------------------


def killed_in_sbatch(
    tested: ExecutorUnderTest, request: AttemptRequest, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Submit from a process that is killed before or after Slurm has accepted the job."""
    folder = tested.directory.parent / "bin"
    folder.mkdir()
    submit = f'{shutil.which("sbatch")} "$@"\n' if when == "after" else ""
    (folder / "sbatch").write_text(f"#!/bin/sh\n{submit}kill -KILL $PPID\n")
    (folder / "sbatch").chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        ours = tested.make()
        controller = multiprocessing.get_context("fork").Process(target=ours.submit, args=([request],))
        controller.start()
        controller.join()
    assert controller.exitcode == -signal.SIGKILL


def test_a_job_whose_id_was_not_noted_is_adopted(
    tested: ExecutorUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = tested.request("echo once >> times\nsleep 1\n")
    killed_in_sbatch(tested, request, "after", monkeypatch)
    ours = tested.make()
    [observation] = ours.find([request])
    assert observation.state in {AttemptState.QUEUED, AttemptState.RUNNING}
    assert observation.handle
    assert last(ours, request).state is AttemptState.FINISHED
    assert (request.directory / "times").read_text() == "once\n"


def test_a_job_that_was_never_submitted_is_submitted_once(
    tested: ExecutorUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = tested.request("echo once >> times\n")
    killed_in_sbatch(tested, request, "before", monkeypatch)
    ours = tested.make()
    begin = time.monotonic()
    while (state := ours.find([request])[0].state) is AttemptState.UNKNOWN:
        assert time.monotonic() - begin < 20
        ours.wait(1.0)
    assert state is AttemptState.ABSENT
    assert time.monotonic() - begin > 2  # sbatch could still have been on its way
    [observation] = run(ours, request)
    assert observation.state is AttemptState.FINISHED
    assert (request.directory / "times").read_text() == "once\n"


# --- last, because it was begun first -----------------------------------------------------------------


def test_an_attempt_beyond_slurms_limit_is_charged_within_its_reservation(
    overdue: Overdue, cluster: SlurmCluster
) -> None:
    observation = last(overdue.executor, overdue.request)
    assert observation.state is AttemptState.FINISHED
    assert observation.record is not None and observation.record.cancelled
    assert observation.record.finished is not None
    assert "TIMEOUT" in observation.reason
    assert [observation.elapsed] == pytest.approx(accounted(cluster, overdue.handle), abs=1)
    # Slurm made it a job of one minute; nothing is left to run after it was charged.
    assert observation.elapsed is not None
    assert observation.elapsed <= overdue.executor.reserved_seconds(1.0)
    assert worker.claim(overdue.request.directory, "a test") is False
