"""One attempt as the Slurm executor follows it: everything that is remembered about it in one object."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.types import AttemptRequest


class Phase(StrEnum):
    """What the executor expects of an attempt. An attempt of which it expects nothing is not tracked.

    ========== ============================================== =============================================
    phase      meaning                                        left by
    ========== ============================================== =============================================
    SUBMITTED  submitted or cancelled here, not polled yet    `TrackedAttempt.poll`, `await_charge`
    OPEN       polled, and not settled                        being settled: it is tracked no more, or
                                                              `TrackedAttempt.expect_late_job`
    REVOKED    settled, it never begins; but a job of it      an hour without one: it is tracked no more
               may still turn up, which is to be cancelled
    CHARGING   settled, but for its charge                    knowing the charge: it is tracked no more, or
                                                              `TrackedAttempt.poll`
    ========== ============================================== =============================================
    """

    SUBMITTED = "submitted"
    OPEN = "open"
    REVOKED = "revoked"
    CHARGING = "charging"


@dataclass(slots=True)
class Stopwatch:
    """For how long something has been seen to hold, without a change in what it is seen by."""

    since: float | None = None
    seen_by: object = None

    def seconds(self, now: float, holds: bool, seen_by: object = None) -> float:
        """Return the seconds since it first held and was seen by this; 0 where it does not hold."""
        if not holds:
            self.since = None
            return 0.0
        # Where the clock was set back, what was seen before says nothing.
        if self.since is None or self.seen_by != seen_by or now < self.since:
            self.since, self.seen_by = now, seen_by
        return now - self.since


@dataclass(slots=True, kw_only=True)
class TrackedAttempt:
    """What the executor remembers of one attempt between two looks at Slurm and at the files."""

    request: AttemptRequest
    phase: Phase = Phase.SUBMITTED  # see `Phase`; only `poll`, `expect_late_job` and `await_charge` change it
    job_id: str = ""  # of its job, as ``sbatch`` or a query reported it; empty while that is unknown
    cancelled: bool = False  # whether every job of it is to be cancelled, also one that turns up later
    # Why its job is still queued, or does not go on, as of the last look; empty where it runs.
    waits_for: str = ""
    last_queued: float = float("-inf")  # when Slurm last reported it as queued (Unix seconds)
    # Changes when the attempt writes its record; as of the last poll.
    record_version: tuple[int, int] | None = None
    # finished, gone, hopeless: for how long its record has been finished; it has had no job and no sign of
    # life; it has waited for what will never happen.
    finished: Stopwatch = field(default_factory=Stopwatch)
    gone: Stopwatch = field(default_factory=Stopwatch)
    hopeless: Stopwatch = field(default_factory=Stopwatch)
    late_since: float = float("inf")  # when it became REVOKED

    @property
    def polled(self) -> bool:
        """Whether jobs of it may have to be cancelled, and its record is waited for."""
        return self.phase in (Phase.OPEN, Phase.REVOKED)

    @property
    def asked_for(self) -> bool:
        """Whether queries of Slurm include its jobs."""
        return self.phase is not Phase.SUBMITTED

    def poll(self, record_version: tuple[int, int] | None) -> None:
        """Follow it until it is settled; a revoked attempt stays revoked."""
        self.record_version = record_version
        if self.phase is not Phase.REVOKED:
            self.phase = Phase.OPEN

    def expect_late_job(self, now: float) -> None:
        """Expect nothing more but a job that turns up late."""
        if self.phase is not Phase.REVOKED:
            self.phase, self.late_since = Phase.REVOKED, now

    def await_charge(self) -> None:
        """Follow a settled attempt until its charge is known."""
        if self.phase is Phase.SUBMITTED:
            self.phase = Phase.CHARGING
