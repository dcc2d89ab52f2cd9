"""From observations and choices to events. Pure but for reading an attempt's results."""

from __future__ import annotations

import hashlib
import signal
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.errors import ReadError
from orchestrator.executors.base import DISK, Outage
from orchestrator.journal import allocations, events
from orchestrator.journal.executables import Digests
from orchestrator.journal.measurements import repetitions, standing
from orchestrator.journal.state import InFlight, State
from orchestrator.launch.failures import said, says_it_failed, sign_of_infrastructure, sign_of_memory
from orchestrator.policy import failing
from orchestrator.policy.effort_runs import Plan
from orchestrator.strategies.base import Choice
from orchestrator.types import Attempt, AttemptRequest, AttemptState, FailureClass, Observation, Point, Run

_TAIL = 16384  # bytes of the end of an output in which signs of a failure are searched
_OVER_MEMORY = "it used more memory than it had asked for"

UNNOTICED = 60.0  # seconds for which a service may not answer before that is reported
REPORTED = 3600.0  # seconds between reports of an outage

Collect = Callable[[AttemptRequest, Observation], events.Samples]


def submission_name(campaign: str, campaign_id: str, attempt: Attempt) -> str:
    """Return the unique name under which an attempt is submitted and can be looked up."""
    digest = hashlib.sha256(f"{campaign_id}/{attempt.id}".encode()).hexdigest()[:12]
    return f"{campaign}-{campaign_id}-{digest}"


def round_of(number: int, choices: Sequence[Choice], state: State, effort: Plan) -> events.RoundProposed:
    """Turn choices into runs, numbering repetitions on from those that were proposed before.

    Effort runs come after the time runs at the same point. Where the point turns out to be impossible, they
    are not begun.
    """
    done, counted, valid = repetitions(state), repetitions(state, "effort"), standing(state, "effort")
    runs: dict[Run, str] = {}

    def count(point: Point) -> None:
        first = counted.get(point, 0) + 1
        numbers = range(first, first + effort.wanted.get(point, 0) - valid.get(point, 0))
        runs.update((Run(point, "effort", k), effort.reason) for k in numbers)

    for choice in choices:
        first = done.get(choice.point, 0) + 1
        for repetition in range(first, first + choice.repetitions):
            runs[Run(choice.point, "time", repetition)] = choice.reason
        done[choice.point] = first + choice.repetitions - 1
        count(choice.point)
    for point in effort.wanted:
        count(point)
    left_out = (f"{failing.LEFT_OUT}{region.where}" for region in failing.regions(state))
    note = "; ".join(filter(None, (effort.note, *left_out)))
    return events.RoundProposed(number, tuple(runs), tuple(runs.values()), note)


def maximum_charges(observations: Sequence[Observation], state: State) -> dict[Attempt, float]:
    """Return what each attempt can have cost at most, in core-seconds, where no charge is known.

    That is its reservation. A lost attempt that shared its job can have cost more: if other attempts of the
    job never began, Slurm may have charged their parts to this one. Only one lost attempt may claim them.
    """
    never_began = {item.attempt for item in observations if item.state is AttemptState.ABSENT}
    unclaimed = {pack: hold.left for pack, hold in state.holds.items()}
    for attempt, flight in state.in_flight.items():
        if flight.pack and attempt not in never_began:
            unclaimed[flight.pack] -= flight.reserved
    charges = {}
    for item in observations:
        flight = state.in_flight[item.attempt]
        charges[item.attempt] = flight.reserved
        if item.state is AttemptState.LOST and item.elapsed is None and flight.pack:
            charges[item.attempt] += max(unclaimed[flight.pack], 0.0)
            unclaimed[flight.pack] = 0.0
    return charges


def events_of(
    observation: Observation,
    flight: InFlight,
    request: AttemptRequest,
    collect: Collect,
    maximum_charge: float,
    exit_codes: Container[int] = (0,),
    ran: bool = False,
) -> list[events.Event]:
    """Return the events of an observation; none if it reports what is known already.

    ``maximum_charge`` in core-seconds: see `maximum_charges`. ``exit_codes``: those of runs that did their
    work, as far as exit codes tell. ``ran``: whether the program has run before.
    """
    attempt = observation.attempt
    match observation.state:
        # Without a handle the attempt still waits within the executor: after a crash it must be looked up.
        case AttemptState.QUEUED if observation.handle and not flight.submitted:
            return [events.AttemptSubmitted(attempt, observation.handle)]
        case AttemptState.RUNNING if not flight.running:
            return [events.AttemptStarted(attempt, observation.handle)]
        case AttemptState.ABSENT:
            reason = observation.reason or "it was never begun"
            return [events.AttemptWithdrawn(attempt, reason, observation.revoked)]
        case AttemptState.LOST:
            return [_lost(observation, flight, maximum_charge)]
        case AttemptState.FINISHED:
            return [_finished(observation, flight, request, collect, exit_codes, ran)]
    return []


