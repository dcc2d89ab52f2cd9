"""Values beyond a range stand for values within it that are aligned alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.models.base import Floats
from orchestrator.models.regression.alignment import matters, period, within
from orchestrator.models.regression.choice import Family
from orchestrator.models.regression.learner import Learner
from orchestrator.models.regression.modeler import modeler_of
from orchestrator.models.regression.samples import Axis
from orchestrator.types import Measurement, Measurements, Point


def test_alignment_matters_for_whole_numbers_with_different_remainders() -> None:
    assert matters(np.arange(1.0, 100.0))
    assert not matters(np.array([0.5, 9.0, 11.0, 13.0]))
    assert not matters(np.arange(64.0, 704.0, 64.0)) and not matters(np.arange(1.0, 8.0))


@pytest.mark.parametrize(("largest", "expected"), [(100, 1), (130, 8), (300, 16), (2047, 64)])
def test_the_period_is_small_beside_the_range(largest: int, expected: int) -> None:
    assert period(np.arange(1.0, largest + 1)) == expected
    assert period(np.exp2(np.arange(12.0))) == 1


@given(st.integers(1, 10_000), st.integers(100, 300), st.integers(1000, 3000), st.sampled_from([8, 16, 64]))
def test_what_is_within_is_aligned_alike_and_near(value: int, low: int, high: int, step: int) -> None:
    found = within(np.array([float(value)]), low, high, step)[0]
    assert low <= found <= high and (found - value) % step == 0
    assert abs(found - np.clip(value, low, high)) < step


def test_coordinates_of_logarithms_are_aligned_by_their_values() -> None:
    axis = Axis(name="n", logarithmic=True, low=np.log(32), high=np.log(2047), period=64)
    x = np.log([4092.0, 2048.0, 2047.0, 31.0, 100.5, np.nan])
    found = np.exp(axis.nearest(x, axis.low, axis.high))
    assert found == pytest.approx([2044, 1984, 2047, 95, 100.5, np.nan], nan_ok=True)
    assert np.array_equal(np.exp(Axis(name="n").nearest(np.array([2.0]), 0.0, 1.0)), [np.e])


@dataclass(frozen=True)
class Power:
    """The logarithm of a square up to an end; of three squares where the size is no multiple of 8."""

    end: float
    text: str = "power"

    def at(self, x: Floats) -> Floats:
        odd = np.round(np.exp(x[:, 0])) % 8 != 0
        return np.asarray(2 * np.minimum(x[:, 0], self.end) + np.log(3) * odd, np.float64)


@dataclass(frozen=True)
class Slope:
    """The logarithm of a square, whatever the size."""

    text: str = "slope"

    def at(self, x: Floats) -> Floats:
        return np.asarray(2 * x[:, 0], np.float64)


def test_a_model_goes_on_from_sizes_that_are_aligned_alike() -> None:
    inside = Learner(family="a", name="inside", fit=lambda samples, rng: Power(float(samples.x.max())))
    beyond = Learner(family="b", name="beyond", fit=lambda samples, rng: Slope())
    family = Family(inside=lambda samples: [inside], outside=lambda samples: [beyond], fallback=beyond)
    sizes = np.arange(32.0, 1024.0, 3.0)
    times = {n: n**2 * (1 if n % 8 == 0 else 3) for n in sizes}
    values = {Point.of(n=float(n)): (float(time),) for n, time in times.items()}
    [model] = modeler_of(family)(Measurements(("n",), (Measurement("main", "time", values),)))
    sizes_beyond = np.array([1536.0, 2048.0, 1543.0, 4095.0])
    shares = model.value([Point.of(n=float(n)) for n in sizes_beyond]) / sizes_beyond**2
    assert shares == pytest.approx([1, 1, 3, 3], rel=0.01)
