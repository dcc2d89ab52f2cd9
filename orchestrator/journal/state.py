"""The state of a campaign: the replay of its journal. ``apply(state, event) -> state`` is pure.

Maps are persistent (``immutables.Map``): a new state shares all that did not change with the old one,
so replaying 10^5 runs stays linear.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import singledispatch
from typing import Any, NamedTuple

import immutables

from orchestrator.journal import allocations, events, executables, nodes, setbacks
from orchestrator.journal.executables import Digests, Used
from orchestrator.journal.file import Entry
from orchestrator.journal.setbacks import Setbacks
from orchestrator.types import Attempt, FailureClass, Point, Run

FAILURE_RULES = ("failures", "failure_rate")  # whoever resumes a campaign after them has fixed the cause
RECENT = 20  # attempts that the rate of failures is taken over
_SIMULATED = "simulated"  # the executor of a rehearsal, and the host of its runs
MARKED = 12  # rounds of which is known where the campaign stood
COMPARED = 10  # repetitions before a run, and after it, that its duration is compared with


def is_rehearsal(campaign: Mapping[str, Any]) -> bool:
    """Return whether a campaign as journaled starts no program: its clock is virtual and begins at zero."""
    return (campaign.get("executor") or {}).get("name") == _SIMULATED


class RunStatus(StrEnum):
    """Where a run stands."""

    WAITING = "waiting"  # proposed, and not begun; or all attempts were withdrawn, or ended by the user
    IN_FLIGHT = "in flight"
    FAILED = "failed"  # an attempt failed: try again, or give up
    MEASURED = "measured"
    GIVEN_UP = "given up"
    SKIPPED = "skipped"  # never begun: the remaining budget could not hold it, or the campaign stopped


UNREADABLE = (RunStatus.FAILED, RunStatus.GIVEN_UP, RunStatus.SKIPPED)
"""Of a run with an attempt whose output could not be read, and none that could."""


class RunState(NamedTuple):
    """One run: how many attempts were begun, how they failed, and what the accepted one measured.

    ``elapsed``: seconds of the accepted attempt, as if it had a job of its own; ``cost``: core-seconds of all
    attempts; ``limit``: time limit of the last attempt in seconds; ``node``: where the accepted attempt ran,
    if on one node only; ``packed``: whether it shared its job, so that ``elapsed`` includes the usual
    overhead of a job; ``began``: when the accepted attempt started, in Unix seconds; ``load``: shares of its
    CPUs' time that others took; ``origin``: its job, or node and round, which it shares with other runs;
    ``refused``: how many attempts the executor did not take.
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
    began: float | None = None
    load: Mapping[str, float] = immutables.Map()
    origin: str = ""
    refused: int = 0


