"""The last answers of ``squeue`` and ``sacct``: one call each per interval, whatever the number of jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from orchestrator.executors.slurm import commands
from orchestrator.executors.slurm.arrays import Batch
from orchestrator.executors.slurm.commands import CommandFailed, Job, Site
from orchestrator.types import AttemptState

Places = Sequence[tuple[Batch, int]]
_Jobs = Mapping[str, Mapping[int | None, Sequence[Job]]]  # by name and array index

_JITTER = 0.1  # of the interval, so that many controllers do not ask at once
_LONGEST_PAUSE = 600.0  # seconds between queries while Slurm does not answer
_CLOCK_DIFFERENCE = 3600.0  # seconds that sacct's start time lies before the submission


@dataclass(frozen=True, slots=True)
class Sight:
    """What Slurm says of one attempt.

    Attributes
    ----------
    active
        Its jobs that are queued or running: the one to keep first, then duplicates.
    ended
        Its jobs that have ended, as far as that is known.
    elapsed
        Seconds charged for all that ended; None where that is not known, or more may come.
    booked
        Whether accounting says so; the queue forgets what a job did before it was requeued.
    booked_active
        Whether accounting calls one of its jobs active. Alone that proves nothing: a job whose end
        got lost remains so for ever.
    cpus
        Allocated to its jobs; 0 where that is not known.
    error
        Why Slurm could not be asked; nothing else is known then.
    ledger_error
        Why accounting could not be asked; what ``squeue`` does not show may still be there.
    """

    active: tuple[Job, ...] = ()
    ended: tuple[Job, ...] = ()
    elapsed: float | None = None
    booked: bool = False
    booked_active: bool = False
    cpus: int = 0
    error: str = ""
    ledger_error: str = ""


@dataclass(frozen=True, slots=True)
class _Answer:
    time: float = float("-inf")
    queue: _Jobs = field(default_factory=dict)
    ledger: _Jobs = field(default_factory=dict)
    error: str = ""
    ledger_error: str = ""


class Watch:
    """Ask Slurm when that is due, and remember what it said.

    Parameters
    ----------
    interval
        Seconds between queries; longer, up to ten minutes, while they fail.
    patience
        Time limit of each command in seconds.
    read
        How to learn the site's settings.
    """

    def __init__(
        self,
        interval: float,
        patience: float,
        read: Callable[[], Site],
        clock: Callable[[], float],
        rng: np.random.Generator,
    ) -> None:
        self.due = float("-inf")
        self._interval, self._patience = interval, patience
        self._read, self._clock, self._rng = read, clock, rng
        self._site: Site | None = None
        self._site_due = float("-inf")
        self._failures = 0
        self._answer = _Answer()

    @property
    def site(self) -> Site:
        """Return the site's settings, or Slurm's defaults while they cannot be asked for."""
        if self._site is None and self._clock() >= self._site_due:
            try:
                self._site = self._read()
            except CommandFailed:
                self._site_due = self._clock() + self._interval
        return self._site or Site()

    @property
    def asked(self) -> float:
        """Return when Slurm was last asked."""
        return self._answer.time

    def refresh(self, places: Places, force: bool = False) -> bool:
        """Ask for these array elements, if it is time to; return whether there are new answers."""
        now = self._clock()
        if not places or (now < self.due and not force):
            return False
        self._answer = self._ask(places, now)
        self._failures = self._failures + 1 if self._answer.error or self._answer.ledger_error else 0
        pause = min(self._interval * 2**self._failures, max(_LONGEST_PAUSE, self._interval))
        self.due = self._clock() + pause * (1 + self._rng.uniform(-_JITTER, _JITTER))
        return True

    def sight(self, places: Places) -> Sight | None:
        """Return what the last answers say of the jobs of one attempt; None before there are any."""
        answer = self._answer
        if answer.error:
            return Sight(error=answer.error)
        if any(batch.name not in answer.queue or answer.time < batch.last for batch, _ in places):
            return None
        queued = [job for place in places for job in _element(answer.queue, place)]
        booked = [job for place in places for job in _element(answer.ledger, place)]
        return _combine(queued, booked, answer.ledger_error)

    def _ask(self, places: Places, now: float) -> _Answer:
        batches = {batch.name: batch for batch, _ in places}
        try:
            queue = _by_name(batches, commands.queue(list(batches), self._patience))
        except CommandFailed as error:
            return _Answer(now, error=str(error))
        missing = {place[0].name: place[0] for place in places if not _active(_element(queue, place))}
        if not (missing and self.site.accounting):
            return _Answer(now, queue)
        since = min(batch.first for batch in missing.values()) - _CLOCK_DIFFERENCE
        try:
            booked = commands.ledger(list(missing), since, self._patience)
        except CommandFailed as error:
            return _Answer(now, queue, ledger_error=str(error))
        return _Answer(now, queue, _by_name(missing, booked))


def _by_name(names: Iterable[str], jobs: Iterable[Job]) -> _Jobs:
    found: dict[str, dict[int | None, list[Job]]] = {name: {} for name in names}
    for job in jobs:
        found[job.name].setdefault(job.index, []).append(job)
    return found


def _element(jobs: _Jobs, place: tuple[Batch, int]) -> list[Job]:
    """Return the rows of one array element; a row without an index stands for those not listed."""
    batch, index = place
    rows = jobs.get(batch.name, {})
    own = rows.get(index, ())
    listed = {job.number for job in own}
    return [*own, *(job for job in rows.get(None, ()) if job.number not in listed)]


def _active(jobs: Iterable[Job]) -> list[Job]:
    return [job for job in jobs if job.meaning is not AttemptState.LOST]


def _combine(queued: Sequence[Job], booked: Sequence[Job], ledger_error: str) -> Sight:
    """Merge the rows of one attempt: the queue knows what is active, the ledger what was charged."""
    active = sorted(_active(queued), key=lambda job: (job.meaning is not AttemptState.RUNNING, job.number))
    alive = {job.number for job in active}
    in_ledger = {job.number for job in booked if job.meaning is AttemptState.LOST}
    charged = [job for job in booked if job.elapsed is not None]
    ended = [job for job in booked if job.number in in_ledger - alive and job.meaning is AttemptState.LOST]
    late = [job for job in queued if job.number not in in_ledger | alive]
    ended += late
    over = in_ledger | {job.number for job in late}
    # Whichever of the two says so: with duplicates one job may have ended while the other runs.
    still = [*active, *(job for job in booked if job.number not in over | alive)]
    running = any(job.meaning not in (AttemptState.QUEUED, AttemptState.LOST) for job in still)
    known = [job.elapsed for job in [*charged, *late] if job.elapsed is not None]
    return Sight(
        tuple(active),
        tuple(ended),
        sum(known) if ended and not running else None,
        booked=bool(booked),
        booked_active=bool({job.number for job in booked} - over),
        cpus=max((job.cpus for job in [*queued, *booked]), default=0),
        ledger_error=ledger_error,
    )
