"""What the Slurm executor remembers of an attempt, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.executors.slurm.tracked import Phase, Stopwatch, TrackedAttempt
from orchestrator.types import Attempt, AttemptRequest, Point, Resources, Run
from tests.slurm.fake_slurm import FakeSlurm, submitted

Transition = Callable[[TrackedAttempt], None]

POLL: Transition = lambda item: item.poll((1, 2))  # noqa: E731
LATE: Transition = lambda item: item.expect_late_job(7.0)  # noqa: E731
CHARGE: Transition = lambda item: item.await_charge()  # noqa: E731


def tracked() -> TrackedAttempt:
    attempt = Attempt(Run(Point.of(p=1)))
    return TrackedAttempt(
        request=AttemptRequest(
            attempt=attempt,
            name="name",
            directory=Path("/c"),
            resources=Resources(ranks=1),
            limit=60.0,
            script="",
        )
    )


@pytest.mark.parametrize(
    ("transitions", "phase", "polled", "asked_for"),
    [
        ([], Phase.SUBMITTED, False, False),
        ([POLL], Phase.OPEN, True, True),
        ([CHARGE], Phase.CHARGING, False, True),
        ([CHARGE, POLL], Phase.OPEN, True, True),
        ([POLL, CHARGE], Phase.OPEN, True, True),
        ([POLL, LATE], Phase.REVOKED, True, True),
        ([POLL, LATE, POLL, CHARGE], Phase.REVOKED, True, True),
    ],
)
def test_transitions_lead_to_a_phase(
    transitions: list[Transition], phase: Phase, polled: bool, asked_for: bool
) -> None:
    item = tracked()
    for transition in transitions:
        transition(item)
    assert (item.phase, item.polled, item.asked_for) == (phase, polled, asked_for)


def test_the_hour_for_a_late_job_begins_once() -> None:
    item = tracked()
    item.expect_late_job(100.0)
    item.poll(None)
    item.expect_late_job(200.0)
    assert item.late_since == 100.0


@given(st.lists(st.tuples(st.floats(0, 100), st.booleans(), st.integers(0, 1)), min_size=1))
def test_a_stopwatch_counts_since_the_last_change(looks: list[tuple[float, bool, int]]) -> None:
    stopwatch, now, since, before = Stopwatch(), 0.0, 0.0, (False, -1)
    for pause, holds, seen_by in looks:
        now += pause
        if not holds or (holds, seen_by) != before:
            since = now
        before = (holds, seen_by)
        assert stopwatch.seconds(now, holds, seen_by) == now - since


def test_a_settled_attempt_is_tracked_no_more(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    seen = executor._tracked[request.name]
    assert (seen.phase, seen.job_id) == (Phase.SUBMITTED, "100_0")
    fake.queue("100_0 PENDING Resources")
    executor.poll([request])
    assert (seen.phase, seen.last_queued) == (Phase.OPEN, fake.now)
    fake.execute(request)
    fake.turn(20)
    fake.queue()
    fake.accounted("100_0 12 COMPLETED")
    executor.poll([request])
    assert not executor._tracked


def test_a_revoked_attempt_is_tracked_for_an_hour(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.answer("squeue", "")
    executor.cancel([request])
    fake.turn(20)
    executor.poll([request])
    assert executor._tracked[request.name].phase is Phase.REVOKED
    fake.queue("100_0 PENDING Resources")  # it turns up late
    fake.turn(60)
    executor.submit([other := fake.request()])
    executor.poll([other])
    assert "100_0" in fake.calls("scancel")[-1]
    fake.turn(3600)
    executor.wait(1.0)
    assert request.name not in executor._tracked
