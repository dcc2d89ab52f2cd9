"""The local executor: attempts on this machine, as many at once as their cores fit into the slots.

Each attempt is a process of its own (``attempt.py``) that outlives a killed controller; the next one
adopts it. What waits for cores was never started, and is absent for the next controller.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import ReadError, SubmitRejected
from orchestrator.executors.attempt import directory as files
from orchestrator.executors.attempt import processes, worker
from orchestrator.executors.attempt.directory import require_room, stop_for_trouble
from orchestrator.executors.base import ExecutorContext
from orchestrator.executors.local import detached
from orchestrator.types import AttemptRecord, AttemptRequest, AttemptState, Observation

_LOOK_AGAIN = 0.02  # seconds; a process comes to claim its attempt within about that
_PATIENCE = (
    60.0  # seconds without a sign of life after which files that do not say whose they are count as deserted
)


def build(context: ExecutorContext) -> LocalExecutor:
    """Build the executor from a campaign."""
    return LocalExecutor(context.options["slots"], context.directory)


@dataclass(frozen=True, slots=True)
class _Process:
    """The process that owns a running attempt: a child of ours, or adopted."""

    request: AttemptRequest
    pid: int
    start_time: int
    child: bool
    pidfd: int | None


def _process(request: AttemptRequest, pid: int, child: bool) -> _Process:
    return _Process(request, pid, processes.start_time(pid), child, detached.pidfd(pid))


class LocalExecutor:
    """See the contract in `orchestrator.executors.base.Executor`.

    Parameters
    ----------
    slots
        Cores that attempts may occupy at the same time.
    directory
        The campaign directory, where the executor ``slurm`` notes what it submitted.
    """

    name = "local"

    def __init__(self, slots: int, directory: Path | None = None):
        self._slots = slots
        self._directory = directory
        self._waiting: dict[str, AttemptRequest] = {}  # by name, first come first served
        self._running: dict[str, _Process] = {}
        self._ends: dict[str, str] = {}  # how attempt.py ended, for children; by name
        self._news: set[str] = set()  # ended, and not reported since
        self._beginning: set[str] = set()  # an earlier controller's, about to claim: there is no pid to watch

    def now(self) -> float:
        """Return the time."""
        return time.time()

    def ready(self) -> str | None:
        """Return None: nothing else is needed."""
        return None

    def reserved_seconds(self, *limits: float) -> float:
        """Return the limits and what ending the attempts may take at worst."""
        return sum(limits) + len(limits) * worker.OVERRUN

    def submit(self, requests: Sequence[AttemptRequest]) -> list[Observation]:
        """Start what fits into the free slots; queue the rest."""
        return [self._submit(request) for request in requests]

    def poll(self, attempts: Sequence[AttemptRequest]) -> list[Observation]:
        """Report attempts; those of an earlier controller are looked up in their directories."""
        self._collect()
        return [self._observe(request) for request in attempts]

    def find(self, requests: Sequence[AttemptRequest]) -> list[Observation]:
        """Look up attempts, and adopt those that run."""
        return self.poll(requests)

    def charged(self, attempts: Sequence[AttemptRequest]) -> list[Observation | None]:
        """Return None for each: no estimate is ever corrected."""
        return [None] * len(attempts)

    def cancel(self, attempts: Sequence[AttemptRequest]) -> None:
        """End running attempts and whatever they started; bar waiting ones."""
        for request in attempts:
            if self._waiting.pop(request.name, None):
                worker.claim(request.directory, "controller: cancelled while it waited for cores")
                self._news.add(request.name)
            elif self._observe(request).state is AttemptState.RUNNING:
                process = self._running[request.name]
                if processes.is_running(process.pid, process.start_time):
                    processes.kill(process.pid, processes.SIGTERM)
        self._start_waiting()

    def wait(self, seconds: float) -> None:
        """Return when an attempt ends, or ended and was not reported; at the latest after ``seconds``."""
        deadline = time.monotonic() + (min(seconds, _LOOK_AGAIN) if self._beginning else seconds)
        self._collect()
        while not self._news and (remaining := deadline - time.monotonic()) > 0:
            detached.sleep_until_one_ends((item.pidfd for item in self._running.values()), remaining)
            self._collect()
        self._news.clear()

    # --- starting -------------------------------------------------------------------------------------

    def _submit(self, request: AttemptRequest) -> Observation:
        if request.name in self._waiting or request.name in self._running:
            return self._observe(request)
        cores = request.resources.cores
        if cores > self._slots:
            return _rejected(request, f"it needs {cores} cores: set executor.slots to at least that")
        try:
            files.prepare(request, durable=False)
        except SubmitRejected as error:
            return _rejected(request, str(error))
        if not (request.directory / worker.CLAIM).exists():
            self._waiting[request.name] = request
            self._start_waiting()
        return self._observe(request)

    def _start_waiting(self) -> None:
        """Start in order of submission, so that small attempts do not overtake a big one for ever."""
        while self._waiting:
            name, request = next(iter(self._waiting.items()))
            occupied = sum(process.request.resources.cores for process in self._running.values())
            if occupied + request.resources.cores > self._slots:
                return
            del self._waiting[name]
            try:
                pid = detached.start(request.directory)
                if pid is not None:
                    self._running[name] = _process(request, pid, child=True)
            except OSError as error:
                self._news.add(name)
                if (request.directory / worker.REQUEST).exists():  # else it was deleted: ABSENT
                    stop_for_trouble(error, request.directory)
                    self._ends[name] = f"no process could be started: {error}"

    # --- looking --------------------------------------------------------------------------------------

    def _collect(self) -> None:
        """Notice which processes ended, and start others in their place."""
        for name, process in list(self._running.items()):
            if self._has_ended(process):
                del self._running[name]
                self._news.add(name)
                if process.pidfd is not None:
                    os.close(process.pidfd)
        self._start_waiting()

    def _has_ended(self, process: _Process) -> bool:
        if not process.child:
            return not processes.is_running(process.pid, process.start_time)
        try:
            pid, status = os.waitpid(process.pid, os.WNOHANG)
        except ChildProcessError:  # somebody ignores SIGCHLD here
            return True
        if pid:
            code = os.waitstatus_to_exitcode(status)
            self._ends[process.request.name] = f"attempt.py ended with exit code {code}"
        return bool(pid)

    def _observe(self, request: AttemptRequest) -> Observation:
        if request.name in self._waiting:
            return Observation(request.attempt, AttemptState.QUEUED, request.name)
        if request.name not in self._running:
            self._news.discard(request.name)
            self._beginning.discard(request.name)
            try:
                observation = self._look_up(request)
            except OSError as error:  # nothing is known then, least of all that it is gone
                return Observation(request.attempt, AttemptState.UNKNOWN, reason=str(error))
            if observation.state is not AttemptState.RUNNING:
                return observation
        return Observation(request.attempt, AttemptState.RUNNING, str(self._running[request.name].pid))

    def _look_up(self, request: AttemptRequest) -> Observation:
        """Say what the directory says of an attempt that is no known process of ours; adopt it if it runs."""
        try:
            owners = files.owners(request.directory)
            alive = () if owners is None else owners.alive()
            # After the owners: what has ended by then has also written its record.
            record = files.read_record(request.directory)
        except ReadError as error:
            return self._illegible(request, error)
        if record is not None and record.finished is not None:
            reason = "cancelled, or its processes were killed" if record.cancelled else ""
            return Observation(request.attempt, AttemptState.FINISHED, record=record, reason=reason)
        if owners is None:
            return self._unclaimed(request)
        if owners.who != worker.OWNER:
            return _lost(request, 0.0, f"barred before it began, by {owners.who}")
        if alive is None:
            reason = f"it is {owners.host}'s (or another container's): continue the campaign there"
            return Observation(request.attempt, AttemptState.UNKNOWN, reason=reason)
        adopted = self._adopt(request, alive)
        if adopted is not None:
            return adopted
        buried = _bury(request, record, self.reserved_seconds(request.limit))
        return self._without_start(request, buried) if record is None else buried

    def _unclaimed(self, request: AttemptRequest) -> Observation:
        """Tell what never began from what is about to."""
        if detached.is_about_to_begin(request.directory):
            self._beginning.add(request.name)
            return Observation(request.attempt, AttemptState.QUEUED)
        how = self._ends.get(request.name)
        if how is not None and not request.directory.exists():
            most = self.reserved_seconds(request.limit)  # for good: nobody will ever say what it was
            return _lost(request, most, f"its directory was deleted: {request.directory}")
        if how is not None:
            require_room(request.directory)
        if how is not None and worker.claim(request.directory, "controller: it ended before it began"):
            return _lost(request, 0.0, f"it never began: {how}; see {request.directory / 'stderr'}")
        if (request.directory / worker.CLAIM).exists():  # claimed since we looked
            return self._look_up(request)
        if self._directory is not None and files.is_in_a_batch(self._directory, request.name):
            reason = "submitted to Slurm, and barred before it began"
            if not worker.claim(request.directory, f"controller: {reason}"):
                return self._look_up(request)
            return Observation(request.attempt, AttemptState.ABSENT, reason=reason, barred=True)
        return Observation(request.attempt, AttemptState.ABSENT)

    def _without_start(self, request: AttemptRequest, buried: Observation) -> Observation:
        """Withdraw what an earlier controller's process claimed, and ended before it started anything.

        It does so where there is no room for its record: of a process of ours that stops the campaign.
        """
        if buried.state is not AttemptState.LOST:
            return buried
        require_room(request.directory)
        if request.name in self._ends:
            return buried
        return Observation(request.attempt, AttemptState.ABSENT, reason=buried.reason, barred=True)

    def _illegible(self, request: AttemptRequest, error: ReadError) -> Observation:
        """Judge an attempt by its processes where its files do not say."""
        adopted = self._adopt(request, processes.marked(os.path.realpath(request.directory)))
        if adopted:
            return adopted
        if time.time() - files.last_sign_of_life(request.directory) < _PATIENCE:
            return Observation(request.attempt, AttemptState.UNKNOWN, reason=str(error))
        return _lost(request, self.reserved_seconds(request.limit), str(error))

    def _adopt(self, request: AttemptRequest, pids: Sequence[int]) -> Observation | None:
        for pid in pids:
            try:
                self._running[request.name] = _process(request, pid, child=False)
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended
            return Observation(request.attempt, AttemptState.RUNNING, str(pid))
        return None


# --- observations of what is gone ---------------------------------------------------------------------


def _rejected(request: AttemptRequest, reason: str) -> Observation:
    return _lost(request, 0.0, f"rejected: {reason}")


def _lost(request: AttemptRequest, elapsed: float | None, reason: str) -> Observation:
    return Observation(request.attempt, AttemptState.LOST, elapsed=elapsed, reason=reason)


def _bury(request: AttemptRequest, record: AttemptRecord | None, most: float) -> Observation:
    """Declare lost what was claimed and is gone, after ending what it left; charge an upper bound."""
    survivors = detached.end_survivors(request.directory)
    if survivors is None:
        reason = f"its processes do not die: end them ({processes.marked(str(request.directory))})"
        return Observation(request.attempt, AttemptState.UNKNOWN, reason=reason)
    if record is None:  # which is written before anything is started
        return _lost(request, 0.0, f"it ended before it started anything; see {request.directory / 'stderr'}")
    now = time.time()
    seen = now if survivors else files.last_sign_of_life(request.directory) + worker.HEARTBEAT
    elapsed = min(min(seen, now) - record.started, most)
    if elapsed <= 0:  # the clock was set back meanwhile
        elapsed = most
    what = f"it left {survivors} processes, ended now" if survivors else "from its last sign of life"
    gone = "its owner was killed (or works in the directory that this is a copy of)"
    return _lost(request, elapsed, f"{gone}; charged at most {elapsed:.0f} s ({what})")
