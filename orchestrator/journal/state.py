"""The state of a campaign: everything that decisions depend on. It is the replay of the journal.

Maps are persistent (``immutables.Map``): a new state shares all that did not change with the old one,
so replaying 10^5 runs stays linear. How events change it: `orchestrator.journal.replay`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

import immutables

from orchestrator.journal import allocations, events, setbacks
from orchestrator.journal.executables import Digests, Used
from orchestrator.journal.setbacks import Setbacks
from orchestrator.types import Attempt, FailureClass, Point, Run

FAILURE_RULES = ("failures", "failure_rate")  # whoever resumes a campaign after them has fixed the cause
ONLY_ZEROS, WRONG_UNIT, NOT_MEASURED = "only zeros", "wrong unit", "no measured time"
FEW_DIGITS = "few digits"
GIVEN_TIME = "a given time"
NO_VALIDATION = "no validation"
OF_VALUES = frozenset({ONLY_ZEROS, WRONG_UNIT, NOT_MEASURED, FEW_DIGITS})
"""Kinds of findings about the values that were read: no longer known once they are read again."""
SIMULATED = "simulated"  # the executor of a rehearsal, and the host of its runs


class RunStatus(StrEnum):
    """Where a run stands."""

    WAITING = "waiting"  # proposed, and not begun; or all attempts were withdrawn, or ended by the user
    IN_FLIGHT = "in flight"
    FAILED = "failed"  # an attempt failed: try again, or give up
    MEASURED = "measured"
    GIVEN_UP = "given up"
    SKIPPED = "skipped"  # never begun: the remaining budget could not hold it, or the campaign stopped
    DISCARDED = "discarded"  # measured, and left out by the user: only its cost counts


UNREADABLE = (RunStatus.FAILED, RunStatus.GIVEN_UP, RunStatus.SKIPPED)
"""Of a run with an attempt whose output could not be read, and none that could."""

READ_AGAIN = (RunStatus.MEASURED, RunStatus.DISCARDED)
"""Of a run whose accepted attempt may be read again."""


class RunState(NamedTuple):
    """One run: how many attempts were begun, how they failed, and what the accepted one measured.

    ``elapsed``: seconds of the accepted attempt, as if it had a job of its own; ``cost``: core-seconds of all
    attempts; ``limit``: time limit of the last attempt in seconds; ``node``: where the accepted attempt ran,
    if on one node only; ``packed``: whether it shared its job, so that ``elapsed`` includes the usual
    overhead of a job; ``began``: when the accepted attempt started, in Unix seconds; ``load``: shares of its
    CPUs' time that others took; ``origin``: its job, or node and round, which it shares with other runs;
    ``refused``: how many attempts the executor did not take; ``unaffordable``: whether it was skipped because
    the budget could not hold it; ``round``: the round that proposed it, 0 for a validation run;
    ``tried``: the last round in which an attempt of it began;
    ``reached``: the longest time limit that ended one of its attempts, in seconds, also under earlier rules;
    ``chosen``: why it was proposed; ``memory``: factor on the memory that the last attempt asked for;
    ``lacked``: the largest such factor with which an attempt had too little, 0 without one.
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
    unaffordable: bool = False
    round: int = 0
    tried: int = 0
    reached: float = 0.0
    chosen: str = ""
    memory: float = 1.0
    lacked: float = 0.0

    @property
    def timed_out(self) -> bool:
        """Whether a time limit ended an attempt: the run takes longer than it was expected to."""
        return self.reached > 0 or FailureClass.TIMEOUT in self.failures


