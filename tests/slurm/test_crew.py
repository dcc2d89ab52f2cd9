"""What attempts that share a job are charged: parts that add up, whatever became of each."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.executors.attempt.worker import OWNER
from orchestrator.executors.slurm.outcome import Crew, Evidence, Member, divide, judge
from orchestrator.executors.slurm.poller import Sight
from orchestrator.executors.slurm.settings import SlurmSettings
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
    return Member(AttemptRecord("p=1/time-1", 1, "n1", 1, started, finished, allocated=JOB))


NEVER = member(None)
BARRED = member(None, owner="controller: gone")
CLAIMED = member(None, owner=OWNER)


@pytest.mark.parametrize(
    ("elapsed", "members", "expected"),
    [
        # Start-up and end go to the first one.
        (30.0, [member(102, 110), member(110, 125), member(125, 128)], [8 + 4, 15, 3]),
        # What was running when the job ended pays for that.
        (30.0, [member(102, 110), member(110), NEVER], [8, 22, 0]),
        (30.0, [member(102, 110), CLAIMED, BARRED], [8, 22, 0]),
        # Nobody began: the first one stands for all.
        (7.0, [NEVER, BARRED, NEVER], [7, 0, 0]),
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


def test_records_tell_what_a_job_took_unless_one_has_no_end() -> None:
    assert Crew((member(102.5, 110.2), member(110.3, 125.1), NEVER), 0).told == 26
    assert Crew((member(102.5, 110.2), member(110.3)), 0).told is None
    assert Crew((member(102.5, 110.2), CLAIMED), 0).told is None


def members() -> st.SearchStrategy[list[Member]]:
    span = st.tuples(
        st.floats(0, 50), st.floats(0, 50), st.sampled_from(["ended", "lost", "claimed", "barred"])
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
                    "barred": BARRED,
                }[fate]
            )
        return found

    return st.lists(span, min_size=1, max_size=6).map(build)


@given(members(), st.floats(0, 1000))
def test_the_parts_add_up_and_none_is_negative(crew: list[Member], elapsed: float) -> None:
    parts = divide(elapsed, crew)
    assert sum(parts) == pytest.approx(elapsed)
    assert all(part >= 0 for part in parts)
    began = [item.begun for item in crew]
    assert not any(part for part, begun in zip(parts, began, strict=True) if not begun) or not any(began)


# --- one that never began -------------------------------------------------------------------------------


def never_began(sight: Sight, gone_for: float) -> Observation:
    """Judge the second attempt of a job that is gone: barred by a cancellation, the first having finished."""
    attempt = Attempt(Run(Point.of(p=1), repetition=2), 1)
    request = AttemptRequest(attempt, "c-r2-1", Path("/nowhere"), Resources(1), 60.0, "")
    owner = "controller: cancelled before it began"
    crew = Crew((member(102, 110), member(None, owner=owner)), 1)
    evidence = Evidence(
        request, owner=owner, submitted=500.0, handle="7", sight=sight, gone_for=gone_for, crew=crew
    )
    return judge(evidence, SlurmSettings(accounting_grace=60.0), False)


def test_one_that_never_began_is_withdrawn_once_its_job_is_charged_for() -> None:
    seen = never_began(Sight(elapsed=12.0, booked=True), gone_for=5.0)
    assert (seen.state, seen.barred, seen.elapsed) == (AttemptState.ABSENT, True, 0.0)


def test_while_accounting_is_silent_it_is_waited_for_and_then_lost_with_all_that_is_reserved() -> None:
    waiting = never_began(Sight(), gone_for=5.0)
    assert waiting.state is AttemptState.UNKNOWN
    assert waiting.reason.endswith("what its job cost is not known yet")
    given_up = never_began(Sight(), gone_for=61.0)
    assert (given_up.state, given_up.barred, given_up.elapsed) == (AttemptState.LOST, False, None)
