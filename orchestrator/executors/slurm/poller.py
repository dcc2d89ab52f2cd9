"""The poller: one call of ``squeue`` and ``sacct`` per interval, whatever the number of jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from orchestrator.executors.base import Outage
from orchestrator.executors.slurm import commands
from orchestrator.executors.slurm.arrays import Element
from orchestrator.executors.slurm.commands import CommandFailed, Job
from orchestrator.executors.slurm.site import Site
from orchestrator.types import AttemptState

Elements = Sequence[Element]
_Jobs = Mapping[str, Mapping[int | None, Sequence[Job]]]  # by name and array index

_JITTER = 0.1  # of the interval, so that many controllers do not ask at once
_LONGEST_PAUSE = 60.0  # seconds between queries while Slurm does not answer
_MOST_DOUBLINGS = 20  # of the interval
_CLOCK_DIFFERENCE = 3600.0  # seconds that sacct's start time lies before the submission


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """What Slurm reports of the jobs of one attempt."""

    # Its jobs that are queued or running: the one to keep first, then duplicates.
    active: tuple[Job, ...] = ()
    ended: tuple[Job, ...] = ()  # its jobs that have ended, as far as Slurm remembers
    # Seconds charged for all that ended; None where that is not known, or more may come.
    elapsed: float | None = None
    # Whether accounting has a row of it. Without one, ``elapsed`` is what the queue reports, and the queue
    # forgets what a job did before it was requeued.
    accounted: bool = False
    # Whether accounting calls one of its jobs active. Alone that proves nothing: a job whose end was lost
    # remains active in accounting for ever.
    accounting_active: bool = False
    # Whether accounting has its jobs, and only as ones that wait: it will charge nothing unless one starts.
    never_started: bool = False
    cpus: float = 0  # allocated to its jobs, on average over the seconds charged; 0 where that is not known
    error: str = ""  # why Slurm could not be asked; nothing else is known then
    # Why accounting could not be asked; a job that ``squeue`` does not show may still exist.
    accounting_error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What was learned at an instant; ``accounted`` says whether accounting was asked."""

    time: float = float("-inf")
    queue: _Jobs = field(default_factory=dict)
    accounting: _Jobs = field(default_factory=dict)
    error: str = ""
    accounting_error: str = ""
    accounted: bool = False


CONTROLLER, ACCOUNTING = "slurmctld", "slurmdbd"
"""The services: jobs are submitted to one, the other knows what was charged."""


class SlurmPoller:
    """Ask Slurm when that is due, and remember the answers.

    Parameters
    ----------
    interval
        Seconds between queries; longer, up to a minute, while they fail.
    patience
        Time limit of each command in seconds.
    read
        How to learn the site's settings; returns None while Slurm does not answer.
    """

    def __init__(
        self,
        interval: float,
        patience: float,
        read: Callable[[], Site | None],
        clock: Callable[[], float],
        rng: np.random.Generator,
    ) -> None:
        self.due = self._scheduled = float("-inf")
        self._interval, self._patience = interval, patience
        self._read, self._clock, self._rng = read, clock, rng
        self._site: Site | None = None
        self._site_due = float("-inf")
        self._failures = 0
        self._answer = _Answer()
        self._services: dict[str, Outage | None] = {}  # those that were asked; None: it answers

    @property
    def site(self) -> Site:
        """Return the site's settings, or Slurm's defaults while they cannot be asked for."""
        if self._site is None and self._clock() >= self._site_due:
            self._site = self._read()
            if self._site is None:
                self._site_due = self._clock() + self._interval
        return self._site or Site()

    @property
    def asked(self) -> float:
        """Return when Slurm was last asked."""
        return self._answer.time

    def refresh(self, elements: Elements, force: bool = False) -> bool:
        """Ask for these array elements, if it is time to; return whether there are new answers."""
        now = self._clock()
        if not elements or not (force or self._is_due(now)):
            return False
        self._answer = answer = self._ask(elements, now)
        self._note(CONTROLLER, answer.error, now)
        if answer.accounted:
            self._note(ACCOUNTING, answer.accounting_error, now)
        self._schedule(failed=bool(answer.error or answer.accounting_error))
        return True

    @property
    def silence(self) -> str:
        """Return why Slurm's controller could not be asked last; empty if it answered, or was not asked."""
        outage = self._services.get(CONTROLLER)
        return "" if outage is None else outage.reason

    def services(self) -> Mapping[str, Outage | None]:
        """Return which services answer; asks the controller where no query of jobs does that.

        That is so at the beginning, and while it does not answer and no job is out.
        """
        outage = self._services.get(CONTROLLER)
        now, error = self._clock(), ""
        if CONTROLLER not in self._services or (outage is not None and self._is_due(now)):
            try:
                commands.call(["scontrol", "show", "config"], self._patience)
            except CommandFailed as failure:
                error = str(failure)
            self._note(CONTROLLER, error, now)
            if error:
                self._schedule(failed=True)
        return dict(self._services)

    def _note(self, service: str, error: str, now: float) -> None:
        before = self._services.get(service)
        since = now if before is None else before.since
        first = error.partition("\n")[0]
        self._services[service] = Outage(since, first, service == CONTROLLER) if error else None

    def _is_due(self, now: float) -> bool:
        """Return whether to ask now: that is due, or the clock was set back since Slurm was asked."""
        return now >= self.due or now < self._scheduled

    def _schedule(self, failed: bool) -> None:
        self._scheduled = self._clock()
        self._failures = min(self._failures + 1, _MOST_DOUBLINGS) if failed else 0
        pause = min(self._interval * 2**self._failures, max(_LONGEST_PAUSE, self._interval))
        self.due = self._scheduled + pause * (1 + self._rng.uniform(-_JITTER, _JITTER))

    def status(self, elements: Elements) -> JobStatus | None:
        """Return what Slurm last reported of the jobs of one attempt.

        None before Slurm was asked for them, and for an attempt that has no job.
        """
        answer = self._answer
        if not elements:
            return None
        if answer.error:
            return JobStatus(error=answer.error)
        now = self._clock()  # before a submission only if it was set back since
        if any(array.name not in answer.queue or answer.time < array.last <= now for array, _ in elements):
            return None
        queued = [job for element in elements for job in _element(answer.queue, element)]
        accounted = [job for element in elements for job in _element(answer.accounting, element)]
        return _combine(queued, accounted, answer.accounting_error)

    def _ask(self, elements: Elements, now: float) -> _Answer:
        arrays = {array.name: array for array, _ in elements}
        try:
            queue = _by_name(arrays, commands.queue(list(arrays), self._patience))
        except CommandFailed as error:
            return _Answer(time=now, error=str(error))
        inactive = (element for element in elements if not _active(_element(queue, element)))
        missing = {array.name: array for array, _ in inactive}
        if self._services.get(ACCOUNTING) is not None:  # else nobody learns that it is back
            missing = arrays
        if not (missing and self.site.accounting):
            return _Answer(time=now, queue=queue)
        since = min(array.first for array in missing.values()) - _CLOCK_DIFFERENCE
        try:
            rows = commands.accounting(list(missing), since, self._patience)
        except CommandFailed as error:
            return _Answer(time=now, queue=queue, accounting_error=str(error), accounted=True)
        return _Answer(time=now, queue=queue, accounting=_by_name(missing, rows), accounted=True)


