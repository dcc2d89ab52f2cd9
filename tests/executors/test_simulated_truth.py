"""What simulated runs yield: callees counted once, effort runs, noise on times only, models as the truth."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import expressions
from orchestrator.executors.simulated import truth
from orchestrator.models.pmnf.modeler import modeler
from orchestrator.types import Measurement, Measurements, Point, Run, Value

POINT = Point.of(n=4)
TREE = {"main": "10", "main->solve": "6 * n / 4", "main->solve->spmv": "4", "main->solve->dot": "1"}


def values_at(point: Point) -> Mapping[str, Value]:
    return point.as_dict()


def stated(functions: Mapping[str, str]) -> truth.Exact:
    return truth.stated({path: expressions.parse(text, ["n"]) for path, text in functions.items()}, values_at)


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        ({"main": 10.0, "main->a": 6.0, "main->a->b": 4.0, "main->c": 1.0}, 10.0),
        ({"a": 6.0, "a->b": 4.0, "c": 1.0}, 7.0),
        ({"a->b": 4.0, "a->b->c": 3.0, "a->d": 2.0}, 6.0),  # the caller of both has no time of its own
        ({"main": 10.0, "main->a->b": 4.0}, 10.0),  # nor has the one between
        ({"main": 0.1, "main->a": 5.0, "main->b": 2.0}, 7.0),  # exclusive times: callees take longer
        ({"main()": 9.0, "helper": 3.0}, 9.0),
        ({"a::operator->": 2.0}, 2.0),
        ({}, 0.0),
    ],
)
def test_each_callee_is_counted_once(times: dict[str, float], seconds: float) -> None:
    assert truth.duration(times) == pytest.approx(seconds)


@given(st.dictionaries(st.sampled_from(["a", "a->b", "a->b->c", "a->d", "e", "e->f"]), st.floats(0, 1e3)))
def test_a_run_takes_no_less_than_any_call_path_and_no_more_than_all(times: dict[str, float]) -> None:
    found = truth.duration(times)
    assert max(times.values(), default=0.0) <= found * (1 + 1e-12) + 1e-12
    assert found <= sum(times.values()) * (1 + 1e-12) + 1e-12
    assert truth.duration({**times, "main": found, "main->z": 0.0}) == pytest.approx(found)


def test_the_duration_of_whole_runs_comes_first() -> None:
    known = Measurements(
        ("n",),
        (
            Measurement("(run)", "elapsed", {POINT: (12.0,)}),
            Measurement("main", "time", {POINT: (10.0,)}),
            Measurement("main->a", "time", {POINT: (8.0,)}),
        ),
    )
    assert truth.replayed(known)(Run(POINT), np.random.default_rng(0)).seconds == 12.0
    without = Measurements(("n",), known.items[1:])
    assert truth.replayed(without)(Run(POINT), np.random.default_rng(0)).seconds == 10.0


def test_noise_is_bounded_and_only_on_times() -> None:
    exact = stated(TREE)(Run(POINT))
    assert exact.seconds == 10.0
    for seed in range(20):
        found = truth.noisy(stated(TREE), 5)(Run(POINT), np.random.default_rng(seed))
        for sample, true in zip(found.samples, exact.samples, strict=True):
            assert sample.value == pytest.approx(true.value, rel=0.05)
        assert found.seconds == found.samples[0].value  # that of main
    assert truth.noisy(stated(TREE), 0)(Run(POINT), np.random.default_rng(1)) == exact


def test_effort_runs_count_in_proportion_to_the_times() -> None:
    run = Run(POINT, "effort")
    found = truth.noisy(stated(TREE), 5)(run, np.random.default_rng(1))
    blocks = {item.callpath: item.value for item in found.samples if item.metric == "basic_blocks"}
    assert blocks == {"main": 10e6, "main->solve": 6e6, "main->solve->spmv": 4e6, "main->solve->dot": 1e6}
    assert found.seconds == pytest.approx(truth.COUNTING * 10, rel=0.05)
    again = truth.noisy(stated(TREE), 5)(run, np.random.default_rng(2))
    assert again.samples == found.samples  # counts are reproducible


def series(callpath: str, metric: str, factor: float) -> Measurement:
    return Measurement(callpath, metric, {Point.of(n=n): (factor * n,) for n in (1, 2, 4, 8, 16)})


def test_models_of_an_earlier_campaign_yield_all_its_call_paths() -> None:
    known = Measurements(
        ("n",),
        (
            series("(run)", "elapsed", 2.5),
            series("main", "time", 2.0),
            series("main->solve", "time", 1.5),
            series("main", "basic_blocks", 3e6),
        ),
    )
    # The new campaign has a parameter more, and gives the other by a setting of the same name.
    exact = truth.modelled(modeler()(known), lambda point: {"n": 32, **point.as_dict()}, ("n",), 3.0)
    timed, counted = exact(Run(Point.of(m=1))), exact(Run(Point.of(m=1), "effort"))
    assert timed.seconds == pytest.approx(80, rel=1e-3)
    values = {(item.callpath, item.metric): item.value for item in timed.samples}
    assert values == pytest.approx(
        {("(run)", "elapsed"): 80, ("main", "time"): 64, ("main->solve", "time"): 48}, rel=1e-3
    )
    assert [(item.metric, item.value) for item in counted.samples] == [("basic_blocks", 96e6)]
    assert counted.seconds == pytest.approx(240, rel=1e-3)
    counts = truth.modelled(modeler()(Measurements(("n",), known.items[1:3])), values_at, ("n",))
    assert {item.metric for item in counts(Run(POINT, "effort")).samples} == {"basic_blocks", "visits"}


def test_an_unknown_category_is_as_expensive_as_the_most_expensive_known_one() -> None:
    factors = {"cg": 1.0, "mg": 3.0}
    values = {Point.of(n=n, k=k): (factor * n,) for k, factor in factors.items() for n in (1, 2, 4, 8, 16)}
    known = Measurements(("n", "k"), (Measurement("main", "time", values),), frozenset({"k"}))
    exact = truth.modelled(modeler()(known), values_at, ("n", "k"))
    seconds = {k: exact(Run(Point.of(n=4, k=k))).seconds for k in ("cg", "mg", "fft")}
    assert seconds == pytest.approx({"cg": 4, "mg": 12, "fft": 12}, rel=1e-3)
