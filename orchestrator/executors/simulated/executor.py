"""The simulated executor: a virtual clock, a queue, failures; no process is started and no time passes.

What an attempt yields comes from a ``Truth``: stated functions with noise, or replayed measurements (see
`orchestrator.executors.simulated.truth`). Everything drawn for an attempt depends on the seed and the attempt
alone, never on the order of submission: an interrupted rehearsal continues as if it had not been interrupted.
"""

from __future__ import annotations

import heapq
import itertools
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from orchestrator.errors import ExecutorError
from orchestrator.executors.base import ExecutorContext, SimulatedRun, Truth
from orchestrator.resources import shared_limits
from orchestrator.types import Attempt, AttemptRecord, AttemptRequest, AttemptState, Observation

_KILLED = 128 + 15
_ROUNDING = 1e-6  # seconds by which sums of durations may be wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSettings:
    """What a simulation adds to the runs."""

    queue_delay: float = 0.0  # mean seconds in the queue (exponentially distributed)
    failure_rate: float = 0.0  # share of attempts that fail (0..1)
    overhead: float = 0.0  # seconds of every allocation besides the application
    slots: int | None = None  # cores that run at once; None: as many as asked for
    seed: int = 0  # of all that is drawn
    start: float = 0.0  # first instant of the virtual clock, in Unix seconds


def build(context: ExecutorContext) -> SimulatedExecutor:
    """Build the executor from a campaign.

    Raises
    ------
    ExecutorError
        Without a truth.
    """
    if context.truth is None:
        raise ExecutorError(
            "a simulation needs to know what runs would yield: give executor.truth (call path -> expression "
            "in the parameters, in seconds), executor.dataset (measurements) or executor.models (the "
            "directory of an earlier campaign)"
        )
    options = context.options
    settings = SimulatedSettings(
        queue_delay=options["queue_delay"],
        failure_rate=options["failure_rate"],
        overhead=options["overhead"],
        slots=options["cores"],
        seed=context.seed,
        start=context.start,
    )
    return SimulatedExecutor(settings, context.truth)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    request: AttemptRequest
    ready: float  # earliest start
    outcome: str  # "ok", "crash", "lost", "hang", "cancelled"
    run: SimulatedRun
    overhead: float = 0.0  # seconds before the application begins
    started: float = math.inf
    elapsed: float = math.inf  # not ends - started: that would round differently at another time

    @property
    def ends(self) -> float:
        return self.started + self.elapsed


