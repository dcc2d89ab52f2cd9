"""The local executor: attempts on this machine, as many at once as their cores fit into the slots.

Attempts that run side by side never share a core, unless the campaign allows it: each is bound to physical
cores of its own (see `orchestrator.executors.local.cores`).

Each attempt is a process of its own (`orchestrator.executors.attempt.worker`) that outlives a killed
controller. The next controller adopts it. An attempt that waits for cores was never started, and is absent
for the next controller.

Attempts of another executor never get here: a campaign whose attempts are in flight keeps its executor (see
`orchestrator.campaign.changes`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from signal import SIGTERM

from orchestrator.errors import ReadError, SubmitRejected
from orchestrator.executors.attempt import directory, processes, worker
from orchestrator.executors.attempt import record as files
from orchestrator.executors.base import ExecutorContext
from orchestrator.executors.local import cores, detached
from orchestrator.executors.local.cores import CPUs
from orchestrator.types import AttemptRecord, AttemptRequest, AttemptState, Observation

_LOOK_AGAIN = 0.02  # seconds; a process comes to claim its attempt within about that
# Seconds without a sign of life after which an attempt counts as gone whose files cannot be read.
_PATIENCE = 60.0
# The same of an attempt on another host or in another container, whose signs a network file system may
# show a minute late. Its host may have been renamed, and a container never comes back.
_ELSEWHERE = 180.0


def build(context: ExecutorContext) -> LocalExecutor:
    """Build the executor from a campaign."""
    return LocalExecutor(context.options["slots"], share_cores=context.options.get("share_cores", False))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    """The process that owns a running attempt: a child of ours, or adopted; ``cpus`` it is bound to."""

    request: AttemptRequest
    pid: int
    start_time: int
    child: bool
    pidfd: int | None
    cpus: CPUs


def _process(request: AttemptRequest, pid: int, child: bool, cpus: CPUs) -> _Process:
    return _Process(
        request=request,
        pid=pid,
        start_time=processes.start_time(pid),
        child=child,
        pidfd=detached.pidfd(pid),
        cpus=cpus,
    )


class LocalExecutor:
    """See the contract in `orchestrator.executors.base.Executor`.

    Parameters
    ----------
    slots
        Cores that attempts may occupy at the same time.
    share_cores
        Whether attempts that run side by side may use the same cores. Otherwise each is bound to cores of its
        own, waits while too few are free, and runs alone if it wants more than there are. Where this system
        binds no processes, attempts then run one at a time.
    """

    name = "local"

    def __init__(self, slots: int, share_cores: bool = False) -> None:
        self._slots = slots
        self._cores = None if share_cores else cores.usable()
        self._waiting: dict[str, AttemptRequest] = {}  # by name, first come first served
        self._running: dict[str, _Process] = {}
        self._ends: dict[str, str] = {}  # how the process of an attempt ended, for children; by name
        self._unreported: set[str] = set()  # ended, and not reported since
        # Started by an earlier controller, and not claimed yet: their pids are not known.
        self._beginning: set[str] = set()
        # The last sign of life of attempts that run elsewhere, and when it was first seen (monotonic).
        self._signs: dict[str, tuple[int | None, float]] = {}

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
        """End running attempts and whatever they started; revoke waiting ones."""
        for request in attempts:
            if self._waiting.pop(request.name, None):
                worker.claim(request.directory, "controller: cancelled while it waited for cores")
                self._unreported.add(request.name)
            elif self._observe(request).state is AttemptState.RUNNING:
                process = self._running[request.name]
                if processes.is_running(process.pid, process.start_time):
                    processes.kill(process.pid, SIGTERM)
        self._start_waiting()

    def wait(self, seconds: float) -> None:
        """Return when an attempt ends, or ended and was not reported; at the latest after ``seconds``."""
        deadline = time.monotonic() + (min(seconds, _LOOK_AGAIN) if self._beginning else seconds)
        self._collect()
        while not self._unreported and (remaining := deadline - time.monotonic()) > 0:
            detached.sleep_until_one_ends((item.pidfd for item in self._running.values()), remaining)
            self._collect()
        self._unreported.clear()

    # --- starting -------------------------------------------------------------------------------------

    def _submit(self, request: AttemptRequest) -> Observation:
        if request.name in self._waiting or request.name in self._running:
            return self._observe(request)
        wanted = request.resources.cores
        if wanted > self._slots:
            return _rejected(request, f"it needs {wanted} cores: set executor.slots to at least that")
        try:
            directory.prepare(request, durable=False)
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
            cpus = self._place(request)
            if cpus is None:
                return
            del self._waiting[name]
            try:
                pid = detached.start(request.directory, cpus)
                if pid is not None:
                    self._running[name] = _process(request, pid, child=True, cpus=cpus)
            except OSError as error:
                self._unreported.add(name)
                if (request.directory / worker.REQUEST).exists():  # else it was deleted: ABSENT
                    directory.raise_if_unwritable(error, request.directory)
                    self._ends[name] = f"no process could be started: {error}"

    def _place(self, request: AttemptRequest) -> CPUs | None:
        """Return the CPUs for an attempt, none where it is not bound; None while it must wait."""
        running = self._running.values()
        wanted = request.resources.cores
        if sum(process.request.resources.cores for process in running) + wanted > self._slots:
            return None
        if self._cores is None:
            return frozenset()
        if not self._cores:
            return None if running else frozenset()
        ours = [process.cpus for process in running]
        others = cores.of_other_attempts(process.request.directory for process in running)
        return cores.choose(self._cores, ours, wanted, others)

    # --- looking --------------------------------------------------------------------------------------

    def _collect(self) -> None:
        """Notice which processes ended, and start others in their place."""
        for name, process in list(self._running.items()):
            if self._has_ended(process):
                del self._running[name]
                self._unreported.add(name)
                if process.pidfd is not None:
                    os.close(process.pidfd)
        self._start_waiting()

    def _has_ended(self, process: _Process) -> bool:
        if not process.child:
            return not processes.is_running(process.pid, process.start_time)
        try:
            pid, status = os.waitpid(process.pid, os.WNOHANG)
        except ChildProcessError:  # SIGCHLD is ignored in this process
            return True
        if pid:
            code = os.waitstatus_to_exitcode(status)
            self._ends[process.request.name] = f"its process ended with exit code {code}"
        return bool(pid)

    def _observe(self, request: AttemptRequest) -> Observation:
        if request.name in self._waiting:
            return Observation(request.attempt, AttemptState.QUEUED, request.name)
        if request.name not in self._running:
            self._unreported.discard(request.name)
            self._beginning.discard(request.name)
            try:
                observation = self._look_up(request)
            except OSError as error:  # nothing is known then, least of all that it is gone
                return Observation(request.attempt, AttemptState.UNKNOWN, reason=str(error))
            if observation.state is not AttemptState.RUNNING:
                return observation
        return Observation(request.attempt, AttemptState.RUNNING, str(self._running[request.name].pid))

    def _look_up(self, request: AttemptRequest) -> Observation:
        """Classify an attempt that is no known process by its directory; adopt it if it runs."""
        try:
            owners = files.owners(request.directory)
            alive = () if owners is None else owners.alive()
            # After the owners: what has ended by then has also written its record.
            record = files.read_record(request.directory)
        except ReadError as error:
            return self._classify_unreadable(request, error)
        if record is not None and record.finished is not None:
            reason = "cancelled, or its processes were killed" if record.cancelled else ""
            reason = files.SUSPENDED if record.suspended else reason
            if not reason and not files.output_seen(request.directory, record):
                # The record is durable, and the output is not: a power failure takes its last half minute.
                reason = files.output_hidden(record)
            return Observation(request.attempt, AttemptState.FINISHED, record=record, reason=reason)
        if owners is None:
            return self._unclaimed(request)
        if owners.who != worker.OWNER:
            return _lost(request, 0.0, f"revoked before it began, by {owners.who}")
        if alive is None and not self._is_silent(request):
            reason = f"it runs on {owners.host} (or in another container): continue the campaign there"
            return Observation(request.attempt, AttemptState.UNKNOWN, reason=reason)
        adopted = self._adopt(request, alive or ())
        if adopted is not None:
            return adopted
        gone = _classify_gone(request, record, self.reserved_seconds(request.limit))
        return gone if record is not None or _printed(request) else self._without_start(request, gone)

    def _is_silent(self, request: AttemptRequest) -> bool:
        """Return whether an attempt elsewhere has given no sign of life since this controller looks."""
        now, sign = time.monotonic(), files.heartbeat(request.directory)
        seen, since = self._signs.get(request.name, (None, now))
        if seen != sign or request.name not in self._signs:
            self._signs[request.name], since = (sign, now), now
        return now - since >= _ELSEWHERE

    def _unclaimed(self, request: AttemptRequest) -> Observation:
        """Classify an attempt that is not claimed: about to begin, failed to begin, or absent."""
        if detached.is_about_to_begin(request.directory):
            self._beginning.add(request.name)
            return Observation(request.attempt, AttemptState.QUEUED)
        how = self._ends.get(request.name)
        began = _printed(request)
        if began or not (request.directory / worker.REQUEST).exists():
            return self._without_files(request, began or how is not None)
        if how is not None:
            directory.require_room(request.directory)
        if how is not None and worker.claim(request.directory, "controller: it ended before it began"):
            return _lost(request, 0.0, f"it never began: {how}; see {request.directory / 'stderr'}")
        if (request.directory / worker.CLAIM).exists():  # claimed since we looked
            return self._look_up(request)
        return Observation(request.attempt, AttemptState.ABSENT)

    def _without_files(self, request: AttemptRequest, began: bool) -> Observation:
        """Classify an attempt whose claim and record are gone, or were never there.

        A program may empty or delete its working directory, and somebody may move it. What began is not
        absent then: it would be executed a second time.
        """
        adopted = self._adopt(request, detached.owners(request.directory))
        if adopted is not None:
            return adopted
        if (request.directory / worker.RECORD).exists():  # written since we looked
            return self._look_up(request)
        survivors = detached.end_survivors(request.directory)
        if survivors is None:
            return _does_not_die(request)
        if not (began or survivors or request.begun):
            return Observation(request.attempt, AttemptState.ABSENT)
        return _deleted(request, self.reserved_seconds(request.limit))

    def _without_start(self, request: AttemptRequest, gone: Observation) -> Observation:
        """Withdraw an attempt whose process claimed it, and ended before it started anything.

        A process ends so where there is no room for its record. If this controller started the process, that
        stops the campaign. If an earlier controller did, the attempt is withdrawn.
        """
        if gone.state is not AttemptState.LOST:
            return gone
        directory.require_room(request.directory)
        if request.name in self._ends:
            return gone
        return Observation(request.attempt, AttemptState.ABSENT, reason=gone.reason, revoked=True)

    def _classify_unreadable(self, request: AttemptRequest, error: ReadError) -> Observation:
        """Classify an attempt by its processes where its files cannot be read."""
        adopted = self._adopt(request, processes.marked(request.directory))
        if adopted:
            return adopted
        if _is_closed(request):
            return _lost(request, self.reserved_seconds(request.limit), str(error))
        how = self._ends.get(request.name)
        if how is not None and not (request.directory / worker.RECORD).exists():
            # Our own process ended, so nothing will be written any more, and without a record nothing began.
            directory.require_room(request.directory)
            return _lost(request, 0.0, f"it never began: {how}; {error}")
        if time.time() - files.last_sign_of_life(request.directory) < _PATIENCE:
            return Observation(request.attempt, AttemptState.UNKNOWN, reason=str(error))
        return _lost(request, self.reserved_seconds(request.limit), str(error))

    def _adopt(self, request: AttemptRequest, pids: Sequence[int]) -> Observation | None:
        for pid in pids:
            try:
                cpus = cores.of_process(pid)
                self._running[request.name] = _process(request, pid, child=False, cpus=cpus)
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended
            return Observation(request.attempt, AttemptState.RUNNING, str(pid))
        return None


# --- observations of what is gone ---------------------------------------------------------------------


def _rejected(request: AttemptRequest, reason: str) -> Observation:
    return replace(_lost(request, 0.0, f"rejected: {reason}"), refused=True)


def _lost(request: AttemptRequest, elapsed: float | None, reason: str) -> Observation:
    return Observation(request.attempt, AttemptState.LOST, elapsed=elapsed, reason=reason)


def _is_closed(request: AttemptRequest) -> bool:
    """Return whether a program took away the right to look into its directory: no look will ever say more."""
    try:
        return request.directory.stat().st_mode & 0o500 != 0o500
    except OSError:
        return False


def _printed(request: AttemptRequest) -> bool:
    """Return whether the script of an attempt was started: the file that it prints into is there."""
    return (request.directory / worker.STDOUT).exists()


def _deleted(request: AttemptRequest, most: float) -> Observation:
    """Report an attempt without its record as lost; the charge is final: no record will ever say more."""
    what = "its files were" if request.directory.exists() else "its directory was"
    return _lost(request, most, f"{what} deleted: {request.directory}")


def _does_not_die(request: AttemptRequest) -> Observation:
    reason = f"its processes do not die: end them ({processes.marked(request.directory)})"
    return Observation(request.attempt, AttemptState.UNKNOWN, reason=reason)


def _classify_gone(request: AttemptRequest, record: AttemptRecord | None, most: float) -> Observation:
    """Declare lost an attempt that was claimed and is gone; end what it left, charge an upper bound."""
    survivors = detached.end_survivors(request.directory)
    if survivors is None:
        return _does_not_die(request)
    if record is None and _printed(request):
        return _deleted(request, most)
    if record is None:  # which is written before anything is started
        return _lost(request, 0.0, f"it ended before it started anything; see {request.directory / 'stderr'}")
    now = time.time()
    seen = now if survivors else files.last_sign_of_life(request.directory) + worker.HEARTBEAT
    elapsed = min(min(seen, now) - record.started, most)
    if elapsed <= 0:  # the clock was set back meanwhile
        elapsed = most
    what = f"it left {survivors} processes, ended now" if survivors else "from its last sign of life"
    gone = "its owner was killed (or runs in the directory that this one is a copy of)"
    return _lost(request, elapsed, f"{gone}; charged at most {elapsed:.0f} s ({what})")
