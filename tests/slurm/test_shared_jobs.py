"""What attempts that share a job are charged: parts that add up, whatever became of each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.executors.attempt.worker import OWNER
from orchestrator.executors.slurm.options import SlurmSettings
from orchestrator.executors.slurm.outcome import Evidence, classify
from orchestrator.executors.slurm.poller import JobStatus
from orchestrator.executors.slurm.shared_jobs import Member, SharedJob, divide
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

JOB = 100.0  # when it began


def member(started: float | None, finished: float | None = None, owner: str | None = None) -> Member:
    if started is None:
        return Member(None, owner)
    return Member(
        AttemptRecord(
            run="p=1/time-1", attempt=1, host="n1", pid=1, started=started, finished=finished, allocated=JOB
        )
    )


NEVER = member(None)
REVOKED = member(None, owner="controller: gone")
CLAIMED = member(None, owner=OWNER)


@pytest.mark.parametrize(
    ("elapsed", "members", "expected"),
    [
        # Start-up and end go to the first one.
        (30.0, [member(102, 110), member(110, 125), member(125, 128)], [8 + 4, 15, 3]),
        # The attempt that was running when the job ended is charged for that.
        (30.0, [member(102, 110), member(110), NEVER], [8, 22, 0]),
        (30.0, [member(102, 110), CLAIMED, REVOKED], [8, 22, 0]),
        # None began: the first one is charged for all.
        (7.0, [NEVER, REVOKED, NEVER], [7, 0, 0]),
        # Between two attempts.
        (30.0, [member(102, 110), NEVER], [30, 0]),
        # Its processes were killed, and the next one went on.
        (30.0, [member(102), member(110, 125)], [8 + 7, 15]),
        # Slurm took the node for dead, and it went on.
        (10.0, [member(102, 112), member(112, 122)], [5, 5]),
    ],
)
def test_the_job_is_divided_by_the_spans(
    elapsed: float, members: list[Member], expected: list[float]
) -> None:
    assert divide(elapsed, members) == pytest.approx(expected)


def test_records_say_how_long_a_job_took_unless_one_has_no_end() -> None:
    assert SharedJob((member(102.5, 110.2), member(110.3, 125.1), NEVER), 0).recorded_seconds == 26
    assert SharedJob((member(102.5, 110.2), member(110.3)), 0).recorded_seconds is None
    assert SharedJob((member(102.5, 110.2), CLAIMED), 0).recorded_seconds is None


def members() -> st.SearchStrategy[list[Member]]:
    span = st.tuples(
        st.floats(0, 50), st.floats(0, 50), st.sampled_from(["ended", "lost", "claimed", "revoked"])
    )

    def build(spans: list[tuple[float, float, str]]) -> list[Member]:
        now, found = JOB, []
        for pause, seconds, fate in spans:
            begun = now + pause
            now = begun + seconds
            found.append(
                {
                    "ended": member(begun, now),
                    "lost": member(begun),
                    "claimed": CLAIMED,
                    "revoked": REVOKED,
                }[fate]
            )
        return found

    return st.lists(span, min_size=1, max_size=6).map(build)


@given(members(), st.floats(0, 1000))
def test_the_parts_add_up_and_none_is_negative(sharing: list[Member], elapsed: float) -> None:
    parts = divide(elapsed, sharing)
    assert sum(parts) == pytest.approx(elapsed)
    assert all(part >= 0 for part in parts)
    began = [item.begun for item in sharing]
    assert not any(part for part, begun in zip(parts, began, strict=True) if not begun) or not any(began)


# --- one that never began -------------------------------------------------------------------------------


def never_began(status: JobStatus, gone_for: float, first: Member | None = None) -> Observation:
    """Classify the second attempt of a job that is gone: revoked by a cancellation; the first ended."""
    attempt = Attempt(Run(Point.of(p=1), repetition=2), 1)
    request = AttemptRequest(
        attempt=attempt,
        name="c-r2-1",
        directory=Path("/nowhere"),
        resources=Resources(ranks=1),
        limit=60.0,
        script="",
    )
    owner = "controller: cancelled before it began"
    shared = SharedJob((first or member(102, 110), member(None, owner=owner)), 1)
    evidence = Evidence(
        request=request,
        settings=SlurmSettings(accounting_grace=60.0),
        owner=owner,
        submitted=500.0,
        job_id="7",
        status=status,
        gone_for=gone_for,
        shared=shared,
    )
    return classify(evidence)


def test_one_that_never_began_is_withdrawn_once_its_job_is_charged_for() -> None:
    seen = never_began(JobStatus(elapsed=12.0, accounted=True), gone_for=5.0)
    assert (seen.state, seen.revoked, seen.elapsed) == (AttemptState.ABSENT, True, 0.0)


def test_while_accounting_is_silent_it_is_waited_for_and_then_lost_with_all_that_is_reserved() -> None:
    without_end = member(102)
    waiting = never_began(JobStatus(), gone_for=5.0, first=without_end)
    assert waiting.state is AttemptState.UNKNOWN
    assert waiting.reason.endswith("what its job cost is not known yet")
    given_up = never_began(JobStatus(), gone_for=61.0, first=without_end)
    assert (given_up.state, given_up.revoked, given_up.elapsed) == (AttemptState.LOST, False, None)


def test_where_the_records_of_the_others_are_complete_it_is_withdrawn() -> None:
    for status in (JobStatus(), JobStatus(accounting_active=True, accounted=True)):
        assert never_began(status, gone_for=5.0).state is AttemptState.UNKNOWN
        seen = never_began(status, gone_for=196.0)
        assert (seen.state, seen.revoked, seen.elapsed) == (AttemptState.ABSENT, True, 0.0)


def lost_job(gone_for: float, status: JobStatus, *others: Member) -> Observation:
    """Classify the first attempt of a job that Slurm lost: it was ended with the job, and says so."""
    first = member(102, 110)
    assert first.record is not None
    record = replace(first.record, cancelled=True, exit_code=143)
    request = AttemptRequest(
        attempt=Attempt(Run(Point.of(p=1))),
        name="c-1",
        directory=Path("/nowhere"),
        resources=Resources(ranks=1),
        limit=60.0,
        script="",
    )
    evidence = Evidence(
        request=request,
        settings=SlurmSettings(),
        record=record,
        owner=OWNER,
        submitted=500.0,
        job_id="7",
        status=status,
        gone_for=gone_for,
        finished_for=gone_for,
        minutes=20,
        shared=SharedJob((Member(record), *others), 0) if others else None,
    )
    return classify(evidence)


@pytest.mark.parametrize("others", [(), (REVOKED,) * 9])
@pytest.mark.parametrize("active", [False, True])
def test_a_job_that_slurm_lost_is_charged_by_its_records_without_waiting_for_its_limit(
    others: tuple[Member, ...], active: bool
) -> None:
    status = JobStatus(accounting_active=active, accounted=active)
    assert lost_job(50.0, status, *others).state is AttemptState.RUNNING
    early = lost_job(61.0, status, *others)
    assert early.state is AttemptState.FINISHED and early.estimated and early.reason
    final = lost_job(301.0, status, *others)
    assert not final.estimated and final.elapsed == 10.0, "from the begin of the job"
    for silent in (JobStatus(error="no answer"), JobStatus(accounting_error="no answer")):
        assert lost_job(301.0, silent, *others).estimated
