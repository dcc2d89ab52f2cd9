"""What to report of an attempt, from all that is known of it: pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator.executors.attempt.record import SUSPENDED, expand_nodes, output_hidden
from orchestrator.executors.attempt.worker import HEARTBEAT, OVERRUN, OWNER
from orchestrator.executors.slurm import states
from orchestrator.executors.slurm.commands import Job
from orchestrator.executors.slurm.options import SlurmSettings
from orchestrator.executors.slurm.poller import JobStatus
from orchestrator.executors.slurm.shared_jobs import SharedJob
from orchestrator.types import AttemptRecord, AttemptRequest, AttemptState, Observation

HOPELESS = "Slurm would never start it"
"""Who claimed an attempt whose job fits no limit of Slurm, in words."""

MOVED = "the campaign directory was moved before it began"
"""Who claimed an attempt whose job looks for its files where they were, in words."""

_MISSED = 6  # heartbeats after which an attempt is not taken to live

SETTLED = {AttemptState.FINISHED, AttemptState.LOST, AttemptState.ABSENT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that is known of one attempt at one instant."""

    request: AttemptRequest
    settings: SlurmSettings  # how long to wait for what may still appear, among others
    unconfirmed: bool = False  # whether its submission was never confirmed, so that it may not have happened
    record: AttemptRecord | None = None  # its ``attempt.json``; ``record_error`` says why that cannot be read
    record_error: str = ""
    # Who claimed it (`OWNER`: its own process); None while it is unclaimed. Only read where the attempt has
    # no active job.
    owner: str | None = None
    # Seconds from the last time that it was handed to ``sbatch`` to Slurm's last answer (or to now, before
    # there is one); None if it never was.
    submitted: float | None = None
    job_id: str = ""  # the id of its job, as ``sbatch`` or a query reported it; empty while that is unknown
    status: JobStatus | None = None  # what Slurm reports of its jobs; None before it was asked
    # finished_for, gone_for: seconds since its record was seen finished, or since it was first seen without
    # an active job and without a new sign of life. For an attempt that Slurm never had, only the sign of life
    # counts.
    finished_for: float = 0.0
    gone_for: float = 0.0
    # Whether there is accounting, which will report the charge later if it does not now.
    accounting: bool = True
    # Whether, having no job that Slurm knows of, it certainly had none that was charged.
    never_charged: bool = False
    minutes: int = 0  # time limit of its job
    # The job, if it shares one with other attempts; None where it has its own.
    shared: SharedJob | None = None
    output_seen: bool = True  # whether all that a finished attempt printed is visible here
    deleted: bool = False  # whether it was submitted, and its directory is not there any more
    astray: bool = False  # whether its job looks for its files where the campaign directory was before

    @property
    def forgotten(self) -> bool:
        """Return whether Slurm answers, and has denied the job, or its end, for so long that it is lost.

        Its charge will never be confirmed then: what the records say is final where they are complete.
        """
        status = self.status
        if status is None or status.error or status.accounting_error or status.active or status.ended:
            return False
        return self.gone_for >= self.settings.forgotten_grace

    @property
    def output_awaited(self) -> bool:
        """Return whether what the attempt printed may still become visible here."""
        return not self.output_seen and self.finished_for < self.settings.file_grace

    @property
    def shared_began(self) -> bool:
        """Return whether the attempt is one of several in a job, which began and was charged."""
        return self.shared is not None and self.shared.begun


def classify(evidence: Evidence) -> Observation:
    """Return what to report of an attempt.

    Where it is unclaimed, the caller must claim it before it reports LOST, or that the attempt is revoked.

    Of a job that several share, an attempt is classified by its own share; one that never began did not fail.
    """
    shared = evidence.shared
    if shared is not None:
        evidence = _with_own_share(evidence, shared)
    record = evidence.record
    if record is not None and record.finished is not None:
        return _finished(evidence, record, record.finished)
    found = _unfinished(evidence)
    return found if shared is None or shared.own.begun else _not_begun(evidence, found, shared)


def lost(request: AttemptRequest, reason: str, elapsed: float | None, job_id: str = "") -> Observation:
    """Report an attempt as lost, ``elapsed`` seconds being charged for it (None: not known)."""
    refused = HOPELESS in reason
    return Observation(
        request.attempt, AttemptState.LOST, job_id, elapsed=elapsed, reason=reason, refused=refused
    )


def rejected(request: AttemptRequest, reason: str) -> Observation:
    """Report an attempt as refused: it cost nothing."""
    return replace(lost(request, f"rejected: {reason}", 0.0), refused=True)


