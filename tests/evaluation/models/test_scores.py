from __future__ import annotations

import math

import numpy as np
import pytest

from orchestrator.evaluation.models.scores import coverage, errors


def test_the_metrics_are_those_of_table_1_divided_by_the_number_of_values() -> None:
    found = errors(np.array([2.0, 3.0]), np.array([1.0, 4.0]))
    first, second = math.log(2), math.log(3 / 4)
    assert found["mlogq"] == pytest.approx((first - second) / 2)
    assert found["mlogq2"] == pytest.approx((first**2 + second**2) / 2)
    assert found["mape"] == pytest.approx(100 * (1 + 0.25) / 2)
    assert found["mae"] == pytest.approx(1.0)
    assert found["mse"] == pytest.approx(1.0)
    assert found["smape"] == pytest.approx(200 * (1 / 3 + 1 / 7) / 2)
    assert found["lgmape"] == pytest.approx((math.log(1) + math.log(0.25)) / 2)
    assert found["log_errors"] is not None and found["log_errors"][2] == pytest.approx((first + second) / 2)


def test_only_log_errors_treat_too_much_and_too_little_alike() -> None:
    measured = np.array([1.0, 5.0])
    much, little = errors(3 * measured, measured), errors(measured / 3, measured)
    assert much["mlogq"] == pytest.approx(little["mlogq"])
    assert much["mlogq2"] == pytest.approx(little["mlogq2"])
    assert much["mape"] != pytest.approx(little["mape"])


def test_what_has_no_number_is_none() -> None:
    exact = errors(np.array([2.0]), np.array([2.0]))
    assert exact["lgmape"] is None and exact["mlogq"] == 0.0
    nothing = errors(np.empty(0), np.empty(0))
    assert set(nothing.values()) == {None} and set(coverage(*3 * (np.empty(0),)).values()) == {None}


def test_an_interval_without_ends_holds_nothing_and_has_no_width() -> None:
    low, high = np.array([1.0, np.nan, 1.0, 1.0]), np.array([4.0, np.nan, 4.0, 4.0])
    found = coverage(low, high, np.array([2.0, 2.0, 5.0, 4.0]))
    assert found == {"coverage": 0.5, "width": pytest.approx(4.0)}
