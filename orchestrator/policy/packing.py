"""Which runs share an allocation, one after another: a pure rule.

Runs of the same size share one if each is expected to take at most `SHORT` times what an allocation costs
beside its runs, until together they take `FILLED` times that, or, while no place for another job is free,
`ENOUGH` times: then the allocation costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from orchestrator.journal.allocations import Price
from orchestrator.resources import Reservation
from orchestrator.types import Point, Run

SHORT = 3.0  # times the price of an allocation: it is a quarter or more of what such a run costs alone
FILLED = 6.0  # times the price: side by side the rest is done sooner, and costs little more
ENOUGH = 10.0  # times the price: a larger pack saves less than a tenth of its cost
MOST = 64  # runs of a pack whose number is not given: what they would lose together if their node fails


@dataclass(frozen=True, slots=True)
class Rules:
    """What the campaign says: ``most`` runs in a job (None: as the rule says), ``longest`` sum of limits (s).

    Repetitions of a point that are proposed in one round may (``any``), must not (``spread``) or shall
    (``together``) share a job.
    """

    most: int | None = None
    longest: float = 1800.0
    repetitions: Literal["any", "spread", "together"] = "any"


def describe(rules: Rules, duration: Callable[[float], str]) -> str:
    """Return the rule in one sentence; ``duration`` writes seconds as text."""
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


@dataclass(frozen=True, slots=True)
class Packer:
    """What the rule needs to know.

    Attributes
    ----------
    rules
        The campaign's.
    price
        What an allocation costs, as seen so far.
    shape
        What must be equal in a job: resources and whatever else Slurm is told.
    expected
        Seconds that a run is expected to take.
    reserved
        The most seconds that a job of attempts with some limits can be charged; grows with each.
    """

    rules: Rules
    price: Price
    shape: Callable[[Run], Hashable]
    expected: Callable[[Run], float]
    reserved: Callable[[Sequence[float]], float]

    def costs(self, crowded: bool) -> float:
        """Return the price in seconds; the wait counts where more runs than places for jobs wait anyway."""
        return self.price.overhead + (self.price.wait if crowded else 0.0)


@dataclass(slots=True)
class Job:
    """Runs that begin in one allocation, with what each would reserve alone; ``seconds`` they should take."""

    runs: list[Run]
    needs: list[Reservation]
    seconds: float = 0.0


@dataclass(slots=True)
class Plan:
    """Jobs to begin now, grown run by run; ``waiting``: all runs that could begin, ``places``: for jobs."""

    packer: Packer | None
    waiting: Sequence[Run]
    places: int
    jobs: list[Job] = field(default_factory=list)

    def open_job(self, run: Run, need: Reservation) -> Job | None:
        """Return the job that a run should join, or None if it needs one of its own."""
        if self.packer is None:
            return None
        rules, same = self.packer.rules, _repetitions(run)
        if rules.repetitions == "together":
            for job in self.jobs:
                if any(_repetitions(item) == same for item in job.runs) and self._fits(job, [run], need):
                    return job
        if rules.most is None and not self._price():
            return None
        newcomers = [run]
        if rules.repetitions == "together":
            begun = {item for job in self.jobs for item in job.runs}
            newcomers += [r for r in self.waiting if _repetitions(r) == same and r != run and r not in begun]
        # The emptiest first, once all places are taken.
        full = len(self.jobs) >= self.places
        for job in sorted(self.jobs, key=lambda job: job.seconds) if full else self.jobs:
            mixed = rules.repetitions == "spread" and any(_repetitions(item) == same for item in job.runs)
            if not mixed and self._fits(job, newcomers, need) and self._worthwhile(job, newcomers):
                return job
        return None

    def add(self, run: Run, need: Reservation, job: Job | None) -> None:
        """Begin a run in a job, or (None) in one of its own."""
        if job is None:
            job = Job([], [])
            self.jobs.append(job)
        job.runs.append(run)
        job.needs.append(need)
        if self.packer is not None and self.packer.rules.most is None:
            job.seconds += self.packer.expected(run)

    def more(self, job: Job, need: Reservation) -> float:
        """Return the core-seconds that one run more adds to what a job reserves."""
        return self._reserved([*job.needs, need]) - self._reserved(job.needs)

    def reservations(self, job: Job) -> list[Reservation]:
        """Return what each run of a job reserves: alone its own, else equal parts of the job's."""
        if len(job.runs) == 1:
            return job.needs
        part = self._reserved(job.needs) / len(job.needs)
        return [Reservation(need.cores, need.limit, part) for need in job.needs]

    def _reserved(self, needs: Sequence[Reservation]) -> float:
        assert self.packer is not None
        first = needs[0]
        cores = first.reserved / self.packer.reserved([first.limit])
        return cores * self.packer.reserved([need.limit for need in needs])

    def _fits(self, job: Job, runs: Sequence[Run], need: Reservation) -> bool:
        """Whether runs with a limit like ``need`` may be in a job, as far as Slurm and the user allow it."""
        assert self.packer is not None
        rules, shape = self.packer.rules, self.packer.shape
        seconds = sum(item.limit for item in job.needs) + len(runs) * need.limit
        most = MOST if rules.most is None else rules.most
        if len(job.runs) + len(runs) > most or seconds > rules.longest:  # which is told faster than shapes
            return False
        return shape(job.runs[0]) == shape(runs[0])

    def _worthwhile(self, job: Job, runs: Sequence[Run]) -> bool:
        """Whether sharing is cheaper; a number that the user gave is followed without asking."""
        assert self.packer is not None
        if self.packer.rules.most is not None:
            return True
        price = self._price()
        most = FILLED if len(self.jobs) < self.places else ENOUGH
        seconds = [self.packer.expected(run) for run in (job.runs[0], *runs)]
        return max(seconds) <= SHORT * price and job.seconds + sum(seconds[1:]) <= most * price

    def _price(self) -> float:
        assert self.packer is not None
        return self.packer.costs(crowded=len(self.waiting) > self.places)


def _repetitions(run: Run) -> tuple[Point, str]:
    return run.point, run.kind