class InFlight(NamedTuple):
    """An attempt that was intended and is not settled. ``reserved`` in core-seconds, ``limit`` in seconds.

    ``pack``: name of its shared job, or empty; ``since``: when it was intended; ``span``: seconds from its
    start to its end, if it was accepted and its cost is not confirmed; ``setback``: whether the
    infrastructure failed, and its cost is not confirmed; ``likely``: as it was intended.
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
    setback: bool = False
    likely: float | None = None


class RoundMark(NamedTuple):
    """Where a campaign stood when a round was completed.

    ``spent`` in core-seconds, ``time`` in Unix seconds; ``uncertainty`` at P₊, None where it is not known.
    """

    spent: float
    time: float
    uncertainty: float | None = None


class OpenOutage(NamedTuple):
    """A service that does not answer: ``since`` when, when that was ``noted`` last (Unix seconds)."""

    since: float
    noted: float
    reason: str = ""
    blocking: bool = True


Runs = immutables.Map[Run, RunState]
Proposed = immutables.Map[str, immutables.Map[Point, int]]


@dataclass(frozen=True, slots=True)
class StopReason:
    """The rule that ended the campaign, and the reason in words."""

    rule: str
    detail: str


class State(NamedTuple):
    """Everything that decisions depend on. Costs in core-seconds, times in Unix seconds.

    This and its parts are named tuples because their ``_replace`` is several times faster than that of a
    dataclass, and every event needs it.
    """

    id: str = ""
    campaign: Mapping[str, Any] = immutables.Map()
    time_limit: float | None = None
    priors: Mapping[str, Any] = immutables.Map()
    started: float | None = None
    time: float = 0.0
    round: int = 0
    rounds_completed: int = 0
    rounds_without_improvement: int = 0
    smape: float | None = None
    width: float | None = None  # of the last round that changed it clearly: see `progress.gain`
    widest: float | None = None
    uncertainty: float | None = None  # width of the last round
    targets: int = 0  # points of which that is a median; 0: it is the width at P₊
    noise: float | None = None  # relative width of the range of single runs at P₊
    narrow_rounds: int = 0  # in a row, with intervals as narrow as the noise permits
    spent_at_gain: float = 0.0  # when a round was completed that was a gain
    rounds: tuple[RoundMark, ...] = ()  # the last rounds that measured something
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
    job_costs: allocations.JobCosts = allocations.JobCosts()
    spent: float = 0.0
    beyond: float = 0.0  # of that: what jobs of single runs were charged beyond their reservations
    attempts_settled: int = 0
    consecutive_given_up: int = 0
    allocation: float = 1.0  # cores charged per core asked for, at most
    recent: tuple[str, ...] = ()  # why the last attempts failed, setbacks apart; "" where one did not
    setbacks: Setbacks = setbacks.NONE
    marks: immutables.Map[str, tuple[str, ...]] = immutables.Map()  # by node: why it may be excluded
    failed_nodes: immutables.Map[str, float] = immutables.Map()  # when a node failed last
    placements: immutables.Map[Point, tuple[str, ...]] = immutables.Map()  # nodes of the first run
    node_order: tuple[str, ...] = ()  # in which runs came to use them
    outages: immutables.Map[str, OpenOutage] = immutables.Map()  # by service
    paused: StopReason | None = None
    stopping: StopReason | None = None
    validation: Run | None = None
    stopped: StopReason | None = None
    machine: Mapping[str, str] = immutables.Map()  # what the last round found about the machine, by kind
    remarked: frozenset[str] = frozenset()  # kinds of such findings that were reported
    executables: Digests = immutables.Map()  # that the last controller starts
    measured_with: Used = immutables.Map()
    reread: immutables.Map[Run, events.AttemptReread] = immutables.Map()  # not completed
    rereads: int = 0  # how often outputs were read again

    @property
    def reserved(self) -> float:
        """Core-seconds that attempts in flight, and shared jobs without confirmed charges, may still cost."""
        alone = sum(item.reserved for item in self.in_flight.values() if not item.pack)
        return alone + sum(hold.left for hold in self.holds.values())

    @property
    def jobs(self) -> int:
        """Number of jobs that are queued or running."""
        packed = {item.pack for item in self.in_flight.values() if item.pack}
        return len(packed) + sum(not item.pack for item in self.in_flight.values())

    @property
    def jobs_out(self) -> int:
        """Number of jobs that were handed over to the executor's scheduler and are not settled."""
        return len({item.pack or item.name for item in self.in_flight.values() if item.submitted})

    @property
    def blocked(self) -> bool:
        """Whether a service does not answer without which nothing can be submitted."""
        return any(outage.blocking for outage in self.outages.values())

    @property
    def waiting(self) -> tuple[Run, ...]:
        """Runs of the current round that were not begun."""
        return self.queue[self.next :]


def replay(entries: Iterable[Entry], state: State | None = None) -> State:
    """Apply entries in order."""
    state = state or State()
    with collecting_nothing():
        for entry in entries:
            state = apply(state, entry.event, entry.time)
    return state