class InFlight(NamedTuple):
    """An attempt that was intended and is not settled. ``reserved`` in core-seconds, ``limit`` in seconds.

    ``pack``: name of its shared job, or empty; ``since``: when it was intended; ``span``: seconds from its
    start to its end, if it was accepted and its cost is not confirmed; ``setback``: whether the
    infrastructure failed, and its cost is not confirmed; ``likely`` and ``memory``: as it was intended;
    ``recounted``: whether cores are counted by other rules since.
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
    recounted: bool = False
    memory: float = 1.0

    @classmethod
    def of(cls, intent: events.AttemptIntended, since: float = 0.0) -> InFlight:
        """Return an attempt as it was intended."""
        return cls(
            intent.name,
            intent.cores,
            intent.limit,
            intent.reserved,
            pack=intent.pack,
            since=since,
            likely=intent.likely,
            memory=intent.memory,
        )


class Discarded(NamedTuple):
    """Why and when (Unix seconds) the measurement of a run was discarded, and what the run was before.

    ``validation``: it was the validation; ``rereads``: how often outputs had been read again by then,
    or when its own was read again last; ``former``: the reason that the run had.
    """

    reason: str
    time: float
    validation: bool = False
    rereads: int = 0
    former: str = ""


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
Flights = immutables.Map[Attempt, InFlight]


@dataclass(frozen=True, slots=True)
class StopReason:
    """The rule that ended the campaign, the reason in words, and what else `StopRuleReached` holds."""

    rule: str
    detail: str
    kept: float = 0.0
    useful: Point | None = None


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
    kept: float = 0.0  # for the validation, after the last round
    noise: float | None = None  # relative width of the range of single runs at P₊
    narrow_rounds: int = 0  # in a row, with intervals as narrow as the noise permits
    spent_at_gain: float = 0.0  # when a round was completed that was a gain
    rounds: tuple[RoundMark, ...] = ()  # the last rounds that measured something
    queue: tuple[Run, ...] = ()
    next: int = 0  # position in the queue
    failed: tuple[Run, ...] = ()
    note: str = ""  # of the last round
    runs: immutables.Map[Run, RunState] = immutables.Map()
    proposed: Proposed = immutables.Map()  # last repetitions
    in_flight: Flights = immutables.Map()
    unconfirmed: Flights = immutables.Map()  # settled, but their cost is estimated
    infeasible: frozenset[Point] = frozenset()
    short_of_memory: frozenset[Run] = frozenset()  # measured after attempts that had too little
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
    silent_until: float = 0.0  # when something last answered again without which nothing is submitted
    paused: StopReason | None = None
    stopping: StopReason | None = None
    validation: Run | None = None
    stopped: StopReason | None = None
    machine: Mapping[str, str] = immutables.Map()  # what the last round found about the machine, by kind
    remarked: frozenset[str] = frozenset()  # kinds of such findings that were reported
    cluster: str = ""  # of the last controller that had one
    directory: str = ""  # of the campaign, when the last controller began
    executables: Digests = immutables.Map()  # that the last controller starts
    measured_with: Used = immutables.Map()
    reread: immutables.Map[Run, events.AttemptReread] = immutables.Map()  # not completed
    rereads: int = 0  # how often outputs were read again
    discarded: immutables.Map[Run, Discarded] = immutables.Map()
    discards: int = 0  # how often measurements were discarded or restored
    undecided: bool = False  # whether other values count since a controller has begun to decide about that
    reassess: bool = False  # whether other values count since models were assessed
    narrow_before: int = 0  # `narrow_rounds` before that

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


def proposed_too(proposed: Proposed, run: Run) -> Proposed:
    """Return the last proposed repetitions with one more run, so that later runs get further numbers."""
    known = proposed.get(run.kind, immutables.Map())
    return proposed.set(run.kind, known.set(run.point, max(run.repetition, known.get(run.point, 0))))


def unassessed(state: State) -> State:
    """Return the state where nothing counts that rounds said of intervals: other values made them."""
    return state._replace(
        width=None,
        widest=None,
        uncertainty=None,
        noise=None,
        rounds=(),
        narrow_rounds=0,
        narrow_before=0,
        rounds_without_improvement=0,
        spent_at_gain=state.spent,
    )


def validation_run(state: State, point: Point) -> Run:
    """Return the run that validates the models at P₊: a further repetition after discarded ones."""
    run = Run(point)
    while run in state.discarded:
        run = replace(run, repetition=run.repetition + 1)
    return run


def is_rehearsal(campaign: Mapping[str, Any]) -> bool:
    """Return whether a campaign as journaled starts no program: its clock is virtual and begins at zero."""
    return (campaign.get("executor") or {}).get("name") == SIMULATED


def has_measured(state: State) -> bool:
    """Return whether any run was measured."""
    return any(item.status is RunStatus.MEASURED for item in state.runs.values())


def runs_measured(state: State) -> int:
    """Return how many runs were measured."""
    return sum(item.status is RunStatus.MEASURED for item in state.runs.values())


def given_up(state: State) -> list[tuple[str, str]]:
    """Return the names of the runs that were given up, with the reasons; in order."""
    found = [(run.id, item.reason) for run, item in state.runs.items() if item.status is RunStatus.GIVEN_UP]
    return sorted(found)


def measured_before(state: State, run: Run) -> bool:
    """Return whether an earlier repetition succeeded, so that the point did not cause the failure."""
    earlier = (replace(run, repetition=k) for k in range(1, run.repetition))
    return any(state.runs.get(item, RunState()).status is RunStatus.MEASURED for item in earlier)
