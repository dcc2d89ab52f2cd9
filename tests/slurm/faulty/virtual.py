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


@dataclass
class _Execution:
    directory: Path
    limit: float
    started: float
    record: dict[str, object]
    fault: Fault | None
    position: int = 0


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
    """

    seconds: Callable[[Path], float]
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
        delay = 0.0 if kill else world.settings.kill_wait if frozen else TERM + LATE
        start = job.starts[-1]
        world.at(world.now + delay, lambda: world.end(job, state) if job.starts[-1] is start else None)

    def _begin(self, world: World, job: Job, fault: Fault | None, position: int) -> None:
        """Begin one attempt; whoever finds the first one taken is a second start, and ends."""
        directories = self.directories(job)
        if position == len(directories):
            world.at(world.now + LATE, lambda: world.end(job, "COMPLETED"))
            return
        directory = directories[position]
        if not worker.claim(directory, worker.OWNER, durable=False):
            if position == 0:
                world.at(world.now + 0.1, lambda: world.end(job, "FAILED"))
            else:
                self._begin(world, job, fault, position + 1)
            return
        self.executed[directory] += 1
        request = json.loads((directory / worker.REQUEST).read_text())
        record = {
            **{"run": request["run"], "attempt": request["attempt"], "host": job.starts[-1].node, "pid": 1},
            **{"boot": "b", "namespace": "n", "processes": [], "started": storage.iso(world.now)},
            **{"environment": {"SLURM_JOB_START_TIME": str(int(job.starts[-1].begun))}},
        }
        _write(directory, record)
        affected = fault is None or _affected(fault, len(directories)) in (None, position)
        own = fault if affected else None
        execution = _Execution(directory, float(request["limit"]), world.now, record, own, position)
        self._running[job.id] = execution
        if position == 0 and fault is not None:
            world.at(world.now + fault.value * len(directories), lambda: self._act(world, job, fault))
        self._beat(world, job, execution)
        self._plan(world, job, execution, fault)

    def _beat(self, world: World, job: Job, execution: _Execution) -> None:
        frozen = execution.fault is not None and execution.fault.what == "frozen"
        if self._running.get(job.id) is execution and not frozen:
            os.utime(execution.directory / worker.CLAIM, (world.now, world.now))
            world.at(world.now + worker.HEARTBEAT, lambda: self._beat(world, job, execution))

    def _plan(self, world: World, job: Job, execution: _Execution, fault: Fault | None) -> None:
        """Decide how the attempt goes on, when it is over, and whether another one follows."""
        what = execution.fault.what if execution.fault is not None else ""
        value = execution.fault.value if execution.fault is not None else 0.0
        hangs = what in {"application hangs", "frozen"}
        full = execution.limit + worker.OVERRUN if hangs else self.seconds(execution.directory)

        start = job.starts[-1]

        def go_on() -> None:  # also on a node that is only taken for dead
            if not any(item is start for item in self._told_to_end):
                self._begin(world, job, fault, execution.position + 1)

        def over() -> None:
            if self._running.get(job.id) is not execution or what == "frozen":
                return
            del self._running[job.id]
            timed_out = full > execution.limit
            code = 143 if timed_out else 1 if what == "application crashes" else 0
            late = value if what == "files appear late" else 0.0
            self._finish(world, execution, late, code, timed_out=timed_out)
            if len(self.directories(job)) > 1:
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
            world.end(job, "NODE_FAIL")
        elif what == "scancel from outside":
            world.cancel(job)
        elif what == "requeue":
            world.requeue(job)
        elif what == "preempted":
            self.stop(world, job, "PREEMPTED", kill=False)

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
        ended = world.now + (delay if cancelled else 0.0)
        record = execution.record | {
            "finished": storage.iso(ended),
            "exit_code": code,
            "timed_out": timed_out,
            "cancelled": cancelled,
        }

        def appear() -> None:
            (execution.directory / "stdout").write_text(f"t={self.seconds(execution.directory)}\n")
            _write(execution.directory, record)
            if code == 0:
                self.succeeded.add(execution.directory)

        world.at(world.now + delay, appear)


def _affected(fault: Fault, attempts: int) -> int | None:
    """Return which attempt of a job a fault is about; None if it is about the whole job."""
    single = {"application crashes", "application hangs", "frozen"}
    return int(fault.value) % attempts if fault.what in single else None


def _write(directory: Path, record: dict[str, object]) -> None:
    temporary = directory / "attempt.json.tmp"
    temporary.write_text(json.dumps(record))
    temporary.replace(directory / worker.RECORD)