def _unfinished(evidence: Evidence) -> Observation:
    """Classify an attempt that has not finished, as if it had its job alone."""
    request, status = evidence.request, evidence.status
    if evidence.submitted is None:
        return _never_submitted(evidence)
    if status is None:
        state = AttemptState.QUEUED if evidence.job_id else AttemptState.UNKNOWN
        return Observation(request.attempt, state, evidence.job_id)
    if status.error:
        return _unknown(evidence, status.error)
    if status.active:
        job = status.active[0]
        if job.meaning is AttemptState.UNKNOWN:
            return _unknown(evidence, f"Slurm calls its job {job.state}")
        frozen = states.word(job.state) if states.stands_still(job.state) else ""
        reason = job.reason if job.meaning is AttemptState.QUEUED else frozen
        return Observation(
            request.attempt, job.meaning, evidence.job_id, record=evidence.record, reason=reason
        )
    return _gone(evidence, status)


# --- finished -------------------------------------------------------------------------------------------


def _finished(evidence: Evidence, record: AttemptRecord, finished: float) -> Observation:
    """Report a finished attempt once its charge is known, or when that takes too long.

    Of a shared job, it is reported at once while others continue, and its charge is corrected later. One that
    failed has to wait for the end of the job, when Slurm may report the reason.
    """
    attempt, status, shared = evidence.request.attempt, evidence.status, evidence.shared
    if evidence.submitted is None and not evidence.output_awaited:
        reason = _fault(evidence, record, "")
        return Observation(attempt, AttemptState.FINISHED, record=record, reason=reason)
    charge = (
        _charge(evidence, record, finished)
        if shared is None
        else _charge_in_shared(evidence, record, finished, shared)
    )
    if charge is None or evidence.output_awaited:  # more about it may become known
        return Observation(attempt, AttemptState.RUNNING, evidence.job_id, record=record)
    jobs = _jobs(status)
    ended_it = shared is None or shared.last  # what ended the job
    return Observation(
        attempt,
        AttemptState.FINISHED,
        evidence.job_id,
        record=record,
        elapsed=charge.seconds,
        reason=_fault(evidence, record, jobs[0].state if jobs and ended_it else ""),
        estimated=charge.estimated,
        blamed=_failed_nodes(status) if ended_it else (),
        # With exit code 0 it was another attempt of the job.
        out_of_memory=_out_of_memory(status) and (shared is None or record.exit_code != 0),
        cores=_cores(evidence),
    )


@dataclass(frozen=True, slots=True)
class _Charge:
    """For how many seconds an attempt is charged, and whether a better figure may follow."""

    seconds: float
    estimated: bool


def _charge(evidence: Evidence, record: AttemptRecord, finished: float) -> _Charge | None:
    """Return the charge of an attempt with a job of its own; None while Slurm may still report it."""
    status, jobs = evidence.status, _jobs(evidence.status)
    reported = status.elapsed if status is not None else None
    recent = evidence.finished_for < evidence.settings.accounting_grace
    if reported is None:
        # Without accounting, or of a lost job, nothing better than the record will ever come.
        final = not evidence.accounting or evidence.forgotten
        active = status is not None and bool(status.active)
        return None if recent else _Charge(_recorded(record, finished, jobs), not final or active)
    if status is not None and not status.accounted and reported + 1 < finished - record.started:
        # Without accounting only the record has the time of a job before its requeue.
        return _Charge(reported + _recorded(record, finished, ()), evidence.accounting)
    if evidence.accounting and recent and _contradicted(reported, record, finished, status):
        # Right after a restart of Slurm's daemons, accounting may report less than it will later, and
        # slurmctld may take its own start for the end of a job that ended before.
        return _Charge(max(reported, _recorded(record, finished, jobs)), True)
    return _Charge(reported, False)


def _contradicted(elapsed: float, record: AttemptRecord, finished: float, status: JobStatus | None) -> bool:
    """Return whether a job took fewer of the clock's whole seconds than its attempt alone, or too many.

    That a job took longer than its attempt is believed where accounting says so, but not the queue alone.
    """
    only_queued = status is None or not status.accounted
    most = _recorded(record, finished, _jobs(status)) if only_queued else math.inf
    return not math.floor(finished) - math.floor(record.started) <= elapsed <= most


def _recorded(record: AttemptRecord, finished: float, jobs: Sequence[Job]) -> float:
    """Return what Slurm will have charged, in its whole seconds: a job begins before its attempt does."""
    allocated = [] if record.allocated is None else [record.allocated]
    begun = min([record.started, *allocated, *(job.started for job in jobs if job.started is not None)])
    return float(math.ceil(finished) - math.floor(begun))