@contextmanager
def collecting_nothing() -> Iterator[None]:
    """Switch the search for cycles off: a replay creates none, and looking for them costs more than it."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def apply(state: State, event: events.Event, time: float) -> State:
    """Return the state after an event.

    Raises
    ------
    ValueError
        For an event that cannot follow this state; the text describes the run.
    """
    started = time if state.started is None else state.started
    return _apply(event, state._replace(time=time, started=started))


@singledispatch
def _apply(event: events.Event, state: State) -> State:
    """Apply one type of event: each has a function below, in the order of `orchestrator.journal.events`.

    ControllerStopped has none: no decision depends on it.
    """
    return state


@_apply.register
def _campaign_started(event: events.CampaignStarted, state: State) -> State:
    return state._replace(
        id=event.id, campaign=event.campaign, time_limit=event.time_limit, priors=event.priors
    )


@_apply.register
def _campaign_changed(event: events.CampaignChanged, state: State) -> State:
    if event.anew:
        runs, proposed = _proposable_again(state.runs, state.proposed, state.infeasible)
        state = state._replace(runs=runs, proposed=proposed, infeasible=frozenset())
    unmeasured = (RunStatus.SKIPPED, RunStatus.GIVEN_UP)
    if state.validation is not None and state.runs[state.validation].status in unmeasured:
        # Under the new rules it may be possible.
        state = state._replace(validation=None, infeasible=state.infeasible - {state.validation.point})
    # Runs may have been skipped because the campaign was about to stop: the new rules may propose them again.
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
def _controller_started(event: events.ControllerStarted, state: State) -> State:
    state = state._replace(executables=executables.digests(event.provenance))
    if state.paused is None:
        return state
    return state._replace(paused=None, setbacks=setbacks.resumed(state.setbacks))


@_apply.register
def _round_proposed(event: events.RoundProposed, state: State) -> State:
    runs = state.runs.mutate()
    reasons = state.reasons.mutate()
    last = {kind: known.mutate() for kind, known in state.proposed.items()}
    for run, reason in zip(event.runs, event.reasons, strict=True):
        # A run that was skipped before keeps the number of its attempts: their directories exist.
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
def _attempt_intended(event: events.AttemptIntended, state: State) -> State:
    run = event.attempt.run
    current = _run(state, run)
    if current.status not in (RunStatus.WAITING, RunStatus.FAILED):
        raise ValueError(_impossible(state, run, f"attempt {event.attempt.number} intended"))
    item = InFlight(
        event.name,
        event.cores,
        event.limit,
        event.reserved,
        pack=event.pack,
        since=state.time,
        likely=event.likely,
    )
    return _dequeue(state, run)._replace(
        runs=state.runs.set(
            run,
            current._replace(status=RunStatus.IN_FLIGHT, attempts=event.attempt.number, limit=event.limit),
        ),
        in_flight=state.in_flight.set(event.attempt, item),
        holds=allocations.begun(state.holds, event.pack, event.reserved),
    )


@_apply.register
def _attempt_submitted(event: events.AttemptSubmitted, state: State) -> State:
    return _update(
        state, event.attempt, lambda x: x._replace(submitted=True, handle=event.handle or x.handle)
    )


@_apply.register
def _attempt_started(event: events.AttemptStarted, state: State) -> State:
    return _update(
        state,
        event.attempt,
        lambda x: x._replace(submitted=True, running=True, handle=event.handle or x.handle),
    )


@_apply.register
def _attempt_withdrawn(event: events.AttemptWithdrawn, state: State) -> State:
    _check_in_flight(state, event.attempt)
    run = event.attempt.run
    current = _run(state, run)
    used = event.attempt.number if event.barred else event.attempt.number - 1
    return state._replace(
        in_flight=state.in_flight.delete(event.attempt),
        holds=allocations.charged(state.holds, state.in_flight[event.attempt].pack, 0.0, final=True),
        runs=state.runs.set(run, _open_again(current._replace(attempts=used))),
        failed=(*state.failed, run),
    )


@_apply.register
def _attempt_finished(event: events.AttemptFinished, state: State) -> State:
    _check_in_flight(state, event.attempt)
    run, flight = event.attempt.run, state.in_flight[event.attempt]
    current = _run(state, run)
    current = current._replace(cost=current.cost + event.cost)
    state = state._replace(
        in_flight=state.in_flight.delete(event.attempt),
        holds=allocations.charged(state.holds, flight.pack, event.cost, final=not event.estimated),
        job_costs=_job_costs_after(state.job_costs, event, flight),
        spent=state.spent + event.cost,
        beyond=state.beyond + _beyond(flight, event),
        attempts_settled=state.attempts_settled + 1,
        measured_with=(
            executables.used_after(state.measured_with, state.executables)
            if event.failure is None
            else state.measured_with
        ),
        allocation=max(state.allocation, _cores_charged(event, flight)),
        recent=_recent_after(state.recent, event),
        setbacks=_setbacks_after(state.setbacks, event, flight, state.time),
        marks=_marked(state, event),
        failed_nodes=state.failed_nodes.update(dict.fromkeys(event.blamed, state.time)),
    )
    if event.estimated:
        good = event.failure is None and event.started is not None and event.finished is not None
        span = event.finished - event.started if good else None  # type: ignore[operator]
        flight = flight._replace(reserved=event.cost, span=span, setback=_is_setback(event))
        state = state._replace(unconfirmed=state.unconfirmed.set(event.attempt, flight))
    if event.failure is None:
        measured = current._replace(
            status=RunStatus.MEASURED,
            accepted=event.attempt.number,
            samples=event.samples,
            elapsed=standalone_duration(event, flight.pack, state.job_costs.overhead),
            node=event.host if event.nodes == 1 else "",
            packed=bool(flight.pack),
            began=event.started,
            load=event.load,
            origin=origin(event, flight.pack, state.round),
        )
        return _placed(state, event)._replace(
            runs=state.runs.set(run, measured),
            consecutive_given_up=0,
        )
    failed = current._replace(
        failures=current.failures if event.cancelled else (*current.failures, event.failure),
        reason=event.reason,
        refused=current.refused + event.refused,
    )
    return state._replace(runs=state.runs.set(run, _open_again(failed)), failed=(*state.failed, run))


def _open_again(item: RunState) -> RunState:
    """Return a run that another attempt may follow; it did not fail if nothing but the user ended it."""
    return item._replace(status=RunStatus.FAILED if item.failures else RunStatus.WAITING)


def _placed(state: State, event: events.AttemptFinished) -> State:
    """Remember on which nodes a run was, where later ones are asked onto them."""
    if not event.on:
        return state
    point, new = event.attempt.run.point, [name for name in event.on if name not in state.node_order]
    placements = state.placements if point in state.placements else state.placements.set(point, event.on)
    return state._replace(placements=placements, node_order=(*state.node_order, *new))


def _beyond(flight: InFlight, event: events.AttemptFinished | events.AttemptCharged) -> float:
    """Return what an attempt was charged for time after its reservation; of shared jobs that is not known."""
    reserved = flight.reserved * max(1.0, _cores_charged(event, flight))
    return 0.0 if flight.pack else max(event.cost - reserved, 0.0)


@_apply.register
def _attempt_charged(event: events.AttemptCharged, state: State) -> State:
    if event.attempt not in state.unconfirmed:
        raise ValueError(
            _impossible(state, event.attempt.run, f"attempt {event.attempt.number} is charged again")
        )
    run, flight = event.attempt.run, state.unconfirmed[event.attempt]
    current, more = _run(state, run), event.cost - flight.reserved
    return state._replace(
        holds=allocations.charged(state.holds, flight.pack, more, final=True),
        job_costs=_job_costs_after_sharing(state.job_costs, event, flight),
        allocation=max(state.allocation, _cores_charged(event, flight)),
        unconfirmed=state.unconfirmed.delete(event.attempt),
        setbacks=_corrected(state.setbacks, flight, more),
        spent=state.spent + more,
        beyond=state.beyond + _beyond(flight, event),
        runs=state.runs.set(run, current._replace(cost=current.cost + more)),
    )


@_apply.register
def _run_given_up(event: events.RunGivenUp, state: State) -> State:
    given_up = _run(state, event.run)._replace(status=RunStatus.GIVEN_UP, reason=event.reason)
    # Without an effort run, or after an earlier success, times can still be measured at the point.
    feasible = event.run.kind != "time" or measured_before(state, event.run)
    return _dequeue(state, event.run)._replace(
        runs=state.runs.set(event.run, given_up),
        infeasible=state.infeasible | (frozenset() if feasible else {event.run.point}),
        # Repetitions that run beside the one that failed first say nothing new about the campaign.
        consecutive_given_up=state.consecutive_given_up + (event.run.point not in state.infeasible),
    )


@_apply.register
def _run_skipped(event: events.RunSkipped, state: State) -> State:
    skipped = _run(state, event.run)._replace(status=RunStatus.SKIPPED, reason=event.reason)
    state = _dequeue(state, event.run)._replace(runs=state.runs.set(event.run, skipped))
    if event.run == state.validation:
        return state
    return state._replace(proposed=_without_skipped(state.runs, state.proposed, event.run))


@_apply.register
def _round_completed(event: events.RoundCompleted, state: State) -> State:
    state = state._replace(machine=event.machine, remarked=state.remarked | frozenset(event.news))
    if not event.measured:
        return state._replace(rounds_completed=event.round)
    return state._replace(
        rounds_completed=event.round,
        smape=event.smape,
        width=event.width if event.improved and event.gain != "fit" else state.width,
        widest=event.widest,
        uncertainty=event.width,
        targets=event.targets,
        noise=event.noise,
        narrow_rounds=state.narrow_rounds + 1 if event.narrow else 0,
        spent_at_gain=state.spent if event.improved else state.spent_at_gain,
        rounds=(
            *state.rounds[1 - MARKED :],
            RoundMark(state.spent, state.time, event.width),
        ),
        rounds_without_improvement=0 if event.improved else state.rounds_without_improvement + 1,
    )


@_apply.register
def _stop_rule_reached(event: events.StopRuleReached, state: State) -> State:
    return state._replace(stopping=StopReason(event.rule, event.detail))


@_apply.register
def _campaign_paused(event: events.CampaignPaused, state: State) -> State:
    return state._replace(paused=StopReason(event.cause, event.detail))


@_apply.register
def _outage_began(event: events.OutageBegan, state: State) -> State:
    outage = OpenOutage(event.since, state.time, event.reason, event.blocking)
    return state._replace(outages=state.outages.set(event.what, outage))


@_apply.register
def _outage_ended(event: events.OutageEnded, state: State) -> State:
    return state._replace(outages=state.outages.delete(event.what))


@_apply.register
def _validation_proposed(event: events.ValidationProposed, state: State) -> State:
    known = state.runs.get(event.run, RunState())
    return state._replace(
        validation=event.run,
        # Attempts that were made before a campaign was resumed keep their directories and their cost.
        runs=state.runs.set(event.run, RunState(attempts=known.attempts, cost=known.cost)),
        queue=(event.run,),
        next=0,
    )


@_apply.register
def _reread_began(event: events.RereadBegan, state: State) -> State:
    return state._replace(reread=immutables.Map())


@_apply.register
def _attempt_reread(event: events.AttemptReread, state: State) -> State:
    run, number = event.attempt.run, event.attempt.number
    item = _run(state, run)
    kept = item.status is RunStatus.MEASURED and item.accepted == number and not event.recovered
    new = event.recovered and number <= item.attempts and item.status in UNREADABLE
    if not (kept or new):
        raise ValueError(_impossible(state, run, f"attempt {number} is read again"))
    return state._replace(reread=state.reread.set(run, event))


@_apply.register
def _reread_completed(event: events.RereadCompleted, state: State) -> State:
    if len(state.reread) != event.attempts:
        raise ValueError(f"{event.attempts} attempts were read again, {len(state.reread)} are there")
    runs, proposed = state.runs.mutate(), state.proposed
    recovered = {run for run, item in state.reread.items() if item.recovered}
    for run, item in state.reread.items():
        runs[run] = _as_read_again(runs[run], item)
    for run in recovered:
        known = proposed.get(run.kind, immutables.Map())
        last = max(run.repetition, known.get(run.point, 0))
        proposed = proposed.set(run.kind, known.set(run.point, last))
    return state._replace(
        campaign=event.campaign,
        runs=runs.finish(),
        proposed=proposed,
        failed=tuple(run for run in state.failed if run not in recovered),
        infeasible=state.infeasible - {run.point for run in recovered if run.kind == "time"},
        consecutive_given_up=0 if recovered else state.consecutive_given_up,
        reread=immutables.Map(),
        rereads=state.rereads + 1,
    )


def _as_read_again(item: RunState, event: events.AttemptReread) -> RunState:
    if not event.recovered:
        return item._replace(samples=event.samples)
    return item._replace(
        status=RunStatus.MEASURED,
        accepted=event.attempt.number,
        reason="",
        samples=event.samples,
        elapsed=event.elapsed,
        node=event.node,
        packed=event.packed,
        began=event.began,
        load=event.load,
        origin=event.origin,
    )


@_apply.register
def _campaign_stopped(event: events.CampaignStopped, state: State) -> State:
    return state._replace(stopped=StopReason(event.rule, event.detail))


def _is_setback(event: events.AttemptFinished) -> bool:
    """Whether the infrastructure failed; it did not where it refused an attempt, or the user ended it."""
    return event.failure is FailureClass.INFRASTRUCTURE and not (event.refused or event.cancelled)


def _recent_after(recent: tuple[str, ...], event: events.AttemptFinished) -> tuple[str, ...]:
    """Return why the last attempts failed, as the stop rule about failures counts them."""
    if event.cancelled or _is_setback(event):
        return recent
    return (*recent, "" if event.failure is None else f"{event.failure}: {event.reason}")[-RECENT:]


def _setbacks_after(known: Setbacks, event: events.AttemptFinished, flight: InFlight, now: float) -> Setbacks:
    if _is_setback(event):
        return setbacks.failed(known, event.cost, flight.since, now, event.reason)
    return known if event.cancelled or event.refused else setbacks.worked(known)


def _corrected(known: Setbacks, flight: InFlight, more: float) -> Setbacks:
    """Return the setbacks after the charge of a settled attempt was corrected."""
    return known._replace(charged=known.charged + more) if flight.setback else known


def _cores_charged(event: events.AttemptFinished | events.AttemptCharged, flight: InFlight) -> float:
    """Return how many cores were charged for each that was asked for."""
    estimated = isinstance(event, events.AttemptFinished) and event.estimated
    if estimated or event.elapsed <= 0 or math.isclose(event.cost, event.elapsed * flight.cores):
        return 1.0
    return event.cost / (event.elapsed * flight.cores)


def standalone_duration(event: events.AttemptFinished, pack: str, overhead: float) -> float:
    """Return the seconds that an attempt takes in a job of its own, so that all durations can be compared.

    An attempt that shares its job is charged without the overhead of the job, or, as the first, with all of
    it.

    Parameters
    ----------
    event
        How the attempt ended.
    pack
        The name of its shared job, or empty.
    overhead
        The usual overhead of a job in seconds.
    """
    if not pack or event.started is None or event.finished is None:
        return event.elapsed
    return event.finished - event.started + overhead


def origin(event: events.AttemptFinished, pack: str, round_: int) -> str:
    """Name what runs share that ran under the same conditions: a job, else the nodes and the round.

    Parameters
    ----------
    event
        How the attempt ended.
    pack
        The name of its shared job, or empty.
    round_
        The round in which it ended.
    """
    if pack:
        return pack
    executed = event.host not in ("", _SIMULATED)
    return f"{event.host}, {event.nodes}, {round_}" if executed else ""


def _job_costs_after(
    costs: allocations.JobCosts, event: events.AttemptFinished, flight: InFlight
) -> allocations.JobCosts:
    """Return the job costs after an attempt, which must have a job of its own and a confirmed charge."""
    known = event.failure is None and not event.estimated and not flight.pack
    if not known or event.started is None or event.finished is None:
        return costs
    return allocations.after_job(costs, event.elapsed, flight.since, event.started, event.finished)


def _job_costs_after_sharing(
    costs: allocations.JobCosts, event: events.AttemptCharged, flight: InFlight
) -> allocations.JobCosts:
    """Return the job costs after a confirmed charge: the first attempt of a shared job pays its overhead.

    The first attempt does not if another attempt of the job failed.
    """
    if flight.pack != flight.name or flight.span is None or event.elapsed <= flight.span:
        return costs
    return allocations.after_shared_job(costs, event.elapsed - flight.span)


def _without_skipped(runs: Runs, proposed: Proposed, run: Run) -> Proposed:
    """Return the last repetitions proposed, after a run was skipped: its number can be proposed again."""
    known, skipped = proposed.get(run.kind, immutables.Map()), RunState(RunStatus.SKIPPED)
    if run.point not in known:  # of a validation, which no round proposes
        return proposed
    last = known[run.point]
    while last and runs.get(replace(run, repetition=last), skipped).status is RunStatus.SKIPPED:
        last -= 1
    return proposed.set(run.kind, known.set(run.point, last))


def _proposable_again(runs: Runs, proposed: Proposed, points: frozenset[Point]) -> tuple[Runs, Proposed]:
    """Return runs and repetitions where runs that were given up at ``points`` can be proposed again.

    They count as skipped. They and runs that were skipped after a failure may use all their retries again.
    Attempts keep their numbers, because their directories exist.
    """
    new = runs.mutate()
    for run, item in runs.items():
        if item.status is RunStatus.GIVEN_UP and run.point in points:
            reason = f"given up under other rules: {item.reason}"
            new[run] = item._replace(status=RunStatus.SKIPPED, failures=(), refused=0, reason=reason)
        elif item.status is RunStatus.SKIPPED and item.failures:
            new[run] = item._replace(failures=(), refused=0)
    runs = new.finish()
    for run in runs:
        if run.point in points:
            proposed = _without_skipped(runs, proposed, run)
    return runs, proposed


def _marked(state: State, event: events.AttemptFinished) -> immutables.Map[str, tuple[str, ...]]:
    """Return the marks of nodes after an attempt: it failed because of a node, or was slow there."""
    marks, run = state.marks, event.attempt.run
    for node in event.blamed:
        # Attempts that ran on the node at the same time failed for the same cause: that is one mark.
        if state.time - state.failed_nodes.get(node, -math.inf) > nodes.SAME:
            marks = marks.set(node, (*marks.get(node, ()), f"{event.attempt}: {event.reason}"))
    if event.failure is not None or event.nodes > 1 or not event.host:
        return marks
    flight = state.in_flight[event.attempt]
    seconds = standalone_duration(event, flight.pack, state.job_costs.overhead)
    comparable = [item for item in _near_repetitions(state, run) if item.packed == bool(flight.pack)]
    others = [item.elapsed for item in comparable if item.node not in ("", event.host)]
    if nodes.is_slow(seconds, others):
        import statistics

        reason = f"{event.attempt}: {seconds:.6g} s, elsewhere {statistics.median(others):.6g} s"
        marks = marks.set(event.host, (*marks.get(event.host, ()), reason))
    return marks


def _near_repetitions(state: State, run: Run) -> list[RunState]:
    """Return the measured repetitions of a run's point and kind with the nearest numbers."""
    near = range(max(1, run.repetition - COMPARED), run.repetition + COMPARED + 1)
    found = (state.runs.get(replace(run, repetition=k)) for k in near)
    return [item for item in found if item is not None and item.status is RunStatus.MEASURED]


