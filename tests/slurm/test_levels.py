"""Nodes, ranks per node and threads as parameters of a campaign, on a real Slurm, and what it charges."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator import resources
from orchestrator.campaign import loader
from orchestrator.executors.slurm.options import JobOptions
from orchestrator.journal.events import AttemptFinished, AttemptIntended
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.resources import Asked, Machine
from tests.executors.under_test import ExecutorUnderTest, run
from tests.slurm.cluster import SlurmCluster
from tests.slurm.daemons import wait_for
from tests.slurm.fixtures import executor

pytestmark = pytest.mark.slurm

# Each rank says where it is. The time is a function of what Slurm started, not of what was asked for.
PROGRAM = """#!/bin/sh
echo "rank on $SLURMD_NODENAME with $OMP_NUM_THREADS"
[ "$SLURM_PROCID" = 0 ] || exit 0
levels="$SLURM_STEP_NUM_NODES $SLURM_STEP_NUM_TASKS $OMP_NUM_THREADS"
echo "$1 $levels" | awk '{ print "time:", 0.1 * $2 + $1 / ($3 * $4), "s" }'
"""
CAMPAIGN = """\
name: levels
application: generic
executable: ./program.sh
program:
  arguments: ["{n}", "{p}"]
  output: [{callpath: main, pattern: 'time: ([\\d.]+) s'}]
parameters:
  nodes: powers of 2 up to partition
  ppn: {from: 1, to: partition, factor: 2}
  t: [1, 2]
  n: [8, 16]
resources: {nodes: nodes, ranks_per_node: ppn, threads: t}
constraints: ["nodes * ppn == p", "2 <= ppn * threads <= 4", "p <= 8", "nodes <= 2 or n == 8"]
evaluation_point: {nodes: 4, ppn: 4, t: 1, n: 64}
measure: {time_limit: 30 s, repetitions: {initial: 1, maximum: 1}}
strategy: full
stop: {budget: 5 core-hours, patience: 9}
executor: {name: slurm, launcher: srun, partition: debug, cores_per_node: 4, poll_interval: 1 s}
"""
POINTS = 19


@pytest.fixture(scope="module")
def finished(cluster: SlurmCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the campaign after it ran."""
    return executed(CAMPAIGN, tmp_path_factory.mktemp("levels"), cluster)


