"""The quick look at thousands of sets of blocks never rejects a set that explains the values."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.models.pmnf.block_sets import Bundle, sets_of, table_of
from orchestrator.models.pmnf.hypotheses import block_values

X = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
BLOCKS = ((1.0, 0.0), (2.0, 0.0), (0.5, 0.0), (0.0, 1.0), (1.0, 1.0), (0.0, 0.0))


def columns(chosen: np.ndarray) -> np.ndarray:
    return block_values(np.array(X), np.array([BLOCKS[b] for b in chosen])).T


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_what_a_set_misses_is_at_most_the_rest_of_least_squares(size: int) -> None:
    rng = np.random.default_rng(size)
    values, sigma = rng.lognormal(size=(len(X), 3)), rng.lognormal(size=(len(X), 3))
    table, sets = table_of(X, BLOCKS, size), sets_of(BLOCKS, size)
    fitted = np.array([columns(s) @ np.linalg.lstsq(columns(s), values)[0] for s in sets])
    left = values - fitted
    part = table.missed(values)
    assert np.all(part <= np.linalg.norm(left, axis=1) * (1 + 1e-9))
    assert part.max() > 0.1
    (bundle,) = Bundle.of(
        np.tile(X, 3), values.T.ravel(), sigma.T.ravel(), np.arange(3 * len(X)).reshape(3, -1)
    )
    every = np.arange(len(sets))
    squares = ((left / sigma) ** 2).sum(axis=(1, 2))
    assert bundle.squares(table, every) == pytest.approx(squares, rel=1e-6)
    assert np.all(bundle.least_squares(table) <= squares * (1 + 1e-9))
    assert table.rests(every) @ values == pytest.approx(left, abs=1e-8)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_sets_that_explain_values_miss_nothing_and_have_their_coefficients(size: int) -> None:
    rng = np.random.default_rng(size)
    table, sets = table_of(X, BLOCKS, size), sets_of(BLOCKS, size)
    for k in rng.choice(len(sets), 5):
        true = rng.uniform(1, 100, size)
        values = columns(sets[k]) @ true
        assert table.missed(values[:, None])[k, 0] <= 1e-12 * values.max()
        found = table.coefficients(np.array([k]))[0] @ values
        assert found == pytest.approx(true, rel=1e-8)


def test_blocks_that_values_cannot_tell_apart_are_refused() -> None:
    at = (1.0, 1.0, 2.0)
    table = table_of(at, ((1.0, 0.0), (2.0, 0.0), (0.0, 0.0)), 3)
    assert np.isinf(table.missed(np.ones((3, 1)))).all()
