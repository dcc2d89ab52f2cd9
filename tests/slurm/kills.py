"""SIGKILL of controllers at random instants, on every executor, until enough of them died."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.control import test_kill_local, test_kill_simulated
from tests.slurm.cluster import SlurmCluster
from tests.slurm.controllers import begin
from tests.slurm.daemons import HANG, wait_for
from tests.slurm.hostile import Hostile, accounted_starts, broken

SACCT = ("sacct", "--starttime=2020-01-01", "--duplicates", "-X", "-n", "-P")
FIELDS = "--format=JobName%100,JobID,ElapsedRaw,AllocCPUS,End"
_BOOKING = 120.0  # seconds for slurmdbd to receive what slurmctld knows


@dataclass
class Count:
    """How many controllers were killed in how many campaigns, and what was broken by that."""

    kills: int = 0
    campaigns: int = 0
    broken: int = 0
    examples: tuple[str, ...] = ()

    def add(self, kills: int, faults: list[str]) -> None:
        """Count one more campaign."""
        self.kills += kills
        self.campaigns += 1
        self.broken += bool(faults)
        self.examples += tuple(faults)


def torment(text: str, directory: Path, rng: np.random.Generator, most: int, longest: float) -> int:
    """Run a campaign to its end, killing up to ``most`` controllers, each within ``longest`` seconds."""
    kills = 0
    while True:
        pid = begin(text, directory, submission_grace=3.0)
        deadline = time.monotonic() + (rng.uniform(0.0, longest) if kills < most else HANG)
        while not (ended := os.waitpid(pid, os.WNOHANG))[0] and time.monotonic() < deadline:
            time.sleep(0.002)
        if ended[0]:
            code = os.waitstatus_to_exitcode(ended[1])
            if code != 0:
                output = directory.with_suffix(".out").read_text()[-3000:]
                raise AssertionError(f"a controller of {directory} ended with exit code {code}: {output}")
            return kills
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        if kills >= most:
            raise AssertionError(f"{directory} did not come to its end within {HANG} s")
        kills += 1


def _failures(check: Callable[[], object]) -> list[str]:
    try:
        check()
    except AssertionError as error:
        return [str(error)[:500] or "an assertion failed"]
    return []


def simulated(folder: Path, wanted: int, seed: int) -> Count:
    """Kill controllers of rehearsals; every campaign must end as if nothing had happened."""
    rng, count = np.random.default_rng(seed), Count()
    reference = folder / "reference"
    torment(test_kill_simulated.CAMPAIGN, reference, rng, 0, 0.0)
    expected = test_kill_simulated.reference(reference)
    while count.kills < wanted:
        directory = folder / f"simulated-{count.campaigns}"
        kills = torment(
            test_kill_simulated.CAMPAIGN, directory, rng, min(20, wanted - count.kills), longest=0.25
        )
        count.add(
            kills,
            _failures(lambda: test_kill_simulated.check_same_campaign(directory, expected)),  # noqa: B023
        )
    return count


def local(folder: Path, wanted: int, seed: int) -> Count:
    """Kill controllers of real processes."""
    rng, count = np.random.default_rng(seed), Count()
    reference = folder / "reference"
    torment(test_kill_local.text_for(reference), reference, rng, 0, 0.0)
    while count.kills < wanted:
        directory = folder / f"local-{count.campaigns}"
        text = test_kill_local.text_for(directory)
        kills = torment(text, directory, rng, min(20, wanted - count.kills), longest=0.4)
        count.add(kills, _failures(lambda: test_kill_local.check(directory, reference)))  # noqa: B023
    return count


def on_slurm(folder: Path, wanted: int, seed: int, cluster: SlurmCluster) -> Count:
    """Kill controllers of jobs; charges are compared with those of ``sacct``, too."""
    rng, count = np.random.default_rng(seed), Count()
    os.environ["SLURM_CONF"] = str(cluster.conf)
    while count.kills < wanted:
        one = Hostile(
            folder / f"slurm-{count.campaigns}",
            cluster.environment,
            values=(1, 2, 3, 4),
            repetitions=3,
            seconds=1.0,
            pending=4,
            pack=str(1 + count.campaigns % 4),
            further=", partition: debug",
        )
        kills = torment(one.write().read_text(), one.directory, rng, min(12, wanted - count.kills), 2.5)
        wait_for(lambda: not cluster.run("squeue", "-h", "-o", "%T").split(), "the last jobs")
        count.add(kills, settled(one, cluster))
    return count


def settled(one: Hostile, cluster: SlurmCluster) -> list[str]:
    """Return what is broken in a campaign that has ended; accounting may receive its jobs late."""
    deadline = time.monotonic() + _BOOKING
    while (
        faults := broken(one, accounted_starts(one, cluster.run(*SACCT, FIELDS)))
    ) and time.monotonic() < deadline:
        time.sleep(0.5)
    return faults
