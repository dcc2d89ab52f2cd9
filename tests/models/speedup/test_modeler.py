"""The modeler `speedup`: data that follow a law, and data that cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from orchestrator.errors import ModelError
from orchestrator.models.base import Model
from orchestrator.models.processes import required
from orchestrator.models.regression.samples import arranged
from orchestrator.models.speedup.family import ALL_OVERHEADS
from orchestrator.models.speedup.layout import Layout
from orchestrator.models.speedup.modeler import modeler
from orchestrator.types import Measurement, Measurements, Point

RANKS = (1, 2, 4, 8, 16, 32)
every_overhead = pytest.mark.parametrize("overhead", (*ALL_OVERHEADS, "auto"))


def measured(
    truth: Callable[[float, float], float],
    ranks: tuple[int, ...] = RANKS,
    sizes: tuple[int, ...] = (100, 200, 400),
    noise: float = 0.0,
) -> Measurements:
    rng = np.random.default_rng(5)
    values = {
        Point.of(p=p, n=n): tuple(truth(p, n) * float(np.exp(rng.normal(0, noise))) for _ in range(2))
        for p, n in product(ranks, sizes)
    }
    return Measurements(("p", "n"), (Measurement("main", "time", values),))


def fitted(measurements: Measurements, **options: Any) -> Model:
    (model,) = modeler(**options)(measurements)
    return model


def strong(p: float, n: float) -> float:
    return 1e-4 * n**2 * (0.05 + 0.95 / p)


def test_strong_scaling_by_the_law() -> None:
    model = fitted(measured(strong), overhead="none")
    far = [Point.of(p=256, n=400), Point.of(p=256, n=800), Point.of(p=8, n=150)]
    assert model.value(far) == pytest.approx([strong(256, 400), strong(256, 800), strong(8, 150)], rel=0.02)
    assert "fraction 0.95" in model.expression


def test_weak_scaling_by_the_law() -> None:
    """Sizes are per process, so the serial part grows with N."""
    model = fitted(measured(lambda p, n: 1e-4 * n**2 * (0.001 * p + 0.999)), overhead="none", scaling="weak")
    assert model.value([Point.of(p=128, n=400)])[0] == pytest.approx(16 * (0.128 + 0.999), rel=0.02)
    assert "fraction 0.999" in model.expression


def test_hybrid_scaling_by_the_law() -> None:
    """One problem stands for all: the time on one process is proportional to the work."""
    data = measured(strong, sizes=(100, 200))
    for exponents, power in (({}, 1), ({"n": 2}, 2)):
        model = fitted(data, overhead="none", scaling="hybrid", exponents=exponents)
        expected = strong(4, 100) * 8**power
        assert model.value([Point.of(p=4, n=800)])[0] == pytest.approx(expected, rel=0.02)


def test_every_problem_may_have_its_own_fraction() -> None:
    def truth(p: float, n: float) -> float:
        serial = 5 / n
        return 1e-4 * n**2 * (serial + (1 - serial) / p)

    far = [Point.of(p=512, n=n) for n in (100, 200, 400)]
    expected = [truth(512, n) for n in (100, 200, 400)]
    own = fitted(measured(truth), overhead="none", variant="optimal")
    same = fitted(measured(truth), overhead="none", variant="aggregate")
    assert own.value(far) == pytest.approx(expected, rel=0.02)
    assert np.abs(same.value(far) / expected - 1).max() > 0.2


def test_full_data_ignores_the_cut_offs() -> None:
    def truth(p: float, n: float) -> float:
        return strong(p, n) * (1.0 if p <= 4 else 2.0)

    options = {"overhead": "none", "most_processes": 4}
    assert "0.95" in fitted(measured(truth), variant="optimal", **options).expression
    assert "0.95" not in fitted(measured(truth), variant="full-data", **options).expression


@pytest.mark.parametrize("overhead", ["forest", "boosting", "network"])
def test_an_overhead_corrects_the_law(overhead: str) -> None:
    """Along N the time has an overhead that the law does not know: within the range it is learned."""
    data = measured(lambda p, n: strong(p, n) * (1 + 0.05 * p), ranks=(1, 2, 4, 6, 8, 12, 16, 24, 32))
    points = [Point.of(p=24, n=200), Point.of(p=32, n=400)]
    expected = np.array([strong(24, 200) * 2.2, strong(32, 400) * 2.6])
    alone = fitted(data, overhead="none").value(points)
    corrected = fitted(data, overhead=overhead).value(points)
    assert np.abs(np.log(corrected / expected)).max() < 0.5 * np.abs(np.log(alone / expected)).max()


def test_a_power_law_follows_times_that_grow() -> None:
    model = fitted(measured(lambda p, n: 1e-4 * n**2 * p**0.3), overhead="power")
    assert model.value([Point.of(p=256, n=800)])[0] == pytest.approx(64 * 256**0.3, rel=0.02)


def test_nodes_and_processes_per_node() -> None:
    values = {
        Point.of(nodes=nodes, ppn=ppn): (strong(nodes * ppn, 100) * (1.0 if nodes == 1 else 1.5),)
        for nodes, ppn in product((1, 2, 4, 8, 16), (1, 2, 4, 8))
    }
    data = Measurements(("nodes", "ppn"), (Measurement("main", "time", values),))
    model = fitted(data, overhead="forest")
    across, within = model.value([Point.of(nodes=16, ppn=4), Point.of(nodes=1, ppn=8)])
    assert across == pytest.approx(1.5 * strong(64, 100), rel=0.15)
    assert within == pytest.approx(strong(8, 100), rel=0.15)


def test_processes_per_node_beside_their_total_are_no_problem_of_their_own() -> None:
    values = {
        Point.of(p=p, ppn=ppn): (strong(p, 100) * (1.0 if ppn < 8 else 1.5),)
        for p, ppn in product((1, 2, 4, 8, 16, 32), (1, 2, 4, 8))
        if p >= ppn
    }
    model = fitted(Measurements(("p", "ppn"), (Measurement("main", "time", values),)), overhead="forest")
    # No run with 8 processes on a node has fewer than 8 processes.
    assert model.value([Point.of(p=32, ppn=8)])[0] == pytest.approx(1.5 * strong(32, 100), rel=0.2)
    assert model.value([Point.of(p=16, ppn=2)])[0] == pytest.approx(strong(16, 100), rel=0.2)


def test_no_run_on_one_process() -> None:
    """Speedups are then relative to the fewest processes."""
    model = fitted(measured(strong, ranks=(4, 8, 16, 32)), overhead="none")
    assert model.value([Point.of(p=256, n=400)])[0] == pytest.approx(strong(256, 400), rel=0.02)


def test_one_problem_size() -> None:
    model = fitted(measured(strong, sizes=(100,)), overhead="none")
    assert model.value([Point.of(p=256, n=100)])[0] == pytest.approx(strong(256, 100), rel=0.02)


@pytest.mark.parametrize(
    ("option", "value"), [("overhead", "fortran"), ("variant", "best"), ("scaling", "up"), ("aggregate", "x")]
)
def test_an_unknown_word_is_refused_with_the_known_ones(option: str, value: str) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(ModelError, match=f"{option} is '{value}': use one of"):
        modeler(**options)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("exponents", 3, "exponents is 3: give a number per parameter"),
        ("largest", {"n": "x"}, "largest.n is 'x': give a number"),
        ("most_processes", "many", "most_processes is 'many': give a number"),
    ],
)
def test_options_of_a_wrong_kind(option: str, value: object, said: str) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(ModelError, match=said):
        modeler(**options)


def test_one_number_of_processes_is_refused() -> None:
    with pytest.raises(ModelError, match="every run has the same number of processes"):
        fitted(measured(strong, ranks=(4,)))


def test_products_are_counted_exactly() -> None:
    """125 nodes of 4 are 500 processes, within a cut-off at 500, though coordinates are logarithms."""
    values = {Point.of(nodes=a, ppn=b): (1.0,) for a, b in product((1, 3, 7, 75, 125), (1, 4, 8, 16, 32))}
    data = Measurements(("nodes", "ppn"), (Measurement("main", "time", values),))
    [series], _ = arranged(data, "auto")
    layout = Layout.of(series.samples.axes, required(data.parameters), 1.0)
    found = sorted(layout.processes(series.samples.x))
    assert found == sorted(point.number("nodes") * point.number("ppn") for point in values)


@every_overhead
def test_a_product_that_is_the_same_in_all_runs_is_refused(overhead: str) -> None:
    values = {Point.of(nodes=nodes, ppn=24 // nodes): (1.0 + nodes,) for nodes in (1, 2, 3, 4, 6, 8, 12, 24)}
    data = Measurements(("nodes", "ppn"), (Measurement("main", "time", values),))
    with pytest.raises(ModelError, match=r"every run has the same number of processes \(nodes \* ppn\)"):
        fitted(data, overhead=overhead)


@pytest.mark.parametrize("bad", [0.5, 0, -1])
def test_a_number_of_processes_below_1_is_refused(bad: float) -> None:
    values = {Point.of(p=p, n=100): (strong(abs(p) + 1, 100),) for p in (bad, 1, 2, 4, 8, 16)}
    with pytest.raises(ModelError, match=f"p is {bad:g} in some run, but it counts processes"):
        fitted(Measurements(("p", "n"), (Measurement("main", "time", values),)))


def test_a_parameter_that_may_count_processes_has_to_be_named() -> None:
    values = {Point.of(a=a, n=100): (strong(a, 100),) for a in RANKS}
    data = Measurements(("a", "n"), (Measurement("main", "time", values),))
    with pytest.raises(ModelError, match="name it with the option processes"):
        fitted(data)
    assert fitted(data, processes="a").value([Point.of(a=64, n=100)])[0] == pytest.approx(
        strong(64, 100), rel=0.02
    )


@every_overhead
def test_a_constant_time_stays_constant(overhead: str) -> None:
    model = fitted(measured(lambda p, n: 3.0), overhead=overhead)
    prediction = model.predict([Point.of(p=512, n=800)])
    assert prediction.value[0] == pytest.approx(3.0, rel=1e-3)
    assert prediction.low[0] <= prediction.value[0] <= prediction.high[0]
    assert "fraction 0" in model.expression


@every_overhead
def test_no_run_on_one_process_one_problem_size_and_unusable_values_together(overhead: str) -> None:
    """What is left over follows the law, and so does the model with any overhead."""
    data = measured(strong, ranks=(4, 8, 12, 16, 24, 32), sizes=(100,))
    runs = data.items[0].values
    values = {
        point: {12: (float("nan"), *times), 24: (0.0, *times), 32: (*times, -1.0)}.get(
            int(point.number("p")), times
        )
        for point, times in runs.items()
    }
    model = fitted(Measurements(("p", "n"), (Measurement("main", "time", values),)), overhead=overhead)
    prediction = model.predict([Point.of(p=64, n=100)])
    assert prediction.value[0] == pytest.approx(strong(64, 100), rel=0.1)
    assert np.isfinite([prediction.low[0], prediction.high[0]]).all()
    assert any("left out" in note for note in model.notes)


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_nothing_but_unusable_times(value: float) -> None:
    with pytest.raises(ModelError, match="no call path has a usable measurement"):
        fitted(measured(lambda p, n: value))


def test_learned_overheads_are_left_out_where_no_run_is_between_one_process_and_half_of_the_largest() -> None:
    """Vectors have four runs there (section 3), so there is none."""
    data = measured(strong, ranks=(1, 24, 32))
    assert fitted(data, overhead="auto").value([Point.of(p=64, n=400)])[0] == pytest.approx(
        strong(64, 400), rel=0.1
    )
    with pytest.raises(ModelError, match="no learner can be fitted"):
        fitted(data, overhead="network")


def test_two_runs_give_the_law_with_an_interval_that_says_so() -> None:
    model = fitted(measured(strong, ranks=(1, 4), sizes=(100,)))
    prediction = model.predict([Point.of(p=16, n=100)])
    assert prediction.value[0] == pytest.approx(strong(16, 100), rel=0.02)
    assert prediction.high[0] > 2 * prediction.value[0]
    assert any("too few" in note for note in model.notes)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_without_a_usable_run_on_one_process_the_next_one_is_the_reference(bad: float) -> None:
    data = measured(strong)
    values = {point: (bad,) if point["p"] == 1 else runs for point, runs in data.items[0].values.items()}
    model = fitted(Measurements(("p", "n"), (Measurement("main", "time", values),)), overhead="none")
    assert model.value([Point.of(p=256, n=400)])[0] == pytest.approx(strong(256, 400), rel=0.02)
    if not np.isnan(bad):
        assert any("left out" in note for note in model.notes)


def test_intervals_grow_with_the_processes_beyond_the_measured_ones() -> None:
    model = fitted(measured(strong, noise=0.02), overhead="none")
    prediction = model.predict([Point.of(p=p, n=400) for p in (16, 64, 256, 1024)])
    width = np.log(prediction.high / prediction.low)
    assert np.all(np.diff(width) > 0)
    truth = np.array([strong(p, 400) for p in (16, 64, 256, 1024)])
    assert np.all((prediction.low < truth) & (truth < prediction.high))
