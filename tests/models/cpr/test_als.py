"""Least squares of factors: one mode at a time, one column at a time, one entry at a time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from orchestrator.models.base import Floats
from orchestrator.models.cpr.als import Entries, alternating, completed, improved, row_begins
from orchestrator.models.cpr.coordinates import by_columns
from orchestrator.models.cpr.gradient import stochastic

SIZES = (5, 4, 6)
RANK = 2
FIRST = row_begins(SIZES)


def _table(seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    return np.vstack([rng.uniform(0.5, 1.5, (sum(SIZES), RANK)), np.zeros((1, RANK))])


def _entries(seed: int = 0, number: int = 400, *, between: bool = True, noise: float = 0.0) -> Entries:
    """Return entries of a tensor of rank 2, at nodes or between them."""
    rng = np.random.default_rng(seed)
    node = np.array([rng.integers(0, size - 1 if between else size, number) for size in SIZES], np.int32)
    weight = rng.random(node.shape) if between else np.zeros(node.shape)
    y = completed(node, weight, FIRST, _table(7)) + noise * rng.standard_normal(number)
    return Entries(node=node, weight=weight, y=y, share=rng.uniform(0.5, 2, number))


def _penalties(ridge: float = 1e-3, slope: float = 0.0) -> list[Floats]:
    found = []
    for size in SIZES:
        penalty = np.zeros((3, size))
        penalty[0] = ridge
        penalty[0, 1:] += slope
        penalty[0, :-1] += slope
        penalty[1, :-1] = -slope
        found.append(penalty)
    return found


def _loss(entries: Entries, penalties: list[Floats], table: Floats) -> float:
    rest = entries.y - completed(entries.node, entries.weight, FIRST, table)
    total = float(entries.share @ rest**2)
    for begin, penalty in zip(FIRST, penalties, strict=True):
        size = penalty.shape[1]
        matrix = sum(np.diag(penalty[k, : size - k], -k) for k in range(3))
        matrix = matrix + np.tril(matrix, -1).T
        factor = table[begin : begin + size]
        total += float(np.einsum("ir,ij,jr->", factor, matrix, factor))
    return total


def test_the_sum_of_products_is_that_of_a_dense_tensor() -> None:
    entries, table = _entries(number=50), _table(3)
    factors = [table[begin : begin + size] for begin, size in zip(FIRST, SIZES, strict=True)]
    rows = [
        (1 - w)[:, None] * factor[i] + w[:, None] * factor[i + 1]
        for factor, i, w in zip(factors, entries.node, entries.weight, strict=True)
    ]
    dense = np.prod(rows, axis=0).sum(axis=1)
    np.testing.assert_allclose(completed(entries.node, entries.weight, FIRST, table), dense)


@pytest.mark.parametrize("between", [True, False])
@pytest.mark.parametrize("slope", [0.0, 0.3])
@pytest.mark.parametrize("mode", range(3))
def test_an_improved_factor_is_where_the_gradient_is_zero(mode: int, slope: float, between: bool) -> None:
    entries, penalties, table = _entries(between=between, noise=0.1), _penalties(slope=slope), _table(1)
    begin, size = FIRST[mode], SIZES[mode]
    table[begin : begin + size] = improved(entries, FIRST, table, mode, penalties[mode])
    best = _loss(entries, penalties, table)
    for row in range(begin, begin + size):
        for r in range(RANK):
            changed = table.copy()
            changed[row, r] += 1e-4
            up = _loss(entries, penalties, changed) - best
            changed[row, r] -= 2e-4
            down = _loss(entries, penalties, changed) - best
            assert up > 0
            assert up == pytest.approx(down, rel=1e-3)


def test_sweeps_never_raise_the_loss_and_find_the_tensor() -> None:
    entries, penalties = _entries(), _penalties(ridge=1e-9)
    table, losses = _table(1), []
    for _ in range(30):
        losses.append(_loss(entries, penalties, table))
        table = alternating(entries, penalties, table, sweeps=1)
    assert all(after <= before * (1 + 1e-9) for before, after in itertools.pairwise(losses))
    table = alternating(entries, penalties, table, sweeps=2000, tolerance=1e-9)
    unseen = _entries(seed=5)
    assert np.abs(completed(unseen.node, unseen.weight, FIRST, table) - unseen.y).max() < 1e-2


@pytest.mark.parametrize("between", [True, False])
def test_columns_reach_the_optimum_of_least_squares_and_never_raise_the_loss(between: bool) -> None:
    entries, penalties = _entries(between=between, noise=0.05), _penalties(ridge=0.05, slope=0.01)
    best = _loss(entries, penalties, alternating(entries, penalties, _table(1), sweeps=3000, tolerance=1e-8))
    table, before = _table(1), np.inf
    for _ in range(5):
        table = by_columns(entries, penalties, table, sweeps=1)
        loss = _loss(entries, penalties, table)
        assert loss <= before * (1 + 1e-9)
        before = loss
    table = by_columns(entries, penalties, table, sweeps=3000, tolerance=1e-8)
    assert _loss(entries, penalties, table) < 1.01 * best


def test_gradients_of_single_entries_reach_the_optimum_of_least_squares() -> None:
    entries, penalties = _entries(between=False, number=110, noise=0.05), _penalties(ridge=0.01)
    best = _loss(entries, penalties, alternating(entries, penalties, _table(1), sweeps=3000, tolerance=1e-8))
    begun = _loss(entries, penalties, _table(1))
    table = stochastic(entries, penalties, _table(1), np.random.default_rng(0), epochs=2000)
    assert _loss(entries, penalties, table) - best < 0.02 * (begun - best)


def test_a_mode_without_entries_at_some_node_keeps_finite_factors() -> None:
    entries = _entries(between=False, number=3)
    table = alternating(entries, _penalties(ridge=0.0), _table(1), sweeps=5)
    assert np.isfinite(table).all()
