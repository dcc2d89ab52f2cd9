"""Speedup, efficiency and cost from predictions of any model."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from orchestrator import registry
from orchestrator.errors import ModelError
from orchestrator.models.base import Model
from orchestrator.models.processes import Processes
from orchestrator.models.scaling import Study, corners, curve, curve_and_limit, has_speedup, relative
from orchestrator.types import Measurement, Measurements, Point

RANKS = (1, 2, 4, 8, 16)
ONE = Processes(("p",))
Truth = Callable[[float, float], float]


def measured(truth: Truth, ranks: tuple[int, ...] = RANKS, metric: str = "time") -> Measurements:
    values = {Point.of(p=p, n=n): (truth(p, n), 1.001 * truth(p, n)) for p, n in product(ranks, (10, 20, 40))}
    return Measurements(("p", "n"), (Measurement("main", metric, values),))


def fitted(known: Measurements, name: str = "speedup", **options: object) -> Model:
    chosen = {"overhead": "none"} if name == "speedup" else {}
    (model,) = registry.load("model", name)(**{**chosen, **options})(known)
    found: Model = model
    return found


def amdahl(p: float, n: float) -> float:
    return n * (0.05 + 0.95 / p)


def test_strong_scaling() -> None:
    known = measured(amdahl)
    study = Study.of(known, ONE)
    assert not study.weak and study.reason == "times fall with processes"
    found = curve(fitted(known), study, study.path(Point.of(p=100, n=40)))
    assert found.processes.tolist() == [1, 2, 4, 8, 16, 32, 64, 100]
    expected = 1 / (0.05 + 0.95 / found.processes)
    assert found.speedup.value == pytest.approx(expected, rel=0.02)
    assert found.efficiency.value == pytest.approx(expected / found.processes, rel=0.02)
    seconds = 40 * (0.05 + 0.95 / found.processes)
    assert found.seconds.value == pytest.approx(seconds, rel=0.02)
    assert found.core_hours.value == pytest.approx(seconds * found.processes / 3600, rel=0.02)


def test_a_path_to_a_far_point_is_short_and_ends_there() -> None:
    points = {Point.of(p=p): (8.0 / p,) for p in (1, 2, 4, 8)}
    study = Study.of(Measurements(("p",), (Measurement("main", "time", points),)), ONE)
    assert [point["p"] for point in study.path(Point.of(p=20))] == [1, 2, 4, 8, 16, 20]
    path = [point["p"] for point in study.path(Point.of(p=1e300))]
    assert len(path) < 60 and path[0] == 1 and path[-1] == 1e300 and isinstance(path[-1], float)


@pytest.mark.parametrize("name", ["speedup", "pmnf", "curves"])
def test_intervals_of_any_family_are_around_values_and_certain_at_the_reference(name: str) -> None:
    known = measured(amdahl)
    study = Study.of(known, ONE)
    found = curve(fitted(known, name), study, study.path(Point.of(p=64, n=40)))
    for band in (found.seconds, found.speedup, found.efficiency, found.core_hours):
        assert np.all((band.low <= band.value) & (band.value <= band.high))
    assert (found.speedup.low[0], found.speedup.high[0]) == (1.0, 1.0)
    width = np.log(found.speedup.high / found.speedup.low)
    assert width[-1] > width[1] > 0


def test_efficiency_below_a_target() -> None:
    """1 / (N (1 - p) + p) is one half at N = (2 - p) / (1 - p)."""
    known = measured(amdahl)
    _, found = curve_and_limit(fitted(known), Study.of(known, ONE), Point.of(p=8, n=40), 0.5)
    assert found.processes == pytest.approx(21, abs=1)
    assert found.low is not None and found.high is not None
    assert found.low <= 21 <= found.high
    assert (found.measured, found.searched, found.already) == (16, 16384, False)


def test_efficiency_that_never_falls_has_no_limit() -> None:
    known = measured(lambda p, n: n / p)
    _, found = curve_and_limit(fitted(known), Study.of(known, ONE), Point.of(p=8, n=40), 0.5)
    assert found.processes is None and found.searched == 16384


def test_weak_scaling() -> None:
    known = measured(lambda p, n: n * (0.1 * p + 0.9))
    study = Study.of(known, ONE)
    assert study.weak and study.reason == "times hardly fall with processes"
    model = fitted(known, scaling="weak")
    found = curve(model, study, study.path(Point.of(p=16, n=40)))
    efficiency = 1 / (0.1 * found.processes + 0.9)
    assert found.efficiency.value == pytest.approx(efficiency, rel=0.02)
    assert found.speedup.value == pytest.approx(efficiency * found.processes, rel=0.02)
    assert curve_and_limit(model, study, Point.of(p=16, n=40), 0.5)[1].processes == pytest.approx(11, abs=1)


def test_small_problems_that_hardly_fall_are_no_weak_scaling() -> None:
    known = measured(lambda p, n: 1 + 0.3 * n / p + 0.1 * np.log2(p), ranks=(4, 8, 16, 32, 64))
    study = Study.of(known, ONE)
    assert not study.weak and study.reason == "times fall with processes"


def test_relative_to_the_fewest_measured_processes() -> None:
    known = measured(amdahl, ranks=(4, 8, 16))
    study = Study.of(known, ONE, "strong")
    found = curve(fitted(known), study, study.path(Point.of(p=16, n=40)))
    expected = np.array([amdahl(4, 1) / amdahl(p, 1) for p in (4, 8, 16)])
    assert found.speedup.value == pytest.approx(expected, rel=0.02)
    assert found.efficiency.value == pytest.approx(expected / [1, 2, 4], rel=0.02)
    shown = relative(known.items[0], study, Point.of(p=64, n=40))
    assert list(shown.values()) == pytest.approx(expected)


def test_nodes_and_processes_per_node() -> None:
    values = {
        Point.of(nodes=a, ppn=b): (amdahl(a * b, 10), 1.001 * amdahl(a * b, 10))
        for a, b in product((1, 2, 4), (1, 4))
    }
    known = Measurements(("nodes", "ppn"), (Measurement("main", "time", values),))
    study = Study.of(known, Processes(("nodes", "ppn"), "nodes"))
    points = study.path(Point.of(nodes=8, ppn=4))
    assert [point.as_dict() for point in points] == [{"nodes": k, "ppn": 4} for k in (1, 2, 4, 8)]
    found = curve(fitted(known), study, points)
    assert found.processes.tolist() == [4, 8, 16, 32]
    assert found.speedup.value == pytest.approx(1 / (0.05 + 0.95 / found.processes), rel=0.02)
    assert set(relative(known.items[0], study, points[0])) == {Point.of(nodes=k, ppn=4) for k in (1, 2, 4)}
    # Efficiency 1 / (0.05 N + 0.95) is below one half from the start on two nodes of 16.
    _, late = curve_and_limit(fitted(known), study, Point.of(nodes=1, ppn=32), 0.5)
    assert late.already and late.processes == 32


def test_communication_does_not_make_a_program_one_of_weak_scaling() -> None:
    main = measured(amdahl).items[0]
    halo = Measurement("main->halo", "time", {point: (0.01 * point.number("p"),) for point in main.values})
    other = Measurement("main->wait", "time", {point: (0.01 * point.number("p"),) for point in main.values})
    assert not Study.of(Measurements(("p", "n"), (halo, other, main)), ONE).weak


def test_the_largest_values_of_every_combination_of_categories() -> None:
    values = {Point.of(p=p, solver=s): (1.0,) for p, s in ((1, "cg"), (8, "cg"), (2, "lu"))}
    known = Measurements(("p", "solver"), (Measurement("main", "time", values),))
    assert list(corners(known)) == [Point.of(p=8, solver="cg"), Point.of(p=8, solver="lu")]


def test_what_cannot_be_compared() -> None:
    with pytest.raises(ModelError, match="every run has the same number of processes"):
        Study.of(measured(amdahl, ranks=(4,)), ONE)
    known = measured(amdahl)
    with pytest.raises(ModelError, match="scaling is 'up': use one of auto, strong, weak"):
        Study.of(known, ONE, "up")
    with pytest.raises(ModelError, match="efficiency 50 is no share"):
        curve_and_limit(fitted(known), Study.of(known, ONE), Point.of(p=8, n=40), 50)
    assert not has_speedup(fitted(measured(amdahl, metric="bytes_sent"), "pmnf"))
    assert not has_speedup(fitted(measured(lambda p, n: 0.0), "pmnf"))
