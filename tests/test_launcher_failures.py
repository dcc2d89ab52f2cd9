"""A launcher that fails is not the application's fault, and is tried again as such."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator import events, settle
from orchestrator.state import InFlight
from orchestrator.types import (
    Attempt,
    AttemptRecord,
    AttemptRequest,
    AttemptState,
    FailureClass,
    Observation,
    Point,
    Resources,
    Run,
)


@pytest.mark.parametrize(
    ("words", "failure"),
    [
        ("srun: error: Unable to create step for job 7: Socket timed out", FailureClass.INFRASTRUCTURE),
        ("srun: error: Unable to confirm allocation for job 7", FailureClass.INFRASTRUCTURE),
        ("slurmstepd: error: *** STEP 7.0 CANCELLED DUE TO NODE FAILURE ***", FailureClass.INFRASTRUCTURE),
        ("srun: error: n1: task 0: Exited with exit code 1", FailureClass.APPLICATION),
        ("connection to the data base timed out", FailureClass.APPLICATION),
    ],
)
def test_who_failed_is_told_by_the_last_words(words: str, failure: FailureClass, tmp_path: Path) -> None:
    (tmp_path / "stderr").write_text(f"starting\n{words}\n")
    attempt = Attempt(Run(Point.of(p=1)))
    request = AttemptRequest(attempt, "name", tmp_path, Resources(1), 60.0, "")
    record = AttemptRecord(attempt.run.id, 1, "n1", 7, 0.0, 5.0, 1)
    observation = Observation(attempt, AttemptState.FINISHED, record=record)
    flight = InFlight("name", 1, 60.0, 60.0)
    [event] = settle.events_of(observation, flight, request, lambda item, seen: {}, flight.reserved)
    assert isinstance(event, events.AttemptFinished)
    assert event.failure is failure and words in event.reason
