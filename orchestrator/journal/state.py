"""The state of a campaign: the replay of its journal. ``apply(state, event) -> state`` is pure.

Maps are persistent (``immutables.Map``): a new state shares all that did not change with the old one,
so replaying 10^5 runs stays linear.
"""

from __future__ import annotations

import gc
import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import singledispatch
from typing import Any, NamedTuple

import immutables

from orchestrator.journal import allocations, events, nodes
from orchestrator.journal.file import Entry
from orchestrator.types import Attempt, FailureClass, Point, Run

#
# # FOLDED orchestrator.journal.state: Where runs and attempts stand: the small parts of the state.


class RunStatus(StrEnum):
    """Where a run stands."""

    WAITING = "waiting"  # proposed, not begun
    IN_FLIGHT = "in flight"
    FAILED = "failed"  # its last attempt failed; to be tried again or given up
    MEASURED = "measured"
    GIVEN_UP = "given up"
    SKIPPED = "skipped"  # the budget left could not hold it


class RunState(NamedTuple):
    """One run: how many attempts were begun, how they failed, and what the accepted one measured.

    ``elapsed``: seconds of the accepted attempt; ``cost``: core-seconds of all attempts; ``limit``: seconds
    that the last attempt had; ``node``: where the accepted one ran, if on one only; ``packed``: whether it
    shared its job, so that ``elapsed`` has the usual overhead of a job instead of its own.
    """

    status: RunStatus = RunStatus.WAITING
    attempts: int = 0
    failures: tuple[FailureClass, ...] = ()
    reason: str = ""
    accepted: int | None = None
    samples: events.Samples = immutables.Map()
    elapsed: float = 0.0
    cost: float = 0.0
    limit: float = 0.0
    node: str = ""
    packed: bool = False


class InFlight(NamedTuple):
    """An attempt that was intended and is not settled. ``reserved`` in core-seconds, ``limit`` in seconds.

    ``pack``: what it shares with the other attempts of its job, or empty; ``since``: when it was intended;
    ``span``: seconds from its start to its end, if it was accepted and its cost is not confirmed.
    """

    name: str
    cores: int
    limit: float
    reserved: float
    submitted: bool = False
    running: bool = False
    handle: str = ""
    pack: str = ""
    since: float = 0.0
    span: float | None = None


Runs = immutables.Map[Run, RunState]
Proposed = immutables.Map[str, immutables.Map[Point, int]]


@dataclass(frozen=True, slots=True)
class StopReason:
    """The rule that ended the campaign, and its figures in words."""

    rule: str
    detail: str


def allocation(event: events.AttemptFinished | events.AttemptCharged, flight: InFlight) -> float:
    """Return how many cores were charged for each that was asked for."""
    estimated = isinstance(event, events.AttemptFinished) and event.estimated
    if estimated or event.elapsed <= 0 or math.isclose(event.cost, event.elapsed * flight.cores):
        return 1.0
    return event.cost / (event.elapsed * flight.cores)


def took(event: events.AttemptFinished, flight: InFlight, overhead: float) -> float:
    """Return what an attempt takes in a job of its own, in seconds, so that all can be compared.

    One that shares its job is charged without the ``overhead`` of a job, or with all of it.
    """
    if not flight.pack or event.started is None or event.finished is None:
        return event.elapsed
    return event.finished - event.started + overhead


def price_after(
    price: allocations.Price, event: events.AttemptFinished, flight: InFlight
) -> allocations.Price:
    """Return what jobs cost beside their attempts; one that did not fail says so."""
    known = event.failure is None and not event.estimated and not flight.pack
    if not known or event.started is None or event.finished is None:
        return price
    return allocations.seen(price, event.elapsed, flight.since, event.started, event.finished)


def price_after_pack(
    price: allocations.Price, event: events.AttemptCharged, flight: InFlight
) -> allocations.Price:
    """Return what jobs cost beside their attempts: the first of a pack pays that, unless another failed."""
    if flight.pack != flight.name or flight.span is None or event.elapsed <= flight.span:
        return price
    return allocations.seen_in_pack(price, event.elapsed - flight.span)


