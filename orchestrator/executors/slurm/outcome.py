"""Attempts that share a job: what each is charged of what Slurm books for all of them. Pure.

Each is charged its own span, from its start to its end. What is left of the job (its start-up, its end, and
what was going on when it ended) is charged to the attempt that had not finished, or else to the first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator.executors.attempt.directory import expand_nodes, heartbeat, owner, readable_record
from orchestrator.executors.attempt.worker import OVERRUN, OWNER
from orchestrator.executors.slurm import commands
from orchestrator.executors.slurm.arrays import Batches
from orchestrator.executors.slurm.commands import Job
from orchestrator.executors.slurm.options import minutes
from orchestrator.executors.slurm.poller import Sight
from orchestrator.executors.slurm.settings import SlurmSettings
from orchestrator.executors.slurm.submission import lost
from orchestrator.types import AttemptRecord, AttemptRequest, AttemptState, Observation


@dataclass(frozen=True, slots=True)
class Member:
    """One attempt of a job: its record, and who claimed it (only looked at where there is no record)."""

    record: AttemptRecord | None = None
    owner: str | None = None

    @property
    def begun(self) -> bool:
        """Whether its own process claimed it."""
        return self.record is not None or self.owner == OWNER

    @property
    def finished(self) -> float | None:
        """Return when it ended, by its own word."""
        return self.record.finished if self.record is not None else None


@dataclass(frozen=True, slots=True)
class Crew:
    """All attempts of one job, in the order of execution; this is about the one at ``position``."""

    members: tuple[Member, ...]
    position: int

    @property
    def own(self) -> Member:
        """Return the attempt that this is about."""
        return self.members[self.position]

    @property
    def begun(self) -> bool:
        """Whether any of them began."""
        return any(member.begun for member in self.members)

    @property
    def last(self) -> bool:
        """Whether no later one began: what ended the job, ended this one."""
        return not any(member.begun for member in self.members[self.position + 1 :])

    @property
    def goes_on(self) -> bool:
        """Whether a later one is still to finish, as far as their files tell."""
        behind = self.members[self.position + 1 :]
        return any(member.finished is None and (member.begun or member.owner is None) for member in behind)

    def share(self, elapsed: float) -> float:
        """Return the seconds to charge this one of those of the job."""
        return divide(elapsed, self.members)[self.position]

    @property
    def told(self) -> float | None:
        """Return the seconds of the job as the records tell them; None if one that began has no end."""
        records = [member.record for member in self.members if member.record is not None]
        ends = [record.finished for record in records if record.finished is not None]
        if not ends or len(ends) < sum(member.begun for member in self.members):
            return None
        begun = [item.started if item.allocated is None else item.allocated for item in records]
        return float(math.ceil(max(ends)) - math.floor(min(begun)))


def divide(elapsed: float, members: Sequence[Member]) -> list[float]:
    """Divide the seconds of a job among its attempts; the parts add up to it, and none is negative.

    Those that never began get nothing, unless none did: then the first one stands for all.
    """
    spans = [_span(members, position) for position in range(len(members))]
    known = sum(span for span in spans if span is not None)
    if known > elapsed:  # one that was taken for dead went on
        return [(span or 0.0) * elapsed / known for span in spans]
    begun = [position for position, member in enumerate(members) if member.begun] or [0]
    heir = next((position for position in reversed(begun) if spans[position] is None), begun[0])
    return [(span or 0.0) + (elapsed - known) * (i == heir) for i, span in enumerate(spans)]


def _span(members: Sequence[Member], position: int) -> float | None:
    """Return the seconds of one attempt; None if nobody knows when it began or ended."""
    record = members[position].record
    if not members[position].begun:
        return 0.0
    if record is None:
        return None
    if record.finished is not None:
        return record.finished - record.started
    later = [item.record.started for item in members[position + 1 :] if item.record is not None]
    return max(0.0, later[0] - record.started) if later else None


#
# # FOLDED orchestrator.executors.slurm.outcome: What is said of an attempt, from all that is known of it: a pure function.


SETTLED = {AttemptState.FINISHED, AttemptState.LOST, AttemptState.ABSENT}


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of one attempt at one instant.

    Attributes
    ----------
    request
        The attempt.
    record
        Its ``attempt.json``; ``trouble`` says why that cannot be read.
    owner
        Who claimed it (`OWNER`: it did so itself); None while nobody did. Only looked at where it has no job.
    submitted
        Seconds from the last time that it was handed to ``sbatch`` to Slurm's last answer (or to now, before
        there is one); None if it never was.
    handle
        What ``sbatch`` or a query said of its job's id; empty while that is unknown.
    sight
        What Slurm says of its jobs; None before it was asked.
    finished_for, gone_for
        Seconds since its record was seen finished, or since it had no active job and gave no sign of life (or
        since then alone, where Slurm never had it).
    accounting
        Whether there is accounting, which will say what is charged if it does not now.
    never_charged
        Whether, having no job that Slurm knows of, it certainly had none that was charged.
    minutes
        That its job may take.
    crew
        The attempts that share its job; None where it has its own.
    """

    request: AttemptRequest
    record: AttemptRecord | None = None
    trouble: str = ""
    owner: str | None = None
    submitted: float | None = None
    handle: str = ""
    sight: Sight | None = None
    finished_for: float = 0.0
    gone_for: float = 0.0
    accounting: bool = True
    never_charged: bool = False
    minutes: int = 0
    crew: Crew | None = None