def _fault(evidence: Evidence, record: AttemptRecord, state: str) -> str:
    """Return what ended an attempt that did not end by itself or at its limit, or hides what it printed."""
    # A program that received a signal may print its results and exit with 0: that is no measurement.
    if not evidence.output_seen:
        return output_hidden(record)
    if record.timed_out or (record.exit_code == 0 and not record.cancelled):
        return ""
    if record.suspended and not states.from_outside(state):
        return SUSPENDED
    if record.cancelled or states.from_outside(state):
        return f"ended from outside (Slurm: {state or 'not asked'})"
    return ""


# --- not finished, and without an active job ------------------------------------------------------------


def _never_submitted(evidence: Evidence) -> Observation:
    request = evidence.request
    if evidence.owner is None:
        return Observation(request.attempt, AttemptState.ABSENT)
    if evidence.owner != OWNER:
        return lost(request, f"revoked before it began, by {evidence.owner}", 0.0)
    what = "begun by another executor, and not finished"
    if evidence.gone_for < evidence.settings.submission_grace:
        return _unknown(evidence, f"{what}; it may be alive")
    # Slurm will never report what it cost: the most that it can have taken is final.
    return lost(request, f"{what}; no sign of life", request.limit + OVERRUN)


def _gone(evidence: Evidence, status: JobStatus) -> Observation:
    """Classify an attempt that is submitted, not finished, and has no active job."""
    if not status.ended and status.accounting_error:
        return _unknown(evidence, status.accounting_error)
    had_job = bool(status.ended) or status.accounting_active or evidence.shared_began
    if evidence.unconfirmed and evidence.owner is None and not had_job:
        return _perhaps_on_its_way(evidence)
    request = evidence.request
    elapsed = 0.0 if _took_nothing(evidence, status) else status.elapsed
    if evidence.astray and evidence.owner != OWNER and elapsed == 0:
        return Observation(
            request.attempt, AttemptState.ABSENT, evidence.job_id, elapsed=0.0, reason=MOVED, revoked=True
        )
    revoked = evidence.owner not in (None, OWNER)
    if revoked and not status.accounting_active:
        return lost(request, f"revoked before it began, by {evidence.owner}", elapsed, evidence.job_id)
    said, patience = _said_of_it(status, evidence.settings)
    if evidence.gone_for < patience and not _had_no_nodes(evidence, status):
        return _unknown(evidence, f"{said}; its files may still appear")
    return replace(
        lost(request, f"{said}; {_left_behind(evidence)}", elapsed, evidence.job_id),
        blamed=_failed_nodes(status),
        out_of_memory=_out_of_memory(status),
        cores=_cores(evidence),
    )


def _perhaps_on_its_way(evidence: Evidence) -> Observation:
    """Classify an attempt without a sign of a job: sbatch may have been on its way when Slurm was asked."""
    waited = evidence.submitted
    if waited is not None and waited < 0:  # the clock was set back since
        waited = evidence.gone_for
    if waited is None or waited < evidence.settings.submission_grace:
        return _unknown(evidence, "Slurm does not know it (yet)")
    return Observation(evidence.request.attempt, AttemptState.ABSENT)


def _took_nothing(evidence: Evidence, status: JobStatus) -> bool:
    """Return whether the attempt certainly never began, although Slurm does not say that its job ended."""
    if status.ended or evidence.owner == OWNER or evidence.shared_began or evidence.deleted:
        return False
    # slurmctld was killed, and forgot a job that was waiting.
    return status.never_started if status.accounting_active else evidence.never_charged


def _had_no_nodes(evidence: Evidence, status: JobStatus) -> bool:
    """Return whether accounting says that an attempt's jobs ended while they waited: no files will appear.

    Should it be wrong, the claim that the caller takes first is taken already.
    """
    unclaimed = evidence.owner is None and evidence.record is None and not evidence.shared_began
    over = bool(status.ended) and status.accounted and not status.accounting_active
    return unclaimed and over and not any(job.nodes or job.elapsed for job in status.ended)


def _said_of_it(status: JobStatus, settings: SlurmSettings) -> tuple[str, float]:
    """Return what Slurm says of a job that is not active, and for how long files may still appear then."""
    if status.ended:
        return f"Slurm: {status.ended[0].state}", settings.file_grace
    if status.accounting_active:
        # Perhaps only squeue dropped it. An attempt that runs gives signs of life.
        patience = settings.submission_grace + settings.file_grace + _MISSED * HEARTBEAT
        return "squeue does not show its job, which accounting calls active", patience
    return "Slurm no longer knows its job", settings.submission_grace


