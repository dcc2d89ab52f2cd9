"""Noise that repetitions of one origin share: found where it is there, and then it does not average out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.models.base import Floats, Integers
from orchestrator.models.noise import locate
from orchestrator.models.pmnf.modeler import modeler
from orchestrator.models.shared_noise import SharedNoise, estimate
from orchestrator.types import Measurement, Measurements, Point

GROUPS, EACH, POINTS = 2, 3, 12


def drawn(rng: np.random.Generator, within: float, shared: float, callpaths: int = 3) -> Floats:
    """Values of call paths that deviate together per origin; two origins of three repetitions at a point."""
    origin = shared * rng.standard_normal((1, POINTS, GROUPS, 1))
    own = within * rng.standard_normal((callpaths, POINTS, GROUPS, EACH))
    return np.exp(origin + own).reshape(callpaths, POINTS, GROUPS * EACH)


def origins(callpaths: int = 3) -> Integers:
    return np.broadcast_to(np.repeat(np.arange(GROUPS), EACH), (callpaths, POINTS, GROUPS * EACH)).copy()


def estimated(values: Floats) -> float:
    logs = np.log(values)
    found = estimate(logs, np.median(logs, axis=2), np.std(logs, axis=(1, 2)), origins(len(values)))
    return 0.0 if found is None else found.ratio


def test_the_ratio_of_the_variances_is_found() -> None:
    rng = np.random.default_rng(0)
    ratios = [estimated(drawn(rng, 0.02, 0.04)) for _ in range(100)]
    assert np.median(ratios) == pytest.approx(4.0, rel=0.3)


def test_independent_repetitions_are_rarely_said_to_share_anything() -> None:
    """At most the 1 % of 400 cases that is stated, within four standard deviations."""
    rng = np.random.default_rng(1)
    found = sum(estimated(drawn(rng, 0.02, 0.0)) > 0 for _ in range(400))
    assert found <= 4 + 4 * math.sqrt(400 * 0.01 * 0.99)


def test_one_disturbed_run_is_no_shared_noise() -> None:
    values = drawn(np.random.default_rng(2), 0.02, 0.0)
    values[:, 3, 1] *= 20
    assert estimated(values) == 0


@given(st.floats(0.01, 100), st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_repetitions_of_one_origin_count_like_less_than_themselves(ratio: float, sizes: list[int]) -> None:
    numbers = np.repeat(np.arange(len(sizes)), sizes)[None, None, :]
    weights = np.ones(numbers.shape)
    count = SharedNoise(numbers, ratio).count(weights)[0, 0]
    assert len(sizes) - 1e-9 <= count <= sum(sizes) + 1e-9
    assert count <= len(sizes) * (1 + ratio) / ratio + 1e-9, "however often one origin is repeated"
    if max(sizes) == 1:
        assert count == pytest.approx(len(sizes))


@pytest.mark.parametrize("aggregate", ["none", "mean", "median", "min", "auto"])
def test_the_location_of_a_point_is_as_uncertain_as_it_is_said_to_be(aggregate: str) -> None:
    rng = np.random.default_rng(3)
    deviations = []
    for _ in range(60):
        located = locate(drawn(rng, 0.01, 0.05, callpaths=1), aggregate, origins(1))
        deviations.append(located.log_value / (located.sigma[:, None] / np.sqrt(located.count)))
    spread = float(np.std(np.array(deviations)))
    assert 0.8 < spread < 1.3
    blind = locate(drawn(rng, 0.01, 0.05, callpaths=1), aggregate)
    assert np.all(blind.count > 4), "without origins all six repetitions would count"


def measured(values: Floats, names: tuple[str, ...] | None) -> Measurements:
    points = [Point.of(n=2.0**k) for k in range(POINTS)]
    items = []
    for k, rows in enumerate(values):
        by_point = {p: tuple(map(float, p.number("n") * row)) for p, row in zip(points, rows, strict=True)}
        known = {} if names is None else dict.fromkeys(points, names)
        items.append(Measurement(f"f{k}", "time", by_point, known))
    return Measurements(("n",), tuple(items))


TOP = Point.of(n=2.0**14)


def test_intervals_hold_where_repetitions_share_noise() -> None:
    """Not knowing origins, the modeler takes deviations for a lack of fit, and intervals grow out of use."""
    rng, names = np.random.default_rng(11), ("a",) * EACH + ("b",) * EACH
    truth, held = TOP.number("n"), []
    widths: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(25):
        values = drawn(rng, 0.01, 0.05)
        for known in (True, False):
            for model in modeler()(measured(values, names if known else None)):
                there = model.predict([TOP])
                widths[known].append(there.high[0] - there.low[0])
                if known:
                    held.append(there.low[0] <= truth <= there.high[0])
    assert np.mean(held) > 0.85
    assert np.median(widths[True]) < np.median(widths[False])


@pytest.mark.parametrize("names", [("",) * 6, ("a",) * 6, tuple("abcdef")])
def test_origins_that_tell_nothing_change_nothing(names: tuple[str, ...]) -> None:
    values = drawn(np.random.default_rng(5), 0.02, 0.0)
    for one, other in zip(modeler()(measured(values, None)), modeler()(measured(values, names)), strict=True):
        assert one.expression == other.expression
        for part in ("value", "low", "high"):
            assert getattr(one.predict([TOP]), part)[0] == getattr(other.predict([TOP]), part)[0]


def test_origins_follow_their_values_where_some_are_left_out() -> None:
    """A zero and a point without values drop out; the other repetitions keep their origins."""
    rng = np.random.default_rng(6)
    names = ("a",) * EACH + ("b",) * EACH
    full = measured(drawn(rng, 0.01, 0.05, callpaths=1), names)
    item = full.items[0]
    first = next(iter(item.values))
    broken = {p: ((0.0, *v[1:]) if p == first else v) for p, v in item.values.items()}
    [model] = modeler()(Measurements(("n",), (Measurement("f", "time", broken, item.origins),)))
    [whole] = modeler()(full)
    assert model.predict([TOP]).value[0] == pytest.approx(whole.predict([TOP]).value[0], rel=0.2)
