"""The Slurm executor: attempts as job arrays, submitted through submitit, found again by name.

Only an attempt's own record proves that it finished. Slurm reports what is charged, and that there is no job
left to wait for. While Slurm does not answer, nothing is concluded.

Each attempt that is not settled has one `TrackedAttempt`, which holds what is remembered of it. What is
reported of it is decided by `outcome.classify`, from what the files and Slurm say at that instant.
"""

from __future__ import annotations

import functools
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from orchestrator.errors import ExecutorError, SubmitRejected
from orchestrator.executors.attempt.directory import prepare
from orchestrator.executors.attempt.record import (
    is_deleted,
    output_seen,
    owner,
    readable_record,
    record_version,
)
from orchestrator.executors.attempt.worker import OWNER
from orchestrator.executors.base import QUEUE, ExecutorContext, Outage
from orchestrator.executors.slurm import options
from orchestrator.executors.slurm.arrays import JobArrays
from orchestrator.executors.slurm.commands import CommandFailed, Job, answer, call
from orchestrator.executors.slurm.options import SlurmSettings, job_options
from orchestrator.executors.slurm.outcome import HOPELESS, MOVED, SETTLED, Evidence, classify, rejected
from orchestrator.executors.slurm.poller import Elements, SlurmPoller
from orchestrator.executors.slurm.shared_jobs import SharedJobs
from orchestrator.executors.slurm.site import read_site
from orchestrator.executors.slurm.submission import SubmissionQueue, revoke
from orchestrator.executors.slurm.tracked import Phase, Stopwatch, TrackedAttempt
from orchestrator.types import AttemptRequest, AttemptState, Observation

_READY = 30.0  # seconds for the controller to answer before a campaign begins
# Seconds after its limit within which Slurm ends a job: it looks every 30 s, and may be busy. What follows
# (KillWait) is not charged: a job that is ended has its end at that instant, whenever its processes die.
_SCAN = 35.0
_IDS_PER_CALL = 500
_LATEST = 3600.0  # seconds after which a job of a revoked attempt is not expected to turn up any more
_SHORTEST_WAIT = 0.05  # seconds
# Slurm gives these reasons for a job that fits no limit. It would wait for ever.
_HOPELESS = {
    "AccountNotAllowed",
    "AssocMaxCpuPerJobLimit",
    "AssocMaxNodePerJobLimit",
    "AssocMaxWallDurationPerJobLimit",
    "BadConstraints",
    "InvalidAccount",
    "InvalidQOS",
    "PartitionConfig",
    "PartitionNodeLimit",
    "PartitionTimeLimit",
    "QOSMaxCpuPerJobLimit",
    "QOSMaxNodePerJobLimit",
    "QOSMaxWallDurationPerJobLimit",
    "QOSMinCpuNotSatisfied",
    "QOSNotAllowed",
}
# With these reasons, a job begins when others have ended. With any other it waits for somebody to act: it is
# held or suspended, its partition is down, its nodes are reserved, the allocation is used up.
_ORDINARY = re.compile(
    r"(?:None|Priority|Resources|BeginTime|JobArrayTaskLimit|Cleaning|Prolog|)$"
    r"|(?:.*\b)?(?:Assoc|QOS)(?:Max|Grp)(?!\w*Min)"
)
_NO_NODES = ("ReqNodeNotAvail", "NodeDown")  # likewise, of a job that names its nodes


def build(context: ExecutorContext) -> SlurmExecutor:
    """Build the executor from a campaign.

    Raises
    ------
    CampaignError
        For an option of ``sbatch`` that is not the campaign's to choose.
    ExecutorError
        If there is no Slurm here.
    """
    missing = [name for name in ("sbatch", "squeue", "scancel", "scontrol") if shutil.which(name) is None]
    if missing:
        raise ExecutorError(
            f"no {', '.join(missing)} on PATH: run on a login node of the cluster (perhaps after "
            "'module load slurm'), or choose another executor"
        )
    if re.search(r"[%\\\n]", str(context.directory.absolute())):
        raise ExecutorError(
            f"{context.directory}: Slurm gives a meaning to %, \\ and line breaks in paths; "
            "choose another directory"
        )
    settings = SlurmSettings(
        job=job_options(context.options),
        bills_nodes=context.options["billing"] == "nodes",
        poll_interval=context.options["poll_interval"],
    )
    return SlurmExecutor(context.directory, settings, np.random.default_rng(context.seed))


