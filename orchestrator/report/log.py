"""What happened in a campaign, what was spent, what was given up and why: from the journal alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import immutables

from orchestrator.journal import allocations, events, executables
from orchestrator.journal.codec import Entry
from orchestrator.journal.differences import differences
from orchestrator.journal.file import require_campaign
from orchestrator.journal.forms import form_of
from orchestrator.journal.references import REASON
from orchestrator.journal.snapshot import Fold, read_through
from orchestrator.journal.state import is_rehearsal
from orchestrator.report import advice
from orchestrator.report.event_text import describe
from orchestrator.resources import core_hours
from orchestrator.storage import iso
from orchestrator.types import Attempt, Run
from orchestrator.units import (
    CostUnit,
    campaign_budget,
    campaign_unit,
    count,
    format_cost,
    format_duration,
)


def document(entries: Iterable[Entry]) -> dict[str, Any]:
    """Return what happened in a campaign, JSON-ready; costs in core-hours, instants in UTC, ISO 8601.

    Returns
    -------
    dict
        ``campaign``, ``id``, ``virtual`` (whether instants are of a rehearsal's clock), ``started``, ``last``
        (the last entry), ``state``; ``spent`` (see below);
        ``reference``, runs and their cost;
        ``hosts`` where attempts failed; ``given_up``; and ``events``, each with ``time``, ``kind``, ``text``.
        ``spent`` has ``budget``, ``total``, ``accepted``, ``failed`` by class, ``cancelled``, ``reserved``
        for attempts in flight and jobs whose charge is not confirmed, ``estimated``: the part of ``total``
        that is an upper bound, the ``unit`` of these, and that of texts, ``shown_in``.
    """
    log = Log()
    for entry in entries:
        log.take(entry)
    return log.document()


def document_in(directory: Path) -> dict[str, Any]:
    """Return the same for a campaign directory, from a snapshot where there is one.

    Raises
    ------
    JournalError
        If the directory holds no readable campaign.
    """
    require_campaign(directory)
    return read_through(directory, LOG).document()


_KINDS: Mapping[type, str] = {
    events.ExecutableReplaced: "campaign",
    events.RoundProposed: "round",
    events.RoundCompleted: "round",
    events.ModelsAssessed: "round",
    events.AttemptFinished: "failure",
    events.RunGivenUp: "given up",
    events.RunSkipped: "skipped",
    events.StopRuleReached: "stop",
    events.CampaignPaused: "stop",
    events.OutageBegan: "outage",
    events.OutageEnded: "outage",
    events.ValidationProposed: "round",
    events.StopWithdrawn: "stop",
    events.RereadCompleted: "campaign",
    events.MeasurementsDiscarded: "campaign",
    events.MeasurementsRestored: "campaign",
}


_ACCEPTED, _CANCELLED = "accepted", "cancelled"
# The next controller writes the first before it starts, and commands write the others.
_WITHOUT_CONTROLLER = (
    events.CampaignChanged,
    events.MeasurementsDiscarded,
    events.MeasurementsRestored,
)


def _outcome(event: events.AttemptFinished) -> str:
    """Return what an attempt is counted under: a class of failure, unless it was accepted or cancelled."""
    if event.failure is None:
        return _ACCEPTED
    return _CANCELLED if event.cancelled else str(event.failure)


@dataclass(slots=True, kw_only=True)
class Log:
    """Tallies and lines, gathered entry by entry; what it keeps grows with failures, not with runs."""

    lines: list[dict[str, str]] = field(default_factory=list)
    campaign: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    started: float | None = None
    last: float = 0.0
    alive: float = 0.0  # time of the last entry that a running controller wrote
    state: str = "not started"
    estimated: float = 0.0
    costs: dict[str, float] = field(default_factory=dict)  # by outcome
    attempts: Counter[str] = field(default_factory=Counter)
    # What is reserved for those that share no job.
    in_flight: dict[Attempt, float] = field(default_factory=dict)
    shared: dict[Attempt, str] = field(default_factory=dict)  # whose job it shares
    holds: allocations.Holds = field(default_factory=immutables.Map)
    jobs: dict[Attempt, str] = field(default_factory=dict)  # of those in flight
    packs: dict[Attempt, str] = field(default_factory=dict)
    round_jobs: set[str] = field(default_factory=set)
    # Of other rounds, with charges that were not confirmed in them.
    earlier: set[Attempt] = field(default_factory=set)
    references: set[Run] = field(default_factory=set)
    reference_cost: float = 0.0
    hosts: dict[str, Counter[str]] = field(default_factory=dict)
    unconfirmed: dict[Attempt, events.AttemptFinished] = field(default_factory=dict)
    given_up: list[dict[str, Any]] = field(default_factory=list)
    recovered: set[str] = field(default_factory=set)
    discarded: dict[str, dict[str, str]] = field(default_factory=dict)  # by run
    running: str | None = None
    executable: str = ""
    note: str = ""  # of the last round
    undecided: bool = False  # whether other values count since a controller ran
    round_began: float = 0.0
    in_round: Counter[str] = field(default_factory=Counter)
    round_cost: float = 0.0

    def take(self, entry: Entry) -> None:
        """Count an entry, and add a line if it deserves one."""
        event = entry.event
        self.started = entry.time if self.started is None else self.started
        self._count(event, entry.time)
        if text := self._line(event, entry.time):
            cancelled = isinstance(event, events.AttemptFinished) and event.cancelled
            self._add(entry.time, _CANCELLED if cancelled else _KINDS[type(event)], text)
        if isinstance(event, events.RoundProposed):
            self.note = event.note
        if isinstance(event, events.AttemptFinished):
            self._gone(event.attempt)
        self.last = entry.time
        if not isinstance(event, _WITHOUT_CONTROLLER):
            self.alive = entry.time

    def _line(self, event: events.Event, time: float) -> str:
        """Return what `describe` says of an event, with what was counted before, or an empty text."""
        text = describe(event, self.note)
        if text and isinstance(event, events.RoundCompleted):
            return text + self._round(time)
        if text and isinstance(event, events.AttemptFinished) and event.attempt in self.jobs:
            return f"{text} (job {self.jobs[event.attempt]})"
        return text

    def _count(self, event: events.Event, time: float) -> None:
        match event:
            case events.CampaignStarted() | events.CampaignChanged():
                self._rules(event, time)
            case events.ControllerStarted() | events.ControllerStopped():
                self._controller(event, time)
            case events.AttemptIntended():
                self._intended(event)
            case events.AttemptSubmitted(attempt, handle) | events.AttemptStarted(attempt, handle) if handle:
                self.jobs[attempt] = handle
            case events.AttemptWithdrawn(attempt):
                self._gone(attempt)
                self._hold(attempt, 0.0, final=True)
            case events.AttemptFinished():
                self._finished(event)
            case events.AttemptCharged(attempt, _, cost):
                self._corrected(attempt, cost)
            case events.RoundProposed():
                self._begin_round(event, time)
            case events.StopRuleReached():
                self.state = "stopping"
            case events.StopWithdrawn():
                self.state = "running"
            case events.CampaignPaused(cause, detail):
                self.state = f"paused: {cause} ({detail})"
            case events.CampaignStopped(rule, detail):
                self.state, self.running = f"stopped: {rule} ({detail})", None
                self._add(time, "stop", f"campaign stopped: {rule} ({detail})")
            case events.AttemptReread(attempt=attempt) if event.recovered:
                self.recovered.add(attempt.run.id)
            case events.RereadBegan():
                self.recovered.clear()
            case events.RereadCompleted():
                self.campaign = event.campaign
                self.undecided = self.undecided or event.attempts > 0
                self.given_up = [item for item in self.given_up if item["run"] not in self.recovered]
            case events.MeasurementsDiscarded(runs, reason):
                self.undecided = True
                self.discarded.update((run.id, {"time": iso(time), "reason": reason}) for run in runs)
            case events.MeasurementsRestored(runs):
                self.undecided = True
                for run in runs:
                    self.discarded.pop(run.id, None)
            case events.RunGivenUp(run, reason):
                self.given_up.append({"time": iso(time), "run": run.id, "reason": reason})

    def _add(self, time: float, kind: str, text: str) -> None:
        self.lines.append({"time": iso(time), "kind": kind, "text": text})

    def _rules(self, event: events.CampaignStarted | events.CampaignChanged, time: float) -> None:
        old, self.campaign = self.campaign, event.campaign
        if isinstance(event, events.CampaignStarted):
            self.id = event.id
            cost = format_cost(self.budget, self.unit)
            self._add(time, "campaign", f"campaign {event.campaign['name']} begins with {cost}")
            for entry in event.priors.get("campaigns", ()):
                text = f"learns from {entry['name']} ({entry['path']}): {count(entry['models'], 'model')}"
                self._add(time, "campaign", text + (" and its effort counts" if entry["effort"] else ""))
        else:
            self.state = "running"
            changes = [*differences(old, event.campaign)]
            if self.undecided:
                changes.append(f"{advice.OTHER_VALUES}: decides again")
                self.undecided = False
            changed = "; ".join(changes) or "none"
            changed += "; points that were given up are tried again" if event.anew else ""
            self._add(time, "campaign", f"rules changed: {changed}")

    def _controller(self, event: events.ControllerStarted | events.ControllerStopped, time: float) -> None:
        if isinstance(event, events.ControllerStopped):
            self.running = None
            waits = f", {count(len(self.in_flight), 'attempt')} left in flight" if self.in_flight else ""
            self._add(time, "controller", f"controller stopped: {event.reason}{waits}")
            return
        if self.running is not None:
            gap = round(time - self.alive)
            known = f"no controller was running for {format_duration(gap)} at most"
            if gap < 0:
                known = f"the clock was set back by {format_duration(-gap)} or more"
            lost = f"{self.running} was killed or its machine failed; {known}"
            self._add(time, "controller", f"controller {lost}")
        if self.state.startswith("paused"):
            self.state = "running"
        self.running = f"on {event.host}, pid {event.pid}"
        self._add(time, "controller", f"controller starts {self.running} (version {event.version})")
        digest = executables.digests(event.provenance).get("executable", "")
        if self.executable and digest and digest != self.executable:
            both = executables.in_short([self.executable, digest])
            text = f"the executable is another one than before: measurements of both are mixed ({both})"
            self._add(time, "controller", text)
        self.executable = digest or self.executable

    def _begin_round(self, event: events.RoundProposed, time: float) -> None:
        self.round_began, self.round_cost, self.in_round = time, 0.0, Counter()
        self.round_jobs.clear()
        pairs = zip(event.runs, event.reasons, strict=True)
        self.references |= {run for run, reason in pairs if reason.startswith(REASON)}
        self.earlier = set(self.unconfirmed)
        self.state = "running"

    def _intended(self, event: events.AttemptIntended) -> None:
        attempt = event.attempt
        self.in_flight[attempt] = 0.0 if event.pack else event.reserved
        self.shared.pop(attempt, None)  # one that was withdrawn may begin again in a job of its own
        if event.pack:
            self.shared[attempt] = event.pack
        self.holds = allocations.begun(self.holds, event.pack, event.reserved)
        self.packs[attempt] = event.pack or event.name

    def _gone(self, attempt: Attempt) -> None:
        for known in (self.in_flight, self.jobs, self.packs):
            known.pop(attempt, None)

    def _hold(self, attempt: Attempt, cost: float, final: bool) -> None:
        self.holds = allocations.charged(self.holds, self.shared.get(attempt, ""), cost, final)

    def _finished(self, event: events.AttemptFinished) -> None:
        self.round_jobs.add(self.packs.get(event.attempt, ""))
        outcome = _outcome(event)
        self.attempts[outcome] += 1
        self.in_round[outcome if outcome in (_ACCEPTED, _CANCELLED) else "failed"] += 1
        self.round_cost += event.cost
        self.reference_cost += event.cost if event.attempt.run in self.references else 0.0
        self._hold(event.attempt, event.cost, final=not event.estimated)
        self.costs[outcome] = self.costs.get(outcome, 0.0) + event.cost
        if event.estimated:
            self.estimated += event.cost
            self.unconfirmed[event.attempt] = event
        if event.host:
            self.hosts.setdefault(event.host, Counter())[outcome] += 1

    def _corrected(self, attempt: Attempt, cost: float) -> None:
        before = self.unconfirmed.pop(attempt)
        self.estimated -= before.cost
        self._hold(attempt, cost - before.cost, final=True)
        if attempt not in self.earlier:
            self.round_cost += cost - before.cost
        if attempt.run in self.references:
            self.reference_cost += cost - before.cost
        self.costs[_outcome(before)] += cost - before.cost

    def _round(self, now: float) -> str:
        words = ("failed", _CANCELLED)
        others = [
            f", {count(self.in_round[word], 'attempt')} {word}" for word in words if self.in_round[word]
        ]
        took = format_duration(max(1.0, round(now - self.round_began)))
        measured = count(self.in_round[_ACCEPTED], "run")
        if len(self.round_jobs) < self.in_round[_ACCEPTED]:
            measured += f" in {count(len(self.round_jobs), 'job')}"
        return f"; {measured} measured{''.join(others)}, {format_cost(self.round_cost, self.unit)}, {took}"

    @property
    def budget(self) -> float:
        """Core-seconds of the campaign."""
        return campaign_budget(self.campaign)

    @property
    def unit(self) -> CostUnit:
        """In which costs are shown."""
        return campaign_unit(self.campaign)

    def document(self) -> dict[str, Any]:
        """Return the result."""
        failed = {name: cost for name, cost in self.costs.items() if name not in (_ACCEPTED, _CANCELLED)}
        return {
            "campaign": self.campaign["name"],
            "id": self.id,
            "virtual": is_rehearsal(self.campaign),
            "started": iso(self.started or 0.0),
            "last": iso(self.last),
            "state": self.state,
            "controller": self.running,
            "spent": {
                "budget": core_hours(self.budget),
                "total": core_hours(sum(self.costs.values())),
                "accepted": core_hours(self.costs.get(_ACCEPTED, 0.0)),
                "failed": {name: core_hours(cost) for name, cost in sorted(failed.items())},
                "cancelled": core_hours(self.costs.get(_CANCELLED, 0.0)),
                "reserved": core_hours(
                    sum(self.in_flight.values()) + sum(hold.left for hold in self.holds.values())
                ),
                # Without unconfirmed charges there is only what rounding leaves.
                "estimated": core_hours(self.estimated) if self.unconfirmed else 0.0,
                "unit": "core-hours",
                "shown_in": self.unit,
            },
            "reference": {"runs": len(self.references), "cost": core_hours(self.reference_cost)},
            "attempts": {**self.attempts, "in flight": len(self.in_flight)},
            "hosts": {
                host: {"attempts": found.total(), "failed": failures}
                for host, found in sorted(self.hosts.items())
                if (failures := found.total() - found[_ACCEPTED] - found[_CANCELLED])
            },
            "given_up": self.given_up,
            "discarded": [{"run": run, **item} for run, item in self.discarded.items()],
            "events": self.lines,
        }


def _take(log: Log, entry: Entry) -> Log:
    log.take(entry)
    return log


LOG = Fold("log", Log, _take, form_of(Log))
"""What the log shows of a journal."""
