"""Attempts that take no time: they do to files what the process of an attempt does, at virtual instants."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import cast

from submitit.core.utils import DelayedSubmission

from orchestrator import storage
from orchestrator.executors.attempt import worker
from tests.slurm.faulty.faults import Fault
from tests.slurm.faulty.world import Job, Start, World

START_UP = 1.0  # seconds from the start of a job to its claim
TERM = 2.0  # seconds from SIGTERM to the end
LATE = 0.5  # seconds from the record to the end of the job
NEXT = 0.1  # seconds from the end of an attempt to the claim of the next one of its job
LONGEST_WAIT = 300.0  # seconds that a job of several runs waits for slurmctld
ASK_AGAIN = 15.0  # seconds until it asks again
UNDER_WAY = 3.0  # seconds after which a run is certainly under way
SRUN_PATIENCE = 10.0  # seconds until srun gives up a slurmctld that does not answer
_SRUN = """\
srun: error: Unable to confirm allocation for job {number}: {why}
srun: Check SLURM_JOB_ID environment variable. Expired or invalid job {number}
"""


@dataclass
class _Execution:
    directory: Path
    limit: float
    started: float
    record: dict[str, object]
    fault: Fault | None
    position: int = 0
    clock: float = 0.0  # by how much that of its node was wrong when it began
    complaint: str = ""  # of srun, which cannot start the application


@dataclass
class VirtualRunner:
    """Executes jobs of submitit without any process.

    Attributes
    ----------
    seconds
        How long the application takes, by the attempt's directory.
    executed
        How often each attempt's application was begun.
    succeeded
        The attempts whose application ended well and is on record.
    guilty
        The attempts that failed because of their application.
    refused
        Later attempts of a job that srun could not start.
    srun
        Whether ``srun`` starts the application, which needs slurmctld.
    hidden
        Files that are there, but are seen only from an instant on.
    """

    seconds: Callable[[Path], float]
    srun: bool = False
    guilty: set[Path] = field(default_factory=set)
    refused: set[Path] = field(default_factory=set)
    hidden: dict[Path, float] = field(default_factory=dict)
    executed: Counter[Path] = field(default_factory=Counter)
    succeeded: set[Path] = field(default_factory=set)
    _running: dict[str, _Execution] = field(default_factory=dict)
    _told_to_end: list[Start] = field(default_factory=list)

    def directories(self, job: Job) -> list[Path]:
        """Return the directories of the attempts that a job executes, one after another."""
        work = DelayedSubmission.load(job.request.folder / f"{job.index}.pkl")
        return [Path(directory) for directory in cast(partial[object], work.function).args]

    def start(self, world: World, job: Job, fault: Fault | None) -> None:
        """Claim after the start-up; fail as the fault says."""
        start = job.starts[-1]

        def begin() -> None:
            if job.state == "RUNNING" and job.starts[-1] is start:
                self._begin(world, job, fault, 0)

        if fault is not None and fault.what == "node fails before the start":
            world.at(world.now + START_UP / 2, lambda: world.end(job, "NODE_FAIL"))
        else:
            world.at(world.now + START_UP, begin)

    def stop(self, world: World, job: Job, state: str, kill: bool) -> None:
        """End a job; the attempt has time to write its record unless it is killed or frozen."""
        self._told_to_end.append(job.starts[-1])
        execution = self._running.pop(job.id, None)
        frozen = execution is not None and execution.fault is not None and execution.fault.what == "frozen"
        if execution is not None and not kill and not frozen:
            self._finish(world, execution, TERM, 143, cancelled=True)
        delay = 0.0 if kill else LATE if frozen else TERM + LATE
        start = job.starts[-1]
        world.at(world.now + delay, lambda: world.end(job, state) if job.starts[-1] is start else None)

    def _begin(self, world: World, job: Job, fault: Fault | None, position: int) -> None:
        """Begin one attempt; whoever finds the first one taken is a second start, and ends."""
        directories = self.directories(job)
        if position == len(directories):
            world.at(world.now + LATE, lambda: world.end(job, "COMPLETED"))
            return
        if position and self.srun and world.site.controller(world.now) is not None:
            self._wait(world, job, fault, position)
            return
        directory = directories[position]
        left = _seconds_left(world, job)
        if position and left < worker.limit_of(str(directory)):  # as the real job decides
            world.at(world.now + LATE, lambda: world.end(job, "COMPLETED"))
            return
        if not worker.claim(directory, worker.OWNER, durable=False):
            if position == 0:
                world.at(world.now + 0.1, lambda: world.end(job, "FAILED"))
            else:
                self._begin(world, job, fault, position + 1)
            return
        late = world.site.late("signs late", world.now)
        self.hidden[directory / worker.CLAIM] = world.now + late
        world.at(world.now + UNDER_WAY, lambda: world.reached("running"))
        clock = world.site.clock("nodes' clocks", world.now)
        request = json.loads((directory / worker.REQUEST).read_text())
        record = {
            **{"run": request["run"], "attempt": request["attempt"], "host": job.starts[-1].node, "pid": 1},
            **{"boot": "b", "namespace": "n", "processes": []},
            "started": storage.iso(world.now + clock),
            **{"environment": {"SLURM_JOB_START_TIME": str(int(job.starts[-1].begun))}},
        }
        self._appear(world, "files late", lambda: _write(directory, record))
        affected = fault is None or _affected(fault, len(directories)) in (None, position)
        own = fault if affected else None
        limit = float(request["limit"])
        execution = _Execution(directory, limit, world.now, record, own, position, clock)
        execution.complaint = self._complaint(world, job)
        if execution.complaint and position:
            self.refused.add(directory)
        self.executed[directory] += not execution.complaint
        self._running[job.id] = execution
        if position == 0 and fault is not None:
            world.at(world.now + fault.value * len(directories), lambda: self._act(world, job, fault))
        self._beat(world, job, execution)
        self._plan(world, job, execution, fault)

    def _wait(self, world: World, job: Job, fault: Fault | None, position: int) -> None:
        """Wait for slurmctld as a job of several runs does; end the job if its time is too short."""
        start, directory = job.starts[-1], self.directories(job)[position]
        left = _seconds_left(world, job)
        slack = left - worker.limit_of(str(directory))
        back = world.site.back(world.now) + ASK_AGAIN

        def go_on() -> None:
            if not any(item is start for item in self._told_to_end):
                self._begin(world, job, fault, position)

        if back - world.now < min(slack, LONGEST_WAIT):
            world.at(back, go_on)
        else:
            end = world.now + max(0.0, min(slack, LONGEST_WAIT))
            world.at(end, lambda: world.end(job, "COMPLETED") if job.starts[-1] is start else None)

    def _beat(self, world: World, job: Job, execution: _Execution) -> None:
        frozen = execution.fault is not None and execution.fault.what == "frozen"
        if self._running.get(job.id) is execution and not frozen:
            beat = world.now
            claim = execution.directory / worker.CLAIM
            self._appear(world, "signs late", lambda: os.utime(claim, (beat, beat)))
            world.at(world.now + worker.HEARTBEAT, lambda: self._beat(world, job, execution))

    def _plan(self, world: World, job: Job, execution: _Execution, fault: Fault | None) -> None:
        """Decide how the attempt goes on, when it is over, and whether another one follows."""
        what = execution.fault.what if execution.fault is not None else ""
        value = execution.fault.value if execution.fault is not None else 0.0
        hangs = what in {"application hangs", "frozen"}
        full = execution.limit + worker.OVERRUN if hangs else self.seconds(execution.directory)
        if execution.complaint:
            full, what = SRUN_PATIENCE, "srun"

        start = job.starts[-1]

        def go_on() -> None:  # also on a node that is only taken for dead
            if not any(item is start for item in self._told_to_end):
                self._begin(world, job, fault, execution.position + 1)

        def over() -> None:
            if self._running.get(job.id) is not execution or what == "frozen":
                return
            del self._running[job.id]
            timed_out = full > execution.limit
            code = 143 if timed_out else 1 if what in {"application crashes", "srun"} else 0
            if code and what != "srun":
                self.guilty.add(execution.directory)
            late = value if what == "files appear late" else 0.0
            self._finish(world, execution, late, code, timed_out=timed_out)
            attempts = len(self.directories(job))
            world.reached("ending" if execution.position == attempts - 1 else "between")
            if attempts > 1:
                world.at(world.now + NEXT, go_on)
            else:
                world.at(world.now + LATE, lambda: world.end(job, "FAILED" if code else "COMPLETED"))

        world.at(world.now + min(full, execution.limit), over)

    def _act(self, world: World, job: Job, fault: Fault) -> None:
        """Do to a running job what its fault says."""
        what = fault.what
        if job.id not in self._running:
            return
        if what in {"node fails", "out of memory", "killed"}:
            word = {"node fails": "NODE_FAIL", "killed": "FAILED"}.get(what, "OUT_OF_MEMORY")
            self.stop(world, job, word, kill=True)
        elif what == "taken for dead":
            world.when_answered(lambda: world.end(job, "NODE_FAIL"))
        elif what == "scancel from outside":
            world.when_answered(lambda: world.cancel(job))
        elif what == "requeue":
            world.when_answered(lambda: world.requeue(job))
        elif what == "preempted":
            world.when_answered(lambda: self._preempt(world, job))

    def _preempt(self, world: World, job: Job) -> None:
        if job.state == "RUNNING":
            self.stop(world, job, "PREEMPTED", kill=False)

    def _complaint(self, world: World, job: Job) -> str:
        """Return what srun prints if it cannot start the application now."""
        span = world.site.controller(world.now) if self.srun else None
        if span is None or span.end <= world.now + SRUN_PATIENCE:
            return ""
        hangs = span.fault.what == "controller hangs"
        timed_out = "Socket timed out on send/recv operation"
        why = timed_out if hangs else "Unable to contact slurm controller (connect failure)"
        return _SRUN.format(number=job.number, why=why)

    def _output(self, execution: _Execution) -> str:
        return f"t={self.seconds(execution.directory)}\n"

    def _appear(self, world: World, what: str, write: Callable[[], None], later: float = 0.0) -> None:
        """Write what the host of the controller sees ``later``, or later still because of the file system."""
        later += world.site.late(what, world.now)
        if later:
            world.at(world.now + later, write)
        else:
            write()

    def _finish(
        self,
        world: World,
        execution: _Execution,
        delay: float,
        code: int,
        timed_out: bool = False,
        cancelled: bool = False,
    ) -> None:
        """Write output and final record, visible after a delay."""
        ended = world.now + execution.clock + (delay if cancelled else 0.0)
        record = execution.record | {
            "finished": storage.iso(ended),
            "exit_code": code,
            "timed_out": timed_out,
            "cancelled": cancelled,
            "printed": 0 if execution.complaint else len(self._output(execution)),
        }

        def printed() -> None:
            (execution.directory / "stderr").write_text(execution.complaint)
            if not execution.complaint:
                (execution.directory / "stdout").write_text(self._output(execution))

        def recorded() -> None:
            _write(execution.directory, record)
            if code == 0:
                self.succeeded.add(execution.directory)

        files = world.site.late("files late", world.now)
        self._appear(world, "output late", printed, delay + files)
        self._appear(world, "files late", recorded, delay)


def _seconds_left(world: World, job: Job) -> float:
    return 60.0 * job.request.minutes - (world.now - job.starts[-1].first) - worker.OVERRUN


def _affected(fault: Fault, attempts: int) -> int | None:
    """Return which attempt of a job a fault is about; None if it is about the whole job."""
    single = {"application crashes", "application hangs", "frozen"}
    return int(fault.value) % attempts if fault.what in single else None


def _write(directory: Path, record: dict[str, object]) -> None:
    temporary = directory / "attempt.json.tmp"
    temporary.write_text(json.dumps(record))
    temporary.replace(directory / worker.RECORD)
