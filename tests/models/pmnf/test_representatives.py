"""A few hypotheses that stand for many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.models.pmnf.representatives import representatives
from tests.models.builders import fit, grid, point, series, uniform

descending = st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=300).map(lambda w: np.sort(w)[::-1])


@given(descending, st.integers(1, 60))
def test_they_are_few_distinct_and_carry_all_the_probability(weights: np.ndarray, most: int) -> None:
    index, own = representatives(weights, np.sin(100 * weights), most)
    assert len(index) <= most
    assert np.all(np.diff(index) > 0) and index[0] == 0
    assert own.sum() == pytest.approx(1.0)
    assert np.all(own > 0)


@given(descending, st.integers(2, 60))
def test_no_range_of_hypotheses_gains_or_loses_more_than_a_step(weights: np.ndarray, most: int) -> None:
    index, own = representatives(weights, -weights, most)
    all_of_them = weights / weights.sum()
    thinned = np.zeros(len(weights))
    thinned[index] = own
    rest = np.flatnonzero(thinned != all_of_them)
    step = thinned[rest].max(initial=0.0)
    assert np.abs(np.cumsum(thinned) - np.cumsum(all_of_them)).max() <= step + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_what_is_left_out_of_a_broad_posterior_is_represented(seed: int) -> None:
    """A dozen runs cannot tell thousands of hypotheses of three parameters apart."""
    lines = [c for c in grid(3)[:60] if c[2] == 10 and (c[0] == 32 or c[1] == 2)]
    coordinates = [*lines, (32, 2, 20), (32, 2, 30), (64, 4, 20)]
    noisy = series(lambda p, q, r: 5 + p * 0.1 + q * r**0.5, coordinates, uniform(rng(seed), 0.05))
    (many,), (few,) = (fit(3, noisy, members=most) for most in (3000, 200))
    assert len(many.posterior.weights) > 400
    assert len(few.posterior.weights) <= 200
    beyond = [point((1024, 12, 60))]
    wide, narrow = many.predict(beyond), few.predict(beyond)
    assert narrow.value == pytest.approx(wide.value)
    assert np.log(narrow.high / narrow.low) == pytest.approx(np.log(wide.high / wide.low), rel=0.2)
    assert few.expected(beyond) == pytest.approx(many.expected(beyond), rel=0.2)


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)
