"""A campaign that compares two executables, on a real Slurm: both share jobs and nodes, also after a kill."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.journal.events import AttemptIntended
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.journal.replay import replay
from orchestrator.journal.state import RunStatus
from tests.slurm.cluster import SlurmCluster
from tests.slurm.daemons import wait_for

pytestmark = pytest.mark.slurm

# Both say what they do; the second one takes half as long again by its own word.
PROGRAM = """#!/bin/sh
echo "$0 $1 $PWD" >> {log}
sleep 0.2
echo "time: $(({factor} * $1)) s"
"""
CAMPAIGN = """\
name: two
application: generic
executable: ./old.sh
compare: {with: ./new.sh, names: [old, new]}
program:
  arguments: ["{n}"]
  output: [{callpath: main, pattern: 'time: (\\d+) s'}]
parameters: {n: [10, 20, 30, 40]}
evaluation_point: {n: 80}
model: pmnf
measure: {time_limit: 30 s, repetitions: {initial: 2, maximum: 2}}
strategy: full
stop: {budget: 1 core-hour}
executor: {name: slurm, launcher: none, partition: debug, cores_per_node: 4, poll_interval: 1 s}
"""


def test_runs_of_both_share_their_jobs_and_a_killed_controller_loses_none(
    cluster: SlurmCluster, tmp_path: Path
) -> None:
    log, campaign, directory = tmp_path / "log", tmp_path / "two.yaml", tmp_path / "two"
    for name, factor in (("old.sh", 2), ("new.sh", 3)):
        (tmp_path / name).write_text(PROGRAM.format(log=log, factor=factor))
        (tmp_path / name).chmod(0o755)
    campaign.write_text(CAMPAIGN)

    first = _start(cluster, "run", campaign, "--directory", directory)
    wait_for(lambda: log.exists() and len(log.read_text().splitlines()) >= 2, "runs", 60.0)
    first.kill()
    first.wait()
    second = _start(cluster, "resume", directory)
    _, err = second.communicate(timeout=300)
    assert second.returncode == 0, err

    entries = list(read(directory / FILE_NAME))
    state = replay(entries)
    assert Counter(item.status for item in state.runs.values()) == {RunStatus.MEASURED: 16}
    executed = [line.split() for line in log.read_text().splitlines()]
    assert len({where for _, _, where in executed}) == len(executed) == 16, "each once"
    _assert_pairs_share_jobs([entry.event for entry in entries])
    assert sum(item.packed for item in state.runs.values()) == 16
    assert all(item.node for item in state.runs.values())
    nodes = defaultdict(set)
    for run, item in state.runs.items():
        nodes[run.point.as_dict()["n"]].add(item.node)
    assert {len(found) for found in nodes.values()} == {1}, "both on the same node"
    [row] = _compared(cluster, directory)
    assert row["low"] < 1.5 < row["high"] and row["ratio"] == pytest.approx(1.5, rel=1e-3)
    assert row["pairs"] == 4


def _start(cluster: SlurmCluster, *arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "orchestrator", *map(str, arguments)],
        env={**cluster.environment, "SLURM_CONF": str(cluster.conf)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _assert_pairs_share_jobs(happened: Sequence[Any]) -> None:
    """Every repetition of a point is in one job for both, one directly after the other."""
    jobs = defaultdict(list)
    for event in happened:
        if isinstance(event, AttemptIntended):
            point = event.attempt.run.point.as_dict()
            variant = point.pop("variant")
            jobs[event.pack].append((point["n"], event.attempt.run.repetition, variant))
    assert "" not in jobs
    for runs in jobs.values():
        for one, other in zip(runs[::2], runs[1::2], strict=True):
            assert one[:2] == other[:2] and {one[2], other[2]} == {"old", "new"}


def _compared(cluster: SlurmCluster, directory: Path) -> list[dict[str, Any]]:
    process = _start(cluster, "compare", directory, "--metric", "time", "--callpath", "main", "--json")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    rows: list[dict[str, Any]] = json.loads(out)["rows"]
    return rows