def _run(state: State, run: Run) -> RunState:
    if run not in state.runs:
        raise ValueError(f"{run} was never proposed")
    return state.runs[run]


def has_measured(state: State) -> bool:
    """Return whether any run was measured."""
    return any(item.status is RunStatus.MEASURED for item in state.runs.values())


def measured_before(state: State, run: Run) -> bool:
    """Return whether an earlier repetition succeeded, so that the point did not cause the failure."""
    earlier = (replace(run, repetition=k) for k in range(1, run.repetition))
    return any(state.runs.get(item, RunState()).status is RunStatus.MEASURED for item in earlier)


def _dequeue(state: State, run: Run) -> State:
    """Remove a run from those that wait, or from the failed runs.

    One that begins before others in the queue, which wait for nodes, takes its place among those begun.
    """
    if state.next < len(state.queue) and state.queue[state.next] == run:
        return state._replace(next=state.next + 1)
    if run in state.failed:
        return state._replace(failed=tuple(item for item in state.failed if item != run))
    waiting = state.waiting
    if run not in waiting:
        return state
    rest = (item for item in waiting if item != run)
    return state._replace(queue=(*state.queue[: state.next], run, *rest), next=state.next + 1)


def _check_in_flight(state: State, attempt: Attempt) -> None:
    if attempt not in state.in_flight:
        raise ValueError(_impossible(state, attempt.run, f"attempt {attempt.number} is not in flight"))


def _update(state: State, attempt: Attempt, change: Callable[[InFlight], InFlight]) -> State:
    _check_in_flight(state, attempt)
    return state._replace(in_flight=state.in_flight.set(attempt, change(state.in_flight[attempt])))


def _impossible(state: State, run: Run, what: str) -> str:
    """Return the message for an event that cannot follow a state."""
    item = state.runs.get(run, RunState())
    failures = ", ".join(item.failures) or "none"
    return (
        f"impossible event for {run}: {what}; it is {item.status}, {item.attempts} attempts begun, "
        f"failures: {failures}"
    )
