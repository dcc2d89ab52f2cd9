"""Which runs share a job, one after another: a pure rule.

Every job costs some seconds beside its runs: its start, its end, and the wait in the queue. Short runs of
the same size therefore share one. By default they do if each is expected to take at most `SHORT` times those
seconds, until together they take `FILLED` times as long, or, while no further job may begin, `ENOUGH` times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from orchestrator.journal.state import State
from orchestrator.policy.estimates import Estimates
from orchestrator.policy.limits import memory_for
from orchestrator.policy.placement import Placement, is_held, nodelist
from orchestrator.resources import Reservation, shared_limits
from orchestrator.types import Point, Resources, Run

# All in multiples of the seconds that a job costs beside its runs.
SHORT = 3.0  # such a run spends a quarter or more of its cost on the job when it is alone
FILLED = 6.0  # beyond that, jobs side by side are done sooner and cost little more
ENOUGH = 10.0  # beyond that, sharing saves less than a tenth of the cost
MOST = 64  # runs in a job where the user gives no number: all of them are lost if their node fails


@dataclass(frozen=True, slots=True)
class SharingRules:
    """What the campaign says about shared jobs.

    ``most`` runs in a job (None: by what a job costs); ``longest`` sum of their time limits in seconds.
    Repetitions of a point that are proposed in one round may (``any``), must not (``spread``) or shall
    (``together``) share a job. Points that differ in the parameter ``alike`` alone count as one there.
    """

    most: int | None = None
    longest: float = 1800.0
    repetitions: Literal["any", "spread", "together"] = "any"
    alike: str = ""


def describe(rules: SharingRules, duration: Callable[[float], str]) -> str:
    """Return the rules in one sentence; ``duration`` writes seconds as text."""
    if rules.most is None:
        who = (
            f"runs of equal size share a job, one after another, where each is expected to take at most "
            f"{SHORT:g} times what a job costs beside its runs (start-up and end, and the wait in the queue "
            f"if more runs wait than jobs may), until together they take {FILLED:g} times that, or "
            f"{ENOUGH:g} times if no more jobs may begin"
        )
    else:
        who = f"up to {rules.most} runs of equal size share a job, one after another"
    how = {
        "any": "",
        "spread": "; repetitions of a point have different jobs",
        "together": "; repetitions of a point within a round share one in any case",
    }[rules.repetitions]
    return f"{who}; their time limits add up to at most {duration(rules.longest)}{how}"


@dataclass(slots=True)
class Job:
    """Runs that begin in one job, with the reservation of each if it were alone; ``seconds`` expected."""

    runs: list[Run]
    alone: list[Reservation]
    seconds: float = 0.0


@dataclass(slots=True, kw_only=True)
class JobPlan:
    """The jobs to begin now, grown run by run."""

    # state, estimates: where runs stand, and what is known of them.
    state: State
    estimates: Estimates
    rules: SharingRules | None  # which runs may share a job; None: none
    waiting: Sequence[Run]  # all runs that could begin, in order
    places: int  # how many jobs may begin
    placement: Placement = "any"  # which nodes runs are asked onto
    jobs: list[Job] = field(default_factory=list)

    def job_for(self, run: Run, alone: Reservation) -> Job | None:
        """Return the planned job that a run should join, or None if it needs one of its own."""
        rules = self.rules
        if rules is None:
            return None
        runs = [run]
        if rules.repetitions == "together":
            for job in self.jobs:
                if _holds_repetition(job, run, rules.alike) and self._fits(rules, job, 1, alone, run):
                    return job
            runs += self._waiting_repetitions(run, rules.alike)
        if rules.most is None and not self._overhead():
            return None
        # The emptiest first, once all places are taken.
        full = len(self.jobs) >= self.places
        for job in sorted(self.jobs, key=lambda job: job.seconds) if full else self.jobs:
            if rules.repetitions == "spread" and _holds_repetition(job, run):
                continue
            if self._fits(rules, job, len(runs), alone, run) and self._worthwhile(rules, job, runs):
                return job
        return None

    def is_held(self, run: Run, job: Job | None) -> bool:
        """Return whether a run has to wait for the nodes of another one, with which it shares no job."""
        if self.placement == "any":
            return False
        joined = [] if job is None else job.runs
        planned = (item for one in self.jobs for item in one.runs if item not in joined)
        beside = [*(attempt.run for attempt in self.state.in_flight), *planned]
        return is_held(self.placement, self.state, run, beside, self.estimates.points)

    def add(self, run: Run, alone: Reservation, job: Job | None) -> None:
        """Begin a run in a planned job, or (None) in one of its own."""
        if job is None:
            job = Job([], [])
            self.jobs.append(job)
        job.runs.append(run)
        job.alone.append(alone)
        if self.rules is not None and self.rules.most is None:
            job.seconds += self.estimates.seconds(self.state, run)

    def more(self, job: Job | None, alone: Reservation) -> float:
        """Return the core-seconds that a run adds to what is reserved, if it joins ``job`` or has its own."""
        if job is None:
            return alone.reserved
        return self._reserved([*job.alone, alone]) - self._reserved(job.alone)

    def reservations(self, job: Job) -> list[Reservation]:
        """Return what each run of a job reserves: alone its own, else equal parts of the job's."""
        if len(job.runs) == 1:
            return job.alone
        part = self._reserved(job.alone) / len(job.alone)
        return [replace(item, reserved=part) for item in job.alone]

    def _reserved(self, alone: Sequence[Reservation]) -> float:
        """Return the core-seconds that a job of runs can be charged: less than the sum of separate jobs."""
        cores = alone[0].reserved / self.estimates.reserved_seconds(alone[0].limit)
        limits = shared_limits((item.limit, item.likely) for item in alone)
        return cores * self.estimates.reserved_seconds(*limits)

    def _waiting_repetitions(self, run: Run, alike: str) -> list[Run]:
        """Return the other repetitions of a run that could begin and are not planned yet."""
        planned = {item for job in self.jobs for item in job.runs}
        same = _repetitions(run, alike)
        return [
            item for item in self.waiting if _repetitions(item, alike) == same and item not in {run, *planned}
        ]

    def _fits(self, rules: SharingRules, job: Job, count: int, alone: Reservation, run: Run) -> bool:
        """Whether ``count`` runs like ``run`` may join a job, as far as Slurm and the user allow it."""
        seconds = sum(item.limit for item in job.alone) + count * alone.limit
        most = MOST if rules.most is None else rules.most
        if len(job.runs) + count > most or seconds > rules.longest:  # faster than comparing sizes
            return False
        return self._size(job.runs[0]) == self._size(run)

    def _size(self, run: Run) -> tuple[Resources, float, tuple[str, ...]]:
        """Return what must be equal in a job: everything that Slurm is asked for."""
        resources = self.estimates.points[run.point].resources
        where = nodelist(self.placement, self.state, run, resources.nodes)
        return resources, memory_for(self.state, run), where

    def _worthwhile(self, rules: SharingRules, job: Job, runs: Sequence[Run]) -> bool:
        """Whether sharing saves enough; a number of runs that the user gave is used in any case."""
        if rules.most is not None:
            return True
        overhead = self._overhead()
        most = FILLED if len(self.jobs) < self.places else ENOUGH
        seconds = [self.estimates.seconds(self.state, run) for run in (job.runs[0], *runs)]
        return max(seconds) <= SHORT * overhead and job.seconds + sum(seconds[1:]) <= most * overhead

    def _overhead(self) -> float:
        """Return the seconds that a job costs beside its runs.

        The wait in the queue counts only where more runs wait than jobs may begin.
        """
        costs = self.state.job_costs
        return costs.overhead + (costs.wait if len(self.waiting) > self.places else 0.0)


def _holds_repetition(job: Job, run: Run, alike: str = "") -> bool:
    return any(_repetitions(item, alike) == _repetitions(run, alike) for item in job.runs)


def _repetitions(run: Run, alike: str) -> tuple[Point, str]:
    """Return what repetitions have in common."""
    if not alike:
        return run.point, run.kind
    return Point(tuple(item for item in run.point.items if item[0] != alike)), run.kind
