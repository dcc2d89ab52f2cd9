"""Submitting attempts as job arrays; keeping those that Slurm does not accept yet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from orchestrator.errors import SubmitRejected, SubmitUncertain
from orchestrator.executors.attempt import worker
from orchestrator.executors.attempt.directory import raise_if_unwritable
from orchestrator.executors.slurm import sbatch
from orchestrator.executors.slurm.arrays import JobArray, JobArrays, Pack, groups
from orchestrator.executors.slurm.options import SlurmSettings
from orchestrator.executors.slurm.outcome import rejected
from orchestrator.executors.slurm.sbatch import SubmitLater
from orchestrator.executors.slurm.site import Site
from orchestrator.types import AttemptRequest, AttemptState, Observation, Resources

_LONGEST_PAUSE = 600.0  # seconds between submissions while their outcome is unclear


class SubmissionQueue:
    """Attempts that are to be submitted. Slurm has never seen those that wait here.

    Attributes
    ----------
    due
        When to submit again (the executor's clock); infinite while nothing waits.
    """

    def __init__(self, arrays: JobArrays, settings: SlurmSettings, clock: Callable[[], float]) -> None:
        self.due = float("inf")
        self._arrays, self._settings, self._clock = arrays, settings, clock
        self._waiting: dict[str, AttemptRequest] = {}
        self._unclear, self._resume = 0, float("-inf")  # submissions in a row, and when to try again
        self._reason = ""
        self._unshared: set[Resources] = set()  # of which Slurm takes no jobs of several attempts
        # The longest jobs that Slurm took, in minutes, by what they ask for: resources and memory.
        self._taken: dict[tuple[Resources, float], int] = {}

    def __contains__(self, request: AttemptRequest) -> bool:
        return request.name in self._waiting

    def submit(self, requests: Sequence[AttemptRequest], site: Site, hold: str) -> dict[str, Observation]:
        """Submit requests, equal packs of them as arrays; return an observation of each, by name.

        ``hold``: why Slurm does not answer, if it does not; then they wait here.
        """
        done: dict[str, Observation] = {}
        if hold:
            self._postpone([requests], hold, done)
            return done
        for resources in self._unshared:
            equal = [item for item in requests if item.resources == resources]
            others = [item for item in requests if item.resources != resources]
            requests = self._unpacked(equal, done) + others
        most = min(site.array_size, site.submit_limit or site.array_size)
        for group in groups(requests, most):
            self._submit_group(group, done)
        return done

    def retry(self, site: Site, hold: str) -> dict[str, Observation]:
        """Submit what waits, when it is time to; return observations of the attempts that wait no more."""
        if math.isinf(self.due) or self._is_ahead(self.due, self._settings.poll_interval):
            return {}
        requests, self._waiting, self.due = list(self._waiting.values()), {}, float("inf")
        return {
            name: item
            for name, item in self.submit(requests, site, hold).items()
            if name not in self._waiting
        }

    def waiting(self, request: AttemptRequest) -> Observation:
        """Report an attempt that waits here."""
        return Observation(request.attempt, AttemptState.QUEUED, reason=f"not submitted yet: {self._reason}")

    def remove(self, request: AttemptRequest) -> None:
        """Do not submit an attempt that waits here."""
        self._waiting.pop(request.name, None)

    def stop_sharing(self, resources: Resources) -> None:
        """Submit no more jobs of several attempts with these resources: they would be too long for Slurm."""
        self._unshared.add(resources)

    def _is_ahead(self, instant: float, most: float) -> bool:
        """Return whether an instant is to come; if it is much further than any pause, the clock was set."""
        return 0 < instant - self._clock() <= 2 * most

    def _unpacked(
        self, requests: Sequence[AttemptRequest], done: dict[str, Observation]
    ) -> list[AttemptRequest]:
        """Return the first attempt of each pack; revoke the others, whose runs need jobs of their own."""
        first: dict[str, AttemptRequest] = {}
        for item in requests:
            if first.setdefault(item.pack or item.name, item) is not item:
                reason = "Slurm does not take a job for several runs"
                if revoke(item, reason):
                    done[item.name] = Observation(
                        item.attempt, AttemptState.ABSENT, elapsed=0.0, reason=reason, revoked=True
                    )
                else:
                    done[item.name] = _unknown(item, reason)
        return list(first.values())

    def _submit_group(self, group: Sequence[Pack], done: dict[str, Observation]) -> None:
        """Submit one array; where that is too much for now, half of it, and the rest later."""
        if self._is_ahead(self._resume, max(_LONGEST_PAUSE, self._settings.poll_interval)):
            self._postpone(group, self._reason, done)
            return
        try:
            array = self._arrays.begin(group, self._clock())
        except OSError as error:
            raise_if_unwritable(error, self._arrays.folder)
            reason = f"cannot write into {self._arrays.folder}: {error.strerror}"
            done.update({item.name: rejected(item, reason) for pack in group for item in pack})
            return
        folder, settings = self._arrays.folder / array.name, self._settings
        try:
            job_ids = sbatch.submit(array.name, group, settings.job, folder, settings.command_timeout)
        except SubmitUncertain as error:
            self._uncertain(group, str(error), done)
        except SubmitLater as error:
            self._arrays.drop(array)
            if len(group) > 1 and not error.closed:
                self._submit_group(group[: len(group) // 2], done)
                group = group[len(group) // 2 :]
            self._postpone(group, str(error), done)
        except SubmitRejected as error:
            self._rejected(group, array, str(error), done)
        else:
            self._unclear = 0
            shape = _shape(group)
            self._taken[shape] = max(array.minutes, self._taken.get(shape, 0))
            for pack, job_id in zip(group, job_ids, strict=True):
                for item in pack:
                    done[item.name] = Observation(item.attempt, AttemptState.QUEUED, job_id)

    def _rejected(
        self, group: Sequence[Pack], array: JobArray, reason: str, done: dict[str, Observation]
    ) -> None:
        """Submit a rejected array in another form; declare lost what Slurm takes in no form."""
        if len(group) > 1 and "array" in reason:  # the site's limit could not be asked for
            self._arrays.drop(array)
            for half in (group[: len(group) // 2], group[len(group) // 2 :]):
                self._submit_group(half, done)
            return
        if group[0][0].exclude or group[0][0].nodelist:  # perhaps these nodes are the cause
            free = [[replace(item, exclude=(), nodelist=()) for item in pack] for pack in group]
            self._submit_group(free, done)  # the array keeps its name
            return
        if array.minutes <= self._taken.get(_shape(group), 0):  # the site refuses what it took before
            self._uncertain(group, reason, done)
            return
        if any(len(pack) > 1 for pack in group):
            self._arrays.drop(array)
            self.stop_sharing(group[0][0].resources)
            kept = self._unpacked([item for pack in group for item in pack], done)
            self._submit_group([[item] for item in kept], done)
            return
        outcomes = {item.name: _rejected_unless_begun(item, reason) for pack in group for item in pack}
        done.update(outcomes)
        if all(item.state is AttemptState.LOST for item in outcomes.values()):
            self._arrays.drop(array)

    def _uncertain(self, group: Sequence[Pack], reason: str, done: dict[str, Observation]) -> None:
        """Have an array looked up that Slurm may have accepted or not; make submissions rare meanwhile."""
        self._unclear += 1
        interval = self._settings.poll_interval
        pause = min(interval * 2**self._unclear, max(_LONGEST_PAUSE, interval))
        self._resume = self._clock() + pause
        self._reason = reason
        done.update({item.name: _unknown(item, reason) for pack in group for item in pack})

    def _postpone(self, group: Sequence[Pack], reason: str, done: dict[str, Observation]) -> None:
        self._reason = reason
        self.due = self._clock() + self._settings.poll_interval
        self._waiting |= {item.name: item for pack in group for item in pack}
        done.update({item.name: self.waiting(item) for pack in group for item in pack})


def _shape(group: Sequence[Pack]) -> tuple[Resources, float]:
    """Return what the jobs of an array ask for, beside time and nodes by name."""
    return group[0][0].resources, group[0][0].memory


def revoke(request: AttemptRequest, reason: str) -> bool:
    """Take the claim of an attempt, so that it never starts; false where it began, or that is not known."""
    try:
        return worker.claim(request.directory, f"controller: {reason}")
    except OSError:
        return False


def _rejected_unless_begun(request: AttemptRequest, reason: str) -> Observation:
    """Declare lost what Slurm rejected, unless it runs nevertheless."""
    if revoke(request, reason):
        return rejected(request, reason)
    return _unknown(request, reason)


def _unknown(request: AttemptRequest, reason: str) -> Observation:
    return Observation(request.attempt, AttemptState.UNKNOWN, reason=reason)
