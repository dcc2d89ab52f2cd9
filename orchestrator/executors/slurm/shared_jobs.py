"""Jobs that several attempts share: what the files of all of them say, and what each is charged.

Each attempt is charged its own span, from its start to its end. The rest of the job (its start-up, its end,
and the time of an attempt that has no end) is charged to one of them, the remainder owner: the last attempt
that began and has no known end, else the first one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.executors.attempt.record import heartbeat, owner, readable_record
from orchestrator.executors.attempt.worker import OWNER
from orchestrator.executors.slurm.arrays import JobArrays
from orchestrator.types import AttemptRecord, AttemptRequest


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
        """Return when it ended, as its record says."""
        return self.record.finished if self.record is not None else None


@dataclass(frozen=True, slots=True)
class SharedJob:
    """All attempts of one job, in the order of execution, seen from the attempt at ``position``."""

    members: tuple[Member, ...]
    position: int

    @property
    def own(self) -> Member:
        """Return the attempt at ``position``."""
        return self.members[self.position]

    @property
    def begun(self) -> bool:
        """Whether any of the attempts began."""
        return any(member.begun for member in self.members)

    @property
    def last(self) -> bool:
        """Whether no later attempt began: what ended the job, ended this one."""
        return not any(member.begun for member in self.members[self.position + 1 :])

    @property
    def continues(self) -> bool:
        """Whether a later attempt is still to finish, as far as their files say."""
        behind = self.members[self.position + 1 :]
        return any(member.finished is None and (member.begun or member.owner is None) for member in behind)

    def share(self, elapsed: float) -> float:
        """Return the seconds to charge this attempt of those of the job."""
        return divide(elapsed, self.members)[self.position]

    @property
    def recorded_seconds(self) -> float | None:
        """Return the seconds of the job according to the records; None if one that began has no end."""
        records = [member.record for member in self.members if member.record is not None]
        ends = [record.finished for record in records if record.finished is not None]
        if not ends or len(ends) < sum(member.begun for member in self.members):
            return None
        begun = [item.started if item.allocated is None else item.allocated for item in records]
        return float(math.ceil(max(ends)) - math.floor(min(begun)))


def divide(elapsed: float, members: Sequence[Member]) -> list[float]:
    """Divide the seconds of a job among its attempts; the parts add up to them, and none is negative.

    Attempts that never began get nothing. If none began, the first one gets everything.
    """
    spans = [_span(members, position) for position in range(len(members))]
    known = sum(span for span in spans if span is not None)
    if known > elapsed:  # Slurm took a node for dead on which the job went on
        return [(span or 0.0) * elapsed / known for span in spans]
    begun = [position for position, member in enumerate(members) if member.begun] or [0]
    remainder_owner = next((position for position in reversed(begun) if spans[position] is None), begun[0])
    return [(span or 0.0) + (elapsed - known) * (i == remainder_owner) for i, span in enumerate(spans)]


def _span(members: Sequence[Member], position: int) -> float | None:
    """Return the seconds of one attempt; None if its start or its end is not known."""
    record = members[position].record
    if not members[position].begun:
        return 0.0
    if record is None:
        return None
    if record.finished is not None:
        return record.finished - record.started
    later = [item.record.started for item in members[position + 1 :] if item.record is not None]
    return max(0.0, later[0] - record.started) if later else None


class SharedJobs:
    """Reads the files of all attempts that share a job, as the charge of one depends on the others."""

    def __init__(self, arrays: JobArrays) -> None:
        self._arrays = arrays
        self._final: dict[str, AttemptRecord] = {}  # by name of the attempt: a final record never changes

    def of(self, request: AttemptRequest, record: AttemptRecord | None) -> SharedJob | None:
        """Return the job that an attempt with this record shares; None if it has a job of its own."""
        companions = self._arrays.companions(request.name)
        if not companions:
            return None
        members = []
        for name, directory in companions:
            found = record if name == request.name else self._final.get(name) or readable_record(directory)[0]
            if found is not None and found.finished is not None:
                self._final[name] = found
            members.append(Member(found, owner(directory) if found is None else None))
        return SharedJob(tuple(members), [name for name, _ in companions].index(request.name))

    def heartbeats(self, request: AttemptRequest) -> tuple[int | None, ...]:
        """Return what changes every few seconds while an attempt lives, or one that shares its job."""
        companions = self._arrays.companions(request.name) or [(request.name, request.directory)]
        return tuple(heartbeat(directory) for _, directory in companions)

    def forget(self) -> None:
        """Forget all records: none is needed when nothing is in flight."""
        self._final.clear()
