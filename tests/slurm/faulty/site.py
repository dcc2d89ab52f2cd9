"""The daemons, clocks and file system of a site: which of them are away, wrong or late, and until when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.slurm.faulty.faults import SITE, Fault

_NO_CONTROLLER = ("controller away", "controller killed", "controller hangs", "both away")
_NO_ACCOUNTING = ("accounting away", "both away")


@dataclass(frozen=True, slots=True)
class Span:
    """A fault of the site from one instant to another (virtual Unix seconds)."""

    fault: Fault
    begin: float

    @property
    def end(self) -> float:
        """When it is over."""
        return self.begin + self.fault.seconds


@dataclass
class Site:
    """What is wrong with a site; ``spans`` has every fault that began."""

    began: float
    spans: list[Span] = field(default_factory=list)
    _waiting: list[Fault] = field(default_factory=list)
    _moments: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, faults: Iterable[Fault], began: float) -> Site:
        """Take the faults of a site from all faults."""
        own = [fault for fault in faults if fault.command == SITE]
        spans = [Span(fault, began + fault.begin) for fault in own if not fault.moment]
        return cls(began, spans, [fault for fault in own if fault.moment])

    def reached(self, moment: str, now: float) -> list[Span]:
        """Count that a job got there; return the faults that begin therefore."""
        self._moments[moment] += 1
        due = [f for f in self._waiting if (f.moment, f.ordinal) == (moment, self._moments[moment])]
        begun = [Span(fault, now) for fault in due]
        self._waiting = [fault for fault in self._waiting if fault not in due]
        self.spans += begun
        return begun

    def controller(self, now: float) -> Span | None:
        """Return why slurmctld does not answer: of several faults, the last one to end."""
        return self._last(now, _NO_CONTROLLER)

    def accounting(self, now: float) -> Span | None:
        """Return why slurmdbd does not answer."""
        return self._last(now, _NO_ACCOUNTING)

    def back(self, now: float) -> float:
        """Return when slurmctld answers (again)."""
        while (span := self.controller(now)) is not None:
            now = span.end
        return now

    def late(self, what: str, now: float) -> float:
        """Return by how many seconds something that happens now is seen too late."""
        return max((span.fault.value for span in self._now(now) if span.fault.what == what), default=0.0)

    def clock(self, what: str, now: float) -> float:
        """Return by how much a clock is wrong: once it was set, it stays so."""
        return sum(s.fault.value for s in self.spans if s.fault.what == what and s.begin <= now)

    def _now(self, now: float) -> list[Span]:
        return [span for span in self.spans if span.begin <= now < span.end]

    def _last(self, now: float, kinds: tuple[str, ...]) -> Span | None:
        found = [span for span in self._now(now) if span.fault.what in kinds]
        return max(found, key=lambda span: span.end, default=None)
