"""The time of a shared job: what its attempts likely take, and one whole limit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.resources import shared_limits

ATTEMPTS = st.lists(
    st.tuples(st.floats(1, 1e4), st.one_of(st.none(), st.floats(0.01, 1e4))), min_size=1, max_size=20
)


@given(ATTEMPTS, st.data())
def test_every_attempt_has_its_whole_limit_left_while_all_before_it_take_what_is_likely(
    attempts: list[tuple[float, float | None]], data: st.DataObject
) -> None:
    """So all begin, and whichever takes its whole limit ends within the job."""
    left = sum(shared_limits(attempts))
    for limit, likely in attempts:
        assert limit <= left * (1 + 1e-9)
        left -= data.draw(st.floats(0, limit if likely is None else min(limit, likely)))


@given(ATTEMPTS)
def test_a_shared_job_is_never_longer_than_all_limits_and_holds_each(
    attempts: list[tuple[float, float | None]],
) -> None:
    total = sum(shared_limits(attempts))
    assert max(limit for limit, _ in attempts) <= total * (1 + 1e-9)
    assert total <= sum(limit for limit, _ in attempts) * (1 + 1e-9)


def test_of_what_nothing_is_known_has_its_limit() -> None:
    assert shared_limits([(40.0, None), (10.0, None)]) == [40.0, 10.0]
    assert shared_limits([(10.0, 2.0)] * 3) == [10.0, 2.0, 2.0]
