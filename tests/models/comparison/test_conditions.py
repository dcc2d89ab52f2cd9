"""Conditions under which a comparison fails."""

from __future__ import annotations

import pytest

from orchestrator.errors import CampaignError
from orchestrator.models.comparison.compared import compared
from orchestrator.models.comparison.conditions import Condition, check
from orchestrator.types import Point
from tests.models.comparison.campaigns import both

POINT = Point.of(p=64, n=40)


def failed(text: str, factor: float, growth: float = 0.0) -> bool:
    (row,) = compared(both(1, lambda p, n: factor * (p / 4) ** growth), (), ())
    at = row.at(POINT)
    assert at is not None
    found = check(Condition.of(text), row, [at])
    assert found is not None
    return found.failed


@pytest.mark.parametrize(
    ("text", "factor", "growth", "expected"),
    [
        ("ratio > 1.1 with 95 %", 1.3, 0.0, True),
        ("ratio > 1.1", 1.3, 0.0, True),
        ("ratio > 1.1 with 95 %", 1.1, 0.0, False),
        ("ratio > 1.1 with 95%", 1.0, 0.0, False),
        ("ratio < 0.9 with 90 %", 0.7, 0.0, True),
        ("ratio<0.9", 1.0, 0.0, False),
        ("growth > 0.1 with 90 %", 1.0, 0.3, True),
        ("growth > 0.1 with 90 %", 1.3, 0.0, False),
        ("change with 99 %", 1.2, 0.0, True),
        ("change", 1.0, 0.0, False),
    ],
)
def test_a_condition_holds(text: str, factor: float, growth: float, expected: bool) -> None:
    assert failed(text, factor, growth) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ratio", "needs a bound"),
        ("ratio > ", "write 'ratio > 1.1 with 95 %'"),
        ("ratio >= 1.1", "write 'ratio > 1.1 with 95 %'"),
        ("speed > 1", "write 'ratio > 1.1 with 95 %'"),
        ("ratio > 1.1 with 100 %", "from 50 % to below 100 %"),
        ("ratio > -1", "greater than 0"),
        ("change > 1", "needs no bound"),
        ("theory > 0.2 with 90 %", "without a probability"),
    ],
)
def test_another_text_is_refused_with_a_remedy(text: str, message: str) -> None:
    with pytest.raises(CampaignError, match=message):
        Condition.of(text)
