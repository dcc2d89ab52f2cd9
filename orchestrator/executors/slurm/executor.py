"""The Slurm executor: attempts as job arrays, submitted through submitit, found again by name.

Only an attempt's own record proves that it finished. Slurm's word says what is charged, and that there is
nothing left to wait for. While Slurm does not answer, nothing is concluded.
"""

from __future__ import annotations

import functools
import re
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from orchestrator.errors import ExecutorError, SubmitRejected
from orchestrator.executors.attempt import directory as slurm_traces
from orchestrator.executors.attempt.directory import prepare
from orchestrator.executors.attempt.worker import OWNER
from orchestrator.executors.base import ExecutorContext
from orchestrator.executors.slurm import options, sbatch
from orchestrator.executors.slurm.arrays import FOLDER, Batches, name_of
from orchestrator.executors.slurm.commands import CommandFailed, Job, call, read_site
from orchestrator.executors.slurm.outcome import SETTLED, Crews, Evidence, judge
from orchestrator.executors.slurm.poller import Places, Watch
from orchestrator.executors.slurm.sbatch import JobOptions
from orchestrator.executors.slurm.settings import SlurmSettings
from orchestrator.executors.slurm.submission import Outbox, bar, lost
from orchestrator.types import AttemptRequest, AttemptState, Observation

_READY = 30.0  # seconds for the controller to answer before a campaign begins
_SCAN = 30.0  # seconds between Slurm's looks for jobs beyond their limit
_IDS_PER_CALL = 500
_LATEST = 3600.0  # seconds after which a job of a barred attempt is not expected to turn up any more
_SHORTEST_WAIT = 0.05  # seconds
# Slurm gives these reasons for a job that fits no limit; it would wait for ever.
_HOPELESS = {
    *("AccountNotAllowed", "AssocMaxCpuPerJobLimit", "AssocMaxNodePerJobLimit", "BadConstraints"),
    *("AssocMaxWallDurationPerJobLimit", "InvalidAccount", "InvalidQOS", "PartitionNodeLimit"),
    *("PartitionTimeLimit", "QOSMaxCpuPerJobLimit", "QOSMaxNodePerJobLimit", "QOSNotAllowed"),
    *("QOSMaxWallDurationPerJobLimit", "QOSMinCpuNotSatisfied"),
}


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
    settings = SlurmSettings(job_options(context), context.options["poll_interval"])
    return SlurmExecutor(context.directory, settings, np.random.default_rng(context.seed))


def job_options(context: ExecutorContext) -> JobOptions:
    """Return what the campaign says about its jobs; raises ``CampaignError`` as `JobOptions` does."""
    return JobOptions(**{name: context.options[name] for name in JobOptions.__slots__})


