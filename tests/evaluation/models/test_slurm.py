from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import pytest

from orchestrator.errors import ExecutorError
from orchestrator.evaluation.models import slurm
from orchestrator.evaluation.models.fit import Task, fit
from orchestrator.evaluation.models.slurm import Jobs
from tests.evaluation.models.toys import dying, nearest_point, refusing, samples, toy
from tests.slurm.cluster import SlurmCluster
from tests.slurm.daemons import wait_for


def tasks() -> list[Task]:
    return [
        Task(contender=toy(model), size=40, seed=0, train=samples(), test=samples(10, seed=1))
        for model in (nearest_point, refusing, dying)
    ]


@pytest.fixture
def cluster(slurm_cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> SlurmCluster:
    monkeypatch.setenv("SLURM_CONF", str(slurm_cluster.conf))
    return slurm_cluster


def test_jobs_give_the_rows_of_this_process_and_failures_are_rows(
    cluster: SlurmCluster, tmp_path: Path
) -> None:
    rows = {
        row["modeler"]: row
        for row in slurm.rows(tasks(), Jobs(folder=tmp_path, sbatch={"partition": "debug"}))
    }
    here = fit(tasks()[0])
    for key in ("mlogq", "mape", "coverage", "bytes", "expression"):
        assert rows["nearest_point"][key] == here[key]
    assert rows["refusing"]["failure"] == "fewer samples than cells"
    assert "SIGKILL" in str(rows["dying"]["failure"])


def test_a_job_that_is_cancelled_is_a_row(cluster: SlurmCluster, tmp_path: Path) -> None:
    held = Jobs(folder=tmp_path, sbatch={"partition": "debug", "hold": ""})
    waiting = slurm.rows(tasks()[:1], held)

    def cancel() -> None:
        wait_for(lambda: bool(cluster.run("squeue", "-h")), "the job")
        cluster.run("scancel", "--user=root")

    threading.Thread(target=cancel).start()
    [row] = waiting
    assert "CANCELLED" in str(row["failure"])


def test_jobs_are_cancelled_when_the_caller_leaves(cluster: SlurmCluster, tmp_path: Path) -> None:
    several = [*tasks(), *tasks()[:1]]
    some = Jobs(folder=tmp_path, sbatch={"partition": "debug"}, at_once=1)
    with contextlib.closing(slurm.rows(several, some)) as rows:
        next(rows)
    wait_for(lambda: not cluster.run("squeue", "-h"), "the end of all jobs", 60)


def test_what_sbatch_refuses_is_an_error_with_its_answer(cluster: SlurmCluster, tmp_path: Path) -> None:
    with pytest.raises(ExecutorError, match=r"sbatch did not take the jobs: .*Invalid partition"):
        list(slurm.rows(tasks(), Jobs(folder=tmp_path, sbatch={"partition": "nowhere"})))
    assert not cluster.run("squeue", "-h")
