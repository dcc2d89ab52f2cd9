"""How the state of a campaign is JSON (see `orchestrator.journal.forms`). Pure."""

from __future__ import annotations

from orchestrator.journal.allocations import Hold, JobCosts
from orchestrator.journal.forms import (
    ATTEMPT,
    EVENT,
    MAPPING,
    NUMBER,
    PLAIN,
    POINT,
    RUN,
    TEXTS,
    Form,
    joined,
    optional,
    pairs,
    record,
    sequence,
    word,
)
from orchestrator.journal.setbacks import Setbacks
from orchestrator.journal.state import (
    Discarded,
    InFlight,
    OpenOutage,
    RoundMark,
    RunState,
    RunStatus,
    State,
    StopReason,
)
from orchestrator.types import FailureClass

_RUN_STATE = record(
    RunState,
    status=word(RunStatus),
    failures=sequence(word(FailureClass)),
    samples=MAPPING,
    load=MAPPING,
)
_FLIGHTS = pairs(ATTEMPT, record(InFlight))
_STOP = optional(Form(lambda reason: [reason.rule, reason.detail], lambda data: StopReason(data[0], data[1])))

_OTHERS = record(
    State,
    campaign=MAPPING,
    priors=MAPPING,
    rounds=sequence(record(RoundMark)),
    queue=sequence(RUN),
    failed=sequence(RUN),
    proposed=pairs(PLAIN, pairs(POINT, PLAIN)),
    in_flight=_FLIGHTS,
    unconfirmed=_FLIGHTS,
    infeasible=sequence(POINT, frozenset),
    short_of_memory=sequence(RUN, frozenset),
    holds=pairs(PLAIN, record(Hold)),
    job_costs=record(JobCosts, overheads=TEXTS, waits=TEXTS),
    recent=TEXTS,
    setbacks=record(Setbacks, last=NUMBER, reasons=TEXTS, since=NUMBER),
    marks=pairs(PLAIN, TEXTS),
    failed_nodes=pairs(PLAIN, PLAIN),
    placements=pairs(POINT, TEXTS),
    node_order=TEXTS,
    outages=pairs(PLAIN, record(OpenOutage)),
    paused=_STOP,
    stopping=_STOP,
    stopped=_STOP,
    validation=optional(RUN),
    machine=MAPPING,
    remarked=sequence(PLAIN, frozenset),
    executables=MAPPING,
    measured_with=pairs(PLAIN, TEXTS),
    reread=pairs(RUN, EVENT),
    discarded=pairs(RUN, record(Discarded)),
)

# A run that has a reason is one of the runs.
STATE = joined(
    _OTHERS, (State._fields.index("runs"), State._fields.index("reasons")), RUN, (_RUN_STATE, PLAIN)
)