def executed(campaign: str, folder: Path, cluster: SlurmCluster) -> Path:
    """Run a campaign; return its directory."""
    (folder / "program.sh").write_text(PROGRAM)
    (folder / "program.sh").chmod(0o755)
    (folder / "campaign.yaml").write_text(campaign)
    command = [sys.executable, "-m", "orchestrator", "run", str(folder / "campaign.yaml")]
    done = subprocess.run(
        [*command, "--directory", str(folder / "levels-run")],
        env={**cluster.environment, "SLURM_CONF": str(cluster.conf)},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return folder / "levels-run"


def accounted(cluster: SlurmCluster, name: str = "") -> dict[str, tuple[int, int]]:
    """Return cores and seconds in accounting by job id, of jobs whose names begin so."""
    fields = ("--format=JobName%200,JobID,AllocCPUS,ElapsedRaw", "--starttime=2020-01-01", "-X", "-n", "-P")
    rows = (line.split("|") for line in cluster.run("sacct", *fields).splitlines())
    return {
        job: (int(cores), int(seconds)) for called, job, cores, seconds in rows if called.startswith(name)
    }


def test_every_point_ran_where_it_says(finished: Path) -> None:
    campaign = loader.of_directory(finished, starts=True)
    assert campaign.raw["parameters"]["nodes"] == {"from": 1, "to": 4, "factor": 2}
    points = list(campaign.space)
    assert len(points) == POINTS
    for point in points:
        [attempt] = (finished / "runs" / point.key / "time-1").iterdir()
        lines = (attempt / "stdout").read_text().splitlines()
        ranks = Counter(line for line in lines if line.startswith("rank on"))
        assert len(ranks) == point["nodes"], (point, lines)
        assert set(ranks.values()) == {point["ppn"]}, (point, lines)
        assert all(line.endswith(f"with {point['t']}") for line in ranks)
    models = json.loads((finished / "models.json").read_text())
    assert any(model["callpath"] == "main" for model in models["models"])


def test_it_costs_what_slurm_charged_and_never_more_than_was_reserved(
    finished: Path, cluster: SlurmCluster
) -> None:
    campaign = loader.of_directory(finished, starts=True)
    entries: list[Any] = [entry.event for entry in read(finished / FILE_NAME)]
    intents = {event.attempt: event for event in entries if isinstance(event, AttemptIntended)}
    ended = [event for event in entries if isinstance(event, AttemptFinished)]
    assert len(ended) == len(intents) == POINTS
    for event in ended:
        occupied = campaign.resources_at(campaign.values(event.attempt.run.point))
        intent = intents[event.attempt]
        assert intent.cores == occupied.cores == occupied.ranks * occupied.threads
        assert event.cost <= intent.reserved
    spent = sum(event.cost for event in ended)

    def charged() -> int:
        return sum(cores * seconds for cores, seconds in accounted(cluster, "levels-run").values())

    # The queue shows the end of a job before accounting has it, and the campaign ends on that.
    wait_for(lambda: charged() >= spent, "accounting")
    assert spent == charged()


WHOLE = Machine(cores_per_node=4, whole_nodes=True)
CORES = Machine(cores_per_node=4)


@pytest.mark.parametrize(
    ("ranks", "threads", "asked", "machine"),
    [
        (4, 2, Asked(nodes=2, ranks_per_node=2), CORES),
        (4, 1, Asked(nodes=4), CORES),  # parts of nodes
        (5, 1, Asked(nodes=2), CORES),
        (5, 1, Asked(nodes=4), CORES),  # ranks do not fill the nodes
        (3, 2, Asked(ranks_per_node=2), CORES),
        (9, 1, Asked(), CORES),
        (2, 1, Asked(nodes=2), WHOLE),
        (1, 3, Asked(), WHOLE),
    ],
)
def test_slurm_charges_the_cores_that_are_reserved(
    tested: ExecutorUnderTest, cluster: SlurmCluster, ranks: int, threads: int, asked: Asked, machine: Machine
) -> None:
    occupied = resources.resources(ranks, threads, machine, asked)
    ours = executor(
        tested.directory,
        job=JobOptions(partition="debug", exclusive=machine.whole_nodes, sbatch={"mem": "100M"}),
    )
    request = replace(tested.request("srun echo here\n"), resources=occupied)
    [observation] = run(ours, request)
    assert (request.directory / "stdout").read_text().count("here") == ranks
    wait_for(lambda: observation.handle in accounted(cluster), "accounting")
    cores, _ = accounted(cluster)[observation.handle]
    assert cores <= occupied.cores
    if ranks == occupied.nodes * occupied.ranks_per_node:
        assert cores == occupied.cores


@pytest.mark.parametrize("placement", ["same", "nested"])
def test_runs_are_on_the_same_or_nested_nodes(placement: str, cluster: SlurmCluster, tmp_path: Path) -> None:
    points = "{nodes: [1, 2, 3], n: [8, 16]}"
    text = CAMPAIGN[: CAMPAIGN.index("parameters:")].replace(', "{p}"', "") + (
        f"parameters: {points}\nresources: {{nodes: nodes, ranks_per_node: 1}}\nstrategy: full\n"
        "measure: {time_limit: 30 s, repetitions: {initial: 2, maximum: 2}}\nstop: {budget: 5, patience: 9}\n"
        "executor: {name: slurm, launcher: srun, partition: debug, poll_interval: 1 s, "
        f"placement: {placement}}}\n"
    )
    found = executed(text, tmp_path, cluster)
    nodes: dict[Path, frozenset[str]] = {}
    for path in found.glob("runs/*/*/attempt-*/stdout"):
        lines = [line for line in path.read_text().splitlines() if line.startswith("rank on")]
        nodes[path.parents[1]] = frozenset(line.split()[2] for line in lines)
    assert len(nodes) == 12
    for point in {path.parent for path in nodes}:
        assert len({names for path, names in nodes.items() if path.parent == point}) == 1
    if placement == "nested":
        sets = sorted(set(nodes.values()), key=len)
        assert [len(names) for names in sets] == [1, 2, 3]
        assert sets[0] < sets[1] < sets[2]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("partition", "debgu", "invalid partition specified: debgu"),
        ("account", "nobody", "Invalid account"),
        ("qos", "none", "Invalid qos"),
    ],
)
def test_what_slurm_does_not_have_is_refused_before_anything_is_begun(
    key: str, value: str, words: str, cluster: SlurmCluster, tmp_path: Path
) -> None:
    (tmp_path / "program.sh").write_text(PROGRAM)
    (tmp_path / "program.sh").chmod(0o755)
    own = CAMPAIGN.replace("powers of 2 up to partition", "[1, 2]")  # else the partition is looked up
    own = own.replace("{from: 1, to: partition, factor: 2}", "[1, 2]")
    (tmp_path / "campaign.yaml").write_text(own)
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", "run", "campaign.yaml", "--set", f"executor.{key}={value}"],
        cwd=tmp_path,
        env={**cluster.environment, "SLURM_CONF": str(cluster.conf)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert f"executor.{key}={value}" in done.stderr and words in done.stderr
    assert not (tmp_path / "levels").exists()
