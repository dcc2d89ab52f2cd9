"""A real Slurm that breaks in every way an administrator knows, and controllers killed in between.

All campaigns run side by side, because most of their time is waiting.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.journal import events
from orchestrator.journal.events import AttemptFinished
from orchestrator.types import FailureClass
from tests.requirements import need
from tests.slurm.cluster import SlurmCluster
from tests.slurm.daemons import HANG, wait_for
from tests.slurm.hostile import Hostile, accounted_starts, broken, environment, executions
from tests.slurm.kills import FIELDS, SACCT, settled

pytestmark = pytest.mark.slurm


# Runs that wait until all misfortunes have struck, so that each finds a run to hit.
HELD: dict[str, object] = {"held": True, "limit": 300.0, "budget": 30.0}

# Where each campaign runs, and what is special about it.
CAMPAIGNS: dict[str, tuple[str, dict[str, object]]] = {
    "cancelled": ("partition: debug, sbatch: {nodelist: n1}", {"values": (1, 2), **HELD}),
    "requeued": ("partition: debug, sbatch: {nodelist: n1}", {"values": (1, 2), **HELD}),
    "node-fails": ("partition: debug, sbatch: {nodelist: n2}", {"values": (1, 2), **HELD}),
    "node-drained": ("partition: debug, sbatch: {nodelist: n3}", HELD),
    "killed": ("partition: debug, sbatch: {nodelist: n4}", HELD),
    "packed": ("partition: debug, sbatch: {nodelist: n4}", {"pack": "3", "pending": 2, **HELD}),
    "partition-down": ("partition: small", {"pending": 2}),
    "preempted": ("partition: spot", {"pending": 2, "values": (1, 2), **HELD}),
    "preempted-and-requeued": ("partition: spot-requeue", {"pending": 2, "values": (1, 2), **HELD}),
    "node-fails-twice": (
        "partition: pair, exclusive: true, cores_per_node: 4",
        {"pending": 2, **HELD},
    ),
    "node-is-slow": (
        "partition: other, exclusive: true, cores_per_node: 4",
        {"work": "[ $SLURMD_NODENAME = n9 ] && sleep 3 || sleep 0.2", "pending": 2, "values": (1,)}
        | {"repetitions": 24},
    ),
    "limit-raised": (
        "partition: debug, sbatch: {nodelist: n4}",
        {"work": "case {n}$PWD in 5*attempt-1) sleep 100;; *) sleep 0.2;; esac", "values": (1, 2, 3, 4, 5)}
        | {"measure": ", limit_margin: 1", "batch": 4, "pending": 1, "limit": 60.0, "repetitions": 1},
    ),
    "memory-raised": (
        "partition: memory, sbatch: {mem: 100M}",
        {"work": "head -c 115M /dev/zero | tail | wc -c", "values": (1, 2), "repetitions": 1},
    ),
}


@pytest.fixture(scope="module")
def cluster(slurm_cluster: SlurmCluster) -> SlurmCluster:
    return slurm_cluster


@pytest.fixture(scope="module")
def day(cluster: SlurmCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Hostile]]:
    """One hostile day: every campaign with its own misfortune, then those that befall all."""
    folder = tmp_path_factory.mktemp("hostile")
    where = {**cluster.environment, **environment(SLURM_CONF=str(cluster.conf))}
    all_ = {
        name: Hostile(folder / name, where, further=f", {place}", **changes)  # type: ignore[arg-type]
        for name, (place, changes) in CAMPAIGNS.items()
        if name != "memory-raised" or cluster.memory_node
    }
    cluster.run("scontrol", "update", "PartitionName=small", "State=DOWN")
    for name, one in all_.items():
        if name != "killed":
            one.start()
    try:
        befall(cluster, all_)
        yield all_
    finally:
        for one in all_.values():
            one.kill()


def befall(cluster: SlurmCluster, all_: dict[str, Hostile]) -> None:
    """Let each campaign's misfortune happen, then what befalls all."""
    to_come = ["n6", "n6"]

    def fail_again() -> bool:
        if fail(cluster, to_come[-1], all_["node-fails-twice"]):
            cluster.start_node(to_come.pop())
        return not to_come

    misfortunes: dict[str, Callable[[], bool]] = {
        "node-drained": lambda: drain(cluster, "n3", all_["node-drained"]),
        "cancelled": lambda: cancel(cluster, all_["cancelled"]),
        "packed": lambda: cancel(cluster, all_["packed"]),
        "requeued": lambda: requeue(cluster, all_["requeued"]),
        "preempted": lambda: preempt(cluster, all_["preempted"], all_["preempted-and-requeued"]),
        "node-fails": lambda: fail(cluster, "n2", all_["node-fails"]),
        "node-fails-twice": fail_again,
    }

    def all_struck() -> bool:
        for name, misfortune in list(misfortunes.items()):
            if misfortune():
                del misfortunes[name]
        return not misfortunes

    wait_for(all_struck, "a run for each misfortune to hit")
    all_["killed"].start()
    for pause in (1.0, 0.4, 1.1, 1.7):
        time.sleep(pause)
        for name in ("killed", "packed"):
            all_[name].kill()
            all_[name].start()
    all_["killed"].gate.touch()
    cluster.stop_accounting()
    time.sleep(3)
    cluster.start_accounting()
    cluster.restart_controller()
    cluster.start_node("n2")
    # The restarted controller may have forgotten this.
    cluster.run("scontrol", "update", "NodeName=n3", "State=RESUME", check=False)
    cluster.run("scontrol", "update", "PartitionName=small", "State=UP")


