"""What to measure next for a table."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import orchestrator as mo

POINTS = [(p, s) for p in (1, 2, 4, 8, 16) for s in (10, 20, 30, 40, 50)]
FRAME = pd.DataFrame([{"p": p, "s": s, "time": 0.1 + 1e-3 * p * s} for p, s in POINTS[:-1] for _ in range(2)])
ASKED: dict[str, Any] = {
    "parameters": ["p", "s"],
    "response": "time",
    "target": {"p": 32, "s": 60},
    "processes": "p",
    "budget": "2 core-hours",
}


def test_points_are_suggested_with_cost_and_reason() -> None:
    found = mo.suggest(FRAME, **ASKED, values={"p": [64]}, batch_size=3)
    assert list(found.columns) == ["p", "s", "repetitions", "core_hours", "reason"]
    assert 0 < len(found) <= 3
    assert (found["core_hours"] > 0).all()
    assert found["reason"].str.len().min() > 0


def test_the_budget_is_kept_and_constraints_hold() -> None:
    found = mo.suggest(FRAME, **ASKED, values={"p": [64, 128]}, constraints=["p * s >= 640"], batch_size=10)
    assert (found["p"] * found["s"] >= 640).all()
    little = mo.suggest(FRAME, **{**ASKED, "budget": 1e-9})
    assert list(little.columns) == list(found.columns)
    assert little.empty


@pytest.mark.parametrize(
    ("changed", "error", "mistake"),
    [
        ({"target": {"p": 32}}, mo.MeasurementError, "no value for parameter s"),
        ({"target": {"p": 32, "s": 60, "q": 1}}, mo.MeasurementError, "unknown parameter 'q'"),
        ({"target": {"p": 2, "s": 20}}, mo.CampaignError, "among the points that can be measured"),
        ({"budget": "much"}, mo.MeasurementError, "budget: 'much' is not a budget"),
        ({"budget": 0}, mo.MeasurementError, "budget: 0 must be greater than 0"),
        ({"budget": -1.0}, mo.MeasurementError, r"budget: -1\.0 must be greater than 0"),
        ({"batch_size": 0}, mo.MeasurementError, "a whole number from 1"),
        ({"processes": "q"}, mo.CampaignError, "unknown name 'q'"),
        ({"values": {"q": [1]}}, mo.MeasurementError, "unknown parameter 'q'"),
        ({"values": {"p": [-1]}}, mo.MeasurementError, "p=-1"),
        ({"constraints": ["p *"]}, mo.CampaignError, "expression 'p \\*'"),
        ({"constraints": ["p > 1e9"]}, mo.CampaignError, "no point satisfies"),
        ({"modeler": "best"}, mo.CampaignError, "unknown model 'best'"),
        ({"options": {"rank": 1}}, mo.CampaignError, "modeler 'auto' has no option 'rank'"),
        ({"strategy": "best"}, mo.CampaignError, "unknown strategy 'best'"),
        ({"response": "tmie"}, mo.MeasurementError, "did you mean 'time'"),
    ],
)
def test_questions_that_cannot_be_answered(
    changed: dict[str, Any], error: type[Exception], mistake: str
) -> None:
    with pytest.raises(error, match=mistake):
        mo.suggest(FRAME, **{**ASKED, **changed})


def test_what_is_not_called_time_counts_as_seconds_with_a_warning() -> None:
    """An energy gave core-hours without a word."""
    wanted = mo.suggest(FRAME, **ASKED, modeler="pmnf")
    said = r"no metric is called time: costs are predicted as if energy were in seconds"
    with pytest.warns(UserWarning, match=said) as warned:
        found = mo.suggest(
            FRAME.rename(columns={"time": "energy"}), **{**ASKED, "response": "energy"}, modeler="pmnf"
        )
    assert found.equals(wanted)
    assert warned[0].filename == __file__
