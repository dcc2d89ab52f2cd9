"""Submitting attempts in batches; keeping those that Slurm does not accept yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from orchestrator.errors import SubmitRejected, SubmitUncertain
from orchestrator.executors.attempt import worker
from orchestrator.executors.attempt.directory import stop_for_trouble
from orchestrator.executors.slurm import sbatch
from orchestrator.executors.slurm.arrays import Batch, Batches, Pack, groups
from orchestrator.executors.slurm.commands import Site
from orchestrator.executors.slurm.sbatch import SubmitLater
from orchestrator.executors.slurm.settings import SlurmSettings
from orchestrator.types import AttemptRequest, AttemptState, Observation, Resources


def lost(request: AttemptRequest, reason: str, elapsed: float | None, handle: str = "") -> Observation:
    """Report an attempt as lost, ``elapsed`` seconds being charged for it (None: nobody knows)."""
    return Observation(request.attempt, AttemptState.LOST, handle, elapsed=elapsed, reason=reason)


_LONGEST_PAUSE = 600.0  # seconds between submissions while nobody knows whether they work


class Outbox:
    """What is to be submitted. What waits here has never been seen by Slurm."""

    def __init__(self, batches: Batches, settings: SlurmSettings, clock: Callable[[], float]) -> None:
        self.due = float("inf")
        self._batches, self._settings, self._clock = batches, settings, clock
        self._waiting: dict[str, AttemptRequest] = {}
        self._unclear, self._resume = 0, float("-inf")  # submissions in a row, and when to try again
        self._reason = ""
        self._alone: set[Resources] = set()  # shapes of which Slurm takes no longer jobs than those of one

    def __contains__(self, request: AttemptRequest) -> bool:
        return request.name in self._waiting

    def submit(self, requests: Sequence[AttemptRequest], site: Site) -> dict[str, Observation]:
        """Submit requests, equal packs of them as arrays; return an observation of each, by name."""
        done: dict[str, Observation] = {}
        for shape in self._alone:
            requests = self._first_of_each([item for item in requests if item.resources == shape], done) + [
                item for item in requests if item.resources != shape
            ]
        most = min(site.array_size, site.submit_limit or site.array_size)
        for group in groups(requests, most):
            self._submit_group(group, done)
        return done

    def retry(self, site: Site) -> dict[str, Observation]:
        """Submit what waits, when it is time to; return observations of what waits no more."""
        if self._clock() < self.due:
            return {}
        requests, self._waiting, self.due = list(self._waiting.values()), {}, float("inf")
        return {name: item for name, item in self.submit(requests, site).items() if name not in self._waiting}

    def waiting(self, request: AttemptRequest) -> Observation:
        """Report an attempt that waits here."""
        return Observation(request.attempt, AttemptState.QUEUED, reason=f"not submitted yet: {self._reason}")

    def pack_no_more(self, shape: Resources) -> None:
        """Remember that Slurm takes no jobs of several attempts of this shape: they would be too long."""
        self._alone.add(shape)

    def _first_of_each(
        self, requests: Sequence[AttemptRequest], done: dict[str, Observation]
    ) -> list[AttemptRequest]:
        """Return what is to begin of packs that Slurm does not take; the others need jobs of their own."""
        kept: dict[str, AttemptRequest] = {}
        for item in requests:
            first = kept.setdefault(item.pack or item.name, item)
            if first is not item:
                reason = "Slurm does not take a job for several runs"
                barred = bar(item, reason)
                state = AttemptState.ABSENT if barred else AttemptState.UNKNOWN
                elapsed = 0.0 if barred else None
                done[item.name] = Observation(
                    item.attempt, state, elapsed=elapsed, reason=reason, barred=barred
                )
        return list(kept.values())

    def remove(self, request: AttemptRequest) -> None:
        """Submit an attempt no more."""
        self._waiting.pop(request.name, None)

    def _submit_group(self, group: Sequence[Pack], done: dict[str, Observation]) -> None:
        """Submit one array; where that is too much for now, half of it, and the rest later."""
        if self._clock() < self._resume:
            self._postpone(group, self._reason, done)
            return
        try:
            batch = self._batches.begin(group, self._clock())
        except OSError as error:
            stop_for_trouble(error, self._batches.folder)
            reason = f"rejected: cannot write into {self._batches.folder}: {error.strerror}"
            done.update({item.name: lost(item, reason, 0.0) for pack in group for item in pack})
            return
        folder, settings = self._batches.folder / batch.name, self._settings
        try:
            handles = sbatch.submit(batch.name, group, settings.job, folder, settings.command_timeout)
        except SubmitUncertain as error:
            self._unclear += 1
            pause = self._settings.poll_interval * 2**self._unclear
            self._resume = self._clock() + min(pause, max(_LONGEST_PAUSE, self._settings.poll_interval))
            self._reason = str(error)
            done.update({item.name: _unknown(item, str(error)) for pack in group for item in pack})
        except SubmitLater as error:
            self._batches.drop(batch)
            if len(group) > 1:
                self._submit_group(group[: len(group) // 2], done)
                group = group[len(group) // 2 :]
            self._postpone(group, str(error), done)
        except SubmitRejected as error:
            self._refused(group, batch, str(error), done)
        else:
            self._unclear = 0
            for pack, handle in zip(group, handles, strict=True):
                for item in pack:
                    done[item.name] = Observation(item.attempt, AttemptState.QUEUED, handle)

    def _refused(
        self, group: Sequence[Pack], batch: Batch, reason: str, done: dict[str, Observation]
    ) -> None:
        """Submit otherwise what Slurm will not take as it is; declare lost what it takes in no form."""
        if len(group) > 1 and "array" in reason:  # the site's limit could not be asked for
            self._batches.drop(batch)
            for half in (group[: len(group) // 2], group[len(group) // 2 :]):
                self._submit_group(half, done)
            return
        if group[0][0].exclude:  # perhaps there are no other nodes; the batch keeps its name
            self._submit_group([[replace(item, exclude=()) for item in pack] for pack in group], done)
            return
        if any(len(pack) > 1 for pack in group):
            self._batches.drop(batch)
            self.pack_no_more(group[0][0].resources)
            kept = self._first_of_each([item for pack in group for item in pack], done)
            self._submit_group([[item] for item in kept], done)
            return
        rejected = {item.name: _rejected(item, reason) for pack in group for item in pack}
        done.update(rejected)
        if all(item.state is AttemptState.LOST for item in rejected.values()):
            self._batches.drop(batch)

    def _postpone(self, group: Sequence[Pack], reason: str, done: dict[str, Observation]) -> None:
        self._reason = reason
        self.due = self._clock() + self._settings.poll_interval
        self._waiting |= {item.name: item for pack in group for item in pack}
        done.update({item.name: self.waiting(item) for pack in group for item in pack})


def _rejected(request: AttemptRequest, reason: str) -> Observation:
    """Declare lost what Slurm refused, unless it runs all the same."""
    if bar(request, reason):
        return lost(request, f"rejected: {reason}", 0.0)
    return _unknown(request, reason)


def bar(request: AttemptRequest, reason: str) -> bool:
    """Take the claim, so that the attempt never starts; false where it began, or that cannot be told."""
    try:
        return worker.claim(request.directory, f"controller: {reason}")
    except OSError:
        return False


def _unknown(request: AttemptRequest, reason: str) -> Observation:
    return Observation(request.attempt, AttemptState.UNKNOWN, reason=reason)
