"""Runs that are asked onto nodes: how Slurm is told, and what becomes of them where it has no such node."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.executors.slurm.options import JobOptions
from orchestrator.types import AttemptState
from tests.slurm.fake_slurm import FakeSlurm


def scripts(fake: FakeSlurm) -> list[str]:
    return [Path(path).read_text() for path in fake.calls("sbatch")]


def test_nodes_to_use_are_told_to_sbatch(fake: FakeSlurm) -> None:
    fake.executor().submit([replace(fake.request(), nodelist=("n7", "n9"))])
    [script] = scripts(fake)
    assert "#SBATCH --nodelist=n7,n9\n" in script


def test_runs_on_different_nodes_are_no_array(fake: FakeSlurm) -> None:
    here, there, too = (replace(fake.request(), nodelist=(name,)) for name in ("n7", "n9", "n7"))
    fake.executor().submit([here, there, too])
    assert sorted("nodelist=n7" in text for text in scripts(fake)) == [False, True]


def test_nodes_that_the_campaign_names_itself_win(fake: FakeSlurm) -> None:
    executor = fake.executor(job=JobOptions(sbatch={"nodelist": "n1"}))
    executor.submit([replace(fake.request(), nodelist=("n7",))])
    [script] = scripts(fake)
    assert "--nodelist=n1\n" in script and "n7" not in script


def test_nodes_that_slurm_refuses_are_not_asked_for_again(fake: FakeSlurm) -> None:
    refusal = "echo 'Requested node configuration is not available' >&2; exit 1"
    fake.answer("sbatch", "Submitted batch job 100\n", script=f"grep -q nodelist $1 && {{ {refusal}; }}")
    [observation] = fake.executor().submit([replace(fake.request(), nodelist=("gone",))])
    assert observation.state is AttemptState.QUEUED
    assert len(scripts(fake)) == 2  # of one file, which was written again
    assert "nodelist" not in scripts(fake)[-1]


@pytest.mark.parametrize("asked", [True, False])
def test_a_job_whose_nodes_accept_no_jobs_is_cancelled(fake: FakeSlurm, asked: bool) -> None:
    executor = fake.executor()
    request = replace(fake.request(), nodelist=("n4",) if asked else ())
    executor.submit([request])
    for _ in range(40):
        fake.queue("100_0 PENDING ReqNodeNotAvail, UnavailableNodes:n4")
        [observation] = executor.poll([request])
        fake.turn(10)
    assert bool(fake.calls("scancel")) == asked
    if asked:
        fake.queue()
        fake.turn(80)
        [observation] = executor.poll([request])
        assert (observation.state, observation.elapsed) == (AttemptState.LOST, 0)
        assert "ReqNodeNotAvail" in observation.reason
    else:
        assert observation.state is AttemptState.QUEUED