def sbatch_script(context: ExecutorContext, request: AttemptRequest) -> str:
    """Return the script that would be submitted for one attempt. Needs no Slurm and touches nothing."""
    directory = context.directory.absolute()
    name = name_of([[request]], directory.name)
    folder = directory / FOLDER / name
    return sbatch.script(name, request.resources, [request.limit], job_options(context), folder)


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
        self._batches = Batches(directory.absolute())
        self._crews = Crews(self._batches)
        job = settings.job
        read = functools.partial(read_site, settings.command_timeout, job.account, job.qos)
        self._watch = Watch(settings.poll_interval, settings.command_timeout, read, clock, rng)
        self._outbox = Outbox(self._batches, settings, clock)
        # All by the names of attempts that are not settled:
        self._open: dict[str, AttemptRequest] = {}
        self._handles: dict[str, str] = {}
        self._audited: dict[str, AttemptRequest] = {}  # settled, but for what they cost
        self._cancelled: set[str] = set()
        self._barred: dict[str, float] = {}  # since when nothing but a late job is expected of them
        self._since: dict[tuple[str, str], tuple[object, float]] = {}  # something, and when it was first seen
        self._queued: dict[str, float] = {}  # when last seen in the queue
        self._signs: dict[Path, tuple[int, int] | None] = {}  # what `wait` looks for changes of

    def now(self) -> float:
        """Return the time."""
        return self._clock()

    def ready(self) -> str | None:
        """Say so if Slurm's controller does not answer."""
        try:
            call(["scontrol", "show", "config"], _READY)
        except CommandFailed as error:
            return f"Slurm does not answer: {error}"
        return None

    def reserved_seconds(self, *limits: float) -> float:
        """Return the whole minutes asked for, and what Slurm may take to end a job after them."""
        site = self._watch.site
        return 60.0 * (options.minutes(*limits) + site.over_time_limit) + site.kill_wait + _SCAN

    def submit(self, requests: Sequence[AttemptRequest]) -> list[Observation]:
        """Submit attempts, equal ones as arrays; what Slurm does not accept now is submitted later."""
        done: dict[str, Observation] = {}
        for request in requests:
            observation = self._refusal(request)
            if observation is not None:
                done[request.name] = observation
        accepted = self._outbox.submit([item for item in requests if item.name not in done], self._watch.site)
        self._handles |= {name: item.handle for name, item in accepted.items() if item.handle}
        done |= accepted
        return [done[request.name] for request in requests]

    def poll(self, attempts: Sequence[AttemptRequest]) -> list[Observation]:
        """Report attempts by their records and the last answers of Slurm."""
        return self._look(attempts, finding=False)

    def find(self, requests: Sequence[AttemptRequest]) -> list[Observation]:
        """Look up attempts by the names of their batches; keep one of several jobs."""
        return self._look(requests, finding=True)

    def charged(self, attempts: Sequence[AttemptRequest]) -> list[Observation | None]:
        """Report settled attempts with what the books say, once none of their jobs is active."""
        self._audited = {item.name: item for item in attempts}
        self._watch.refresh(self._wanted())
        return [self._charge(item) for item in attempts]

    def _charge(self, request: AttemptRequest) -> Observation | None:
        observation = judge(self._evidence(request), self._settings, finding=False)
        if observation.state not in SETTLED or observation.estimated or observation.elapsed is None:
            return None
        self._forget(request)
        return observation

    def cancel(self, attempts: Sequence[AttemptRequest]) -> None:
        """Bar attempts that have not begun; cancel the jobs of all."""
        for request in attempts:
            self._outbox.remove(request)
            bar(request, "cancelled before it began")
            self._cancelled.add(request.name)
        # Of those that another controller submitted the jobs are not known.
        self._watch.refresh(
            self._places([item for item in attempts if item.name not in self._handles]), force=True
        )
        ids = []
        for request in attempts:
            found = set(self._active(request))
            ids += sorted(found | ({self._handles[request.name]} if request.name in self._handles else set()))
        self._scancel(list(dict.fromkeys(ids)))

    def wait(self, seconds: float) -> None:
        """Return when a record appears or the next query is due, at the latest after ``seconds``."""
        asked = self._watch.due if self._wanted() else float("inf")
        pause = min(asked, self._outbox.due) - self._clock()
        remaining = min(seconds, max(pause, _SHORTEST_WAIT))
        step = self._settings.poll_interval / 50
        while remaining > 0:
            before, step = self._clock(), min(step, remaining)
            self._sleep(step)
            if any(slurm_traces.sign(directory) != sign for directory, sign in self._signs.items()):
                return
            remaining -= max(step, self._clock() - before)  # the clock may be set back meanwhile
            step = min(1.5 * step, self._settings.poll_interval / 5)

    def _refusal(self, request: AttemptRequest) -> Observation | None:
        """Prepare an attempt; return an observation where it must not be submitted (again)."""
        if request in self._outbox or request.name in self._handles:
            return self._look([request], finding=False)[0]
        try:
            prepare(request)
        except SubmitRejected as error:
            return lost(request, f"rejected: {error}", 0.0)
        if not self._batches.places(request.name) and slurm_traces.owner(request.directory) is None:
            return None
        observation = self._look([request], finding=True)[0]
        return None if observation.state is AttemptState.ABSENT and not observation.barred else observation

    # --- looking --------------------------------------------------------------------------------------

    def _look(self, requests: Sequence[AttemptRequest], finding: bool) -> list[Observation]:
        found = self._outbox.retry(self._watch.site)
        self._handles |= {name: item.handle for name, item in found.items() if item.handle}
        rest = [item for item in requests if item.name not in found]
        if not self._open and not self._audited:
            self._crews.forget()
        self._open |= {item.name: item for item in rest}
        self._signs |= {item.directory: slurm_traces.sign(item.directory) for item in rest}
        found |= {item.name: self._observe(item, finding) for item in rest}
        unsettled = [item for item in rest if found[item.name].state not in SETTLED]
        if unsettled and self._watch.refresh(self._wanted()):
            self._cancel_what_is_not_wanted()
            found |= {item.name: self._observe(item, finding) for item in unsettled}
        over = [item for item in requests if found[item.name].state is AttemptState.FINISHED]
        # A controller of Slurm that was killed has forgotten ends of jobs: they hold nodes and are booked on.
        self._scancel([identifier for item in over for identifier in self._of_no_use(item)])
        for item in requests:
            # What is absent or barred stays in the queries: its job may yet turn up.
            last = found[item.name]
            settled = last.barred or last.state in SETTLED - {AttemptState.ABSENT}
            if settled and item.name in self._cancelled & self._open.keys() and last.elapsed == 0:
                self._barred.setdefault(item.name, self._clock())
            elif settled:
                self._forget(item)
        return [found[item.name] for item in requests]

    def _observe(self, request: AttemptRequest, finding: bool) -> Observation:
        if request in self._outbox:
            return self._outbox.waiting(request)
        evidence = self._evidence(request)
        observation = judge(evidence, self._settings, finding)
        final = observation.state is AttemptState.LOST or observation.barred
        if not final or evidence.owner is not None:
            return observation
        if bar(request, observation.reason):
            self._cancelled.add(request.name)  # should its job turn up after all
            return observation
        # It began this very moment, wherever it was (or its directory is out of reach).
        return Observation(request.attempt, AttemptState.UNKNOWN, observation.handle)

    def _evidence(self, request: AttemptRequest) -> Evidence:
        now = self._clock()
        places = self._batches.places(request.name)
        # The record is read after Slurm was asked: what had ended by then has left it.
        sight = self._watch.sight(places) if places else None
        record, trouble = slurm_traces.readable_record(request.directory)
        gone = sight is not None and not sight.error and not sight.active
        owner = slurm_traces.owner(request.directory) if gone or not places else None
        gone |= not places and owner == OWNER  # another executor's
        crew = self._crews.of(request, record)
        jobs = (*sight.active, *sight.ended) if sight is not None else ()
        if jobs:
            self._handles[request.name] = _id(jobs[0], places)
        if any(job.meaning is AttemptState.QUEUED for job in jobs):
            self._queued[request.name] = self._watch.asked
        site = self._watch.site
        remembered = now - self._queued.get(request.name, float("-inf")) < site.remembered
        return Evidence(
            request,
            record,
            trouble,
            owner,
            None if not places else (now if sight is None else self._watch.asked) - _last(places),
            self._handles.get(request.name, ""),
            sight,
            self._age(request, "finished", record is not None and record.finished is not None),
            # Whatever Slurm says: what is submitted again, or gives a sign of life, is not gone.
            self._age(
                request,
                "gone",
                gone,
                (owner, self._crews.heartbeats(request), _last(places) if places else None) if gone else None,
            ),
            accounting=site.accounting,
            never_charged=site.accounting or remembered,
            minutes=max((batch.minutes for batch, _ in places), default=0),
            crew=crew,
        )

    def _age(self, request: AttemptRequest, what: str, holds: bool, witness: object = None) -> float:
        """Return for how many seconds something was seen to hold, with the same witness."""
        key = (request.name, what)
        if not holds:
            self._since.pop(key, None)
            return 0.0
        if self._since.get(key, (None, 0.0))[0] != witness or key not in self._since:
            self._since[key] = (witness, self._clock())
        return self._clock() - self._since[key][1]

    def _forget(self, request: AttemptRequest) -> None:
        name = request.name
        self._open.pop(name, None)
        self._handles.pop(name, None)
        self._queued.pop(name, None)
        for what in ("finished", "gone", "hopeless"):
            self._since.pop((name, what), None)
        self._cancelled.discard(name)
        self._barred.pop(name, None)
        self._signs.pop(request.directory, None)

    def _wanted(self) -> Places:
        """Return what to ask Slurm for."""
        for name, since in list(self._barred.items()):
            if self._clock() - since > _LATEST:
                self._forget(self._open[name])
        return self._places([*self._open.values(), *self._audited.values()])

    def _places(self, requests: Iterable[AttemptRequest]) -> Places:
        return [place for request in requests for place in self._batches.places(request.name)]

    # --- cancelling -----------------------------------------------------------------------------------

    def _cancel_what_is_not_wanted(self) -> None:
        unwanted = (identifier for request in self._open.values() for identifier in self._unwanted(request))
        self._scancel(list(dict.fromkeys(unwanted)))

    def _unwanted(self, request: AttemptRequest) -> list[str]:
        """Return duplicates, jobs that can do nothing, and what an earlier ``scancel`` did not reach."""
        places = self._batches.places(request.name)
        sight = self._watch.sight(places) if places else None
        if sight is None or not sight.active:
            return []
        first = sight.active[0]
        queued = first.meaning is AttemptState.QUEUED
        hopeless = queued and first.reason in _HOPELESS
        since = self._age(request, "hopeless", hopeless)
        if hopeless and since >= self._settings.hopeless_grace:
            bar(request, f"Slurm would never start it ({first.reason})")
            if self._batches.companions(request.name):
                self._outbox.pack_no_more(request.resources)
            self._cancelled.add(request.name)
        if queued and self._is_ghost(request):
            self._cancelled.add(request.name)
        unwanted = sight.active if request.name in self._cancelled else sight.active[1:]
        return [_id(job, places) for job in unwanted]

    def _active(self, request: AttemptRequest) -> list[str]:
        places = self._batches.places(request.name)
        sight = self._watch.sight(places) if places else None
        return [_id(job, places) for job in sight.active] if sight is not None else []

    def _of_no_use(self, request: AttemptRequest) -> list[str]:
        """Return the active jobs of an attempt that finished, unless they go on to others."""
        active = self._active(request)
        if not active:
            return []
        crew = self._crews.of(request, slurm_traces.readable_record(request.directory)[0])
        return [] if crew is not None and crew.goes_on else active

    def _is_ghost(self, request: AttemptRequest) -> bool:
        """Tell whether an attempt began so early that a job queued (again) later is in vain.

        So it is for all that share a job: a second start of it does nothing. What began after Slurm was
        asked, or little before, may be that very job, whose answer is older than the records; and so may be
        what still gives signs of life.
        """
        record, _ = slurm_traces.readable_record(request.directory)
        crew = self._crews.of(request, record)
        early = self._watch.asked - self._settings.submission_grace
        records = [record] if crew is None else [member.record for member in crew.members]
        beats = self._crews.heartbeats(request)
        lives = any(beat is not None and beat / 1e9 >= early for beat in beats)
        return not lives and any(item is not None and item.started < early for item in records)

    def _scancel(self, ids: Sequence[str]) -> None:
        for start in range(0, len(ids), _IDS_PER_CALL):
            # What is not reached now is cancelled after the next query.
            with suppress(CommandFailed):
                call(["scancel", *ids[start : start + _IDS_PER_CALL]], self._settings.command_timeout)


def _id(job: Job, places: Places) -> str:
    """Return the id of an attempt's job, as ``scancel`` takes it."""
    return f"{job.number}_{next(index for batch, index in places if batch.name == job.name)}"


def _last(places: Places) -> float:
    return max(batch.last for batch, _ in places)
