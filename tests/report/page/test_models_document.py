"""The document of a report on files: its numbers are those of the models, its size is bounded."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from orchestrator import registry
from orchestrator.journal.measurements import ELAPSED, WHOLE_RUN
from orchestrator.models.base import Model, Prediction
from orchestrator.models.processes import required
from orchestrator.models.scaling import Study
from orchestrator.models.sums import with_sums
from orchestrator.report.page import callpaths, document, growth, runs
from orchestrator.report.page.grid import Grid, grid_of
from orchestrator.report.page.render import page
from orchestrator.report.page.subject import Subject
from orchestrator.types import Measurement, Measurements, Point, Value
from tests.report.page.sample import unpacked

P, N = (2, 4, 8, 16, 32), (10, 20, 30, 40, 50)
LAWS: dict[str, Callable[[Any, Any], float]] = {
    "main": lambda p, n: 0.4 + 0.01 * math.log2(p) * n + 2e-3 * n**2 / p,
    "main->solve": lambda p, n: 0.1 + 2e-3 * n**2 / p,
    "main->MPI_Allreduce": lambda p, n: 0.01 * math.log2(p) * n,
}


def measured(kinds: Sequence[str] = (), runs: int = 2) -> Measurements:
    """Return times with 2 % noise."""
    rng = np.random.default_rng(5)
    points = [Point.of(p=p, n=n) for p in P for n in N]
    if kinds:
        points = [Point.of({**point.as_dict(), "kind": kind}) for kind in kinds for point in points]
    items = tuple(
        Measurement(
            path,
            "time",
            {
                point: tuple(law(point["p"], point["n"]) * np.exp(0.02 * rng.standard_normal(runs)))
                for point in points
            },
        )
        for path, law in LAWS.items()
    )
    return Measurements(("p", "n", "kind") if kinds else ("p", "n"), items)


def subject(known: Measurements, modeler: str = "pmnf", point: Point | None = None) -> Subject:
    study = Study.of(known, required(["p"], "p"))
    models = with_sums(registry.load("model", modeler)())(known)
    return Subject(known=known, models=models, point=point, study=study)


def described(what: Subject) -> dict[str, Any]:
    found = document.of_measurements(
        what, title="t", generated="2026-01-01T00:00:00+00:00", sources=["t.csv"], modeler="pmnf"
    )
    json.dumps(found, allow_nan=False)
    return found


def stops(found: dict[str, Any]) -> list[Point]:
    axes = [[(axis["name"], stop) for stop in axis["stops"]] for axis in found["parameters"]]
    points: list[tuple[tuple[str, Value], ...]] = [()]
    for axis in axes:
        points = [(*point, pair) for point in points for pair in axis]
    return [Point(point) for point in points]


@pytest.mark.parametrize(
    ("modeler", "kinds"),
    [(name, ()) for name in ("formulas", "curves", "extra-p", "splines", "swc")]
    + [(name, ("a", "b")) for name in ("pmnf", "splines")],
)
def test_the_numbers_at_the_stops_are_those_of_the_models(modeler: str, kinds: Sequence[str]) -> None:
    point = Point.of({"p": 256, "n": 100, **({"kind": "b"} if kinds else {})})
    what = subject(measured(kinds), modeler, point)
    found = described(what)
    points = stops(found)
    assert found["grid"]["shape"] == [len(axis["stops"]) for axis in found["parameters"]]
    assert point in points and len(found["callpaths"]) == len(what.models)
    by_key = {(model.callpath, model.category): model for model in what.models}
    for item in found["callpaths"]:
        model = by_key[item["name"], tuple(item["category"].items())]
        assert item["expression"] == model.expression
        for k in range(0, len(points), max(1, len(points) // 7)):  # each point asked alone
            alone = model.predict([points[k]])
            for end in ("value", "low", "high"):
                assert unpacked(item[end])[k] == pytest.approx(
                    float(getattr(alone, end)[0]), rel=1e-6, nan_ok=True
                )
        shown = unpacked(item["predicted_at_runs"])
        there = [Point.of(run["point"]) for run in found["runs"]]
        assert shown == pytest.approx(model.predict(there).value, rel=1e-6, nan_ok=True)


def test_measured_values_outliers_and_curves_are_told() -> None:
    known = measured(runs=3)
    first, *others = known.items
    slow = Point.of(p=8, n=30)
    values = {**first.values, slow: (first.values[slow][0], 9.0, first.values[slow][2])}
    known = Measurements(known.parameters, (Measurement("main", "time", values), *others))
    found = described(subject(known))
    main = next(item for item in found["callpaths"] if item["name"] == "main")
    places = [k for k, run in enumerate(found["runs"]) if run["point"] == slow.as_dict()]
    assert main["outliers"] == [places[1]]
    assert unpacked(main["measured"])[places] == pytest.approx(values[slow], rel=1e-6)
    for curve in main["curves"]:
        line = found["lines"][curve["line"]]
        assert len(unpacked(curve["value"])) == len(line["x"]) > 20
        assert set(line["at"]) == {"p", "n"} - {line["parameter"]}


def test_the_page_says_that_a_parameter_may_act_exponentially() -> None:
    values = {Point.of(s=s): (1e-6 * 2.0**s,) * 2 for s in range(8, 15)}
    known = Measurements(("s",), (Measurement("main", "time", values),))
    models = registry.load("model", "pmnf")()(known)
    found = described(Subject(known=known, models=models, point=Point.of(s=17)))
    assert any("let n = 2**s be the parameter" in text for text in found["head"]["warnings"])


def test_the_page_says_that_a_part_cannot_take_longer_than_what_includes_it() -> None:
    laws = {"main": (3.0, 1), "main->a": (1 / 15, 2), "main->b": (0.1, 1)}
    items = [
        Measurement(path, "time", {Point.of(n=n): (factor * n**power,) * 2 for n in (5, 10, 15, 20, 25, 30)})
        for path, (factor, power) in laws.items()
    ]
    known = Measurements(("n",), tuple(items))
    models = registry.load("model", "pmnf")()(known)

    def said(n: int) -> list[str]:
        found = described(Subject(known=known, models=models, point=Point.of(n=n)))["head"]["warnings"]
        return [text for text in found if "includes it" in text]

    assert said(35) == []  # within what is possible: 82 s of 105 s
    (text,) = said(150)
    assert text.startswith("main->a is predicted to take 3.3 times as long as main, which includes it: ")


def test_the_answer_adds_up_and_names_what_dominates() -> None:
    what = subject(measured(), "pmnf", Point.of(p=256, n=100))
    found = described(what)
    answer, paths = found["head"]["answer"], found["callpaths"]
    assert [paths[k]["name"] for k in found["whole"]] == ["main"]
    assert {paths[k]["name"] for k in found["parts"]} == {"main->solve", "main->MPI_Allreduce"}
    assert [item["mpi"] for item in paths if item["name"] == "main->MPI_Allreduce"] == [True]
    main = next(model for model in what.models if model.callpath == "main")
    predicted = main.predict([Point.of(p=256, n=100)])
    assert (answer["value"], answer["low"]) == (predicted.value[0], predicted.low[0])
    assert answer["cost"]["core_hours"] == pytest.approx(answer["value"] * 256 / 3600)
    assert answer["parts"][0]["callpath"] == "main->MPI_Allreduce"
    assert answer["parts"][0]["share"] == pytest.approx(answer["parts"][0]["value"] / answer["value"])
    assert f"At P(p=256, n=100) a run takes {answer['value']:.4g} s" in answer["sentence"]
    assert any("p=256, 8 times the largest measured value" in text for text in found["head"]["warnings"])
    parents = {item["name"]: item["parent"] for item in paths}
    ids = {item["name"]: item["id"] for item in paths}
    assert parents == {"main": None, "main->solve": ids["main"], "main->MPI_Allreduce": ids["main"]}


@pytest.mark.parametrize("within", [True, False])
def test_a_run_takes_at_least_as_long_as_the_program_in_it(within: bool) -> None:
    """Unless measured runs did not, because the program adds times of processes, or has another unit."""
    known = measured()
    main = next(item for item in known.items if item.callpath == "main")
    longest = max(max(values) for values in main.values.values())
    elapsed = dict.fromkeys(main.values, (longest if within else longest / 2,))
    items = (*known.items, Measurement(WHOLE_RUN, ELAPSED, elapsed))
    answer = described(subject(Measurements(known.parameters, items), "pmnf", Point.of(p=256, n=100)))[
        "head"
    ]["answer"]
    launched = answer["launched"]
    assert (launched["value"] == answer["value"]) is within
    assert launched.get("modeled") == (pytest.approx(longest) if within else None)
    assert answer["cost"]["core_hours"] == pytest.approx(launched["value"] * 256 / 3600)
    assert ("with its launch it takes at least as long" in answer["sentence"]) is within


def test_call_paths_that_exclude_what_they_call_add_up() -> None:
    known = measured()
    items = tuple(
        Measurement(item.callpath, "time", dict.fromkeys(item.values, (0.01,)))
        if item.callpath == "main"
        else item
        for item in known.items
    )
    what = subject(Measurements(known.parameters, items))
    assert not what.includes
    assert set(what.whole) == set(LAWS) == set(what.parts)
    answer = described(what)["head"]["answer"]
    assert answer["summed"] == 3 and "the ends of their intervals were added" in answer["sentence"]
    assert answer["value"] == pytest.approx(sum(row["value"] for row in answer["parts"]))


def test_call_paths_that_overlap_do_not_add_up_to_more_than_a_run() -> None:
    known = measured()
    main = next(item for item in known.items if item.callpath == "main")
    most = {point: tuple(0.9 * value for value in values) for point, values in main.values.items()}
    overlapping = Measurement("main->overlap", "time", most)
    durations = {point: tuple(value + 0.1 for value in values) for point, values in main.values.items()}
    run = Measurement(WHOLE_RUN, ELAPSED, durations)
    items = tuple(item for item in known.items if item.callpath != "main->MPI_Allreduce")
    what = subject(Measurements(known.parameters, (*items, overlapping)))
    assert not what.includes
    what = subject(Measurements(known.parameters, (*items, overlapping, run)))
    assert what.includes and what.whole == ("main",)
    answer = described(what)["head"]["answer"]
    assert answer["value"] <= answer["launched"]["value"] * 1.1
    assert answer["overlap"] and not described(subject(known))["head"]["answer"]["overlap"]


def test_call_paths_overlap_where_no_point_has_all_of_them() -> None:
    """PETSc prints the events of a solver in runs with that one alone."""
    known = measured()
    main = next(item for item in known.items if item.callpath == "main")
    points = list(main.values)

    def part(name: str, there: list[Point]) -> Measurement:
        return Measurement(
            f"main->{name}", "time", {point: (0.9 * main.values[point][0],) for point in there}
        )

    items = (main, part("solve", points), part("sor", points[::2]), part("jacobi", points[1::2]))
    durations = {point: tuple(value + 0.1 for value in values) for point, values in main.values.items()}
    what = subject(Measurements(known.parameters, (*items, Measurement(WHOLE_RUN, ELAPSED, durations))))
    assert what.includes and what.overlap and what.whole == ("main",)


def test_a_call_path_that_takes_all_of_its_callers_time_is_included_in_it() -> None:
    """Three of RELeARN take as long as main, without a run that says so: the sum was five times too long."""
    known = measured()
    main = next(item for item in known.items if item.callpath == "main")
    nearly = {point: tuple(0.99 * value for value in values) for point, values in main.values.items()}
    loops = (Measurement(f"main->{name}", "time", nearly) for name in ("loop", "update"))
    what = subject(Measurements(known.parameters, (*known.items, *loops)))
    assert what.includes and what.overlap and what.whole == ("main",)
    few = dict(list(main.values.items())[:3])
    what = subject(
        Measurements(known.parameters, (main, *(Measurement(f"main->{k}", "time", few) for k in "ab")))
    )
    assert not what.includes  # of three points it may be chance


def test_a_category_of_which_nothing_is_known_is_no_number() -> None:
    found = described(subject(measured(("a", "b")), "pmnf"))
    points = stops(found)
    item = next(item for item in found["callpaths"] if item["category"] == {"kind": "a"})
    known = np.isfinite(unpacked(item["value"]))
    assert [point["kind"] == "a" for point in points] == known.tolist()
    kinds = next(axis for axis in found["parameters"] if axis["name"] == "kind")
    assert (kinds["kind"], kinds["stops"]) == ("category", ["a", "b"])


class Slow:
    """A model whose predictions take a second each, by a clock of their own."""

    def __init__(self, model: Model, clock: list[float]) -> None:
        self._model, self._clock = model, clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def predict(self, points: Sequence[Point]) -> Prediction:
        self._clock[0] += len(points)
        return self._model.predict(points)


def test_slow_models_are_asked_at_fewer_points_and_the_default_stays() -> None:
    what = subject(measured(), "pmnf", Point.of(p=256, n=100))
    clock = [0.0]
    slow = Subject(
        known=what.known, models=tuple(Slow(model, clock) for model in what.models), point=what.point
    )
    wanted, measured_runs = grid_of(slow), runs.of_measurements(what.known)
    quick = callpaths.call_paths(what, measured_runs, wanted, lambda: 0.0)
    found = callpaths.call_paths(slow, measured_runs, wanted, lambda: clock[0])
    assert quick.grid.size > 4 * found.grid.size >= 9
    for axis in found.grid.axes:
        assert axis.default in axis.stops
    assert found.grid.axes[0].stops[-1] == 256


def test_a_dozen_parameters_have_a_page_although_no_memory_holds_their_grid() -> None:
    rng = np.random.default_rng(0)
    names = [f"x{k}" for k in range(12)]
    rows = 2 ** rng.uniform(0, 6, (60, 12)).round(2)
    values = {
        Point.of(dict(zip(names, map(float, row), strict=True))): (float(row[0] * row[1] ** 0.5),)
        for row in rows
    }
    known = Measurements(tuple(names), (Measurement("main", "time", values),))
    what = Subject(known=known, models=registry.load("model", "cpr")()(known), point=None, study=None)
    assert grid_of(what).size > 10**12
    [found] = described(what)["callpaths"]
    assert np.isfinite(unpacked(found["value"])).all()


def test_grids_are_thinned_to_what_was_measured_and_the_ends() -> None:
    grid = grid_of(subject(measured(), "pmnf", Point.of(p=256, n=100)))
    assert all(len(axis.stops) >= 12 for axis in grid.axes)
    for axis in grid.axes:
        assert set(axis.measured) <= set(axis.stops) and list(axis.stops) == sorted(axis.stops)
        assert all(isinstance(stop, int) for stop in axis.stops)
    thin = grid.thinned(36)
    assert thin.size <= 36
    for axis, before in zip(thin.axes, grid.axes, strict=True):
        assert {before.stops[0], before.stops[-1], axis.default} <= set(axis.stops)
        assert set(axis.stops) <= {*axis.measured, axis.default}
    least = Grid(thin.axes).thinned(1)
    assert least.points() == [Point.of(p=256, n=100)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("far", [10**20, 1e300, 1e-300])
def test_a_point_may_be_as_far_as_numbers_reach(far: float) -> None:
    what = subject(measured(), "pmnf", Point.of(p=far, n=100))
    (stops, *_) = (axis.stops for axis in grid_of(what).axes)
    assert far in stops and list(stops) == sorted(stops)
    assert "<html" in page(described(what))


def test_downloads_hold_measurements_and_formulas() -> None:
    what = subject(measured(), "pmnf")
    files = {item["name"]: item["text"] for item in described(what)["downloads"]}
    assert set(files) == {"measurements.csv", "models.tex", "models.py", "models.c"}
    assert files["measurements.csv"].count("\n") == 1 + 3 * 25 * 2
    space: dict[str, Any] = {}
    exec(files["models.py"], space)  # the test's own document
    main = next(model for model in what.models if model.callpath == "main")
    assert space["main_time"](p=16, n=30) == pytest.approx(
        float(main.value([Point.of(p=16, n=30)])[0]), rel=5e-3
    )
    assert "double main_time(double p, double n)" in files["models.c"]


def test_growth_is_that_of_the_values_where_the_formula_is_constant() -> None:
    """The values are the median of all that is possible, the formula only the most probable of it."""
    points = {Point.of(p=p): (2.0,) for p in P}
    known = Measurements(("p",), (Measurement("main", "time", points),))
    (model,) = registry.load("model", "pmnf")()(known)
    grid = grid_of(Subject(known=known, models=(model,), point=None, study=None))
    x = np.array([point["p"] for point in grid.points()], dtype=float)
    (constant,) = growth.described(model, grid, np.full(len(x), 2.0))
    (changing,) = growth.described(model, grid, 2.0 * x**0.4)
    assert (constant["text"], constant["kind"]) == ("constant", "terms")
    assert (changing["text"], changing["kind"], changing["exponent"]) == ("p**0.4", "slope", 0.4)


def test_growth_of_levels_is_exponential() -> None:
    """A power would be that of the last levels alone."""
    points = {Point.of(level=level): (1e-4 * 8.0**level,) * 2 for level in range(4, 9)}
    known = Measurements(("level",), (Measurement("main", "time", points),))
    (model,) = registry.load("model", "auto")()(known)
    grid = grid_of(Subject(known=known, models=(model,), point=None, study=None))
    (shown,) = growth.described(model, grid, model.value(list(grid.points())))
    assert shown["text"] == "2**(3 * level)" and shown["exponent"] > 10


def test_the_table_has_the_largest_terms_of_a_long_sum_and_the_details_have_all() -> None:
    rng = np.random.default_rng(3)
    laws: dict[str, Callable[[Any, Any], float]] = {
        "main->a": LAWS["main->solve"],
        "main->b": lambda p, n: 3.0 + 0.01 * n,
        "main->c": lambda p, n: p**0.5,
    }
    points = [Point.of(p=p, n=n) for p in P for n in N]
    parts = [
        [law(x["p"], x["n"]) * np.exp(0.01 * rng.standard_normal(2)) for x in points] for law in laws.values()
    ]
    values = dict(zip(["main", *laws], [np.sum(parts, axis=0), *parts], strict=True))
    items = [
        Measurement(name, "time", dict(zip(points, map(tuple, rows), strict=True)))
        for name, rows in values.items()
    ]
    what = subject(Measurements(("p", "n"), tuple(items)), "pmnf", Point.of(p=1024, n=10))
    by_name = {item["name"]: item for item in described(what)["callpaths"]}
    main, short = by_name["main"], by_name["main"]["short"]
    assert short["text"].startswith("sum of 3 parts: ") and short["text"].endswith(" + ...")
    assert short["parts"] == 3 and len(short["mathml"]) < len(main["mathml"])
    assert len(short["text"]) < len(main["expression"])
    assert all(by_name[name]["short"] is None for name in laws)
