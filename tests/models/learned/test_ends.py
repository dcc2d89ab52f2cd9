"""Beyond the measured range: straight lines, guided by what is near the end."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.models.base import Floats
from orchestrator.models.learned.ends import with_straight_ends
from orchestrator.models.learned.linear import least_squares
from orchestrator.models.learned.trees import extra_trees
from orchestrator.models.regression.samples import Axis, Samples
from orchestrator.models.regression.trend import on_trend

AXES = (
    Axis(name="n", logarithmic=True, low=0.0, high=4.0),
    Axis(name="p", logarithmic=True, low=0.0, high=3.0),
    Axis(name="solver", levels=("a", "b"), low=0.0, high=1.0),
)
TREES = on_trend(extra_trees(trees=16, leaf=2))


def bent(count: int = 400) -> Samples:
    """Return a function that is flat below n = 2 and steep above; how steep depends on the solver."""
    rng = np.random.default_rng(3)
    x = np.column_stack([rng.uniform(0, 4, count), rng.uniform(0, 3, count), rng.integers(0, 2, count)])
    return Samples(axes=AXES, x=x, y=truth(x), runs=np.ones(count))


def truth(x: Floats) -> Floats:
    return np.asarray(np.maximum(x[:, 0] - 2, 0) * (1 + 0.5 * x[:, 2]) - 0.3 * x[:, 1], np.float64)


def beyond(n: float) -> Floats:
    return np.array([[n, p, solver] for p in (0.5, 2.5) for solver in (0.0, 1.0)])


def test_it_goes_on_as_near_the_end() -> None:
    x = beyond(6.0)
    straight = with_straight_ends(TREES, share=0.4).fitted(bent(), np.random.default_rng(0))
    trend = TREES.fitted(bent(), np.random.default_rng(0))
    assert np.abs(straight.at(x) - truth(x)).max() < 0.15
    assert np.abs(trend.at(x) - truth(x)).max() > 0.5


def test_the_other_end_has_its_own_slope() -> None:
    x = beyond(-2.0)
    straight = with_straight_ends(TREES, share=0.4).fitted(bent(), np.random.default_rng(0))
    np.testing.assert_allclose(straight.at(x), truth(x), atol=0.15)


def test_inside_nothing_changes() -> None:
    samples = bent()
    straight = with_straight_ends(TREES).fitted(samples, np.random.default_rng(0))
    plain = TREES.fitted(samples, np.random.default_rng(0))
    np.testing.assert_array_equal(straight.at(samples.x), plain.at(samples.x))


def test_ends_are_those_of_the_samples_not_of_the_axis() -> None:
    samples = bent()
    part = samples.rows(samples.x[:, 0] < 3)
    straight = with_straight_ends(least_squares(1), share=0.3).fitted(part, np.random.default_rng(0))
    edge, x = float(part.x[:, 0].max()), beyond(4.0)
    at_edge = x.copy()
    at_edge[:, 0] = edge
    np.testing.assert_allclose(straight.at(x) - straight.at(at_edge), truth(x) - truth(at_edge), atol=0.1)


def test_too_few_near_the_end_keep_the_trend() -> None:
    samples = bent(10)
    straight = with_straight_ends(least_squares(1)).fitted(samples, np.random.default_rng(0))
    trend = least_squares(1).fitted(samples, np.random.default_rng(0))
    np.testing.assert_allclose(straight.at(beyond(5.0)), trend.at(beyond(5.0)), atol=1e-3)


def test_an_unseen_category_has_no_prediction() -> None:
    straight = with_straight_ends(TREES).fitted(bent(), np.random.default_rng(0))
    x = np.array([[5.0, 1.0, np.nan], [5.0, 1.0, 1.0]])
    assert np.isnan(straight.at(x)).tolist() == [True, False]


@pytest.mark.parametrize("coupled", [False, True])
def test_uncoupled_slopes_are_equal_for_all_others(coupled: bool) -> None:
    straight = with_straight_ends(least_squares(1), share=0.4, coupled=coupled)
    fitted = straight.fitted(bent(), np.random.default_rng(0))
    rise = fitted.at(beyond(6.0)) - fitted.at(beyond(5.0))
    assert bool(np.ptp(rise) > 1e-9) == coupled