def ended_on_purpose(event: events.Event, why: str) -> events.Event:
    """Return the event for an attempt that the user, or the end of the campaign, ended: it did not fail.

    It is charged. An attempt that never began is withdrawn and revoked, because the cancellation took its
    claim file. An attempt that had ended by itself before keeps its event.
    """
    if not isinstance(event, events.AttemptFinished) or event.failure is not FailureClass.INFRASTRUCTURE:
        return event
    if event.started is None and event.elapsed == 0 and not event.estimated:
        return events.AttemptWithdrawn(event.attempt, f"{why} before it began", barred=True)
    return replace(event, reason=f"{why} ({event.reason})", blamed=(), cancelled=True)


def replacements(started: Digests, known: dict[str, str]) -> list[events.Event]:
    """Return the event of a program that was replaced, and add it to those that are ``known``, by role."""
    new = {role: digest for role, digest in started.items() if known.get(role) != digest}
    known.update(new)
    return [events.ExecutableReplaced(new)] if new else []


def outages(found: Mapping[str, Outage | None], state: State, now: float) -> list[events.Event]:
    """Return the events of services that do not answer any more, still do not, or answer again.

    Parameters
    ----------
    found
        From `orchestrator.executors.base.services`; what is not in it is not known.
    state, now
        Where the campaign stands, and the executor's time in Unix seconds.
    """
    new: list[events.Event] = []
    for what, outage in found.items():
        known = state.outages.get(what)
        if outage is None:
            if known is not None:
                new.append(events.OutageEnded(what, max(0.0, now - known.since)))
            continue
        since = outage.since if known is None else known.since
        first = 0.0 if what == DISK else UNNOTICED  # a disk does not get full for an instant
        waited, patience = (now - since, first) if known is None else (now - known.noted, REPORTED)
        if abs(waited) >= patience:  # the clock may be set back
            new.append(
                events.OutageBegan(
                    what=what,
                    since=since,
                    reason=outage.reason,
                    jobs=state.jobs_out,
                    blocking=outage.blocking,
                    lasted=max(0.0, now - since),
                    repeated=known is not None,
                )
            )
    return new


def corrections(known: Sequence[Observation], state: State) -> list[events.AttemptCharged]:
    """Return the confirmed charges, in an order in which no job exceeds its reservation before it must.

    Of the attempts that share a job, those that cost more than their part wait for those that cost less,
    while there are others to wait for: the whole job may have cost more than was reserved.
    """
    charges = []
    for item in known:
        flight, elapsed = state.unconfirmed[item.attempt], item.elapsed or 0.0
        cost = elapsed * (item.cores or flight.cores)
        charges.append((cost - flight.reserved, events.AttemptCharged(item.attempt, elapsed, cost)))
    of_pack = Counter(state.unconfirmed[event.attempt].pack for _, event in charges)
    complete = {pack for pack, hold in state.holds.items() if of_pack[pack] == hold.unsettled}
    holds, chosen = state.holds, []
    for more, event in sorted(charges, key=lambda pair: pair[0]):
        pack = state.unconfirmed[event.attempt].pack
        hold = holds.get(pack)
        if hold is not None and hold.charged + more > hold.reserved and pack not in complete:
            continue
        holds = allocations.charged(holds, pack, more, final=True)
        chosen.append(event)
    return chosen


def _charge(observation: Observation, flight: InFlight, elapsed: float) -> tuple[float, bool]:
    """Return the core-seconds to charge, and whether they are an estimate: then the whole reservation.

    An attempt that shares its job is at first never charged more than its part of the job's reservation. Its
    charge can be larger only if those of others are smaller, and these may not be confirmed yet.
    """
    cost = elapsed * (observation.cores or flight.cores)
    estimated = observation.estimated or bool(flight.pack and cost > flight.reserved)
    return (flight.reserved if estimated else cost), estimated


def _lost(observation: Observation, flight: InFlight, maximum_charge: float) -> events.AttemptFinished:
    """Charge what the scheduler reports, or the most that the attempt can have cost."""
    if observation.elapsed is not None:
        elapsed = observation.elapsed
        cost, estimated = _charge(observation, flight, elapsed)
    else:
        elapsed, cost, estimated = maximum_charge / flight.cores, maximum_charge, True
    return events.AttemptFinished(
        attempt=observation.attempt,
        elapsed=elapsed,
        cost=cost,
        failure=FailureClass.MEMORY if observation.out_of_memory else FailureClass.INFRASTRUCTURE,
        reason=observation.reason or "the attempt is gone without having finished",
        estimated=estimated,
        blamed=observation.blamed,
        refused=observation.refused,
    )


