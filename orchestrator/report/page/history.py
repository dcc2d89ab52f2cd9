"""What a journal says of a campaign's course: controllers, rounds, attempts, and what was spent when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.replay import apply
from orchestrator.journal.state import RunStatus, State
from orchestrator.types import Attempt, Point, Run
from orchestrator.units import campaign_budget


@dataclass(slots=True, kw_only=True)
class AttemptCourse:
    """One attempt. Times in Unix seconds, the charge in core-seconds; ``failure``: the class of one."""

    intended: float
    started: float | None = None
    finished: float | None = None
    node: str = ""
    state: str = "queued"
    charge: float | None = None
    reason: str = ""
    failure: str = ""
    cores: int = 0

    @property
    def why(self) -> str:
        """The class of the failure and its reason, as far as there are any."""
        return ": ".join(filter(None, (self.failure, self.reason)))


@dataclass(frozen=True, slots=True)
class RoundCourse:
    """A completed round: what was spent until then (core-seconds), and how many points were measured."""

    event: events.RoundCompleted
    time: float
    spent: float
    points: int


class Spending(NamedTuple):
    """What was spent, reserved and allowed from a time on: Unix seconds, and core-seconds."""

    time: float
    spent: float
    reserved: float
    budget: float


@dataclass(slots=True, kw_only=True)
class History:
    """The course of a campaign, and its state at the end."""

    state: State = field(default_factory=State)
    controllers: list[events.ControllerStarted] = field(default_factory=list)
    rounds: list[RoundCourse] = field(default_factory=list)
    attempts: dict[Attempt, AttemptCourse] = field(default_factory=dict)
    round_of: dict[Point, int] = field(default_factory=dict)
    reasons: dict[Run, str] = field(default_factory=dict)
    spending: list[Spending] = field(default_factory=list)  # after each change, and at the end
    _measured: set[Point] = field(default_factory=set)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> History:
        """Follow a journal from its beginning."""
        found = cls()
        for entry in entries:
            found.take(entry)
        if found.spending and found.state.time > found.spending[-1].time:
            found.spending.append(found.spending[-1]._replace(time=found.state.time))
        return found

    def take(self, entry: Entry) -> None:
        """Apply an entry, and note what the state forgets."""
        event = entry.event
        self.state = apply(self.state, event, entry.time)
        match event:
            case events.ControllerStarted():
                self.controllers.append(event)
            case events.RoundProposed(number, runs, reasons):
                for run, reason in zip(runs, reasons, strict=True):
                    self.round_of.setdefault(run.point, number)
                    self.reasons.setdefault(run, reason)
            case events.ValidationProposed(run):
                self.reasons[run] = "validation at the evaluation point, never used for fitting"
            case events.RoundCompleted():
                self.rounds.append(RoundCourse(event, entry.time, self.state.spent, len(self._measured)))
            case events.MeasurementsDiscarded() | events.MeasurementsRestored():
                self._measured = {
                    run.point
                    for run, item in self.state.runs.items()
                    if item.status is RunStatus.MEASURED and run != self.state.validation
                }
            case _:
                self._attempt(event, entry.time)
        if self.state.campaign:
            budget = campaign_budget(self.state.campaign)
            row = Spending(entry.time, self.state.spent, self.state.reserved, budget)
            if not self.spending or self.spending[-1][1:] != row[1:]:
                self.spending.append(row)

    def _attempt(self, event: events.Event, time: float) -> None:
        match event:
            case events.AttemptIntended(attempt=attempt):
                self.attempts[attempt] = AttemptCourse(intended=time, cores=event.cores)
            case events.AttemptStarted(attempt) if attempt in self.attempts:
                self.attempts[attempt].started = time
                self.attempts[attempt].state = "running"
            case events.AttemptWithdrawn(attempt, reason) if attempt in self.attempts:
                course = self.attempts[attempt]
                course.state, course.reason, course.finished, course.charge = "withdrawn", reason, time, 0.0
            case events.AttemptFinished(attempt=attempt) if attempt in self.attempts:
                self._finished(event, self.attempts[attempt], time)
            case events.AttemptCharged(attempt, _, cost) if attempt in self.attempts:
                self.attempts[attempt].charge = cost
            case events.AttemptReread(attempt=attempt) if event.recovered and attempt in self.attempts:
                self.attempts[attempt].state = "measured"

    def _finished(self, event: events.AttemptFinished, course: AttemptCourse, time: float) -> None:
        course.started = course.started if event.started is None else event.started
        course.finished = time if event.finished is None else event.finished
        course.node = ", ".join(event.on) or event.host
        course.charge, course.reason = event.cost, event.reason
        if event.failure is None:
            course.state = "measured"
            if event.attempt.run != self.state.validation:
                self._measured.add(event.attempt.run.point)
        else:
            course.state = "cancelled" if event.cancelled else "failed"
            course.failure = str(event.failure)