def taken_back(runs: Runs, proposed: Proposed, run: Run) -> Proposed:
    """Return the last repetitions after a run was skipped, whose number is thereby free again."""
    known, skipped = proposed[run.kind], RunState(RunStatus.SKIPPED)
    last = known.get(run.point, 0)
    while last and runs.get(replace(run, repetition=last), skipped).status is RunStatus.SKIPPED:
        last -= 1
    return proposed.set(run.kind, known.set(run.point, last))


def tried_anew(runs: Runs, proposed: Proposed, points: frozenset[Point]) -> tuple[Runs, Proposed]:
    """Return runs and repetitions after what was given up at points counts as skipped, to be proposed again.

    What was skipped while it was tried has all its attempts again, too. They keep their numbers, as their
    directories are taken.
    """
    new = runs.mutate()
    for run, item in runs.items():
        if item.status is RunStatus.GIVEN_UP and run.point in points:
            reason = f"given up under other rules: {item.reason}"
            new[run] = item._replace(status=RunStatus.SKIPPED, failures=(), reason=reason)
        elif item.status is RunStatus.SKIPPED and item.failures:
            new[run] = item._replace(failures=())
    runs = new.finish()
    for run in runs:
        if run.point in points:
            proposed = taken_back(runs, proposed, run)
    return runs, proposed


RECENT = 20  # attempts that the rate of failures is taken of
COMPARED = 10  # repetitions before a run, and after it, that its duration is compared with


class State(NamedTuple):
    """Everything that decisions depend on. Costs in core-seconds, times in Unix seconds.

    This and its parts are named tuples because their ``_replace`` is several times faster than that of a
    dataclass, and every event needs it.
    """

    id: str = ""
    campaign: Mapping[str, Any] = immutables.Map()
    time_limit: float | None = None
    started: float | None = None
    time: float = 0.0
    round: int = 0
    rounds_completed: int = 0
    rounds_without_improvement: int = 0
    smape: float | None = None
    width: float | None = None  # of the last round that changed it clearly: see `progress.gain`
    widest: float | None = None
    queue: tuple[Run, ...] = ()
    next: int = 0  # position in the queue
    failed: tuple[Run, ...] = ()
    reasons: immutables.Map[Run, str] = immutables.Map()
    note: str = ""  # of the last round
    runs: immutables.Map[Run, RunState] = immutables.Map()
    proposed: Proposed = immutables.Map()  # last repetitions
    in_flight: immutables.Map[Attempt, InFlight] = immutables.Map()
    unconfirmed: immutables.Map[Attempt, InFlight] = immutables.Map()  # settled, but their cost is estimated
    infeasible: frozenset[Point] = frozenset()
    holds: allocations.Holds = immutables.Map()  # by pack
    price: allocations.Price = allocations.Price()
    spent: float = 0.0
    attempts_settled: int = 0
    consecutive_given_up: int = 0
    allocation: float = 1.0  # cores charged per core asked for, at most
    recent: tuple[bool, ...] = ()  # whether the last attempts failed
    marks: immutables.Map[str, tuple[str, ...]] = immutables.Map()  # what speaks against a node
    failed_nodes: immutables.Map[str, float] = immutables.Map()  # when a node failed last
    stopping: StopReason | None = None
    validation: Run | None = None
    stopped: StopReason | None = None

    @property
    def reserved(self) -> float:
        """Core-seconds that the attempts in flight, and jobs whose books are open, may still cost."""
        alone = sum(item.reserved for item in self.in_flight.values() if not item.pack)
        return alone + sum(hold.left for hold in self.holds.values())

    @property
    def jobs(self) -> int:
        """Allocations that are asked for or used."""
        packed = {item.pack for item in self.in_flight.values() if item.pack}
        return len(packed) + sum(not item.pack for item in self.in_flight.values())

    @property
    def waiting(self) -> tuple[Run, ...]:
        """Runs of the current round that were not begun."""
        return self.queue[self.next :]


