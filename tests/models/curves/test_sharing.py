"""What explains other call paths of a program makes formulas more or less probable for each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.models.curves.sharing import from_others

ODDS = st.lists(st.floats(-200, 200), min_size=1, max_size=40)


def times(number: int) -> list[str]:
    return ["time"] * number


def test_nothing_is_known_of_a_call_path_that_is_alone() -> None:
    assert from_others(np.array([3.0]), ["time"]) == 0
    assert (from_others(np.array([3.0, -4.0]), ["time", "bytes"]) == 0).all()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_others_that_are_certain_say_how_probable_formulas_are(sign: float) -> None:
    """The odds are those of so many that were seen, and of two of each kind as if they had been."""
    found = from_others(sign * np.array([50.0] * 10 + [0.0]), times(11))
    assert found[-1] == pytest.approx(sign * np.log(12 / 2))


def test_others_that_may_be_either_say_nothing() -> None:
    assert from_others(np.zeros(12), times(12)) == pytest.approx(0)


def test_as_many_of_both_kinds_say_nothing() -> None:
    found = from_others(np.array([40.0, -40.0, 0.0]), times(3))
    assert found[-1] == pytest.approx(0, abs=1e-9)


@given(ODDS, st.integers(0, 2**32 - 1))
def test_neither_the_order_nor_other_metrics_matter(odds: list[float], seed: int) -> None:
    log_odds = np.array(odds)
    found = from_others(log_odds, times(len(odds)))
    order = np.random.default_rng(seed).permutation(len(odds))
    assert from_others(log_odds[order], times(len(odds))) == pytest.approx(found[order], abs=1e-9)
    both = from_others(np.concatenate([log_odds, -log_odds]), [*times(len(odds)), *["bytes"] * len(odds)])
    assert both[: len(odds)] == pytest.approx(found, abs=1e-9)
    assert both[len(odds) :] == pytest.approx(-found, abs=1e-5)


@given(ODDS)
def test_it_is_never_more_than_the_number_of_the_others_can_say(odds: list[float]) -> None:
    found = from_others(np.array(odds), times(len(odds)))
    assert (np.abs(found) <= np.log((len(odds) + 1) / 2) + 1e-9).all()
