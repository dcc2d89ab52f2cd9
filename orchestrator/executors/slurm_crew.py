"""Attempts that share a job: what each is charged of what Slurm books for all of them. Pure.

Each is charged its own span, from its start to its end. What is left of the job (its start-up, its end, and
what was going on when it ended) is charged to the attempt that had not finished, or else to the first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.executors.attempt import OWNER
from orchestrator.types import AttemptRecord


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
