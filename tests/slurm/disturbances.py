"""What is done to a real Slurm, to jobs and to controllers while campaigns run, by chance."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.slurm.cluster import SlurmCluster
from tests.slurm.soaked import Campaign

NODES = ("n1", "n2", "n3", "n4")
_PATIENCE = 20.0  # seconds for a command of Slurm

Undo = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What was done: in words, how it is undone and when (seconds from now); nothing to undo without."""

    text: str
    undo: Undo | None = None
    seconds: float = 0.0


@dataclass
class Disturber:
    """Disturb a cluster and its campaigns.

    Attributes
    ----------
    kills
        When slurmctld was killed (Unix seconds).
    away
        From when to when slurmctld did not answer.
    busy
        What is disturbed now: daemons, ``node``s, controllers of campaigns.
    """

    cluster: SlurmCluster
    rng: np.random.Generator
    campaigns: Sequence[Campaign] = ()
    kills: list[float] = field(default_factory=list)
    away: list[tuple[float, float]] = field(default_factory=list)
    busy: set[str] = field(default_factory=set)

    def one(self) -> Disturbance | None:
        """Do one thing; None where what was drawn is not possible now."""
        kinds: tuple[tuple[Callable[[], Disturbance | None], float], ...] = (
            (self.kill_slurmctld, 2.0),
            (self.stop_slurmctld, 2.0),
            (self.stop_slurmdbd, 1.5),
            (self.kill_slurmd, 1.0),
            (self.node_down, 1.0),
            (self.power_failure, 1.0),
            (self.scancel, 1.5),
            (self.requeue, 1.0),
            (self.kill_controller, 2.0),
            (self.suspend_controller, 0.5),
            (self.delete_directory, 1.0),
        )
        weights = np.array([weight for _, weight in kinds])
        return kinds[self.rng.choice(len(kinds), p=weights / weights.sum())][0]()

    # --- daemons --------------------------------------------------------------------------------------

    def kill_slurmctld(self) -> Disturbance | None:
        """SIGKILL; it has forgotten its last seconds when it is back."""
        if not self._take("slurmctld"):
            return None
        self.cluster.end_controller(signal.SIGKILL)
        begun = time.time()
        self.kills.append(begun)

        def undo() -> None:
            self.cluster.start_controller()
            self._is_back("slurmctld", begun)

        return Disturbance("slurmctld killed", undo, self._span())

    def stop_slurmctld(self) -> Disturbance | None:
        """SIGSTOP; what it was asked meanwhile, it does later."""
        if not self._take("slurmctld"):
            return None
        self.cluster.send("slurmctld", signal.SIGSTOP)
        begun = time.time()

        def undo() -> None:
            self.cluster.send("slurmctld", signal.SIGCONT)
            self._is_back("slurmctld", begun)

        return Disturbance("slurmctld stopped", undo, self._span())

    def stop_slurmdbd(self) -> Disturbance | None:
        """End ``slurmdbd``."""
        if not self._take("slurmdbd"):
            return None
        self.cluster.end_daemon("slurmdbd", signal.SIGKILL)

        def undo() -> None:
            self.cluster.start_daemon("slurmdbd")
            self.busy.discard("slurmdbd")

        return Disturbance("slurmdbd killed", undo, self._span())

    # --- nodes ----------------------------------------------------------------------------------------

    def kill_slurmd(self) -> Disturbance | None:
        """Kill the daemon of a node; its jobs go on."""
        node = self._node()
        if node is None:
            return None
        self.cluster.end_daemon(f"slurmd-{node}", signal.SIGKILL)
        return Disturbance(f"slurmd of {node} killed", lambda: self._start_node(node), self._span())

    def node_down(self) -> Disturbance | None:
        """Have Slurm take a node down, and end its jobs."""
        node = self._node()
        if node is None:
            return None
        self._slurm("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=soak")
        return Disturbance(f"{node} down", lambda: self._resume_node(node), self._span())

    def power_failure(self) -> Disturbance | None:
        """Kill a node with all that runs there."""
        node = self._node()
        if node is None:
            return None
        self.cluster.end_daemon(f"slurmd-{node}", signal.SIGKILL)
        self.cluster.kill_jobs_on(node)
        self._slurm("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=soak")
        return Disturbance(f"{node} without power", lambda: self._start_node(node), self._span())

    # --- jobs -----------------------------------------------------------------------------------------

    def scancel(self) -> Disturbance | None:
        """Cancel a job, queued or running."""
        job = self._job("PENDING,RUNNING")
        if job is None:
            return None
        self._slurm("scancel", job)
        return Disturbance(f"job {job} cancelled")

    def requeue(self) -> Disturbance | None:
        """Requeue a running job."""
        job = self._job("RUNNING")
        if job is None:
            return None
        self._slurm("scontrol", "update", f"JobId={job}", "Requeue=1")
        self._slurm("scontrol", "requeue", job)
        return Disturbance(f"job {job} requeued")

    # --- controllers and files ------------------------------------------------------------------------

    def kill_controller(self) -> Disturbance | None:
        """Kill the controller of a campaign; another one resumes it."""
        campaign = self._campaign()
        if campaign is None:
            return None
        seconds = float(self.rng.choice([0.0, 5.0, 30.0, 90.0]))
        campaign.again = time.time() + seconds
        campaign.send(signal.SIGKILL)
        campaign.kills += 1
        return Disturbance(f"controller of {campaign.directory.name} killed, resumed after {seconds:.0f} s")

    def suspend_controller(self) -> Disturbance | None:
        """Stop the controller of a campaign, as Ctrl-Z does, and let it continue."""
        campaign = self._campaign()
        if campaign is None:
            return None
        campaign.send(signal.SIGSTOP)
        name = campaign.directory.name
        return Disturbance(
            f"controller of {name} stopped", lambda: campaign.send(signal.SIGCONT), self._span()
        )

    def delete_directory(self) -> Disturbance | None:
        """Delete the directory of an attempt, in flight or settled."""
        campaign = self._campaign()
        if campaign is None:
            return None
        runs = campaign.directory / "runs"
        found = sorted(runs.glob("*/*/attempt-*"))
        if not found:
            return None
        chosen = found[-1 - int(self.rng.integers(min(4, len(found))))]
        campaign.deleted.add(str(chosen.relative_to(runs)))
        shutil.rmtree(chosen, ignore_errors=True)
        return Disturbance(f"{campaign.directory.name}: {chosen.relative_to(runs)} deleted")

    # --- what they need -------------------------------------------------------------------------------

    def _span(self) -> float:
        """Return for how long: most for half a minute, some for minutes."""
        return float(np.clip(self.rng.exponential(45.0), 3.0, 240.0))

    def _take(self, what: str) -> bool:
        if what in self.busy:
            return False
        self.busy.add(what)
        return True

    def _is_back(self, what: str, begun: float) -> None:
        self.busy.discard(what)
        self.away.append((begun, time.time()))

    def _node(self) -> str | None:
        free = [node for node in NODES if node not in self.busy]
        if len(free) < 2 or "slurmctld" in self.busy:  # one node at least is left to work on
            return None
        node = str(self.rng.choice(free))
        self.busy.add(node)
        return node

    def _start_node(self, node: str) -> None:
        self.cluster.start_daemon(f"slurmd-{node}")
        self._resume_node(node)

    def _resume_node(self, node: str) -> None:
        self._slurm("scontrol", "update", f"NodeName={node}", "State=RESUME")
        self.busy.discard(node)

    def _job(self, states: str) -> str | None:
        if "slurmctld" in self.busy:
            return None
        jobs = self._slurm("squeue", "-h", "-r", f"--states={states}", "-o", "%F_%K").split()
        return str(self.rng.choice(jobs)) if jobs else None

    def _campaign(self) -> Campaign | None:
        alive = [campaign for campaign in self.campaigns if campaign.controlled]
        return alive[int(self.rng.integers(len(alive)))] if alive else None

    def _slurm(self, *command: str) -> str:
        """Return what a command of Slurm prints; nothing where it fails."""
        try:
            done = subprocess.run(
                command,
                env=self.cluster.environment,
                check=False,
                capture_output=True,
                text=True,
                timeout=_PATIENCE,
            )
        except subprocess.TimeoutExpired:
            return ""
        return done.stdout
