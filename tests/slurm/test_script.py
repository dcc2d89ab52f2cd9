"""The script of a batch, word for word, and what a campaign may say about it."""

from __future__ import annotations

import pickle
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.errors import CampaignError, ExecutorError
from orchestrator.executors.attempt import worker
from orchestrator.executors.base import ExecutorContext
from orchestrator.executors.slurm import job
from orchestrator.executors.slurm.executor import build
from orchestrator.executors.slurm.options import START_UP, JobOptions, minutes
from orchestrator.executors.slurm.sbatch import ArrayRequest, script
from orchestrator.types import Attempt, AttemptRequest, Point, Resources, Run
from tests.slurm.cluster import SlurmCluster
from tests.slurm.fake_slurm import FakeSlurm

GOLDEN = Path(__file__).parent.parent / "golden" / "slurm"
FOLDER = Path("/project/it's mine/batches/lulesh-0123456789abcdef")

PLAIN = ArrayRequest(
    name="lulesh-0123456789abcdef",
    resources=Resources(ranks=8, ranks_per_node=8, cores=8),
    limits=[100.0],
    options=JobOptions(),
    folder=FOLDER,
    python="/bin/python3",
    root=Path("/opt"),
)
FULL = ArrayRequest(
    name="lulesh-0123456789abcdef",
    resources=Resources(ranks=10, threads=6, nodes=3, ranks_per_node=4, cores=144),
    limits=[3600.0],
    options=JobOptions(
        partition="large,huge",
        account="p0020",
        qos="long",
        constraint="avx512&!gpu",
        reservation="perf week",
        exclusive=True,
        sbatch={"mem-per-cpu": "3800M", "contiguous": None, "mail_type": "END", "switches": 1},
    ),
    folder=FOLDER,
    python="/opt/my python/bin/python3",
    root=Path("/opt/orchestrator"),
)
LEVELS = replace(
    PLAIN,
    name="levels-0123456789abcdef",
    resources=Resources(ranks=8, threads=2, nodes=4, ranks_per_node=2, cores=16, gpus_per_node=2),
    options=JobOptions(partition="debug").on(("n1", "n3")),
)
SCRIPTS = {
    "plain": script(PLAIN, 3),
    "full": script(FULL, 1001),
    "packed": script(replace(PLAIN, limits=[100.0, 100.0, 20.0]), 2),
    "levels": script(LEVELS),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_script_is_the_golden_one(name: str) -> None:
    text = SCRIPTS[name]
    assert text == (GOLDEN / f"{name}.sh").read_text(), (
        f"review, then write it to {GOLDEN / name}.sh:\n{text}"
    )


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS)
def test_the_script_is_a_valid_one(text: str) -> None:
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)


def test_slurm_understands_the_options(slurm_cluster: SlurmCluster, tmp_path: Path) -> None:
    options = JobOptions(
        partition="debug", account="project", qos="few", exclusive=True, sbatch={"mem": "1G"}
    )
    resources = Resources(ranks=6, threads=1, nodes=2, ranks_per_node=3, cores=6)
    path = tmp_path / "submission.sh"
    path.write_text(
        script(
            ArrayRequest(
                name="name",
                resources=resources,
                limits=[60.0],
                options=options,
                folder=tmp_path / "it's mine",
            ),
            2,
        )
    )
    number = slurm_cluster.run("sbatch", "--hold", "--parsable", str(path)).strip()
    job = slurm_cluster.run("scontrol", "--oneliner", "show", "job", number)
    slurm_cluster.run("scancel", number)
    assert {"Requeue=0", "TimeLimit=00:02:00", "NumNodes=2-2", "NumTasks=6", "CPUs/Task=1"} <= set(
        job.split()
    )
    assert {"QOS=few", "Account=project", "OverSubscribe=NO"} <= set(job.split())
    assert f"StdOut={tmp_path}/it's mine/{number}_" in job


@pytest.mark.parametrize("limit", [0.1, 17.9, 18.1, 60.0, 3599.0, 86400.0])
def test_the_requested_time_leaves_room_for_start_and_end(limit: float) -> None:
    assert 60 * minutes(limit) >= limit + START_UP + worker.OVERRUN > 60 * (minutes(limit) - 1)


@pytest.mark.parametrize(
    "name",
    [
        "array",
        "requeue",
        "--time",
        "cpus_per_task",
        "export",
        "partition",
        "exclusive",
        "t",
        "clusters",
        "quiet",
    ],
)
def test_what_the_executor_decides_cannot_be_changed(name: str) -> None:
    with pytest.raises(CampaignError, match=f"executor.sbatch: '{name}'|executor.{name}"):
        JobOptions(sbatch={name: "1"})


@pytest.mark.parametrize("module", ["orchestrator.executors.slurm_job", "orchestrator.executors.slurm.job"])
def test_jobs_that_wait_in_slurm_find_their_work(module: str) -> None:
    assert pickle.loads(f"c{module}\nrun\n.".encode()) is job.run  # as their pickles name it


# --- built from a campaign ----------------------------------------------------------------------------

OPTIONS = {
    "poll_interval": 10.0,
    "partition": "debug",
    "account": None,
    "qos": None,
    "constraint": None,
    "reservation": None,
    "by_size": (),
    "exclusive": False,
    "billing": "cores",
    "sbatch": {},
}


def request_in(directory: Path) -> AttemptRequest:
    one = Attempt(Run(Point.of(p=4)))
    return AttemptRequest(
        attempt=one,
        name="name",
        directory=directory / "runs" / one.id,
        resources=Resources(ranks=4, ranks_per_node=4, cores=4),
        limit=60.0,
        script="",
    )


def test_the_partition_is_that_of_the_size(tmp_path: Path, fake: FakeSlurm) -> None:
    by_size = (
        {"partition": "small", "up_to": 3, "qos": None, "constraint": None, "cores_per_node": None},
        {"partition": "wide", "up_to": None, "qos": "big", "constraint": "amd", "cores_per_node": 64},
    )
    options = {**OPTIONS, "partition": None, "by_size": by_size}
    context = ExecutorContext(directory=fake.campaign, options=options)
    request = request_in(fake.campaign)
    request = replace(request, resources=replace(request.resources, gpus_per_node=4))
    build(context).submit([request])
    [call] = fake.calls("sbatch")
    text = Path(call).read_text()
    for line in ("partition=wide", "qos=big", "constraint=amd", "gpus-per-node=4"):
        assert f"#SBATCH --{line}\n" in text


def test_several_attempts_need_no_more_time_than_each_in_a_job_of_its_own() -> None:
    for limits in ([100.0, 100.0, 20.0], [1.0] * 50):
        assert max(map(minutes, limits)) <= minutes(*limits) <= sum(map(minutes, limits))
        assert 60 * minutes(*limits) >= sum(limits) + len(limits) - 1 + worker.OVERRUN + START_UP


def test_a_machine_without_slurm_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ExecutorError, match=r"sbatch.*on PATH"):
        build(ExecutorContext(directory=tmp_path, options=OPTIONS))


def test_a_path_that_slurm_would_read_as_a_pattern_is_refused(fake: FakeSlurm) -> None:
    with pytest.raises(ExecutorError, match="choose another directory"):
        build(ExecutorContext(directory=fake.campaign / "50%", options=OPTIONS))
