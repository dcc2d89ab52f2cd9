"""What can happen in a campaign, and its form as JSON.

A journal outlives the version that wrote it: fields may be added (with a default), never renamed and
never given another meaning; unknown fields of a newer version are ignored. ``SCHEMA`` changes only when
an older program could not read a journal correctly any more. The name of a class is that of its events in the
journal (`_name`), so it stays, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from orchestrator.journal.forms import form_of
from orchestrator.types import Attempt, FailureClass, Point, Run

SCHEMA = 1

Samples = Mapping[str, Mapping[str, float]]  # metric -> call path -> value


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignStarted:
    """The first event: the normalised campaign file; ``time_limit`` in seconds if it was derived.

    ``priors``: what was taken from other campaigns, with its digest; empty if nothing was.
    """

    id: str
    campaign: Mapping[str, Any]
    version: str
    time_limit: float | None = None
    priors: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CampaignChanged:
    """Resumed with other rules (a larger budget, another executor): a stopped campaign goes on.

    ``anew``: runs that were given up under the old rules may be tried again. ``elsewhere``: models shall hold
    at other points.
    """

    campaign: Mapping[str, Any]
    anew: bool = False
    elsewhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerStarted:
    """A controller runs the campaign from here on.

    ``provenance`` describes what its runs are made from (see `orchestrator.control.provenance`), JSON-ready.
    ``directory``: where the campaign was then.
    """

    host: str
    pid: int
    version: str
    provenance: Mapping[str, Any] = field(default_factory=dict)
    directory: str = ""


@dataclass(frozen=True, slots=True)
class ControllerStopped:
    """A controller stopped orderly before the campaign was finished; ``resume`` continues it."""

    reason: str


@dataclass(frozen=True, slots=True)
class ExecutableReplaced:
    """Attempts that finish from here on started another program than those before, under the same path.

    ``executables``: what tells its content, by role (see `orchestrator.journal.executables`).
    """

    executables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RoundProposed:
    """The runs that the strategy chose, with one reason per run.

    ``note`` gives the reason why no effort is counted, where it could be, and which points are left out.
    """

    round: int
    runs: tuple[Run, ...]
    reasons: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptIntended:
    """Written before a submission: reserves ``reserved`` core-seconds under a name that can be looked up.

    Attempts with the same ``pack`` share a job, one after another. Each reserves an equal part of what the
    job can be charged. ``likely``: the seconds that the attempt takes at most as far as was known.
    ``memory``: factor on the memory that is asked for.
    """

    attempt: Attempt
    name: str
    cores: int
    limit: float
    reserved: float
    pack: str = ""
    likely: float | None = None
    memory: float = 1.0


@dataclass(frozen=True, slots=True)
class AttemptSubmitted:
    """The executor has accepted the attempt."""

    attempt: Attempt
    handle: str


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    """The attempt was seen running."""

    attempt: Attempt
    handle: str


@dataclass(frozen=True, slots=True)
class AttemptWithdrawn:
    """The attempt certainly never began: its reservation is released and the run may be submitted again.

    A ``barred`` (revoked) attempt can never begin any more: the run's next attempt has the next number.
    """

    attempt: Attempt
    reason: str
    barred: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFinished:
    """The attempt is over and settled: ``cost`` core-seconds charged.

    ``samples`` are its measurement if it is accepted; otherwise ``failure`` and ``reason`` are given.
    ``estimated`` marks a cost that the scheduler has not confirmed: the whole reservation, until an
    `AttemptCharged` corrects it. ``nodes``: how many nodes it ran on, ``host`` being the first; ``blamed``:
    the nodes that failed. ``cancelled``: the user ended it, which is charged but counts as no failure.
    ``load``: shares of its CPUs' time that other processes and a hypervisor took (``others``, ``stolen``).
    ``refused``: it was certainly never begun, because the executor does not take what it asks for.
    ``on``: the names of its nodes, where later runs are asked onto them.
    """

    attempt: Attempt
    elapsed: float
    cost: float
    samples: Samples = field(default_factory=dict)
    failure: FailureClass | None = None
    reason: str = ""
    host: str = ""
    started: float | None = None
    finished: float | None = None
    estimated: bool = False
    nodes: int = 1
    blamed: tuple[str, ...] = ()
    cancelled: bool = False
    load: Mapping[str, float] = field(default_factory=dict)
    refused: bool = False
    on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AttemptCharged:
    """The scheduler confirmed the charge of a settled attempt; ``cost`` core-seconds replace the estimate."""

    attempt: Attempt
    elapsed: float
    cost: float


@dataclass(frozen=True, slots=True)
class RunGivenUp:
    """No further attempt at this run; its point is infeasible for the strategy."""

    run: Run
    reason: str


@dataclass(frozen=True, slots=True)
class RunSkipped:
    """A proposed run that was never begun.

    ``unaffordable``: because the budget left cannot hold its reservation, and for no other reason.
    """

    run: Run
    reason: str
    unaffordable: bool = True  # as nearly all in journals of earlier versions


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundCompleted:
    """The models after a round.

    ``smape`` in %, mean over call paths; ``width`` and ``widest`` are the mean and the largest relative width
    of the intervals at P₊. ``improved`` is what the patience rule counts, unless nothing was ``measured`` in
    the round; ``gain`` says why: see `orchestrator.policy.progress.gain`. ``noise`` is the relative width of
    the range that holds 90 % of single runs at P₊. ``narrow`` says that ``width`` is as small as the noise
    permits, and that no run contradicts it: see `enough` and `is_contradicted` in
    `orchestrator.policy.progress`. ``machine``: what is known about the machine and its measurements, a
    sentence by kind (see `orchestrator.policy.machine.findings`), and why no validation can follow; ``news``:
    the kinds that no earlier round had. ``targets``: without P₊, the number of random points of which
    ``width``, ``widest`` and ``noise`` are medians. ``kept``: core-seconds that are kept back for the
    validation.
    """

    round: int
    smape: float | None
    width: float | None
    improved: bool
    measured: bool = True
    widest: float | None = None
    gain: str = ""
    noise: float | None = None
    narrow: bool = False
    machine: Mapping[str, str] = field(default_factory=dict)
    news: tuple[str, ...] = ()
    targets: int = 0
    kept: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsAssessed:
    """The models of what is left after measurements were discarded or restored, before anything is decided.

    The fields are those of `RoundCompleted`.
    """

    smape: float | None
    width: float | None
    widest: float | None
    noise: float | None
    narrow: bool
    targets: int = 0


@dataclass(frozen=True, slots=True)
class StopRuleReached:
    """Nothing more is proposed; runs in flight are still settled and the validation may follow.

    ``kept``: core-seconds that are kept back for it, where the rule might not have held with them.
    ``useful``: a point at which a run would help that the budget or the search space does not hold.
    """

    rule: str
    detail: str
    kept: float = 0.0
    useful: Point | None = None


@dataclass(frozen=True, slots=True)
class CampaignPaused:
    """Nothing is begun any more until a controller is started again: the infrastructure fails too often.

    Attempts in flight are still settled. The next `ControllerStarted` ends the pause.
    """

    cause: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutageBegan:
    """A service that the executor depends on does not answer, or no job can begin; again every hour.

    ``since`` in Unix seconds, ``lasted`` in seconds so far; ``jobs``: how many are out; ``blocking``: nothing
    is submitted meanwhile; ``repeated``: it was reported before.
    """

    what: str
    since: float
    reason: str = ""
    jobs: int = 0
    blocking: bool = True
    lasted: float = 0.0
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class OutageEnded:
    """A service answers again, after so many seconds."""

    what: str
    lasted: float = 0.0


@dataclass(frozen=True, slots=True)
class ValidationProposed:
    """One run at the evaluation point, never used for fitting."""

    run: Run


@dataclass(frozen=True, slots=True)
class StopWithdrawn:
    """Rounds go on after the validation: it left so much (core-seconds) of what was kept back for it."""

    left: float


@dataclass(frozen=True, slots=True)
class RereadBegan:
    """Kept outputs and profiles are read again: what follows counts with the next `RereadCompleted`."""

    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptReread:
    """What a settled attempt measured, as it is read now; ``recovered``: it could not be read before.

    The other fields are those of the run of a recovered attempt: see `orchestrator.journal.state.RunState`.
    """

    attempt: Attempt
    samples: Samples
    recovered: bool = False
    elapsed: float = 0.0
    node: str = ""
    packed: bool = False
    began: float | None = None
    load: Mapping[str, float] = field(default_factory=dict)
    origin: str = ""


@dataclass(frozen=True, slots=True)
class RereadCompleted:
    """From here on the ``attempts`` since `RereadBegan` have the values that were read again.

    ``campaign``: the normalised campaign file by which they were read. Without this event, as after a crash,
    the earlier values hold. ``runs``: the discarded ones that were read, too, with other values or the same.
    """

    campaign: Mapping[str, Any]
    attempts: int
    runs: tuple[Run, ...] = ()


@dataclass(frozen=True, slots=True)
class MeasurementsDiscarded:
    """The user leaves out what some runs measured: nothing but their cost counts from here on.

    All of a command are one event, so that a crash leaves all of them or none.
    """

    runs: tuple[Run, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class MeasurementsRestored:
    """What some runs measured counts again as before it was discarded."""

    runs: tuple[Run, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CampaignStopped:
    """The last event of a campaign, but for further rules, values read again, and discarded ones."""

    rule: str
    detail: str


Event = (
    CampaignStarted
    | CampaignChanged
    | ControllerStarted
    | ControllerStopped
    | ExecutableReplaced
    | RoundProposed
    | AttemptIntended
    | AttemptSubmitted
    | AttemptStarted
    | AttemptWithdrawn
    | AttemptFinished
    | AttemptCharged
    | RunGivenUp
    | RunSkipped
    | RoundCompleted
    | ModelsAssessed
    | StopRuleReached
    | CampaignPaused
    | OutageBegan
    | OutageEnded
    | ValidationProposed
    | StopWithdrawn
    | RereadBegan
    | AttemptReread
    | RereadCompleted
    | MeasurementsDiscarded
    | MeasurementsRestored
    | CampaignStopped
)


def _name(kind: type[Any]) -> str:
    """Return how the journal calls a type of events: ``run_given_up`` of `RunGivenUp`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


TYPES: Mapping[str, type[Any]] = {_name(kind): kind for kind in get_args(Event)}
"""By their name in the journal."""
_NAMES = {kind: name for name, kind in TYPES.items()}
_FORMS = {kind: form_of(kind) for kind in get_args(Event)}


def name_of(event: Event) -> str:
    """Return the name of an event's type in the journal."""
    return _NAMES[type(event)]


def to_json(event: Event) -> dict[str, Any]:
    """Return the JSON-ready content of an event (without its name)."""
    data: dict[str, Any] = _FORMS[type(event)].pack(event)
    return data


def from_json(name: str, data: Mapping[str, Any]) -> Event:
    """Rebuild an event from its name and content.

    Raises
    ------
    KeyError, TypeError, ValueError
        For an unknown name, or content that is not an event of that name.
    """
    event: Event = _FORMS[TYPES[name]].unpack(data)
    return event
