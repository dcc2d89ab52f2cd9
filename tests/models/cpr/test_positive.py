"""Positive factors by an interior-point method, and how they go on beyond the measured range."""

from __future__ import annotations

import itertools
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats
from orchestrator.models.cpr.als import Entries, completed, row_begins
from orchestrator.models.cpr.positive import barriers, newton_row, positive_factors
from orchestrator.models.cpr.rank_one import positive_tensor, rank_one
from orchestrator.models.cpr.splines import Spline, last_half, mars
from orchestrator.models.regression.samples import Axis, Samples
from tests.requirements import need

SIZES = (6, 5, 4)


def _entries() -> tuple[Entries, Floats]:
    """Return all entries of a positive tensor of rank 2, and its values."""
    rng = np.random.default_rng(0)
    table = np.vstack([rng.uniform(0.2, 2, (sum(SIZES), 2)), np.zeros((1, 2))])
    node = np.indices(SIZES).reshape(3, -1).astype(np.int32)
    weight = np.zeros(node.shape)
    values = completed(node, weight, row_begins(SIZES), table)
    y = np.log(values) - np.log(values).mean()
    return Entries(node=node, weight=weight, y=y, share=np.ones(len(y))), values


def test_the_barrier_falls_by_eights_from_ten_to_a_hundred_billionth() -> None:
    found = barriers()
    assert found[0] == 10
    assert found[-1] <= 1e-11 < found[-2]
    assert all(before / after == 8 for before, after in itertools.pairwise(found))


def test_a_positive_tensor_is_found_with_positive_factors() -> None:
    entries, _ = _entries()
    table = positive_factors(entries, SIZES, 2, np.random.default_rng(1), ridge=1e-6)
    assert (table[:-1] > 0).all()
    found = np.log(completed(entries.node, entries.weight, row_begins(SIZES), table))
    assert np.abs(found - entries.y).mean() < 0.1 * np.abs(entries.y).mean()


def test_newtons_method_ends_where_the_gradient_of_the_barrier_problem_is_zero() -> None:
    rng = np.random.default_rng(0)
    products, share = rng.uniform(0.1, 1, (30, 3)), rng.uniform(0.5, 2, 30)
    logs = np.log(products @ [0.5, 1.0, 2.0]) + 0.1 * rng.standard_normal(30)
    row, ridge, barrier = np.ones(3), 1e-3, 1e-2
    steps = newton_row(row, products, logs, share, ridge, barrier, 40)
    assert 0 < steps < 40

    def loss(at: Floats) -> float:
        error = logs - np.log(products @ at)
        return float(share @ error**2 / share.sum() + ridge * at @ at - barrier * np.log(at).sum())

    for r in range(3):
        small = 1e-4 * np.eye(3)[r]
        assert loss(row + small) - loss(row - small) == pytest.approx(0, abs=1e-8)
        assert loss(row + small) > loss(row)


def test_a_row_that_begins_far_off_stays_positive() -> None:
    row = np.array([1e3, 1e-8])
    products = np.array([[1.0, 1.0], [1.0, 2.0]])
    newton_row(row, products, np.log([1.0, 2.0]), np.ones(2), 1e-6, 1e-9, 40)
    assert (row > 0).all()
    np.testing.assert_allclose(products @ row, [1, 2], rtol=0.01)


def test_the_nearest_matrix_of_rank_one_is_positive() -> None:
    left, right = np.array([1.0, 2, 4]), np.array([3.0, 1])
    nodes, ranks = rank_one(np.outer(left, right))
    assert (nodes > 0).all()
    assert (ranks > 0).all()
    np.testing.assert_allclose(np.outer(nodes, ranks), np.outer(left, right))


def _power_law(splined: Spline) -> float:
    """Return the largest error at 4 to 8 times the largest measured values of a power law and a constant."""
    rng = np.random.default_rng(0)
    axes = tuple(Axis(name=name, logarithmic=True, low=0.0, high=float(np.log(64))) for name in "np")
    x = rng.uniform(0, np.log(64), (2000, 2))

    def times(x: Floats) -> Floats:
        return np.asarray(np.log(3 + np.exp(2 * x[:, 0] - 0.5 * x[:, 1])), np.float64)

    samples = Samples(axes=axes, x=x, y=times(x), runs=np.ones(2000))
    fitted = positive_tensor(samples, 2, 16, np.random.default_rng(0), splined)
    beyond = np.column_stack([rng.uniform(np.log(256), np.log(512), 50), rng.uniform(0, np.log(64), 50)])
    return float(np.abs(fitted.at(beyond) - times(beyond)).max())


def test_power_laws_go_on_beyond_the_measured_range() -> None:
    assert _power_law(last_half) < 0.5, "the values at the ends are off by 2.8 and more"


def test_splines_of_the_library_go_on_as_well() -> None:
    need(find_spec("pyearth") is not None, "py-earth2")
    assert _power_law(mars) < 0.6
    z = np.linspace(0, 1, 40)
    value, slope = mars(z, np.where(z < 0.5, 0, 3 * (z - 0.5)))
    assert value == pytest.approx(1.5, abs=0.05)
    assert slope == pytest.approx(3, abs=0.2)


def test_without_the_library_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyearth", None)
    with pytest.raises(ModelError, match=r"measurement-orchestrator\[mars\]"):
        mars(np.arange(5.0), np.arange(5.0))


def test_a_line_through_the_last_half_ignores_the_first() -> None:
    z = np.linspace(0, 1, 11)
    value, slope = last_half(z, np.where(z < 0.5, 7.0, 2 * z))
    assert value == pytest.approx(2)
    assert slope == pytest.approx(2)
    assert last_half(np.array([1.0]), np.array([4.0])) == (4, 0)
