"""How the end of an attempt changes the state: its run, costs, setbacks and nodes. Pure.

An attempt is withdrawn, or it finishes. A finished one whose cost was estimated is charged later. Whether an
event can follow the state is checked in `orchestrator.journal.replay`.
"""

from __future__ import annotations

import math
from dataclasses import replace

import immutables

from orchestrator.journal import allocations, events, executables, nodes, setbacks
from orchestrator.journal.setbacks import Setbacks
from orchestrator.journal.state import SIMULATED, InFlight, RunState, RunStatus, State
from orchestrator.types import FailureClass, Run

RECENT = 20  # attempts that the rate of failures is taken over
_RESOLUTION = 1e-5  # seconds: of instants in records; the difference of two is a little more or less
COMPARED = 10  # repetitions before a run, and after it, that its duration is compared with


def withdrawn(state: State, event: events.AttemptWithdrawn) -> State:
    """Return the state after an attempt in flight was withdrawn: its number is free again unless barred."""
    run = event.attempt.run
    used = event.attempt.number if event.barred else event.attempt.number - 1
    return state._replace(
        in_flight=state.in_flight.delete(event.attempt),
        holds=allocations.charged(state.holds, state.in_flight[event.attempt].pack, 0.0, final=True),
        runs=state.runs.set(run, _open_again(state.runs[run]._replace(attempts=used))),
        failed=(*state.failed, run),
    )


def finished(state: State, event: events.AttemptFinished) -> State:
    """Return the state after an attempt in flight finished: its run is measured, or it failed."""
    flight = state.in_flight[event.attempt]
    state = _settled(state, event, flight)
    if event.estimated:
        state = _unconfirmed(state, event, flight)
    if event.failure is None:
        return _measured(state, event, flight.pack)
    return _failed(state, event, event.failure)


def charged(state: State, event: events.AttemptCharged) -> State:
    """Return the state after the charge of an attempt is known that was estimated when it finished."""
    run, flight = event.attempt.run, state.unconfirmed[event.attempt]
    current, more = state.runs[run], event.cost - flight.reserved
    return state._replace(
        holds=allocations.charged(state.holds, flight.pack, more, final=True),
        job_costs=_job_costs_after_sharing(state, event, flight),
        allocation=_allocation_after(state, event, flight),
        unconfirmed=state.unconfirmed.delete(event.attempt),
        setbacks=_setbacks_corrected(state.setbacks, flight, more),
        spent=state.spent + more,
        beyond=state.beyond + _beyond(flight, event),
        runs=state.runs.set(run, current._replace(cost=current.cost + more)),
    )


def _settled(state: State, event: events.AttemptFinished, flight: InFlight) -> State:
    """Return the state with the cost of a finished attempt, and with what its end says about the cluster."""
    measured_with = state.measured_with
    if event.failure is None:
        measured_with = executables.used_after(measured_with, state.executables)
    return state._replace(
        in_flight=state.in_flight.delete(event.attempt),
        holds=allocations.charged(state.holds, flight.pack, event.cost, final=not event.estimated),
        job_costs=_job_costs_after(state, event, flight),
        spent=state.spent + event.cost,
        beyond=state.beyond + _beyond(flight, event),
        attempts_settled=state.attempts_settled + 1,
        measured_with=measured_with,
        allocation=_allocation_after(state, event, flight),
        recent=_recent_after(state.recent, event),
        setbacks=_setbacks_after(state.setbacks, event, flight, state.time),
        marks=_marks_after(state, event, flight),
        failed_nodes=state.failed_nodes.update(dict.fromkeys(event.blamed, state.time)),
    )


def _unconfirmed(state: State, event: events.AttemptFinished, flight: InFlight) -> State:
    """Keep an attempt whose cost is estimated until its charge is known."""
    span = None if event.failure is not None else _span(event)
    kept = flight._replace(reserved=event.cost, span=span, setback=_is_setback(event))
    return state._replace(unconfirmed=state.unconfirmed.set(event.attempt, kept))


def _measured(state: State, event: events.AttemptFinished, pack: str) -> State:
    """Return the state after the run of a finished attempt was measured."""
    run = event.attempt.run
    current = state.runs[run]
    measured = current._replace(
        status=RunStatus.MEASURED,
        accepted=event.attempt.number,
        samples=event.samples,
        elapsed=standalone_duration(event, pack, state),
        cost=current.cost + event.cost,
        node=event.host if event.nodes == 1 else "",
        packed=bool(pack),
        began=event.started,
        load=event.load,
        origin=origin(event, pack, state.round),
    )
    short = {run} if current.lacked else set()
    return _placed(state, event)._replace(
        runs=state.runs.set(run, measured),
        short_of_memory=state.short_of_memory | short,
        consecutive_given_up=0,
    )