def cancel(cluster: SlurmCluster, hostile: Hostile) -> bool:
    handles = hostile.executing().values()
    if handles:
        cluster.run("scancel", *handles)
    return bool(handles)


def requeue(cluster: SlurmCluster, hostile: Hostile) -> bool:
    handles = hostile.executing().values()
    for handle in handles:
        cluster.run("scontrol", "update", f"JobId={handle}", "Requeue=1")
        cluster.run("scontrol", "requeue", handle)
    return bool(handles)


def preempt(cluster: SlurmCluster, hostile: Hostile, requeued: Hostile) -> bool:
    """Submit a job that needs the whole node of both campaigns; one of them may be requeued."""
    both = hostile.executing(), requeued.executing()
    if not all(both):
        return False
    for handle in both[1].values():
        cluster.run("scontrol", "update", f"JobId={handle}", "Requeue=1")
    urgent = ("--partition=urgent", "--exclusive", "--output=/dev/null", "--wrap=sleep 1")
    cluster.run("sbatch", "--wait", *urgent)
    return True


def drain(cluster: SlurmCluster, node: str, hostile: Hostile) -> bool:
    if not hostile.executing():
        return False
    cluster.run("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=test")
    return True


def fail(cluster: SlurmCluster, node: str, hostile: Hostile) -> bool:
    """Let a node fail if it executes a run of a campaign; return whether the run was still going on."""
    for attempt, handle in hostile.executing().items():
        if cluster.run("squeue", "-h", "-o", "%N", "-j", handle, check=False).strip() == node:
            cluster.fail_node(node)
            if attempt not in executions(hostile.log)[1]:
                return True
            cluster.start_node(node)
    return False


def ended(hostile: Hostile) -> list[AttemptFinished]:
    return [entry.event for entry in hostile.entries() if isinstance(entry.event, AttemptFinished)]


def failed(hostile: Hostile) -> list[AttemptFinished]:
    return [event for event in ended(hostile) if event.failure is not None]


def limits(hostile: Hostile) -> dict[str, float]:
    seen = [entry.event for entry in hostile.entries()]
    return {event.attempt.id: event.limit for event in seen if isinstance(event, events.AttemptIntended)}


def some(hostile: Hostile, failure: FailureClass, words: str) -> bool:
    return any(event.failure is failure and words in event.reason for event in failed(hostile))