def replay(entries: Iterable[Entry], state: State | None = None) -> State:
    """Apply entries in order."""
    state = state or State()
    collecting = gc.isenabled()
    gc.disable()  # nothing here makes cycles, and looking for them costs more than the replay
    try:
        for entry in entries:
            state = apply(state, entry.event, entry.time)
    finally:
        if collecting:
            gc.enable()
    return state


def apply(state: State, event: events.Event, time: float) -> State:
    """Return the state after an event.

    Raises
    ------
    ValueError
        For an event that cannot follow this state; its text tells the story of the run.
    """
    started = time if state.started is None else state.started
    return _apply(event, state._replace(time=time, started=started))


@singledispatch
def _apply(event: events.Event, state: State) -> State:
    return state  # ControllerStarted and ControllerStopped change nothing that decisions depend on


@_apply.register
def _(event: events.CampaignStarted, state: State) -> State:
    return state._replace(id=event.id, campaign=event.campaign, time_limit=event.time_limit)


@_apply.register
def _(event: events.CampaignChanged, state: State) -> State:
    if event.anew:
        runs, proposed = tried_anew(state.runs, state.proposed, state.infeasible)
        state = state._replace(runs=runs, proposed=proposed, infeasible=frozenset())
    # What was skipped, perhaps because the campaign was about to stop, says nothing about the new rules.
    begun = [run for run in state.queue[: state.next] if state.runs[run].status is not RunStatus.SKIPPED]
    return state._replace(
        campaign=event.campaign,
        queue=() if state.stopped is not None else (*begun, *state.waiting),
        next=0 if state.stopped is not None else len(begun),
        stopping=None,
        stopped=None,
        recent=(),
        consecutive_given_up=0,
    )


@_apply.register
def _(event: events.RoundProposed, state: State) -> State:
    runs = state.runs.mutate()
    reasons = state.reasons.mutate()
    last = {kind: known.mutate() for kind, known in state.proposed.items()}
    for run, reason in zip(event.runs, event.reasons, strict=True):
        # One that was skipped before keeps its attempts: their directories are taken.
        runs[run] = runs.get(run, RunState())._replace(status=RunStatus.WAITING)
        reasons[run] = reason
        known = last.setdefault(run.kind, immutables.Map().mutate())
        known[run.point] = max(run.repetition, known.get(run.point, 0))
    return state._replace(
        round=event.round,
        queue=event.runs,
        next=0,
        runs=runs.finish(),
        reasons=reasons.finish(),
        note=event.note,
        proposed=immutables.Map({kind: known.finish() for kind, known in last.items()}),
    )


@_apply.register
def _(event: events.AttemptIntended, state: State) -> State:
    run = event.attempt.run
    current = _run(state, run)
    if current.status not in (RunStatus.WAITING, RunStatus.FAILED):
        raise ValueError(_story(state, run, f"attempt {event.attempt.number} intended"))
    item = InFlight(event.name, event.cores, event.limit, event.reserved, pack=event.pack, since=state.time)
    return _dequeue(state, run)._replace(
        runs=state.runs.set(
            run,
            current._replace(status=RunStatus.IN_FLIGHT, attempts=event.attempt.number, limit=event.limit),
        ),
        in_flight=state.in_flight.set(event.attempt, item),
        holds=allocations.begun(state.holds, event.pack, event.reserved),
    )


@_apply.register
def _(event: events.AttemptSubmitted, state: State) -> State:
    return _update(
        state, event.attempt, lambda x: x._replace(submitted=True, handle=event.handle or x.handle)
    )


@_apply.register
def _(event: events.AttemptStarted, state: State) -> State:
    return _update(
        state,
        event.attempt,
        lambda x: x._replace(submitted=True, running=True, handle=event.handle or x.handle),
    )