def judge(evidence: Evidence, settings: SlurmSettings, finding: bool) -> Observation:
    """Return what to say of an attempt.

    Parameters
    ----------
    evidence
        What is known. Where nobody owns the attempt, the caller must claim it before it passes on LOST, or
        that it is barred.
    settings
        How long to wait for what may still appear.
    finding
        Whether its submission was never confirmed, so that it may not have happened.
    """
    if evidence.crew is not None:
        return _of_crew(evidence, evidence.crew, settings, finding)
    return _judge(evidence, settings, finding)


def _judge(evidence: Evidence, settings: SlurmSettings, finding: bool) -> Observation:
    request, sight = evidence.request, evidence.sight
    if evidence.record is not None and evidence.record.finished is not None:
        return _finished(evidence, evidence.record, evidence.record.finished, settings)
    if evidence.submitted is None:
        return _never_submitted(evidence, settings)
    if sight is None:
        state = AttemptState.QUEUED if evidence.handle else AttemptState.UNKNOWN
        return Observation(request.attempt, state, evidence.handle)
    if sight.error:
        return _unknown(evidence, sight.error)
    if sight.active:
        job = sight.active[0]
        if job.meaning is AttemptState.UNKNOWN:
            return _unknown(evidence, f"Slurm calls its job {job.state}")
        reason = job.reason if job.meaning is AttemptState.QUEUED else ""
        return Observation(request.attempt, job.meaning, evidence.handle, evidence.record, reason=reason)
    return _gone(evidence, sight, settings, finding)


def _finished(
    evidence: Evidence, record: AttemptRecord, finished: float, settings: SlurmSettings
) -> Observation:
    """Report a finished attempt once its charge is known, or when that takes too long."""
    request, sight = evidence.request, evidence.sight
    if evidence.submitted is None:
        return Observation(request.attempt, AttemptState.FINISHED, record=record, reason=_fault(record, ""))
    jobs: tuple[Job, ...] = (*sight.ended, *sight.active) if sight is not None else ()
    elapsed = sight.elapsed if sight is not None else None
    # Where nobody keeps accounts, nothing better than the record will ever come.
    estimated = elapsed is None and (evidence.accounting or bool(sight is not None and sight.active))
    if elapsed is None:
        if evidence.finished_for < settings.accounting_grace:
            return Observation(request.attempt, AttemptState.RUNNING, evidence.handle, record)
        elapsed = _charge(record, finished, jobs)
    elif sight is not None and not sight.booked and elapsed + 1 < finished - record.started:
        # Without accounting the time of a job before its requeue is nowhere but in the record.
        elapsed, estimated = elapsed + _charge(record, finished, ()), evidence.accounting
    elif (
        evidence.accounting
        and evidence.finished_for < settings.accounting_grace
        and _contradicted(elapsed, record, finished)
    ):
        # Right after a restart of Slurm's daemons its books may say less than will stand there.
        elapsed, estimated = _charge(record, finished, jobs), True
    return Observation(
        request.attempt,
        AttemptState.FINISHED,
        evidence.handle,
        record,
        elapsed,
        _fault(record, jobs[0].state if jobs else ""),
        estimated=estimated,
        blamed=_blamed(sight),
        out_of_memory=_out_of_memory(sight),
        cores=(sight.cpus if sight is not None else 0) or None,
    )


