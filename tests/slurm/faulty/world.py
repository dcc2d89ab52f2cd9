"""A small Slurm: jobs, nodes, accounting and time. It never fails; `commands` makes its answers fail.

Time is whatever the owner says it is: `World.advance` passes through all that is due by then. Who executes
the jobs is a `Runner`'s business: virtual attempts take no time, real ones are processes.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.slurm.faulty.faults import Fault
from tests.slurm.faulty.site import Site, Span

ACTIVE = {"PENDING", "RUNNING", "COMPLETING", "REQUEUED"}
TIME_LIMIT_SCAN = 30.0  # seconds after its limit within which a job is ended
KILLED = 5.0  # seconds that the processes of a job live after that at most, as far as Slurm charges them
REPORT = 1.0  # seconds until nodes report to a slurmctld that is back
GIVEN_UP = 300.0  # seconds after which a node stops trying to report the end of a job


@dataclass(frozen=True, slots=True)
class Request:
    """What ``sbatch`` was asked for, per element of the array."""

    name: str
    folder: Path
    cpus: int
    minutes: int
    count: int
    options: tuple[str, ...] = ()


@dataclass
class Start:
    """One start of a job: on which node, from when to when, and how it ended.

    ``begun`` and ``ended`` are what slurmctld notes, by its own clock. The processes of the job lived from
    ``first`` to ``last``. A slurmctld that answers ends it after ``longest`` seconds.
    """

    node: str
    begun: float
    first: float
    longest: float
    ended: float | None = None
    last: float | None = None
    state: str = "RUNNING"

    @property
    def elapsed(self) -> int:
        """Whole seconds, as in accounting."""
        return 0 if self.ended is None else max(0, int(self.ended) - int(self.begun))

    @property
    def excess(self) -> int:
        """Whole seconds charged because slurmctld noticed its end too late, or because its clock was set."""
        lived = 0.0 if self.last is None else self.last - self.first
        more = self.elapsed - math.floor(min(lived, self.longest))
        return more if more > 1 else 0  # a second is rounding


@dataclass
class Job:
    """One element of an array."""

    number: int
    index: int
    request: Request
    submitted: float
    eligible: float
    state: str = "PENDING"
    reason: str = "Priority"
    ended: float | None = None
    starts: list[Start] = field(default_factory=list)

    @property
    def id(self) -> str:
        """As ``squeue`` and ``sacct`` print it."""
        return f"{self.number}_{self.index}"

    @property
    def charged(self) -> int:
        """Seconds in accounting, of all starts that have ended."""
        return sum(start.elapsed for start in self.starts)


class Runner(Protocol):
    """Executes jobs."""

    def start(self, world: World, job: Job, fault: Fault | None) -> None:
        """Begin to execute a job that has just got its node; call `World.end` when it is over."""

    def stop(self, world: World, job: Job, state: str, kill: bool) -> None:
        """End a running job as Slurm does: with SIGTERM, or at once (``kill``), into a state."""


@dataclass
class Settings:
    """Of the site. Delays in seconds; ``queue_delay`` by the number of a job.

    ``allocation``: CPUs that a job gets for each that it asks for.
    """

    nodes: dict[str, int] = field(default_factory=lambda: {f"n{i}": 4 for i in range(1, 5)})
    accounting: bool = True
    array_size: int = 1001
    submit_limit: int | None = None
    kill_wait: float = 30.0
    remembered: float = 300.0
    allocation: int = 1
    queue_delay: Callable[[int], float] = lambda number: 0.0


class World:
    """Jobs in the order of their submission, and what is due when."""

    def __init__(self, runner: Runner, settings: Settings, faults: Iterable[Fault], now: float) -> None:
        self.runner, self.settings = runner, settings
        self.now = self.began = now
        self.jobs: list[Job] = []
        self.free = dict(settings.nodes)
        faults = tuple(faults)
        self._faults = {fault.ordinal: fault for fault in faults if not fault.command}
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self.site = Site.of(faults, now)
        for span in self.site.spans:
            self._expect(span)
        self._numbers = itertools.count(100)
        self._starts = itertools.count(1)

    def at(self, instant: float, what: Callable[[], None]) -> None:
        """Do something at an instant."""
        heapq.heappush(self._due, (instant, next(self._order), what))

    def advance(self, until: float) -> None:
        """Pass through all that happens up to an instant."""
        while self._due and self._due[0][0] <= until:
            instant, _, what = heapq.heappop(self._due)
            self.now = max(self.now, instant)
            what()
        self.now = max(self.now, until)

    def drain(self) -> None:
        """Let time pass until nothing is due any more."""
        while self._due:
            self.advance(self._due[0][0])

    def accept(self, request: Request) -> int:
        """Queue an array; return its number."""
        number = next(self._numbers)
        for index in range(request.count):
            delay = self.settings.queue_delay(number + index)
            job = Job(number, index, request, self.now, self.now + delay)
            self.jobs.append(job)
            self.at(job.eligible, self._schedule)
            self.reached("queued")
        return number

    def clock(self) -> float:
        """Return the time on the host of slurmctld."""
        return self.now + self.site.clock("controller's clock", self.now)

    def reached(self, moment: str) -> None:
        """Let the faults begin that wait for a job to get there."""
        for span in self.site.reached(moment, self.now):
            self._expect(span)

    def when_answered(self, what: Callable[[], None]) -> None:
        """Do what only slurmctld can do: now, or when it is back."""
        back = self.site.back(self.now)
        if back > self.now:
            self.at(back, lambda: self.when_answered(what))
        else:
            what()

    def active(self) -> list[Job]:
        """Return the jobs that are queued or running."""
        return [job for job in self.jobs if job.state in ACTIVE]

    def job(self, identifier: str) -> Job | None:
        """Return a job by its id."""
        return next((job for job in self.jobs if job.id == identifier), None)

    def cancel(self, job: Job, state: str = "CANCELLED by 0") -> None:
        """Do what ``scancel`` does."""
        if job.state == "PENDING":
            job.state, job.ended = state, self.now
        elif job.state == "RUNNING":
            self.runner.stop(self, job, state, kill=False)

    def requeue(self, job: Job) -> None:
        """Do what ``scontrol requeue`` does to a running job."""
        if job.state == "RUNNING":
            self.runner.stop(self, job, "REQUEUED", kill=False)

    def end(self, job: Job, state: str) -> None:
        """Take a job that runs off its node, as soon as slurmctld hears of it."""
        if job.state != "RUNNING":
            return
        start = job.starts[-1]
        if start.last is None:
            start.last = self.now
        if self.site.controller(self.now) is not None:
            back = self.site.back(self.now) + REPORT
            self.at(back, lambda: self.end(job, state) if job.starts[-1] is start else None)
            return
        start.ended, start.state = self.clock(), self._heard(job, start, state)
        state = start.state
        self.free[start.node] += job.request.cpus
        self.reached("ended")
        if state == "REQUEUED":
            job.state, job.reason, job.eligible = "PENDING", "BeginTime", self.now + 120.0
            self.at(job.eligible, self._schedule)
        else:
            job.state, job.ended = state, self.now
        self._schedule()

    def _heard(self, job: Job, start: Start, state: str) -> str:
        """Return what slurmctld makes of an end that it hears of late."""
        late = self.now - (start.last or self.now)
        if late < REPORT / 2 or state not in {"COMPLETED", "FAILED"}:
            return state
        if self.clock() - start.begun > 60.0 * job.request.minutes:
            return "TIMEOUT"
        return "NODE_FAIL" if late > GIVEN_UP else state

    def _expect(self, span: Span) -> None:
        """Plan what follows from a fault of the site that begins then."""
        if span.fault.what == "controller's clock":
            self.at(max(span.begin, self.now), self._end_the_overdue)
        if span.fault.what == "controller killed":
            self.at(span.end, lambda: self._forget(span))
        self.at(span.end, self._schedule)

    def _end_the_overdue(self) -> None:
        for job in self.jobs:
            if job.state == "RUNNING":
                self._check_limit(job, job.starts[-1])

    def _check_limit(self, job: Job, start: Start) -> None:
        """End a job that has reached its limit by the clock of slurmctld; else look again when it has."""
        if job.state != "RUNNING" or job.starts[-1] is not start:
            return
        left = 60.0 * job.request.minutes + TIME_LIMIT_SCAN / 2 - (self.clock() - start.begun)
        back = self.site.back(self.now)
        if left > 0.01 or back > self.now:
            self.at(max(self.now + left, back + REPORT), lambda: self._check_limit(job, start))
        else:
            self.runner.stop(self, job, "TIMEOUT", kill=False)

    def _forget(self, span: Span) -> None:
        """Lose what was submitted just before a slurmctld was killed; nodes end what they should not run."""
        for job in self.jobs:
            if job.state in {"PENDING", "RUNNING"} and 0 <= span.begin - job.submitted < span.fault.value:
                running, job.state, job.ended = job.state == "RUNNING", "FORGOTTEN", self.now
                if running:
                    self.free[job.starts[-1].node] += job.request.cpus
                    self.runner.stop(self, job, "FORGOTTEN", kill=False)

    def _schedule(self) -> None:
        """First come, first served, with those that fit passing those that do not."""
        if self.site.controller(self.now) is not None:
            return
        for job in [job for job in self.jobs if job.state == "PENDING" and job.eligible <= self.now]:
            node = next((name for name, free in self.free.items() if free >= job.request.cpus), None)
            if node is not None:
                self._start(job, node)

    def _start(self, job: Job, node: str) -> None:
        ordinal = next(self._starts)
        fault = self._faults.get(ordinal)
        if fault is not None and fault.what == "held":
            job.eligible = self.now + fault.value
            self.at(job.eligible, self._schedule)
            return
        self.free[node] -= job.request.cpus
        job.state, job.reason = "RUNNING", "None"
        longest = 60.0 * job.request.minutes + TIME_LIMIT_SCAN / 2
        start = Start(node, self.clock(), self.now, longest + KILLED)
        job.starts.append(start)
        self.at(self.now + longest, lambda: self._check_limit(job, start))
        self.runner.start(self, job, fault)
        self.reached("starting")


def charged_cpu_seconds(jobs: Sequence[Job]) -> int:
    """Return the CPU-seconds in accounting."""
    return sum(job.charged * job.request.cpus for job in jobs)


def excess_cpu_seconds(jobs: Sequence[Job]) -> int:
    """Return those of them for which no job lived, as no campaign can foresee."""
    return sum(start.excess * job.request.cpus for job in jobs for start in job.starts)
