"""What settling makes of an attempt that ended by itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from orchestrator.control import settle
from orchestrator.journal import events
from orchestrator.journal.state import InFlight
from orchestrator.types import (
    Attempt,
    AttemptRecord,
    AttemptRequest,
    AttemptState,
    Observation,
    Point,
    Resources,
    Run,
)


def _nothing(request: AttemptRequest, observation: Observation) -> events.Samples:
    return {}


def finished(
    exit_code: int,
    directory: Path,
    full: str = "",
    moved: bool = False,
    collect: settle.Collect = _nothing,
    timed_out: bool = False,
    executable: Mapping[str, Any] = MappingProxyType({}),
    ran: bool = True,
) -> events.AttemptFinished:
    """Return the event of an attempt; for ``full`` ... ``executable`` see `AttemptRecord`."""
    attempt = Attempt(Run(Point.of(p=1)))
    request = AttemptRequest(
        attempt=attempt, name="name", directory=directory, resources=Resources(ranks=1), limit=60.0, script=""
    )
    record = AttemptRecord(
        run=attempt.run.id,
        attempt=1,
        host="n1",
        pid=7,
        started=0.0,
        finished=5.0,
        exit_code=exit_code,
        full=full,
        moved=moved,
        timed_out=timed_out,
        executable=executable,
    )
    observation = Observation(attempt, AttemptState.FINISHED, record=record)
    flight = InFlight("name", 1, 60.0, 60.0)
    [event] = settle.events_of(observation, flight, request, collect, flight.reserved, ran=ran)
    assert isinstance(event, events.AttemptFinished)
    return event