class SimulatedExecutor:
    """See the contract in `orchestrator.executors.base.Executor`."""

    name = "simulated"

    def __init__(self, settings: SimulatedSettings, truth: Truth):
        self._settings = settings
        self._truth = truth
        self._clock = settings.start
        self._waiting: dict[Attempt, _Job] = {}
        self._running: dict[Attempt, _Job] = {}
        self._over: dict[Attempt, _Job] = {}
        self._behind: dict[Attempt, list[_Job]] = {}  # the jobs that follow in the allocation of an attempt
        self._time: dict[str, float] = {}  # seconds that are left to an allocation, by pack
        self._charged: dict[Attempt, float] = {}  # seconds of attempts that shared an allocation
        self._instants: list[tuple[float, int, Attempt]] = []  # heap: when a job is ready or ends
        self._turn = itertools.count()  # who comes first among equal instants
        self._free = math.inf if settings.slots is None else settings.slots

    def now(self) -> float:
        """Return the virtual time."""
        return self._clock

    def ready(self) -> str | None:
        """Return None: nothing else is needed."""
        return None

    def reserved_seconds(self, *limits: float) -> float:
        """Return the limits: the simulation ends an attempt at once."""
        return sum(limits)

    def submit(self, requests: Sequence[AttemptRequest]) -> list[Observation]:
        """Queue attempts; those that share an allocation behind the first of them."""
        first: dict[str, Attempt] = {}
        packs: dict[str, list[AttemptRequest]] = {}
        for request in requests:
            packs.setdefault(request.pack, []).append(request)
        for request in requests:
            if request.attempt in self._running or request.attempt in self._over:
                continue
            job = self._draw(request)
            if request.pack in first:
                self._behind[first[request.pack]].append(job)
                continue
            self._waiting[request.attempt] = job
            heapq.heappush(self._instants, (job.ready, next(self._turn), request.attempt))
            if request.pack:
                first[request.pack] = request.attempt
                self._behind[request.attempt] = []
                self._time[request.pack] = sum(
                    shared_limits((i.limit, i.likely) for i in packs[request.pack])
                )
        self._start_ready()
        return self.poll(requests)

    def poll(self, attempts: Sequence[AttemptRequest]) -> list[Observation]:
        """Report attempts as of the virtual time; those that are over are reported once and forgotten."""
        return [self._observe(request.attempt) for request in attempts]

    def find(self, requests: Sequence[AttemptRequest]) -> list[Observation]:
        """Report known attempts; those of a controller that died are absent, as nothing outlives it."""
        return self.poll(requests)

    def charged(self, attempts: Sequence[AttemptRequest]) -> list[Observation | None]:
        """Report what attempts cost that shared a job; None for others, and for those of another process."""
        return [
            Observation(item.attempt, AttemptState.FINISHED, elapsed=self._charged[item.attempt])
            if item.attempt in self._charged
            else None
            for item in attempts
        ]

    def cancel(self, attempts: Sequence[AttemptRequest]) -> None:
        """End attempts now, and those that were to follow them in their allocations."""
        for request in attempts:
            self._waiting.pop(request.attempt, None)
            self._behind.pop(request.attempt, None)
            for first, jobs in self._behind.items():
                self._behind[first] = [job for job in jobs if job.request.attempt != request.attempt]
            if request.attempt in self._running:
                job = self._end(request.attempt)
                elapsed = self._clock - job.started
                self._over[request.attempt] = replace(job, outcome="cancelled", elapsed=elapsed)
                if request.pack:
                    self._charged[request.attempt] = elapsed
        self._start_ready()

    def wait(self, seconds: float) -> None:
        """Advance the clock in steps of ``seconds`` until something has changed, as a poller would see it."""
        self._advance(self._clock)  # what ends at once
        if self._over:
            return
        if not self._instants:
            self._clock += seconds
            return
        upcoming = self._instants[0][0]
        steps = max(1, math.ceil((upcoming - self._clock) / seconds)) if seconds > 0 else 0
        self._advance(self._clock + steps * seconds if steps else upcoming)

    def _draw(self, request: AttemptRequest) -> _Job:
        settings = self._settings
        rng = np.random.default_rng([settings.seed, zlib.crc32(request.attempt.id.encode())])
        outcome = "ok"
        if rng.random() < settings.failure_rate:
            outcome = ("crash", "lost", "hang")[int(rng.integers(3))]
        delay = float(rng.exponential(settings.queue_delay)) if settings.queue_delay > 0 else 0.0
        # The measurement belongs to the run: a further attempt at it finds the same truth.
        truth_rng = np.random.default_rng([settings.seed, zlib.crc32(request.attempt.run.id.encode())])
        run = self._truth(request.attempt.run, truth_rng)
        outcome = "crash" if run.fails else outcome
        return _Job(
            request=request, ready=self._clock + delay, outcome=outcome, run=run, overhead=settings.overhead
        )

    def _start_ready(self) -> None:
        """First come, first served; a job that does not fit holds back those behind it."""
        for attempt, job in list(self._waiting.items()):
            if job.ready > self._clock:
                continue
            if job.request.resources.cores > self._free:
                break
            self._free -= job.request.resources.cores
            del self._waiting[attempt]
            self._begin(replace(job, started=self._clock, elapsed=_duration(job)))

    def _end(self, attempt: Attempt) -> _Job:
        """End an attempt; the next one of its allocation begins at once, unless that failed."""
        job = self._running.pop(attempt)
        self._over[attempt] = job
        if job.request.pack:
            self._charged[attempt] = job.elapsed
        behind = self._behind.pop(attempt, [])
        if not behind or job.outcome == "lost":
            self._free += job.request.resources.cores
            return job
        self._time[job.request.pack] -= job.elapsed
        if self._time[job.request.pack] < behind[0].request.limit - _ROUNDING:  # the rest gets another job
            self._free += job.request.resources.cores
            return job
        following = replace(behind[0], started=self._clock, overhead=0.0)
        self._behind[following.request.attempt] = behind[1:]
        self._begin(replace(following, elapsed=_duration(following)))
        return job

    def _begin(self, job: _Job) -> None:
        self._running[job.request.attempt] = job
        heapq.heappush(self._instants, (job.ends, next(self._turn), job.request.attempt))

    def _advance(self, until: float) -> None:
        """Pass through every instant at which something ends or becomes ready, up to ``until``."""
        while self._instants and self._instants[0][0] <= until:
            instant, _, attempt = heapq.heappop(self._instants)
            self._clock = max(self._clock, instant)
            if attempt in self._running and self._running[attempt].ends <= self._clock:
                self._end(attempt)
            self._start_ready()
        self._clock = max(self._clock, until)

    def _observe(self, attempt: Attempt) -> Observation:
        if attempt in self._waiting:
            return Observation(attempt, AttemptState.QUEUED, self._waiting[attempt].request.name)
        if attempt in self._running:
            return Observation(attempt, AttemptState.RUNNING, self._running[attempt].request.name)
        for jobs in self._behind.values():
            if any(job.request.attempt == attempt for job in jobs):
                return Observation(attempt, AttemptState.QUEUED, "behind others")
        job = self._over.pop(attempt, None)
        if job is None:
            return Observation(attempt, AttemptState.ABSENT, reason="not known to this simulation")
        return _outcome(job)


def _duration(job: _Job) -> float:
    full = job.run.seconds + job.overhead
    if job.outcome == "hang":
        return job.request.limit
    if job.outcome != "ok":
        full /= 2
    return min(full, job.request.limit)


def _outcome(job: _Job) -> Observation:
    attempt, handle, elapsed = job.request.attempt, job.request.name, job.elapsed
    if job.outcome == "lost":
        return Observation(
            attempt, AttemptState.LOST, handle, elapsed=elapsed, reason="simulated node failure"
        )
    cancelled = job.outcome == "cancelled"
    timed_out = job.outcome == "hang" or (job.outcome == "ok" and elapsed >= job.request.limit)
    record = AttemptRecord(
        run=attempt.run.id,
        attempt=attempt.number,
        host="simulated",
        pid=0,
        started=job.started + min(job.overhead, job.elapsed),
        finished=job.ends,
        exit_code=_KILLED if timed_out or cancelled else int(job.outcome == "crash"),
        timed_out=timed_out,
    )
    return Observation(
        attempt,
        AttemptState.FINISHED,
        handle,
        record=record,
        elapsed=elapsed,
        reason="cancelled" if cancelled else "",
        samples=job.run.samples if record.exit_code == 0 else None,
    )
