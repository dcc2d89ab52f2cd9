"""Models as documents: what explains the models of a table."""

from __future__ import annotations

from typing import Any

import immutables
import pytest

from orchestrator.journal.state import RunState, RunStatus, State
from orchestrator.report.models_document import DEVIATING, legend, unended, value_at
from orchestrator.types import Point, Run
from tests.models.test_consistency import Known


def described(callpath: str, predicted: float | None, exponent: float = 2.0, n: Any = 10) -> dict[str, Any]:
    """Return a model ``3 * n**2`` with one prediction."""
    factor = {"parameter": "n", "exponent": exponent, "log_exponent": 0.0}
    return {
        "callpath": callpath,
        "metric": "time",
        "expression": "3 * n**2",
        "normal_form": "3 * n**2",
        "terms": [{"coefficient": 3.0, "factors": [factor]}],
        "predictions": [{"point": {"n": n}, "value": predicted}],
    }


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (described("main", 299.0), False),
        (described("main", 100.0), True),
        (described("main", 900.0), True),
        (described("main", None), False),
        (described("main", 9.0, 0.5, -4), False),
        (described("main", 9.0, n="text"), False),
        ({**described("main", 100.0), "predictions": []}, False),
        ({**described("main", 100.0), "terms": []}, False),
        ({**described("main", 100.0), "expression": "(3 * n**2) * c"}, False),
    ],
)
def test_a_prediction_that_is_far_from_the_expression_is_named(model: dict[str, Any], named: bool) -> None:
    assert (DEVIATING in legend([model])) is named


@pytest.mark.parametrize(("n", "exponent"), [(-4, 0.5), (0, -1.0), ("text", 1.0)])
def test_a_form_without_a_value_at_a_point_has_none_there(n: Any, exponent: float) -> None:
    assert value_at(described("main", None, exponent)["terms"], Point.of(n=n)) is None


def test_a_few_of_many_are_named() -> None:
    line = legend([described(f"part {k}", 100.0) for k in range(5)])
    assert line == f"{DEVIATING}: part 0 time, part 1 time, part 2 time and 2 others"


@pytest.mark.parametrize(
    ("runs", "named"),
    [
        ([RunState(RunStatus.GIVEN_UP, reached=16.0)], True),
        ([RunState(RunStatus.SKIPPED, reached=8.0), RunState(RunStatus.GIVEN_UP, reached=16.0)], True),
        ([RunState(RunStatus.GIVEN_UP, reached=2.0)], False),
        ([RunState(RunStatus.GIVEN_UP, reached=16.0), RunState(RunStatus.MEASURED)], False),
        ([RunState(RunStatus.GIVEN_UP)], False),
    ],
)
def test_a_time_limit_that_is_longer_than_the_models_permit_contradicts_them(
    runs: list[RunState], named: bool
) -> None:
    point = Point.of(n=16)
    of_point = {Run(point, "time", number): item for number, item in enumerate(runs, start=1)}
    models: Any = [Known("(run)", 2.5, metric="elapsed"), Known("main", 2.4)]
    notes = [item["note"] for item in unended(State(runs=immutables.Map(of_point)), models)]
    assert len(notes) == named
    for note in notes:
        assert note.startswith(
            "(run): no run at P(n=16) ended within 16 s, but predicted 2.5 s, at most 2.6 s: "
        )