@_apply.register
def _(event: events.AttemptWithdrawn, state: State) -> State:
    _check_in_flight(state, event.attempt)
    run = event.attempt.run
    current = _run(state, run)
    used = event.attempt.number if event.barred else event.attempt.number - 1
    return state._replace(
        in_flight=state.in_flight.delete(event.attempt),
        holds=allocations.charged(state.holds, state.in_flight[event.attempt].pack, 0.0, final=True),
        runs=state.runs.set(run, current._replace(status=RunStatus.FAILED, attempts=used)),
        failed=(*state.failed, run),
    )


@_apply.register
def _(event: events.AttemptFinished, state: State) -> State:
    _check_in_flight(state, event.attempt)
    run, flight = event.attempt.run, state.in_flight[event.attempt]
    current = _run(state, run)
    current = current._replace(cost=current.cost + event.cost)
    state = state._replace(
        in_flight=state.in_flight.delete(event.attempt),
        holds=allocations.charged(state.holds, flight.pack, event.cost, final=not event.estimated),
        price=price_after(state.price, event, flight),
        spent=state.spent + event.cost,
        attempts_settled=state.attempts_settled + 1,
        allocation=max(state.allocation, allocation(event, flight)),
        recent=state.recent if event.cancelled else (*state.recent, event.failure is not None)[-RECENT:],
        marks=_marked(state, event),
        failed_nodes=state.failed_nodes.update(dict.fromkeys(event.blamed, state.time)),
    )
    if event.estimated:
        good = event.failure is None and event.started is not None and event.finished is not None
        span = event.finished - event.started if good else None  # type: ignore[operator]
        flight = flight._replace(reserved=event.cost, span=span)
        state = state._replace(unconfirmed=state.unconfirmed.set(event.attempt, flight))
    if event.failure is None:
        measured = current._replace(
            status=RunStatus.MEASURED,
            accepted=event.attempt.number,
            samples=event.samples,
            elapsed=took(event, flight, state.price.overhead),
            node=event.host if event.nodes == 1 else "",
            packed=bool(flight.pack),
        )
        return state._replace(
            runs=state.runs.set(run, measured),
            consecutive_given_up=0,
        )
    failed = current._replace(
        status=RunStatus.FAILED,
        failures=current.failures if event.cancelled else (*current.failures, event.failure),
        reason=event.reason,
    )
    return state._replace(runs=state.runs.set(run, failed), failed=(*state.failed, run))


@_apply.register
def _(event: events.AttemptCharged, state: State) -> State:
    if event.attempt not in state.unconfirmed:
        raise ValueError(_story(state, event.attempt.run, f"attempt {event.attempt.number} is charged again"))
    run, flight = event.attempt.run, state.unconfirmed[event.attempt]
    current, more = _run(state, run), event.cost - flight.reserved
    return state._replace(
        holds=allocations.charged(state.holds, flight.pack, more, final=True),
        price=price_after_pack(state.price, event, flight),
        allocation=max(state.allocation, allocation(event, flight)),
        unconfirmed=state.unconfirmed.delete(event.attempt),
        spent=state.spent + more,
        runs=state.runs.set(run, current._replace(cost=current.cost + more)),
    )


@_apply.register
def _(event: events.RunGivenUp, state: State) -> State:
    given_up = _run(state, event.run)._replace(status=RunStatus.GIVEN_UP, reason=event.reason)
    harmless = event.run.kind != "time" or _measured_before(state, event.run)  # times can be had there
    return _dequeue(state, event.run)._replace(
        runs=state.runs.set(event.run, given_up),
        infeasible=state.infeasible | (frozenset() if harmless else {event.run.point}),
        consecutive_given_up=state.consecutive_given_up + 1,
    )


@_apply.register
def _(event: events.RunSkipped, state: State) -> State:
    skipped = _run(state, event.run)._replace(status=RunStatus.SKIPPED, reason=event.reason)
    state = _dequeue(state, event.run)._replace(runs=state.runs.set(event.run, skipped))
    if event.run == state.validation:
        return state
    return state._replace(proposed=taken_back(state.runs, state.proposed, event.run))


