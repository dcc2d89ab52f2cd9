from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from orchestrator.errors import ModelError
from orchestrator.models.pmnf.hypotheses import EXTRAP, PAPER, block_values, exponent_set, partitions


def test_the_papers_set_has_all_pairs_but_the_constant() -> None:
    assert len(PAPER) == 20 * 3 - 1
    assert (0.0, 1.0) in PAPER and (3.0, 2.0) in PAPER and (0.0, 0.0) not in PAPER


def test_extra_ps_set_is_smaller() -> None:
    assert len(EXTRAP) == 42
    assert set(EXTRAP) < set(PAPER)
    assert (0.8, 1.0) not in EXTRAP


def test_listed_pairs_lose_duplicates_and_the_constant() -> None:
    assert exponent_set([(1, 0), (0, 0), (1.0, 0.0), (-1, 1)]) == ((-1.0, 1.0), (1.0, 0.0))


@pytest.mark.parametrize("choice", ["papers", [(1, 2, 3)], [(0, 0)], [(float("nan"), 0)]])
def test_useless_sets_are_refused(choice: Any) -> None:
    with pytest.raises(ModelError):
        exponent_set(choice)


def test_blocks_are_powers_times_powers_of_the_logarithm() -> None:
    values = block_values(np.array([2.0, 8.0]), np.array([[0.0, 0.0], [2.0, 0.0], [0.5, 1.0], [-1.0, 2.0]]))
    assert values == pytest.approx(np.array([[1, 1], [4, 64], [2**0.5, 3 * 8**0.5], [0.5, 9 / 8]]))


def test_blocks_at_one_and_zero() -> None:
    assert block_values(np.array([0.0, 1.0]), np.array([[0.0, 0.0], [1.5, 0.0]])).tolist() == [[1, 1], [0, 1]]
    assert block_values(np.array([1.0]), np.array([[0.0, 2.0]])).tolist() == [[0.0]]


@pytest.mark.parametrize(("size", "count"), [(1, 1), (2, 2), (3, 5), (4, 15)])
def test_partitions_are_all_different_and_complete(size: int, count: int) -> None:
    found = {frozenset(frozenset(g) for g in p) for p in partitions(tuple(range(size)))}
    assert len(found) == count
    assert all(sorted(i for group in p for i in group) == list(range(size)) for p in found)
