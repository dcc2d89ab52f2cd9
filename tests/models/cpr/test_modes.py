"""Cells, nodes and the interpolation between them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from orchestrator.models.base import Floats
from orchestrator.models.cpr.completion import Completion, Recipe, complete
from orchestrator.models.cpr.fitting import cell_means
from orchestrator.models.cpr.modes import Mode, cell_modes, combined, node_modes
from orchestrator.models.cpr.penalty import Smoothness, diagonals
from orchestrator.models.regression.samples import Axis, Samples
from tests.models.cpr.cases import drawn, waves


def _positive(values: Floats) -> Samples:
    x = np.log(values)[:, None]
    axis = Axis(name="n", logarithmic=True, low=float(x.min()), high=float(x.max()))
    return Samples(axes=(axis,), x=x, y=np.zeros(len(x)), runs=np.ones(len(x)))


def test_nodes_are_spaced_as_the_values_are() -> None:
    rng = np.random.default_rng(0)
    even = node_modes(_positive(rng.uniform(1, 1000, 2000)), 11)[0]
    assert np.ptp(np.diff(np.exp(even.nodes))) < 1e-6 * np.exp(even.nodes[-1])
    logarithmic = node_modes(_positive(np.rint(np.exp(rng.uniform(0, 7, 2000))).astype(np.float64)), 11)[0]
    assert np.ptp(np.diff(logarithmic.nodes)) < 1e-9


def test_few_levels_have_a_node_each() -> None:
    values = np.repeat([1.0, 2.0, 8.0, 64.0], 10)
    for modes in (cell_modes(_positive(values), 100), node_modes(_positive(values), 100)):
        np.testing.assert_allclose(np.exp(modes[0].nodes), [1, 2, 8, 64])


def test_cells_hold_the_means_of_their_samples() -> None:
    samples = drawn(lambda x: x.sum(axis=1), 2, 500)
    modes = cell_modes(samples, 4)
    entries = cell_means(modes, samples.x, samples.y)
    cell = np.minimum((samples.x * 4).astype(int), 3)
    for k in range(len(entries)):
        inside = (cell == entries.node[:, k]).all(axis=1)
        assert entries.share[k] == inside.sum()
        assert entries.y[k] == pytest.approx(samples.y[inside].mean())


def test_predictions_are_those_of_equation_5() -> None:
    samples = drawn(waves, 3, 600)
    fitted = complete(samples, Recipe(rank=3, number=5, cells=True), np.random.default_rng(0))
    x = np.vstack([np.random.default_rng(1).random((40, 3)), [[0.0, 0.0, 0.0], [1.0, 1.0, 0.5]]])
    np.testing.assert_allclose(fitted.at(x), [_equation_5(fitted, point) for point in x], rtol=1e-9)


def _equation_5(fitted: Completion, point: Floats) -> float:
    """Return the weighted sum over the corners of a cell of mid-points, term by term."""
    below = [
        int(np.clip(np.searchsorted(mode.nodes, z, side="right") - 1, 0, len(mode) - 2))
        for mode, z in zip(fitted.modes, point, strict=True)
    ]
    total = 0.0
    for corner in itertools.product((0, 1), repeat=len(point)):
        weight, begin = 1.0, 0
        product = np.ones(fitted.table.shape[1])
        for mode, i, a, z in zip(fitted.modes, below, corner, point, strict=True):
            share = (z - mode.nodes[i]) / (mode.nodes[i + 1] - mode.nodes[i])
            weight *= share if a else 1 - share
            product *= fitted.table[begin + i + a]
            begin += len(mode)
        total += weight * product.sum()
    return fitted.mean + fitted.scale * total


def test_predictions_are_continuous_at_nodes_and_at_the_ends_of_the_range() -> None:
    samples = drawn(waves, 3, 600)
    for recipe in (Recipe(rank=3, number=6), Recipe(rank=3, number=6, cells=True)):
        fitted = complete(samples, recipe, np.random.default_rng(0))
        points = np.random.default_rng(1).random((20, 3))
        for node in (*fitted.modes[0].nodes, *fitted.modes[0].edges[[0, -1]]):
            points[:, 0] = node - 1e-9
            before = fitted.at(points)
            points[:, 0] = node + 1e-9
            np.testing.assert_allclose(fitted.at(points), before, atol=1e-6)


def test_a_mode_along_a_product_has_nodes_from_its_least_to_its_largest_value() -> None:
    samples = drawn(waves, 3, 300)
    mode = combined(samples, (1.0, 0.0, -1.0), 16)
    z = samples.x[:, 0] - samples.x[:, 2]
    assert len(mode) == 16
    assert (mode.nodes[0], mode.nodes[-1]) == pytest.approx((z.min(), z.max()))
    node, weight = mode.neighbours(samples.x)
    np.testing.assert_allclose(mode.nodes[node] * (1 - weight) + mode.nodes[node + 1] * weight, z)


def _quadratic(mode: Mode, smoothness: Smoothness, column: Floats, factor: Floats | None = None) -> float:
    penalty = diagonals(mode, smoothness, 1.0, factor)
    size = len(mode)
    lower = sum(np.diag(penalty[k, : size - k], -k) for k in range(3))
    return float(column @ (lower + np.tril(lower, -1).T) @ column)


def test_penalties_are_integrals_of_squared_derivatives() -> None:
    nodes = np.array([0.0, 0.1, 0.4, 0.5, 1.0])
    mode = Mode(axes=(0,), slopes=(1.0,), nodes=nodes, edges=nodes)
    free = Smoothness(ridge=0, slope=1), Smoothness(ridge=0, bend=1)
    assert _quadratic(mode, free[0], np.ones(5)) == pytest.approx(0, abs=1e-9)
    assert _quadratic(mode, free[0], 3 * nodes) == pytest.approx(9), "the square of the slope"
    assert _quadratic(mode, free[1], 3 * nodes + 1) == pytest.approx(0, abs=1e-9)
    assert _quadratic(mode, free[1], nodes**2) == pytest.approx(4 * 0.7), "between the mid-points"
    fine = np.linspace(0, 1, 201)
    dense = Mode(axes=(0,), slopes=(1.0,), nodes=fine, edges=fine)
    assert _quadratic(dense, free[1], fine**2) == pytest.approx(4, rel=0.01)


def test_jumps_cost_their_height_whatever_the_distance_of_nodes() -> None:
    for nodes in (np.linspace(0, 1, 11), np.linspace(0, 1, 101)):
        mode = Mode(axes=(0,), slopes=(1.0,), nodes=nodes, edges=nodes)
        step = np.where(nodes < 0.5, 0.0, 2.0)
        cost = _quadratic(mode, Smoothness(ridge=0, jump=1), step, step[:, None])
        assert cost == pytest.approx(2, rel=0.01)
