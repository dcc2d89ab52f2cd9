"""A real Slurm that breaks in every way an administrator knows, and controllers killed in between.

All campaigns run side by side, because most of their time is waiting.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from orchestrator import events
from tests.slurm.cluster import SlurmCluster, wait_for
from tests.slurm.hostile import Hostile, environment
from tests.slurm.kills import settled

pytestmark = pytest.mark.slurm
PATIENCE = 150.0  # seconds; only against hangs


@pytest.fixture(scope="module")
def cluster(slurm_cluster: SlurmCluster) -> SlurmCluster:
    return slurm_cluster


@pytest.fixture(scope="module")
def day(cluster: SlurmCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Hostile]]:
    """One hostile day: every campaign with its own misfortune, then those that befall all."""
    folder = tmp_path_factory.mktemp("hostile")
    where = {**cluster.environment, **environment(SLURM_CONF=str(cluster.conf))}

    def begin(name: str, node: str, **changes: object) -> Hostile:
        further = f", partition: debug, sbatch: {{nodelist: {node}}}"
        one = Hostile(folder / name, where, further=further, **changes)  # type: ignore[arg-type]
        one.start()
        return one

    all_ = {
        "cancelled": begin("cancelled", "n1"),
        "requeued": begin("requeued", "n1", seconds=10),
        "node fails": begin("node-fails", "n2", seconds=10),
        "node drained": begin("node-drained", "n3"),
        "killed": begin("killed", "n4"),
        "partition down": Hostile(folder / "partition-down", where, further=", partition: small", pending=2),
    }
    cluster.run("scontrol", "update", "PartitionName=small", "State=DOWN")
    all_["partition down"].start()
    cluster.run("scancel", all_["cancelled"].running())
    requeue(cluster, all_["requeued"].running())
    # Between two runs there is nothing to hit.
    wait_for(lambda: all_["node fails"].end_attempts(), "a run on the node that fails")
    cluster.kill_node("n2")
    all_["node drained"].running()
    cluster.run("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=test")
    for pause in (0.0, 0.4, 1.1, 1.7):
        time.sleep(pause)
        all_["killed"].kill()
        all_["killed"].start()
    cluster.stop_accounting()
    time.sleep(3)
    cluster.start_accounting()
    cluster.restart_controller()
    cluster.start_node("n2")
    # The restarted controller may have forgotten this.
    cluster.run("scontrol", "update", "NodeName=n3", "State=RESUME", check=False)
    cluster.run("scontrol", "update", "PartitionName=small", "State=UP")
    yield all_
    for one in all_.values():
        one.kill()


def requeue(cluster: SlurmCluster, handle: str) -> None:
    cluster.run("scontrol", "update", f"JobId={handle}", "Requeue=1")
    cluster.run("scontrol", "requeue", handle)


NAMES = ("cancelled", "requeued", "node fails", "node drained", "killed", "partition down")


@pytest.mark.parametrize("name", NAMES)
def test_every_run_is_measured_once_and_charged_what_slurm_booked(
    name: str, day: dict[str, Hostile], cluster: SlurmCluster
) -> None:
    one = day[name]
    assert one.wait(PATIENCE) == 0, one.directory.with_suffix(".out").read_text()
    wait_for(lambda: "RUNNING" not in cluster.run("squeue", "-h", "-o", "%T"), "the last jobs")
    assert not settled(one, cluster)
    seen = [entry.event for entry in one.entries()]
    ended = [event for event in seen if isinstance(event, events.AttemptFinished)]
    measured = [event for event in ended if event.failure is None]
    assert len(measured) == len(one.values) * one.repetitions
    # A misfortune may hit between two runs, so none needs to have failed; those that did say why.
    assert all(event.reason for event in ended if event.failure is not None)
    assert one.kills == (4 if name == "killed" else 0)
