"""Models as documents: what explains the models of a table."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.report.models_document import DEVIATING, legend, value_at
from orchestrator.types import Point


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