def _contradicted(elapsed: float, record: AttemptRecord, finished: float) -> bool:
    """Tell whether a job took fewer of the clock's whole seconds than its attempt alone."""
    return elapsed < math.floor(finished) - math.floor(record.started)


def _charge(record: AttemptRecord, finished: float, jobs: Sequence[Job]) -> float:
    """Return what Slurm will have charged, in its whole seconds: a job begins before its attempt does."""
    told = [] if record.allocated is None else [record.allocated]
    begun = min([record.started, *told, *(job.started for job in jobs if job.started is not None)])
    return float(math.ceil(finished) - math.floor(begun))


def _fault(record: AttemptRecord, state: str) -> str:
    """Say who ended an attempt that did not end by itself or at its limit."""
    # One that was told to end may print what it has, and exit with 0: that is no measurement.
    if record.timed_out or (record.exit_code == 0 and not record.cancelled):
        return ""
    if record.cancelled or commands.from_outside(state):
        return f"ended from outside (Slurm: {state or 'not asked'})"
    return ""


def _never_submitted(evidence: Evidence, settings: SlurmSettings) -> Observation:
    request = evidence.request
    if evidence.owner is None:
        return Observation(request.attempt, AttemptState.ABSENT)
    if evidence.owner != OWNER:
        return lost(request, f"barred before it began, by {evidence.owner}", 0.0)
    what = "begun by another executor, and not finished"
    if evidence.gone_for < settings.submission_grace:
        return _unknown(evidence, f"{what}; it may be alive")
    # Slurm will never say what it cost: the most that it can have taken is final.
    return lost(request, f"{what}; no sign of life", request.limit + OVERRUN)


def _gone(evidence: Evidence, sight: Sight, settings: SlurmSettings, finding: bool) -> Observation:
    """Judge an attempt that is submitted, not finished, and has no active job."""
    if not sight.ended and sight.ledger_error:
        return _unknown(evidence, sight.ledger_error)
    request, elapsed = evidence.request, sight.elapsed
    word, patience = "Slurm knows nothing of its job any more", settings.submission_grace
    if sight.ended:
        word, patience = f"Slurm: {sight.ended[0].state}", settings.file_grace
    elif sight.booked_active:
        # Only squeue dropped it: it may well be running, but not for longer than it was allowed to.
        word = "squeue does not show its job, which accounting calls active"
        patience += 60.0 * (evidence.minutes or minutes(request.limit))
    elif evidence.crew is not None and evidence.crew.begun:
        pass  # there was a job, which was charged
    elif finding and evidence.owner is None:
        # sbatch may still have been on its way when Slurm was asked.
        if evidence.submitted is None or evidence.submitted < settings.submission_grace:
            return _unknown(evidence, "Slurm does not know it (yet)")
        return Observation(request.attempt, AttemptState.ABSENT)
    elif evidence.owner != OWNER and evidence.never_charged:
        elapsed = 0.0
    barred = evidence.owner not in (None, OWNER)
    if barred and not sight.booked_active:
        return lost(request, f"barred before it began, by {evidence.owner}", elapsed, evidence.handle)
    if evidence.gone_for < patience:
        return _unknown(evidence, f"{word}; its files may still appear")
    what = "it never began" if evidence.owner != OWNER else evidence.trouble or "it began, and did not finish"
    observation = lost(request, f"{word}; {what}", elapsed, evidence.handle)
    return replace(
        observation,
        blamed=_blamed(sight),
        out_of_memory=_out_of_memory(sight),
        cores=(sight.cpus if sight is not None else 0) or None,
    )


# --- attempts that share a job --------------------------------------------------------------------------


def _of_crew(evidence: Evidence, crew: Crew, settings: SlurmSettings, finding: bool) -> Observation:
    """Judge an attempt by its own share of the job; one that never began did not fail."""
    sight = evidence.sight
    if sight is not None and sight.elapsed is not None:
        # The queue, while accounting does not tell, forgets what a job did before it was requeued.
        more = not sight.booked and crew.told is not None and crew.told > sight.elapsed + 1
        seconds = crew.told if more else sight.elapsed
        share = None if seconds is None or (more and evidence.accounting) else crew.share(seconds)
        evidence = replace(evidence, sight=replace(sight, elapsed=share))
    record = evidence.record
    if record is not None and record.finished is not None:
        return _finished_in_turn(evidence, record, crew, settings)
    found = _judge(evidence, settings, finding)
    if crew.own.begun:
        return found
    match found.state:
        case AttemptState.RUNNING:
            return replace(found, state=AttemptState.QUEUED, reason="its job executes others before it")
        case AttemptState.ABSENT:
            return replace(found, elapsed=0.0, barred=True)
        case AttemptState.LOST if crew.begun or crew.position > 0:
            # While nobody knows what the job cost, none of what is reserved for it may be released.
            told = None if evidence.accounting else crew.told
            if found.elapsed is not None or told is not None:
                return Observation(
                    found.attempt, AttemptState.ABSENT, found.handle, None, 0.0, found.reason, barred=True
                )
            if evidence.gone_for < settings.accounting_grace:
                return _unknown(evidence, f"{found.reason}; what its job cost is not known yet")
    return found


