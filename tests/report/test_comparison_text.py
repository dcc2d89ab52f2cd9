"""A comparison as text claims no more than its figures say."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.report.comparison import sentence
from orchestrator.report.comparison_text import facts_table, growth_table
from orchestrator.report.junit import junit
from tests.report.test_status_text import printed

NAMES = {"a": "A", "b": "B"}
PROBABLE = "p: A grows faster, ^1 -> ^0.667 log^1 (probability that growth changed: 97.0 %)"
CHANCE = "p: no change of growth to be seen (probability 1.4 %); the forms differ by chance"


def row(**changes: Any) -> dict[str, Any]:
    growth = {
        "parameter": "p",
        "faster": "a",
        "a": {"exponent": 1.0, "log_exponent": 0.0},
        "b": {"exponent": 2 / 3, "log_exponent": 1.0},
        "probability": 0.97,
        "exponent": -0.2,
        "low": -0.3,
        "high": -0.1,
    }
    return {
        "callpath": "main",
        "metric": "time",
        "category": {},
        "expression": {"a": "p", "b": "p**(2/3) * log2(p)"},
        "short": {"a": None, "b": None},
        "growth": [{**growth, **changes}],
    }


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (2.0, "2 times as much"),
        (1.999999, "2 times as much"),
        (1.994, "99 % more"),
        (0.004, "0.004 times as much"),
        (0.5, "50 % less"),
        (0.9999996, "a change, but none at this point"),
    ],
)
def test_no_percentage_has_an_exponent(ratio: float, text: str) -> None:
    row = {"ratio": ratio, "probability": 0.99, "growth": [], "beyond": False}
    assert sentence(row).startswith(text)


@pytest.mark.parametrize(("probability", "text"), [(0.97, PROBABLE), (0.014, CHANCE)])
def test_an_improbable_change_of_growth_is_not_told_as_one(probability: float, text: str) -> None:
    table = growth_table([row(probability=probability)], NAMES)
    assert table is not None
    assert [str(cell) for cell in table.columns[-1].cells] == [text]


def test_a_change_of_growth_is_that_of_the_measurements() -> None:
    """Not of two forms that say the opposite, as they differ by chance."""
    table = growth_table([row(exponent=0.1, low=0.08, high=0.12)], NAMES)
    assert table is not None
    assert [str(cell) for cell in table.columns[-1].cells] == [
        "p: B grows faster, B / A grows by ^0.1 [0.08, 0.12], unlike the forms "
        "(probability that growth changed: 97.0 %)"
    ]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {},
            "p: A grows faster, B / A grows by ^-0.2 [-0.3, -0.1] (probability that growth changed: 97.0 %)",
        ),
        ({"probability": 0.014}, "p: no change of growth to be seen (probability 1.4 %)"),
        ({"probability": None}, "p: not known"),
    ],
)
def test_growth_of_models_without_forms_is_that_of_the_measurements(
    changes: dict[str, Any], text: str
) -> None:
    """Neighbours, learners and powers of 2 have no exponents: that says not that they grow alike."""
    table = growth_table([row(**{"a": None, "b": None, "faster": None, **changes})], NAMES)
    assert table is not None
    assert [str(cell) for cell in table.columns[-1].cells] == [text]


def test_a_long_sum_is_shown_by_its_largest_terms() -> None:
    short = "sum of 6 parts: 3 * p + ..."
    table = growth_table([{**row(), "short": {"a": None, "b": short}}], NAMES)
    assert table is not None
    assert [str(cell) for column in table.columns[2:4] for cell in column.cells] == ["p", short]
    assert "'expression' in JSON" in str(table.caption)


def test_instants_of_rehearsals_are_times_since_their_start() -> None:
    facts = [
        {"label": "measured from", "a": "1970-01-01T00:00:07+00:00", "b": "2026-11-26T17:14:00+00:00"},
        {"label": "executor: name", "a": "simulated", "b": "local"},
    ]
    lines = printed(facts_table([{**item, "same": False} for item in facts], NAMES))
    assert lines[3][1:3] == ["rehearsal, after 7 s", "2026-11-26T17:14:00+00:00"]


def test_junit_words_certainty_as_the_text_does() -> None:
    check = {"condition": "change with 95 %", "failed": True, "probability": 0.99999}
    known = {
        "callpath": "main",
        "metric": "time",
        "category": {},
        "ratio": 2.0,
        "low": None,
        "high": None,
        "sentence": "It is slower.",
        "checks": [check],
    }
    text = junit({"names": {"a": "A", "b": "B"}, "rows": [known], "not_compared": []})
    assert "change with 95 % (probability &gt; 99.9 %)" in text