def nothing_failed(hostile: Hostile) -> bool:
    return not failed(hostile)


def memory_was_raised(hostile: Hostile) -> bool:
    return some(hostile, FailureClass.MEMORY, "more memory")


def others_never_began(hostile: Hostile) -> bool:
    seen = [entry.event for entry in hostile.entries()]
    return any(isinstance(event, events.AttemptWithdrawn) and event.barred for event in seen)


def limit_was_raised(hostile: Hostile) -> bool:
    asked = limits(hostile)
    first, second = asked["n=5/time-1/attempt-1"], asked["n=5/time-1/attempt-2"]
    return some(hostile, FailureClass.TIMEOUT, "time limit") and first < second == min(2 * first, 60.0)


def excluded(hostile: Hostile, node: str) -> bool:
    scripts = hostile.directory.glob("batches/*/submission.sh")
    return any(f"--exclude={node}\n" in script.read_text() for script in scripts)


# What proves that the misfortune hit a run.
HIT: dict[str, Callable[[Hostile], bool]] = {
    "cancelled": lambda one: some(one, FailureClass.INFRASTRUCTURE, "CANCELLED"),
    "requeued": lambda one: some(one, FailureClass.INFRASTRUCTURE, "ended from outside"),
    "node-fails": lambda one: bool(failed(one)),
    "node-drained": nothing_failed,
    "killed": lambda one: one.kills == 4,
    "packed": lambda one: some(one, FailureClass.INFRASTRUCTURE, "CANCELLED") and others_never_began(one),
    "partition-down": nothing_failed,
    "preempted": lambda one: some(one, FailureClass.INFRASTRUCTURE, "PREEMPTED"),
    "preempted-and-requeued": lambda one: some(one, FailureClass.INFRASTRUCTURE, "ended from outside"),
    "node-fails-twice": lambda one: excluded(one, "n6"),
    "node-is-slow": lambda one: excluded(one, "n9"),
    "limit-raised": limit_was_raised,
    "memory-raised": memory_was_raised,
}


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_every_run_is_measured_once_and_charged_what_slurm_charged(
    name: str, day: dict[str, Hostile], cluster: SlurmCluster
) -> None:
    need(name in day, "a kernel with control groups (version 1) for memory")
    one = day[name]
    assert one.wait(HANG) == 0, one.directory.with_suffix(".out").read_text()
    assert not settled(one, cluster)
    measured = [event for event in ended(one) if event.failure is None]
    assert len(measured) == len(one.values) * one.repetitions
    assert HIT[name](one), [event.reason for event in ended(one)]


def test_a_slurmctld_that_is_killed_forgets_jobs_and_their_ends(
    day: dict[str, Hostile], cluster: SlurmCluster, tmp_path: Path
) -> None:
    """It saves its state every few seconds; a job whose end it has forgotten, it continues to charge."""
    for one in day.values():
        one.wait(HANG)
    where = {**cluster.environment, **environment(SLURM_CONF=str(cluster.conf))}
    one = Hostile(tmp_path / "slurmctld-killed", where, values=(1, 2, 3, 4), seconds=1.0, pending=4)
    one.start()
    for ends in (2, 6):
        wait_for(lambda: len(executions(one.log)[1]) >= ends, "runs that have ended")  # noqa: B023
        cluster.restart_controller(signal.SIGKILL)
    restarted = time.time()
    assert one.wait(HANG) == 0, one.directory.with_suffix(".out").read_text()
    late = {event.attempt.id for event in ended(one) if (event.started or 0.0) > restarted}

    def faults() -> list[str]:
        found = broken(one, accounted_starts(one, cluster.run(*SACCT, FIELDS)))
        return [text for text in found if "sacct has" not in text or text.split(":")[0] in late]

    wait_for(lambda: not faults(), "accounting")
    assert len([event for event in ended(one) if event.failure is None]) == 8
