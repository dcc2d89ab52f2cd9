"""How long many short jobs take through us, and through submitit's ``map_array`` alone, on one cluster."""

from __future__ import annotations

import os
import time
from pathlib import Path

import submitit

from orchestrator.journal import events
from tests.slurm.cluster import SlurmCluster
from tests.slurm.controllers import begin
from tests.slurm.daemons import wait_for
from tests.slurm.hostile import Hostile, accounted_starts
from tests.slurm.kills import FIELDS, SACCT, settled

_PATIENCE = 900.0  # seconds; only against hangs


def ours(folder: Path, cluster: SlurmCluster, jobs: int) -> dict[str, float]:
    """Run a campaign of one-second runs; seconds from its first to its last job, and to its last record."""
    os.environ["SLURM_CONF"] = str(cluster.conf)
    one = Hostile(
        folder / "ours",
        cluster.environment,
        values=range(1, jobs // 2 + 1),
        repetitions=2,
        seconds=1.0,
        pending=jobs,
        batch=jobs,
        budget=10.0 * jobs,
        pack="auto",
        further=", partition: debug",
    )
    pid = begin(one.write().read_text(), one.directory, submission_grace=3.0)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, one.directory.with_suffix(".out").read_text()[-2000:]
    entries = one.entries()
    first = next(entry.time for entry in entries if isinstance(entry.event, events.AttemptIntended))
    last = max(entry.time for entry in entries if isinstance(entry.event, events.AttemptFinished))
    measured = sum(isinstance(e.event, events.AttemptFinished) and e.event.failure is None for e in entries)
    assert measured == jobs, measured
    return {"jobs": _makespan(cluster, "ours"), "campaign": last - first}


def economy(folder: Path, cluster: SlurmCluster, runs: int, pack: str) -> dict[str, float]:
    """Run one-second runs with eight places for jobs; what they cost, and what they asked of Slurm."""
    os.environ["SLURM_CONF"] = str(cluster.conf)
    one = Hostile(
        folder / f"pack-{pack}",
        cluster.environment,
        values=range(1, runs // 2 + 1),
        repetitions=2,
        seconds=1.0,
        pending=8,
        batch=runs,
        budget=10.0 * runs,
        limit=10.0,
        measure=", expected_time: 1 s",
        pack=pack,
        further=", partition: debug",
    )
    pid = begin(one.write().read_text(), one.directory, submission_grace=3.0)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, one.directory.with_suffix(".out").read_text()[-2000:]
    assert not settled(one, cluster)
    starts = [start for own in accounted_starts(one, cluster.run(*SACCT, FIELDS)).values() for start in own]
    intents = [e.event for e in one.entries() if isinstance(e.event, events.AttemptIntended)]
    return {
        "core-seconds": sum(seconds * cpus for seconds, cpus in starts),
        "core-seconds reserved": sum(event.reserved for event in intents),
        "makespan": _makespan(cluster, one.directory.name),
        "jobs": len(starts),
        "calls of sbatch": len(list((one.directory / "batches").glob("*.json"))),
    }


def theirs(folder: Path, cluster: SlurmCluster, jobs: int) -> dict[str, float]:
    """Run the same with submitit alone."""
    os.environ["SLURM_CONF"] = str(cluster.conf)
    executor = submitit.SlurmExecutor(folder / "submitit")
    executor.update_parameters(
        job_name="theirs",
        time=2,
        partition="debug",
        array_parallelism=jobs,
        use_srun=False,
        signal_delay_s=0,
    )
    begun = time.time()
    executor.map_array(os.system, jobs * ["sleep 1"])  # what the campaign's runs do, and no more
    wait_for(
        lambda: not cluster.run("squeue", "-h", "--name=theirs", "-o", "%T").split(), "submitit", _PATIENCE
    )
    return {"jobs": _makespan(cluster, "theirs"), "campaign": time.time() - begun}


def _makespan(cluster: SlurmCluster, name: str) -> float:
    """Return the seconds from the first submission to the last end, as accounting has it."""
    rows = cluster.run("sacct", "--starttime=2020-01-01", "-X", "-n", "-P", "--format=JobName%100,Submit,End")
    spans = [row.split("|")[1:] for row in rows.splitlines() if row.split("|")[0].startswith(name)]
    begun, ended = min(item[0] for item in spans), max(item[1] for item in spans)
    return _seconds(ended) - _seconds(begun)


def _seconds(text: str) -> float:
    return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
