"""Replay: what every event changes in the state of a campaign. `apply` is pure."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import singledispatch
from typing import Any

import immutables

from orchestrator.journal import allocations, attempt_end, discards, events, executables, setbacks
from orchestrator.journal.codec import Entry
from orchestrator.journal.state import (
    NO_VALIDATION,
    OF_VALUES,
    READ_AGAIN,
    UNREADABLE,
    Flights,
    InFlight,
    OpenOutage,
    Proposed,
    RoundMark,
    Runs,
    RunState,
    RunStatus,
    State,
    StopReason,
    measured_before,
    proposed_too,
    unassessed,
)
from orchestrator.types import Attempt, Point, Run

_COUNTING = {"threads_per_core": 1, "billing": "cores", "exclusive": False}  # with what journals may lack
MARKED = 12  # rounds of which is known where the campaign stood


def replay(entries: Iterable[Entry], state: State | None = None) -> State:
    """Apply entries in order."""
    state = state or State()
    with garbage_collection_off():
        for entry in entries:
            state = apply(state, entry.event, entry.time)
    return state


@contextmanager
def garbage_collection_off() -> Iterator[None]:
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
    if event.elsewhere:
        state = _elsewhere(state, event.campaign)
    if _options(event.campaign) != _options(state.campaign):
        state = state._replace(short_of_memory=frozenset(), runs=_with_enough_memory(state.runs))
    if _started_by(event.campaign) != _started_by(state.campaign):
        state = state._replace(runs=_without_limits(state.runs))
    if _counting(event.campaign) != _counting(state.campaign):
        state = state._replace(
            allocation=1.0, in_flight=_recounted(state.in_flight), unconfirmed=_recounted(state.unconfirmed)
        )
    state = _without_findings(state, {NO_VALIDATION})
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
        undecided=False,
    )


def _elsewhere(state: State, campaign: Mapping[str, Any]) -> State:
    """Return the state where models shall hold at other points: what was known of intervals does not count.

    A run at the former evaluation point is a measurement like any other from now on.
    """
    state = discards.elsewhere(state, campaign)
    former = state.validation
    if former is not None and campaign.get("evaluation_point") != former.point.as_dict():
        state = state._replace(validation=None, proposed=proposed_too(state.proposed, former))
    return unassessed(state)


@_apply.register
def _controller_started(event: events.ControllerStarted, state: State) -> State:
    state = state._replace(
        executables=executables.digests(event.provenance),
        cluster=event.provenance.get("cluster", state.cluster),
        directory=event.directory,
    )
    if state.paused is None:
        return state
    return state._replace(paused=None, setbacks=setbacks.resumed(state.setbacks))


@_apply.register
def _executable_replaced(event: events.ExecutableReplaced, state: State) -> State:
    return state._replace(executables={**state.executables, **event.executables})


@_apply.register
def _round_proposed(event: events.RoundProposed, state: State) -> State:
    runs = state.runs.mutate()
    last = {kind: known.mutate() for kind, known in state.proposed.items()}
    for run, reason in zip(event.runs, event.reasons, strict=True):
        # A run that was skipped before keeps the number of its attempts: their directories exist.
        before = runs.get(run, RunState())
        runs[run] = before._replace(status=RunStatus.WAITING, round=event.round, chosen=reason)
        known = last.setdefault(run.kind, immutables.Map().mutate())
        known[run.point] = max(run.repetition, known.get(run.point, 0))
    return state._replace(
        round=event.round,
        queue=event.runs,
        next=0,
        runs=runs.finish(),
        note=event.note,
        proposed=immutables.Map({kind: known.finish() for kind, known in last.items()}),
    )


@_apply.register
def _attempt_intended(event: events.AttemptIntended, state: State) -> State:
    run = event.attempt.run
    current = _run(state, run)
    if current.status not in (RunStatus.WAITING, RunStatus.FAILED):
        raise ValueError(_impossible(state, run, f"attempt {event.attempt.number} intended"))
    return _dequeue(state, run)._replace(
        runs=state.runs.set(
            run,
            current._replace(
                status=RunStatus.IN_FLIGHT,
                attempts=event.attempt.number,
                tried=current.round,
                limit=event.limit,
                memory=event.memory,
            ),
        ),
        in_flight=state.in_flight.set(event.attempt, InFlight.of(event, state.time)),
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
    return attempt_end.withdrawn(state, event)


@_apply.register
def _attempt_finished(event: events.AttemptFinished, state: State) -> State:
    _check_in_flight(state, event.attempt)
    return attempt_end.finished(state, event)


@_apply.register
def _attempt_charged(event: events.AttemptCharged, state: State) -> State:
    if event.attempt not in state.unconfirmed:
        raise ValueError(
            _impossible(state, event.attempt.run, f"attempt {event.attempt.number} is charged again")
        )
    return attempt_end.charged(state, event)


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
    skipped = _run(state, event.run)._replace(
        status=RunStatus.SKIPPED, reason=event.reason, unaffordable=event.unaffordable
    )
    state = _dequeue(state, event.run)._replace(runs=state.runs.set(event.run, skipped))
    if event.run == state.validation:
        return state
    return state._replace(proposed=_without_skipped(state.runs, state.proposed, event.run))


@_apply.register
def _round_completed(event: events.RoundCompleted, state: State) -> State:
    state = state._replace(
        machine=event.machine, remarked=state.remarked | frozenset(event.news), kept=event.kept
    )
    if not event.measured:
        return state._replace(
            rounds_completed=event.round, narrow_rounds=state.narrow_rounds if event.narrow else 0
        )
    return state._replace(
        reassess=False,
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
def _models_assessed(event: events.ModelsAssessed, state: State) -> State:
    return state._replace(
        smape=event.smape,
        width=event.width,
        widest=event.widest,
        uncertainty=event.width,
        targets=event.targets,
        noise=event.noise,
        narrow_rounds=state.narrow_before if event.narrow else 0,
        reassess=False,
    )


@_apply.register
def _stop_rule_reached(event: events.StopRuleReached, state: State) -> State:
    return state._replace(stopping=StopReason(event.rule, event.detail, event.kept, event.useful))


@_apply.register
def _campaign_paused(event: events.CampaignPaused, state: State) -> State:
    return state._replace(paused=StopReason(event.cause, event.detail))


@_apply.register
def _outage_began(event: events.OutageBegan, state: State) -> State:
    outage = OpenOutage(event.since, state.time, event.reason, event.blocking)
    return state._replace(outages=state.outages.set(event.what, outage))


@_apply.register
def _outage_ended(event: events.OutageEnded, state: State) -> State:
    known = state.outages.get(event.what)
    until = state.time if known is not None and known.blocking else state.silent_until
    return state._replace(outages=state.outages.delete(event.what), silent_until=until)


@_apply.register
def _validation_proposed(event: events.ValidationProposed, state: State) -> State:
    known = state.runs.get(event.run, RunState())
    return _without_findings(state, {NO_VALIDATION})._replace(  # what becomes of it stands with its run
        validation=event.run,
        # Attempts that were made before a campaign was resumed keep their directories and their cost. The
        # limits that they reached, and the memory that they lacked, are known not to suffice.
        runs=state.runs.set(
            event.run,
            RunState(
                attempts=known.attempts,
                cost=known.cost,
                reached=known.reached,
                chosen=known.chosen,
                lacked=known.lacked,
            ),
        ),
        queue=(event.run,),
        next=0,
        kept=0.0,
    )


@_apply.register
def _stop_withdrawn(event: events.StopWithdrawn, state: State) -> State:
    return state._replace(stopping=None)


@_apply.register
def _reread_began(event: events.RereadBegan, state: State) -> State:
    return state._replace(reread=immutables.Map())


@_apply.register
def _attempt_reread(event: events.AttemptReread, state: State) -> State:
    run, number = event.attempt.run, event.attempt.number
    item = _run(state, run)
    kept = item.status in READ_AGAIN and item.accepted == number and not event.recovered
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
    state = _without_findings(state, OF_VALUES if state.reread else ())
    discarded = state.discarded.mutate()
    for run in event.runs:
        discarded[run] = discarded[run]._replace(rereads=state.rereads + 1)
    for run in recovered:
        known = proposed.get(run.kind, immutables.Map())
        last = max(run.repetition, known.get(run.point, 0))
        proposed = proposed.set(run.kind, known.set(run.point, last))
    state = state._replace(
        campaign=event.campaign,
        runs=runs.finish(),
        proposed=proposed,
        failed=tuple(run for run in state.failed if run not in recovered),
        infeasible=state.infeasible - {run.point for run in recovered if run.kind == "time"},
        consecutive_given_up=0 if recovered else state.consecutive_given_up,
        reread=immutables.Map(),
        rereads=state.rereads + 1,
        discarded=discarded.finish(),
    )
    return discards.undecided(state) if event.attempts else state


def _without_findings(state: State, kinds: Collection[str]) -> State:
    """Return the state without findings of some kinds: each is reported if it is found again."""
    return state._replace(
        machine={kind: text for kind, text in state.machine.items() if kind not in kinds},
        remarked=state.remarked - frozenset(kinds),
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
def _measurements_discarded(event: events.MeasurementsDiscarded, state: State) -> State:
    return discards.discarded(state, event)


@_apply.register
def _measurements_restored(event: events.MeasurementsRestored, state: State) -> State:
    return discards.restored(state, event)


@_apply.register
def _campaign_stopped(event: events.CampaignStopped, state: State) -> State:
    return state._replace(stopped=StopReason(event.rule, event.detail))


def _counting(campaign: Mapping[str, Any]) -> list[Any]:
    """Return the rules by which the cores that are charged are counted from what a run asks for."""
    executor = campaign.get("executor") or {}
    return [executor.get(key) or usual for key, usual in _COUNTING.items()]


def _recounted(flights: Flights) -> Flights:
    return immutables.Map({attempt: item._replace(recounted=True) for attempt, item in flights.items()})


def _without_skipped(runs: Runs, proposed: Proposed, run: Run) -> Proposed:
    """Return the last repetitions proposed, after a run was skipped: its number can be proposed again."""
    known, skipped = proposed.get(run.kind, immutables.Map()), RunState(RunStatus.SKIPPED)
    if run.point not in known:  # of a validation, which no round proposes
        return proposed
    last = known[run.point]
    while last and runs.get(replace(run, repetition=last), skipped).status is RunStatus.SKIPPED:
        last -= 1
    return proposed.set(run.kind, known.set(run.point, last))


def _options(campaign: Mapping[str, Any]) -> object:
    return campaign.get("executor", {}).get("sbatch")


def _started_by(campaign: Mapping[str, Any]) -> object:
    return campaign.get("executor"), campaign.get("executable")


def _without_limits(runs: Runs) -> Runs:
    """Return runs of which none says which limits it reached: elsewhere it may take less."""
    for run, item in runs.items():
        if item.reached:
            runs = runs.set(run, item._replace(reached=0.0))
    return runs


def _with_enough_memory(runs: Runs) -> Runs:
    """Return runs of which none says how much memory it lacked: all ask for another amount now."""
    for run, item in runs.items():
        if item.lacked:
            runs = runs.set(run, item._replace(lacked=0.0))
    return runs


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


def _run(state: State, run: Run) -> RunState:
    if run not in state.runs:
        raise ValueError(f"{run} was never proposed")
    return state.runs[run]


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
