from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from orchestrator.models.symbolic import compare, exponent_deviation, falls, growth, significant, term_values


def term(coefficient: float, **factors: tuple[float, float]) -> dict[str, Any]:
    listed = [{"parameter": name, "exponent": i, "log_exponent": j} for name, (i, j) in factors.items()]
    return {"coefficient": coefficient, "factors": listed}


MODEL = [term(3.0), term(2e-4, p=(0.5, 1)), term(1e-9, p=(1 / 3, 2), n=(3, 0))]


def test_growth_is_that_of_the_fastest_term() -> None:
    assert growth(MODEL, "p") == (0.5, 1)
    assert growth(MODEL, "n") == (3, 0)
    assert growth(MODEL, "threads") == (0, 0)


def test_terms_with_coefficient_zero_do_not_grow() -> None:
    assert growth([term(1.0), term(0.0, p=(2, 0))], "p") == (0, 0)


def test_falling_terms_lead_only_alone() -> None:
    assert growth([term(5.0), term(9.0, p=(-1, 0))], "p") == (0, 0)
    assert growth([term(9.0, p=(-1, 1))], "p") == (-1, 1)


def test_logarithms_decide_between_equal_powers() -> None:
    linear, loglinear = [term(100.0, p=(1, 0))], [term(1e-6, p=(1, 1))]
    assert compare(loglinear, linear, "p") == 1
    assert compare(linear, loglinear, "p") == -1
    assert compare(linear, linear, "p") == 0


def test_exponent_deviation_ignores_logarithms() -> None:
    assert exponent_deviation([term(1.0, p=(0, 1))], [term(1.0)], "p") == 0
    assert exponent_deviation([term(1.0, p=(1.5, 0))], [term(1.0, p=(1, 2))], "p") == 0.5
    assert exponent_deviation([term(1.0, p=(-1, 0))], [term(1.0, p=(1, 0))], "p") == 2


def test_values_of_a_term() -> None:
    table = {"p": np.array([4.0, 16.0]), "n": np.array([1.0, 3.0])}
    assert term_values(term(0.5, p=(0.5, 1), n=(2, 0)), table) == pytest.approx([2.0, 72.0])
    assert term_values(term(3.0), table) == pytest.approx([3.0, 3.0])


def test_a_small_constant_does_not_hide_that_a_model_falls() -> None:
    table = {"p": np.array([4.0, 64.0])}
    terms = [term(0.001), term(2.0, p=(-0.5, 0))]
    assert growth(significant(terms, table), "p") == (-0.5, 0)
    both = [term(0.1), term(2.0, p=(-0.5, 0))]
    assert significant(both, table) == both
    assert growth(both, "p") == (0, 0) and falls(both, "p") and not falls([term(0.1)], "p")


def test_terms_count_where_their_sizes_cannot_be_compared() -> None:
    terms = [term(1.0, p=(400, 0)), term(2.0, p=(0, -1))]
    assert significant(terms, {"p": np.array([1.0, 1e6])}) == terms
    assert significant([], {"p": np.array([1.0])}) == []
