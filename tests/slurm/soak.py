"""A soak on a real Slurm: campaigns run, random things go wrong about every minute, promises are checked.

``python -m tests.slurm.soak --minutes 30 --seed 1``. Exit code 1 if a promise is broken. The seed decides
what goes wrong and when; what a real system makes of it differs from time to time.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tests.slurm.cluster import SlurmCluster, missing
from tests.slurm.disturbances import Disturbance, Disturber
from tests.slurm.kills import FIELDS, SACCT
from tests.slurm.soaked import Campaign, Verdict, free_environment, judge, rows_of

TICK = 0.5  # seconds
TRIES = 5
EVERY = 60.0  # seconds between disturbances, on average
SETTLING = 1500.0  # seconds for the last campaigns to come to their end, undisturbed
BOOKING = 60.0  # seconds for slurmdbd to receive what slurmctld knows
TWO = 120.0  # seconds after which a second controller must have been refused
DONE, INVALID, RESUMABLE = 0, 2, 3  # exit codes of the program


class Soak:
    """Campaigns side by side, as many as ``width``, until ``minutes`` are over and all have ended."""

    def __init__(self, cluster: SlurmCluster, folder: Path, seed: int, width: int) -> None:
        self._cluster, self._folder, self._width = cluster, folder, width
        self._rng = np.random.default_rng(seed)
        self.disturber = Disturber(cluster, np.random.default_rng([seed, 1]))
        self.running: list[Campaign] = []
        self.over: list[Campaign] = []
        self.broken: list[str] = []
        self.counts: Counter[str] = Counter()
        self._begun = time.time()
        self._undo: list[tuple[float, int, str, Callable[[], None]]] = []
        self._order = itertools.count()
        self._second: list[tuple[float, Campaign, subprocess.Popen[bytes]]] = []

    def run(self, minutes: float) -> None:
        """Run, disturb, and let the last campaigns come to their end."""
        end = self._begun + 60 * minutes
        due = self._begun + float(self._rng.uniform(10, 40))
        report = self._begun + 60
        while time.time() < end or self.running:
            now = time.time()
            if now < end:
                while len(self.running) < self._width:
                    self._begin()
                if now >= due:
                    due = now + float(self._rng.uniform(0.5, 1.5)) * EVERY
                    self._disturb()
            self._undo_what_is_due(now if now < end else float("inf"))
            self._look_after_campaigns(now)
            self._look_after_second_controllers(now)
            if now >= report:
                report = now + 60
                self.say(f"{len(self.over)} campaigns over, {len(self.running)} running")
            if now > end + SETTLING:
                self.broken += [f"{one.directory.name} does not come to its end" for one in self.running]
                break
            time.sleep(TICK)

    def end_controllers(self) -> None:
        """Kill the controllers that are left."""
        for campaign in self.running:
            campaign.send(signal.SIGKILL)
        for _, _, process in self._second:
            process.kill()

    def say(self, text: str) -> None:
        """Print a line with the time since the beginning."""
        seconds = time.time() - self._begun
        print(f"{int(seconds // 60):3d}:{int(seconds % 60):02d}  {text}", flush=True)

    def _begin(self) -> None:
        rng = self._rng
        shape = {
            "seconds": int(rng.integers(2, 9)),
            "expected": 10,
            "repetitions": int(rng.integers(3, 6)),
            "budget": 12,
            "launcher": str(rng.choice(["srun", "srun", "env RANKS={ranks}"])),
            "interval": int(rng.integers(2, 6)),
            "pending": int(rng.integers(2, 6)),
            "pack": str(rng.choice(["off", "{most: 3}", "{most: 6}"])),
        }
        if shape["launcher"] != "srun":
            shape["pack"] = "{most: 3}"
        directory = self._folder / f"soak-{len(self.over) + len(self.running) + 1}"
        campaign = Campaign(
            directory=directory, environment=free_environment(self._cluster.conf), shape=shape
        )
        self.running.append(campaign)
        self.disturber.campaigns = self.running
        campaign.start()
        self.say(f"{directory.name} begins: {', '.join(f'{k} {v}' for k, v in shape.items())}")

    def _disturb(self) -> None:
        for _ in range(TRIES):  # what was drawn may not be possible now
            done = self._second_controller() if self._rng.random() < 0.08 else self.disturber.one()
            if done is not None:
                break
        else:
            return
        self.counts["disturbances"] += 1
        kind = " ".join(word for word in done.text.split() if not any(c.isdigit() for c in word))
        self.counts[f"disturbance: {kind}"] += 1
        if done.undo is not None:
            heapq.heappush(self._undo, (time.time() + done.seconds, next(self._order), done.text, done.undo))
        self.say(f"{done.text}{f' for {done.seconds:.0f} s' if done.undo else ''}  [{self._jobs()}]")

    def _jobs(self) -> str:
        flights = [flight for one in self.running for flight in one.state().in_flight.values()]
        begun = sum(flight.running for flight in flights)
        return f"{begun} runs under way, {len(flights) - begun} out"

    def _undo_what_is_due(self, now: float) -> None:
        while self._undo and self._undo[0][0] <= now:
            _, _, text, undo = heapq.heappop(self._undo)
            undo()
            self.say(f"{text}: over")

    def _second_controller(self) -> Disturbance | None:
        alive = [one for one in self.running if one.controlled and one.state().id]
        if not alive:
            return None
        campaign = alive[int(self._rng.integers(len(alive)))]
        self._second.append((time.time(), campaign, campaign.second()))
        return Disturbance(f"second controller of {campaign.directory.name} started")

    def _look_after_second_controllers(self, now: float) -> None:
        for item in list(self._second):
            begun, campaign, process = item
            if process.poll() is not None:
                self._second.remove(item)
                self.counts[f"second controller: exit code {process.returncode}"] += 1
            elif not campaign.controlled and campaign in self.running and now > begun + 20:
                self._second.remove(item)
                campaign.adopt(process)  # the first one was killed meanwhile
            elif now > begun + TWO and campaign.controlled:
                self._second.remove(item)
                self.broken.append(f"{campaign.directory.name} has two controllers")
                process.kill()

    def _look_after_campaigns(self, now: float) -> None:
        for campaign in list(self.running):
            code = campaign.ended()
            if code is None:
                if not campaign.controlled and now >= campaign.again:
                    campaign.start()
                continue
            stopped = campaign.state().stopped
            if stopped is not None:
                self.running.remove(campaign)
                self.over.append(campaign)
                self.say(
                    f"{campaign.directory.name} is over: {stopped.rule} ({stopped.detail}), exit code {code}"
                )
                if code != DONE:
                    self.counts[f"exit code {code} at the end"] += 1
                continue
            self.counts[f"controller ended with exit code {code}"] += 1
            if code == INVALID:
                raise RuntimeError(campaign.last_words())
            if code not in {RESUMABLE, -signal.SIGKILL}:
                self.say(f"{campaign.directory.name}: exit code {code}: {campaign.last_words()[-300:]}")
            elif code == RESUMABLE:
                self.say(f"{campaign.directory.name} pauses: {campaign.last_words()[-300:]}")
            campaign.again = max(campaign.again, now + (0 if code == -signal.SIGKILL else 10))

    def verdict(self) -> Verdict:
        """Check every campaign that is over."""
        total = Verdict(broken=list(self.broken))
        disturber = self.disturber
        deadline = time.time() + BOOKING
        for campaign in self.over:
            while True:
                rows = rows_of(campaign, self._cluster.run(*SACCT, FIELDS))
                found = judge(campaign, rows, disturber.kills, disturber.away)
                if not (found.broken or found.limits) or time.time() > deadline:
                    break
                time.sleep(5)
            total.figures.update(found.figures)
            total.broken += found.broken
            total.limits += found.limits
        total.figures.update(self.counts)
        total.figures["controllers killed"] += sum(one.kills for one in self.over)
        total.figures["seconds without slurmctld"] += round(sum(b - a for a, b in disturber.away))
        return total


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what goes wrong as it happens, then a table of figures and every broken promise."""
    parser = argparse.ArgumentParser(prog="python -m tests.slurm.soak", description=main.__doc__)
    parser.add_argument(
        "--minutes", type=float, default=30.0, help="of disturbances; the last campaigns need longer"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--campaigns", type=int, default=3, help="side by side")
    parser.add_argument("--keep", action="store_true", help="keep the directories of campaigns")
    options = parser.parse_args(arguments)
    absent = missing(accounting=True)
    if absent:
        print(f"missing on this machine: {', '.join(absent)}", file=sys.stderr)
        return 2
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    with SlurmCluster() as cluster:
        soak = Soak(cluster, folder, options.seed, options.campaigns)
        try:
            soak.run(options.minutes)
        finally:
            soak.end_controllers()
        found = soak.verdict()
    print(f"\nsoak of {options.minutes:g} minutes, seed {options.seed}:")
    for name, number in sorted(found.figures.items()):
        print(f"  {name:60} {number:8d}")
    for text in found.limits:
        print(f"documented limit: {text}")
    for text in found.broken:
        print(f"BROKEN: {text}")
    print(f"{len(found.broken)} promises broken, {len(found.limits)} documented limits met")
    if found.broken or options.keep:
        print(f"the campaigns are in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if found.broken else 0


if __name__ == "__main__":
    sys.exit(main())