def _by_name(names: Iterable[str], jobs: Iterable[Job]) -> _Jobs:
    found: dict[str, dict[int | None, list[Job]]] = {name: {} for name in names}
    for job in jobs:
        found[job.name].setdefault(job.index, []).append(job)
    return found


def _element(jobs: _Jobs, element: Element) -> list[Job]:
    """Return the rows of one array element; a row without an index stands for those not listed."""
    array, index = element
    rows = jobs.get(array.name, {})
    own = rows.get(index, ())
    listed = {job.number for job in own}
    return [*own, *(job for job in rows.get(None, ()) if job.number not in listed)]


def _active(jobs: Iterable[Job]) -> list[Job]:
    return [job for job in jobs if job.meaning is not AttemptState.LOST]


def _combine(queued: Sequence[Job], accounted: Sequence[Job], accounting_error: str) -> JobStatus:
    """Merge the rows of one attempt: the queue knows what is active, accounting what was charged."""
    active = sorted(_active(queued), key=lambda job: (job.meaning is not AttemptState.RUNNING, job.number))
    alive = {job.number for job in active}
    over_in_accounting = {job.number for job in accounted if job.meaning is AttemptState.LOST}
    charged = [job for job in accounted if job.elapsed is not None]
    ended = [
        job
        for job in accounted
        if job.number in over_in_accounting - alive and job.meaning is AttemptState.LOST
    ]
    only_in_queue = [job for job in queued if job.number not in over_in_accounting | alive]
    ended += only_in_queue
    over = over_in_accounting | {job.number for job in only_in_queue}
    # Either source may call a job active: with duplicates one job may have ended while the other runs.
    still = [*active, *(job for job in accounted if job.number not in over | alive)]
    running = any(job.meaning not in (AttemptState.QUEUED, AttemptState.LOST) for job in still)
    known = [job for job in [*charged, *only_in_queue] if job.elapsed is not None]
    over_for_good = bool(ended) and not running
    return JobStatus(
        active=tuple(active),
        ended=tuple(ended),
        elapsed=sum(job.elapsed or 0.0 for job in known) if over_for_good and known else None,
        accounted=bool(accounted),
        accounting_active=bool({job.number for job in accounted} - over),
        never_started=bool(accounted)
        and all(job.meaning is AttemptState.QUEUED and job.elapsed is None for job in accounted),
        cpus=_cpus(known if over_for_good else [], [*queued, *accounted]),
        accounting_error=accounting_error,
    )


def _cpus(charged: Sequence[Job], jobs: Sequence[Job]) -> float:
    """Return the CPUs of jobs on average over what they are charged, or the most while that is not known.

    A job that is started again may get nodes of another size.
    """
    seconds = [(job.elapsed, job.cpus) for job in charged if job.elapsed and job.cpus]
    if not seconds:
        return max((job.cpus for job in jobs), default=0)
    return sum(elapsed * cpus for elapsed, cpus in seconds) / sum(elapsed for elapsed, _ in seconds)