def _left_behind(evidence: Evidence) -> str:
    """Return what the directory of a lost attempt says."""
    if evidence.deleted:
        return f"its directory {evidence.request.directory} was deleted"
    if evidence.owner == OWNER:
        return evidence.record_error or "it began, and did not finish"
    return MOVED if evidence.astray else "it never began"


# --- attempts that share a job --------------------------------------------------------------------------


def _with_own_share(evidence: Evidence, shared: SharedJob) -> Evidence:
    """Replace the seconds of the job by those of the attempt, None while these are not known."""
    status = evidence.status
    if status is None or status.elapsed is None:
        return evidence
    # The queue, while accounting does not answer, forgets what a job did before it was requeued.
    recorded = shared.recorded_seconds
    more = not status.accounted and recorded is not None and recorded > status.elapsed + 1
    seconds = recorded if more else status.elapsed
    share = None if seconds is None or (more and evidence.accounting) else shared.share(seconds)
    return replace(evidence, status=replace(status, elapsed=share))


def _not_begun(evidence: Evidence, alone: Observation, shared: SharedJob) -> Observation:
    """Correct what would be reported of an attempt with a job of its own: its turn has not come."""
    match alone.state:
        case AttemptState.RUNNING:
            reason = alone.reason or "its job executes others before it"
            return replace(alone, state=AttemptState.QUEUED, reason=reason)
        case AttemptState.ABSENT:
            return replace(alone, elapsed=0.0, revoked=True)
        case AttemptState.LOST if not evidence.deleted and (shared.begun or shared.position > 0):
            # While the cost of the job is not known, none of what is reserved for it may be released.
            recent = evidence.gone_for < evidence.settings.accounting_grace
            waited = not (evidence.accounting and recent)
            if alone.elapsed is not None or (waited and shared.recorded_seconds is not None):
                absent = Observation(alone.attempt, AttemptState.ABSENT, alone.handle, reason=alone.reason)
                return replace(absent, elapsed=0.0, revoked=True)
            if recent:
                return _unknown(evidence, f"{alone.reason}; what its job cost is not known yet")
    return alone


def _charge_in_shared(
    evidence: Evidence, record: AttemptRecord, finished: float, shared: SharedJob
) -> _Charge | None:
    """Return the attempt's part of the charge of its job; None while that may be waited for."""
    status, settings = evidence.status, evidence.settings
    active = status is not None and bool(status.active)
    reported = status.elapsed if status is not None else None
    # While others continue there may be more to divide, whatever Slurm reports of the job.
    if reported is not None and not (shared.continues and evidence.gone_for < settings.file_grace):
        return _Charge(reported, False)
    clear = record.timed_out or (record.exit_code == 0 and not record.cancelled)
    patience = settings.accounting_grace
    if shared.continues and active:
        patience += 60.0 * evidence.minutes
    if not (clear and shared.continues) and evidence.finished_for < patience:
        return None
    known = not evidence.accounting or evidence.forgotten
    final = known and not (active or shared.continues)
    recorded = shared.recorded_seconds if final else None
    if recorded is None:
        return _Charge(finished - record.started, True)
    return _Charge(shared.share(recorded), False)


# --- what Slurm reports of them -------------------------------------------------------------------------


def _jobs(status: JobStatus | None) -> tuple[Job, ...]:
    """Return all jobs that Slurm knows, those that have ended first."""
    return () if status is None else (*status.ended, *status.active)


def _out_of_memory(status: JobStatus | None) -> bool:
    return status is not None and any(states.word(job.state) == "OUT_OF_MEMORY" for job in status.ended)


def _failed_nodes(status: JobStatus | None) -> tuple[str, ...]:
    """Return the node whose failure ended a job; Slurm does not say which one of several failed."""
    failed = [job for job in status.ended if states.blames_node(job.state)] if status is not None else []
    names = {name for job in failed if len(found := expand_nodes(job.nodes)) == 1 for name in found}
    return tuple(sorted(names - {"", "None assigned", "(null)"}))


def _cores(evidence: Evidence) -> float | None:
    """Return the cores to charge, by what Slurm allocated; None where only those of the request are known.

    Where the site charges whole nodes, they are not fewer than those of whole nodes.
    """
    allocated = evidence.status.cpus if evidence.status is not None else 0
    if allocated and evidence.settings.bills_nodes:
        return max(allocated, evidence.request.resources.cores)
    return allocated or None


def _unknown(evidence: Evidence, reason: str) -> Observation:
    return Observation(evidence.request.attempt, AttemptState.UNKNOWN, evidence.job_id, reason=reason)