def _finished(
    observation: Observation,
    flight: InFlight,
    request: AttemptRequest,
    collect: Collect,
    exit_codes: Container[int],
    ran: bool,
) -> events.AttemptFinished:
    record = observation.record
    assert record is not None and record.finished is not None, "FINISHED without proof"
    elapsed = observation.elapsed
    if elapsed is None:
        elapsed = max(0.0, record.finished - record.started)
    cost, estimated = _charge(observation, flight, elapsed)
    failure, reason = _failure(observation, request, exit_codes, ran)
    samples: events.Samples = {}
    if failure is None:
        try:
            samples = collect(request, observation)
        except ReadError as error:
            failure, reason = FailureClass.PARSE, str(error)
            # A script whose program failed goes on, and ends with the exit code of its last line.
            line = says_it_failed(_tails(request).values())
            reason = f"it printed: {line}; {reason}" if line and line not in reason else reason
    # A profiler, or the program itself, may have written to where the directory was.
    if record.moved and failure in (FailureClass.PARSE, FailureClass.APPLICATION):
        failure = FailureClass.INFRASTRUCTURE
        reason = f"the campaign directory was moved while it ran ({reason})"
    return events.AttemptFinished(
        attempt=observation.attempt,
        elapsed=elapsed,
        cost=cost,
        samples=samples,
        failure=failure,
        reason=reason,
        # A scheduler's name for a node may differ from the node's own.
        host=record.nodes[0] if len(record.nodes) == 1 else record.host,
        started=record.started,
        finished=record.finished,
        estimated=estimated,
        nodes=max(1, len(record.nodes)),
        on=record.nodes if request.placed else (),
        blamed=observation.blamed,
        load=record.load,
    )


def _failure(
    observation: Observation, request: AttemptRequest, exit_codes: Container[int], ran: bool
) -> tuple[FailureClass | None, str]:
    record = observation.record
    assert record is not None
    if record.full:  # what it wrote may be cut, whatever its exit code
        reason = f"{record.full} when it ended, so its output may be cut: {request.directory}"
        return FailureClass.INFRASTRUCTURE, reason
    if record.timed_out:
        ended = f"ended at its time limit of {request.limit:.6g} s"
        tails = _tails(request)
        sign = sign_of_infrastructure(tails.values(), timed_out=True)
        # A launcher may wait for Slurm until the limit.
        if sign:
            return FailureClass.INFRASTRUCTURE, f"{ended}; {sign}"
        return FailureClass.TIMEOUT, ended + _what_it_said(tails, timed_out=True)
    # Whatever the exit code: a shell goes on after the program that used too much memory was ended.
    if observation.out_of_memory:
        return FailureClass.MEMORY, _OVER_MEMORY
    if observation.reason:  # the executor knows that the application did not cause the end
        return FailureClass.INFRASTRUCTURE, observation.reason
    if record.exit_code not in exit_codes:
        tails = _tails(request)
        if line := sign_of_memory(tails.values()):
            return FailureClass.MEMORY, f"{_OVER_MEMORY}: {line}"
        sign = sign_of_infrastructure(tails.values())
        ended = f"exit code {record.exit_code}{_signal(record.exit_code)}"
        if sign:
            return FailureClass.INFRASTRUCTURE, f"{ended}; {sign}"
        if ran and _was_missing(record.executable, tails):
            ended = f"{ended}; its program was not there when it began"
            return FailureClass.INFRASTRUCTURE, ended + _what_it_said(tails)
        return FailureClass.APPLICATION, ended + _what_it_said(tails)
    return None, ""


def _was_missing(executable: Mapping[str, Any], tails: Mapping[str, str]) -> bool:
    """Whether the program was not there: its file system was away, or it is being built again.

    What a node does not see may still be there in a container. So its output has to name the file, too.
    """
    path = str(executable.get("path", ""))
    return bool(path) and "size" not in executable and any(path in text for text in tails.values())


def _signal(exit_code: int | None) -> str:
    """Name the signal that an exit code above 128 stands for (the convention of shells)."""
    try:
        number = signal.Signals((exit_code or 0) - 128)
    except ValueError:
        return ""
    # The kernel ends so what uses more memory than there is, or than a group may.
    perhaps = ": perhaps it used too much memory" if number is signal.SIGKILL else ""
    return f" (signal {int(number)}, {number.name}{perhaps})"


def _tails(request: AttemptRequest) -> dict[str, str]:
    """Return the ends of stderr and stdout, by name; an output that cannot be read is left out."""
    tails = {}
    for name in ("stderr", "stdout"):
        path = request.directory / name
        if not path.is_file():  # opening a pipe would wait for a writer for ever
            continue
        try:
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - _TAIL))
                tails[name] = file.read().decode(errors="replace")
        except OSError:
            continue
    return tails


def _what_it_said(tails: Mapping[str, str], timed_out: bool = False) -> str:
    """Return what stderr says of a failure, else stdout, for its reason."""
    text = said(tails, timed_out)
    return f"; {text}" if text else ""