def _finished_in_turn(
    evidence: Evidence, record: AttemptRecord, crew: Crew, settings: SlurmSettings
) -> Observation:
    """Report an attempt that finished: at once while others go on, its charge being corrected later.

    One that failed has to wait for the end of the job, where Slurm may say why it did.
    """
    assert record.finished is not None
    sight = evidence.sight
    active = sight is not None and bool(sight.active)
    elapsed, estimated = sight.elapsed if sight is not None else None, False
    if crew.goes_on and evidence.gone_for < settings.file_grace:
        elapsed = None  # whatever Slurm says of the job, there may be more to divide it among
    if elapsed is None:
        clear = record.timed_out or (record.exit_code == 0 and not record.cancelled)
        patience = settings.accounting_grace + (60.0 * evidence.minutes if crew.goes_on and active else 0.0)
        if not (clear and crew.goes_on) and evidence.finished_for < patience:
            return Observation(evidence.request.attempt, AttemptState.RUNNING, evidence.handle, record)
        told = None if evidence.accounting or active or crew.goes_on else crew.told
        estimated = told is None
        elapsed = record.finished - record.started if told is None else crew.share(told)
    jobs: tuple[Job, ...] = (*sight.ended, *sight.active) if sight is not None else ()
    return Observation(
        evidence.request.attempt,
        AttemptState.FINISHED,
        evidence.handle,
        record,
        elapsed,
        _fault(record, jobs[0].state if jobs and crew.last else ""),
        estimated=estimated,
        blamed=_blamed(sight) if crew.last else (),
        out_of_memory=_out_of_memory(sight) and record.exit_code != 0,  # else it was another one
        cores=(sight.cpus if sight is not None else 0) or None,
    )


# --- what Slurm says of them ----------------------------------------------------------------------------


def _out_of_memory(sight: Sight | None) -> bool:
    return sight is not None and any(commands.word(job.state) == "OUT_OF_MEMORY" for job in sight.ended)


def _blamed(sight: Sight | None) -> tuple[str, ...]:
    """Return the node whose failure ended a job; of several nodes nobody says which it was."""
    failed = [job for job in sight.ended if commands.blames_node(job.state)] if sight is not None else []
    names = {name for job in failed if len(found := expand_nodes(job.nodes)) == 1 for name in found}
    return tuple(sorted(names - {"", "None assigned", "(null)"}))


def _unknown(evidence: Evidence, reason: str) -> Observation:
    return Observation(evidence.request.attempt, AttemptState.UNKNOWN, evidence.handle, reason=reason)


class Crews:
    """Those who share a job: read together, as what one is charged depends on the others."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._ended: dict[str, AttemptRecord] = {}  # a final record never changes

    def of(self, request: AttemptRequest, record: AttemptRecord | None) -> Crew | None:
        """Return what the files say of all that share a job with an attempt; None if it has its own."""
        companions = self._batches.companions(request.name)
        if not companions:
            return None
        members = []
        for name, directory in companions:
            found = record if name == request.name else self._ended.get(name) or readable_record(directory)[0]
            if found is not None and found.finished is not None:
                self._ended[name] = found
            members.append(Member(found, owner(directory) if found is None else None))
        return Crew(tuple(members), [name for name, _ in companions].index(request.name))

    def heartbeats(self, request: AttemptRequest) -> tuple[int | None, ...]:
        """Return what changes every few seconds while an attempt lives, or one that shares its job."""
        companions = self._batches.companions(request.name) or [(request.name, request.directory)]
        return tuple(heartbeat(directory) for _, directory in companions)

    def forget(self) -> None:
        """Forget what was read, when nothing is in flight."""
        self._ended.clear()
