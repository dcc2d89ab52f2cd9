"""What becomes of a campaign at its pace: trends that are there are found, others are not invented."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.replay import MARKED, replay
from orchestrator.journal.state import RoundMark
from orchestrator.policy.pace import FEWEST, ROUNDS, pace


def marks(*pairs: tuple[float, float | None]) -> list[RoundMark]:
    """Rounds after so many core-seconds, with an uncertainty; a minute for every core-second."""
    return [RoundMark(spent, 60 * spent, width) for spent, width in pairs]


@given(st.floats(-0.5, -0.05), st.floats(0.01, 5), st.integers(FEWEST, 12), st.floats(1, 50))
def test_a_power_law_goes_on(exponent: float, first: float, number: int, further: float) -> None:
    rounds = marks(*((float(k), first * k**exponent) for k in range(1, number + 1)))
    budget = further * number
    found = pace(rounds, float(number), budget)
    assert found.exponent == pytest.approx(exponent, abs=1e-6)
    assert found.final == pytest.approx(first * budget**exponent, rel=1e-4)
    assert found.uncertainty == rounds[-1].uncertainty
    assert found.seconds == pytest.approx(60 * (budget - number))
    assert not found.no_trend


def test_a_steep_beginning_does_not_go_on() -> None:
    found = pace(marks((1, 4.0), (2, 1.0), (4, 0.25)), 4, 400)
    assert found.exponent == pytest.approx(-2)
    assert found.final == pytest.approx(0.025)  # with the root of what is spent, not with its square


def test_only_the_last_rounds_count() -> None:
    early = [(float(k), 100.0 / k**3) for k in range(1, 7)]
    late = [(10.0 * k, k**-0.25) for k in range(1, ROUNDS + 1)]
    assert pace(marks(*early, *late), 60, 600).exponent == pytest.approx(-0.25)


@pytest.mark.parametrize(
    ("rounds", "why"),
    [
        ([], "no round has intervals"),
        ([(1.0, None), (2.0, None), (3.0, None)], "no round has intervals"),
        ([(1.0, 0.5)], "no trend yet: 1 round has intervals, 3 are needed"),
        ([(1.0, None), (2.0, 0.5), (3.0, 0.4)], "no trend yet: 2 rounds have intervals"),
        ([(1.0, 0.5), (1.01, 0.4), (1.02, 0.3)], "added only 2 % to what is spent"),
        ([(1.0, 0.2), (2.0, 0.3), (4.0, 0.4)], "the intervals did not become narrower in the last 3 rounds"),
        ([(1.0, 0.2), (2.0, 0.2), (4.0, 0.2)], "the intervals did not become narrower"),
    ],
)
def test_no_trend_is_invented(rounds: list[tuple[float, float | None]], why: str) -> None:
    found = pace(marks(*rounds), 5, 50)
    assert found.final is None
    assert why in found.no_trend


def test_the_rate_needs_time_and_spending() -> None:
    assert pace([RoundMark(1, 0.0, 0.5)], 1, 10).seconds is None
    assert pace([RoundMark(1, 0.0), RoundMark(1, 60.0)], 1, 10).seconds is None
    assert pace([RoundMark(1, 60.0), RoundMark(2, 60.0)], 2, 10).seconds is None
    assert pace([RoundMark(1, 0.0), RoundMark(3, 60.0)], 4, 10).seconds == pytest.approx(180)
    assert pace([RoundMark(1, 0.0), RoundMark(3, 60.0)], 11, 10).seconds == 0


def test_the_state_keeps_the_last_rounds_that_measured_something() -> None:
    happened = [
        events.RoundCompleted(round=k, smape=1.0, width=1 / k, improved=True, measured=k != 20)
        for k in range(1, 31)
    ]
    state = replay(Entry(k, 100.0 * k, event) for k, event in enumerate(happened, 1))
    expected = [100.0 * k for k in range(1, 31) if k != 20][-MARKED:]
    assert [mark.time for mark in state.rounds] == expected
    assert all(math.isclose(mark.uncertainty or 0, 100 / mark.time) for mark in state.rounds)
