"""Call paths that no formula explains make formulas less probable for the others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.models.curves.sharing import doubt

ODDS = st.lists(st.floats(-200, 200), min_size=1, max_size=40)


def times(number: int) -> list[str]:
    return ["time"] * number


def test_nothing_is_known_of_a_call_path_that_is_alone() -> None:
    assert doubt(np.array([3.0]), ["time"]) == 0
    assert (doubt(np.array([3.0, -4.0]), ["time", "bytes"]) == 0).all()


def test_others_that_no_formula_explains_make_formulas_less_probable() -> None:
    """The odds are those of so many that were seen, and of two of each kind as if they had been."""
    found = doubt(np.array([-50.0] * 10 + [0.0]), times(11))
    assert found[-1] == pytest.approx(np.log(2 / 12))


def test_others_that_formulas_explain_say_nothing() -> None:
    assert (doubt(np.array([50.0] * 10 + [0.0]), times(11)) == 0).all()


def test_others_that_may_be_either_say_nothing() -> None:
    assert doubt(np.zeros(12), times(12)) == pytest.approx(0)


def test_as_many_of_both_kinds_say_nothing() -> None:
    found = doubt(np.array([40.0, -40.0, 0.0]), times(3))
    assert found[-1] == pytest.approx(0, abs=1e-9)


@given(ODDS, st.integers(0, 2**32 - 1))
def test_neither_the_order_nor_other_metrics_matter(odds: list[float], seed: int) -> None:
    log_odds = np.array(odds)
    found = doubt(log_odds, times(len(odds)))
    order = np.random.default_rng(seed).permutation(len(odds))
    assert doubt(log_odds[order], times(len(odds))) == pytest.approx(found[order], abs=1e-9)
    both = doubt(np.concatenate([log_odds, -log_odds]), [*times(len(odds)), *["bytes"] * len(odds)])
    assert both[: len(odds)] == pytest.approx(found, abs=1e-9)


@given(ODDS)
def test_it_is_never_more_than_the_number_of_the_others_can_say(odds: list[float]) -> None:
    found = doubt(np.array(odds), times(len(odds)))
    assert (found <= 0).all() and (-found <= np.log((len(odds) + 1) / 2) + 1e-9).all()