class SlurmExecutor:
    """See the contract in `orchestrator.executors.base.Executor`.

    Parameters
    ----------
    directory
        The campaign directory.
    settings
        How to use Slurm.
    rng
        Spreads the queries of several controllers.
    clock, sleep
        Of this process; tests have their own.
    """

    name = "slurm"

    def __init__(
        self,
        directory: Path,
        settings: SlurmSettings,
        rng: np.random.Generator,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings = settings
        self._clock, self._sleep = clock, sleep
        self._arrays = JobArrays(directory.absolute())
        self._shared_jobs = SharedJobs(self._arrays)
        ask = functools.partial(answer, seconds=settings.command_timeout)
        read = functools.partial(read_site, ask, settings.job)
        self._poller = SlurmPoller(settings.poll_interval, settings.command_timeout, read, clock, rng)
        self._queue = SubmissionQueue(self._arrays, settings, clock)
        self._tracked: dict[str, TrackedAttempt] = {}  # by name; see `Phase` for how long
        self._standing = Stopwatch()  # how long no job could begin

    # --- the contract ---------------------------------------------------------------------------------

    def now(self) -> float:
        """Return the time."""
        return self._clock()

    def ready(self) -> str | None:
        """Return a message if Slurm's controller does not answer."""
        try:
            call(["scontrol", "show", "config"], _READY)
        except CommandFailed as error:
            return f"Slurm does not answer: {error}"
        return None

    def services(self) -> Mapping[str, Outage | None]:
        """Return whether Slurm's controller and its accounting answer, as far as known, and jobs begin."""
        found = self._poller.services()
        return found if self._poller.silence else {**found, QUEUE: self._standstill()}

    def cluster(self) -> str:
        """Return the name of the cluster; empty while Slurm does not answer."""
        return self._poller.site.cluster

    def _standstill(self) -> Outage | None:
        """Return why none of the jobs begins or goes on, if somebody must act before one does."""
        reasons = [item.waits_for for item in self._tracked.values() if item.phase is Phase.OPEN]
        stands = bool(reasons) and not any(map(_ORDINARY.match, reasons))
        lasts = self._standing.seconds(self._clock(), stands)
        return Outage(self._clock() - lasts, reasons[0], blocking=False) if stands else None

    def reserved_seconds(self, *limits: float) -> float:
        """Return the whole minutes asked for, and what Slurm may take to end a job after them."""
        return 60.0 * (options.minutes(*limits) + self._poller.site.over_time_limit) + _SCAN

    def submit(self, requests: Sequence[AttemptRequest]) -> list[Observation]:
        """Submit attempts, equal ones as arrays; what Slurm does not accept now is submitted later."""
        done: dict[str, Observation] = {}
        for request in requests:
            observation = self._refusal(request)
            if observation is not None:
                done[request.name] = observation
        wanted = [item for item in requests if item.name not in done]
        accepted = self._queue.submit(wanted, self._poller.site, self._poller.silence)
        for request in wanted:
            if accepted[request.name].state not in SETTLED:
                self._track(request)
        self._note_job_ids(accepted)
        done |= accepted
        return [done[request.name] for request in requests]

    def poll(self, attempts: Sequence[AttemptRequest]) -> list[Observation]:
        """Report attempts by their records and the last answers of Slurm."""
        return self._look(attempts, unconfirmed=False)

    def find(self, requests: Sequence[AttemptRequest]) -> list[Observation]:
        """Look up attempts by the names of their job arrays; keep one of several jobs."""
        return self._look(requests, unconfirmed=True)

    def charged(self, attempts: Sequence[AttemptRequest]) -> list[Observation | None]:
        """Report settled attempts with the charge in accounting, once none of their jobs is active."""
        names = {item.name for item in attempts}
        for name, tracked in list(self._tracked.items()):
            if tracked.phase is Phase.CHARGING and name not in names:
                del self._tracked[name]
        for request in attempts:
            self._track(request).await_charge()
        self._poller.refresh(self._elements_to_ask_for())
        return [self._charge(item) for item in attempts]

    def cancel(self, attempts: Sequence[AttemptRequest]) -> None:
        """Revoke attempts that have not begun; cancel the jobs of all."""
        for request in attempts:
            self._queue.remove(request)
            revoke(request, "cancelled before it began")
            self._track(request).cancelled = True
        # By their names: a controller that lost its state gives remembered ids to other jobs.
        self._poller.refresh(self._elements(attempts), force=True)
        self._scancel(job for item in attempts for job in self._active_jobs(item))

    def wait(self, seconds: float) -> None:
        """Return when a record appears or the next query is due, at the latest after ``seconds``."""
        asked = self._poller.due if self._elements_to_ask_for() else float("inf")
        pause = min(asked, self._queue.due) - self._clock()
        remaining = min(seconds, max(pause, _SHORTEST_WAIT))
        step = self._settings.poll_interval / 50
        while remaining > 0:
            before, step = self._clock(), min(step, remaining)
            self._sleep(step)
            polled = (tracked for tracked in self._tracked.values() if tracked.polled)
            if any(record_version(item.request.directory) != item.record_version for item in polled):
                return
            remaining -= max(step, self._clock() - before)  # the clock may be set back meanwhile
            step = min(1.5 * step, self._settings.poll_interval / 5)

    # --- submitting -----------------------------------------------------------------------------------

    def _refusal(self, request: AttemptRequest) -> Observation | None:
        """Prepare an attempt; return an observation where it must not be submitted (again)."""
        tracked = self._tracked.get(request.name)
        if request in self._queue or (tracked is not None and tracked.job_id):
            return self._look([request], unconfirmed=False)[0]
        try:
            prepare(request)
        except SubmitRejected as error:
            return rejected(request, str(error))
        if not self._arrays.elements(request.name) and owner(request.directory) is None:
            return None
        observation = self._look([request], unconfirmed=True)[0]
        may_submit = observation.state is AttemptState.ABSENT and not observation.revoked
        return None if may_submit else observation

    def _track(self, request: AttemptRequest) -> TrackedAttempt:
        tracked = self._tracked.setdefault(request.name, TrackedAttempt(request=request))
        tracked.request = request
        return tracked

    def _note_job_ids(self, submitted: Mapping[str, Observation]) -> None:
        for name, observation in submitted.items():
            if observation.handle and name in self._tracked:
                self._tracked[name].job_id = observation.handle

    # --- looking --------------------------------------------------------------------------------------

    def _look(self, requests: Sequence[AttemptRequest], unconfirmed: bool) -> list[Observation]:
        observed = self._queue.retry(self._poller.site, self._poller.silence)
        self._note_job_ids(observed)
        rest = [item for item in requests if item.name not in observed]
        if not any(tracked.asked_for for tracked in self._tracked.values()):
            self._shared_jobs.forget()
        for item in rest:
            self._track(item).poll(record_version(item.directory))
        observed |= {item.name: self._observe(item, unconfirmed) for item in rest}
        unsettled = [item for item in rest if observed[item.name].state not in SETTLED]
        if unsettled and self._poller.refresh(self._elements_to_ask_for()):
            self._cancel_unwanted_jobs()
            observed |= {item.name: self._observe(item, unconfirmed) for item in unsettled}
        # After its controller was killed, Slurm may not know that a job ended: the job would hold its nodes,
        # and be charged, for ever.
        finished = [item for item in requests if observed[item.name].state is AttemptState.FINISHED]
        self._scancel([job for item in finished for job in self._obsolete_jobs(item)])
        for item in requests:
            if item.name in self._tracked:
                last = observed[item.name]
                # Whether it begins stays what it was until that is known again: no message comes and goes
                # with each try to submit what the site refuses.
                if last.state in (AttemptState.QUEUED, AttemptState.RUNNING):
                    self._tracked[item.name].waits_for = last.reason
            self._settle(item, observed[item.name])
        return [observed[item.name] for item in requests]

    def _observe(self, request: AttemptRequest, unconfirmed: bool) -> Observation:
        if request in self._queue:
            return self._queue.waiting(request)
        tracked = self._tracked[request.name]
        evidence = self._evidence(tracked, unconfirmed)
        observation = classify(evidence)
        final = observation.state is AttemptState.LOST or observation.revoked
        if not final or evidence.owner is not None:
            return observation
        if revoke(request, observation.reason):
            tracked.cancelled = True  # should a job of it turn up nevertheless
            return observation
        # It began at this very moment, wherever it was, or its directory cannot be reached.
        return Observation(request.attempt, AttemptState.UNKNOWN, observation.handle)

    def _evidence(self, tracked: TrackedAttempt, unconfirmed: bool = False) -> Evidence:
        """Read what the files and Slurm say of an attempt now."""
        now, site, request = self._clock(), self._poller.site, tracked.request
        elements = self._arrays.elements(request.name)
        # The record is read after Slurm was asked: an attempt that had ended by then has left its record.
        status = self._poller.status(elements)
        record, record_error = readable_record(request.directory)
        gone = status is not None and not status.error and not status.active
        claimed_by = owner(request.directory) if gone or not elements else None
        gone |= not elements and claimed_by == OWNER  # begun by another executor
        jobs = (*status.active, *status.ended) if status is not None else ()
        if jobs:
            tracked.job_id = _job_id(jobs[0], elements)
        if any(job.meaning is AttemptState.QUEUED for job in jobs):
            tracked.last_queued = self._poller.asked
        submitted = max((array.last for array, _ in elements), default=None)
        answered = now if status is None else self._poller.asked
        # Whatever Slurm reports: an attempt that is submitted again, or gives a sign of life, is not gone.
        signs = (claimed_by, self._shared_jobs.heartbeats(request), submitted) if gone else None
        is_finished = record is not None and record.finished is not None
        return Evidence(
            request=request,
            settings=self._settings,
            unconfirmed=unconfirmed,
            record=record,
            record_error=record_error,
            owner=claimed_by,
            submitted=None if submitted is None else answered - submitted,
            job_id=tracked.job_id,
            status=status,
            finished_for=tracked.finished.seconds(now, is_finished),
            gone_for=tracked.gone.seconds(now, gone, signs),
            accounting=site.accounting,
            # A job that Slurm forgot has waited until so recently that Slurm would still show its end.
            never_charged=site.accounting or now - tracked.last_queued < site.remembered,
            minutes=max((array.minutes for array, _ in elements), default=0),
            shared=self._shared_jobs.of(request, record),
            deleted=submitted is not None and is_deleted(request.directory),
            astray=submitted is not None and self._arrays.astray(request.name),
            output_seen=not is_finished or record is None or output_seen(request.directory, record),
        )

    def _settle(self, request: AttemptRequest, last: Observation) -> None:
        """Stop tracking an attempt of which nothing more is expected."""
        # An attempt that is absent, or was revoked, stays in the queries: a job of it may still turn up.
        if not last.revoked and last.state not in SETTLED - {AttemptState.ABSENT}:
            return
        tracked = self._tracked.get(request.name)
        if tracked is not None and tracked.polled and tracked.cancelled and last.elapsed == 0:
            tracked.expect_late_job(self._clock())
        else:
            self._tracked.pop(request.name, None)

    def _charge(self, request: AttemptRequest) -> Observation | None:
        observation = classify(self._evidence(self._tracked[request.name]))
        if observation.state not in SETTLED or observation.estimated or observation.elapsed is None:
            return None
        del self._tracked[request.name]
        return observation

    def _elements_to_ask_for(self) -> Elements:
        now = self._clock()
        for name, tracked in list(self._tracked.items()):
            if now - tracked.late_since > _LATEST:
                del self._tracked[name]
        return self._elements(item.request for item in self._tracked.values() if item.asked_for)

    def _elements(self, requests: Iterable[AttemptRequest]) -> Elements:
        return [element for request in requests for element in self._arrays.elements(request.name)]

    # --- cancelling -----------------------------------------------------------------------------------

    def _cancel_unwanted_jobs(self) -> None:
        polled = [tracked for tracked in self._tracked.values() if tracked.polled]
        self._scancel([job for tracked in polled for job in self._unwanted_jobs(tracked)])

    def _unwanted_jobs(self, tracked: TrackedAttempt) -> list[str]:
        """Return duplicates, jobs that can do nothing, and jobs that an earlier ``scancel`` did not reach."""
        request, settings = tracked.request, self._settings
        elements = self._arrays.elements(request.name)
        status = self._poller.status(elements)
        if status is None or not status.active:
            return []
        first = status.active[0]
        queued = first.meaning is AttemptState.QUEUED
        hopeless = queued and (first.reason in _HOPELESS or _misses_nodes(request, first))
        if tracked.hopeless.seconds(self._clock(), hopeless) >= settings.hopeless_grace and hopeless:
            revoke(request, f"{HOPELESS} ({first.reason})")
            if self._arrays.companions(request.name):
                self._queue.stop_sharing(request.resources)
            tracked.cancelled = True
        if queued and self._arrays.astray(request.name):
            tracked.cancelled |= revoke(request, MOVED)
        if queued and self._is_second_start(request):
            tracked.cancelled = True
        unwanted = status.active if tracked.cancelled else status.active[1:]
        return [_job_id(job, elements) for job in unwanted]

    def _active_jobs(self, request: AttemptRequest) -> list[str]:
        elements = self._arrays.elements(request.name)
        status = self._poller.status(elements)
        return [_job_id(job, elements) for job in status.active] if status is not None else []

    def _obsolete_jobs(self, request: AttemptRequest) -> list[str]:
        """Return the active jobs of an attempt that finished, unless they continue with other attempts."""
        active = self._active_jobs(request)
        if not active:
            return []
        shared = self._shared_jobs.of(request, readable_record(request.directory)[0])
        return [] if shared is not None and shared.continues else active

    def _is_second_start(self, request: AttemptRequest) -> bool:
        """Return whether an attempt began so early that its queued job is a second start, which does nothing.

        For attempts that share a job, one that began is enough. An attempt that began after Slurm was asked,
        or little before, may have begun in that very job: the answer is older than the record. The same holds
        for an attempt that still gives signs of life.
        """
        record, _ = readable_record(request.directory)
        shared = self._shared_jobs.of(request, record)
        early = self._poller.asked - self._settings.submission_grace
        records = [record] if shared is None else [member.record for member in shared.members]
        beats = self._shared_jobs.heartbeats(request)
        lives = any(beat is not None and beat / 1e9 >= early for beat in beats)
        return not lives and any(item is not None and item.started < early for item in records)

    def _scancel(self, ids: Iterable[str]) -> None:
        distinct = list(dict.fromkeys(ids))
        for start in range(0, len(distinct), _IDS_PER_CALL):
            # What is not reached now is cancelled after the next query.
            with suppress(CommandFailed):
                call(["scancel", *distinct[start : start + _IDS_PER_CALL]], self._settings.command_timeout)


def _misses_nodes(request: AttemptRequest, job: Job) -> bool:
    """Return whether a job waits for nodes that it was asked onto, and that accept no jobs."""
    return bool(request.nodelist) and job.reason.startswith(_NO_NODES)


def _job_id(job: Job, elements: Elements) -> str:
    """Return the id of an attempt's job, as ``scancel`` takes it."""
    return f"{job.number}_{next(index for array, index in elements if array.name == job.name)}"