def _failed(state: State, event: events.AttemptFinished, failure: FailureClass) -> State:
    """Return the state after a finished attempt did not measure its run."""
    run = event.attempt.run
    current = state.runs[run]
    failed = current._replace(
        failures=current.failures if event.cancelled else (*current.failures, failure),
        reason=event.reason,
        cost=current.cost + event.cost,
        refused=current.refused + event.refused,
        reached=max(current.reached, current.limit) if failure is FailureClass.TIMEOUT else current.reached,
        lacked=max(current.lacked, current.memory) if failure is FailureClass.MEMORY else current.lacked,
    )
    return state._replace(runs=state.runs.set(run, _open_again(failed)), failed=(*state.failed, run))


def standalone_duration(event: events.AttemptFinished, pack: str, state: State) -> float:
    """Return the seconds that an attempt takes in a job of its own, so that all durations can be compared.

    An attempt that shares its job is charged without the overhead of the job, or, as the first, with all of
    it. One that ended while Slurm was silent is charged until it was back. Slurm charges whole seconds, which
    may be less than the attempt took, and none for less than one.

    Parameters
    ----------
    event
        How the attempt ended.
    pack
        The name of its shared job, or empty.
    state
        Has the usual overhead of a job, and when Slurm was silent.
    """
    span = _span(event)
    if span is None:
        return event.elapsed
    if pack or event.elapsed < span - _RESOLUTION or _ended_in_silence(event, state):
        return span + state.job_costs.overhead
    return event.elapsed


def _ended_in_silence(event: events.AttemptFinished, state: State) -> bool:
    """Whether an attempt had ended before Slurm answered again, after an outage that was noticed."""
    return state.blocked or (event.finished is not None and event.finished < state.silent_until)


def _span(event: events.AttemptFinished) -> float | None:
    """Return the seconds from the start of an attempt to its end, where both are known."""
    if event.started is None or event.finished is None:
        return None
    return event.finished - event.started


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
    executed = event.host not in ("", SIMULATED)
    return f"{event.host}, {event.nodes}, {round_}" if executed else ""


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


def _setbacks_corrected(known: Setbacks, flight: InFlight, more: float) -> Setbacks:
    """Return the setbacks after the charge of a settled attempt was corrected."""
    return known._replace(charged=known.charged + more) if flight.setback else known


def _cores_charged(event: events.AttemptFinished | events.AttemptCharged, flight: InFlight) -> float:
    """Return how many cores were charged for each that was asked for."""
    estimated = isinstance(event, events.AttemptFinished) and event.estimated
    if estimated or event.elapsed <= 0 or math.isclose(event.cost, event.elapsed * flight.cores):
        return 1.0
    return event.cost / (event.elapsed * flight.cores)


def _allocation_after(
    state: State, event: events.AttemptFinished | events.AttemptCharged, flight: InFlight
) -> float:
    """Return the cores charged per core asked for, at most, after an attempt.

    One that asked before the cores were counted as now says nothing of that.
    """
    if flight.recounted:
        return state.allocation
    return max(state.allocation, _cores_charged(event, flight))


def _job_costs_after(state: State, event: events.AttemptFinished, flight: InFlight) -> allocations.JobCosts:
    """Return the job costs after an attempt, which must have a job of its own and a confirmed charge."""
    known = event.failure is None and not event.estimated and not flight.pack
    if not known or event.started is None or event.finished is None or _ended_in_silence(event, state):
        return state.job_costs
    return allocations.after_job(state.job_costs, event.elapsed, flight.since, event.started, event.finished)


def _job_costs_after_sharing(
    state: State, event: events.AttemptCharged, flight: InFlight
) -> allocations.JobCosts:
    """Return the job costs after a confirmed charge: the first attempt of a shared job pays its overhead.

    The first attempt does not if another attempt of the job failed. Where Slurm was silent since, the job may
    be charged for that.
    """
    silent = state.blocked or flight.since < state.silent_until
    if silent or flight.pack != flight.name or flight.span is None or event.elapsed <= flight.span:
        return state.job_costs
    return allocations.after_shared_job(state.job_costs, event.elapsed - flight.span)


def _marks_after(
    state: State, event: events.AttemptFinished, flight: InFlight
) -> immutables.Map[str, tuple[str, ...]]:
    """Return the marks of nodes after an attempt: it failed because of a node, or was slow there."""
    marks, run = state.marks, event.attempt.run
    for node in event.blamed:
        # Attempts that ran on the node at the same time failed for the same cause: that is one mark.
        if state.time - state.failed_nodes.get(node, -math.inf) > nodes.SAME:
            marks = marks.set(node, (*marks.get(node, ()), f"{event.attempt}: {event.reason}"))
    if event.failure is not None or event.nodes > 1 or not event.host:
        return marks
    seconds = standalone_duration(event, flight.pack, state)
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