@_apply.register
def _(event: events.RoundCompleted, state: State) -> State:
    if not event.measured:
        return state._replace(rounds_completed=event.round)
    return state._replace(
        rounds_completed=event.round,
        smape=event.smape,
        width=event.width if event.improved and event.gain != "fit" else state.width,
        widest=event.widest,
        rounds_without_improvement=0 if event.improved else state.rounds_without_improvement + 1,
    )


@_apply.register
def _(event: events.StopRuleReached, state: State) -> State:
    return state._replace(stopping=StopReason(event.rule, event.detail))


@_apply.register
def _(event: events.ValidationProposed, state: State) -> State:
    return state._replace(
        validation=event.run,
        runs=state.runs.set(event.run, RunState()),
        queue=(event.run,),
        next=0,
    )


@_apply.register
def _(event: events.CampaignStopped, state: State) -> State:
    return state._replace(stopped=StopReason(event.rule, event.detail))


def _marked(state: State, event: events.AttemptFinished) -> immutables.Map[str, tuple[str, ...]]:
    """Return what speaks against nodes after an attempt: it failed because of them, or was slow there."""
    marks, run = state.marks, event.attempt.run
    for node in event.blamed:
        # What ran there at the same time failed for the same cause.
        if state.time - state.failed_nodes.get(node, -math.inf) > nodes.SAME:
            marks = marks.set(node, (*marks.get(node, ()), f"{event.attempt}: {event.reason}"))
    if event.failure is not None or event.nodes > 1 or not event.host:
        return marks
    flight = state.in_flight[event.attempt]
    seconds = took(event, flight, state.price.overhead)
    alike = [item for item in _siblings(state, run) if item.packed == bool(flight.pack)]
    others = [item.elapsed for item in alike if item.node not in ("", event.host)]
    if nodes.is_slow(seconds, others):
        reason = f"{event.attempt}: {seconds:.6g} s, elsewhere {statistics.median(others):.6g} s"
        marks = marks.set(event.host, (*marks.get(event.host, ()), reason))
    return marks


def _siblings(state: State, run: Run) -> list[RunState]:
    """Return the measured repetitions of a run's point and kind that are nearest to it."""
    near = range(max(1, run.repetition - COMPARED), run.repetition + COMPARED + 1)
    found = (state.runs.get(replace(run, repetition=k)) for k in near)
    return [item for item in found if item is not None and item.status is RunStatus.MEASURED]


def _run(state: State, run: Run) -> RunState:
    if run not in state.runs:
        raise ValueError(f"{run} was never proposed")
    return state.runs[run]


def _measured_before(state: State, run: Run) -> bool:
    """Whether an earlier repetition succeeded, so that the failure is not the point's fault."""
    earlier = (replace(run, repetition=k) for k in range(1, run.repetition))
    return any(state.runs.get(item, RunState()).status is RunStatus.MEASURED for item in earlier)


def _dequeue(state: State, run: Run) -> State:
    """Take a run off the queue's head, or off the failed ones."""
    if state.next < len(state.queue) and state.queue[state.next] == run:
        return state._replace(next=state.next + 1)
    return state._replace(failed=tuple(item for item in state.failed if item != run))


def _check_in_flight(state: State, attempt: Attempt) -> None:
    if attempt not in state.in_flight:
        raise ValueError(_story(state, attempt.run, f"attempt {attempt.number} is not in flight"))


def _update(state: State, attempt: Attempt, change: Callable[[InFlight], InFlight]) -> State:
    _check_in_flight(state, attempt)
    return state._replace(in_flight=state.in_flight.set(attempt, change(state.in_flight[attempt])))


def _story(state: State, run: Run, what: str) -> str:
    item = state.runs.get(run, RunState())
    failures = ", ".join(item.failures) or "none"
    return (
        f"impossible event for {run}: {what}; it is {item.status}, {item.attempts} attempts begun, "
        f"failures: {failures}"
    )
