"""A call path that includes others is modelled as their sum, where that explains it as well."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from orchestrator import registry
from orchestrator.errors import ModelError
from orchestrator.models.base import Floats, Model
from orchestrator.models.consistency import contradictions
from orchestrator.models.pmnf.modeler import modeler as pmnf
from orchestrator.models.summed import Summed
from orchestrator.models.sums import REST, advantage, correlation, inclusive, with_sums
from orchestrator.report.models_document import SHORTENED, describe, legend, shown
from orchestrator.types import Measurement, Measurements, Point

RANKS, SIZES = (4, 8, 16, 32, 64), (10, 20, 30, 40, 50)
POINTS = [Point.of(p=p, n=n) for p, n in product(RANKS, SIZES)]
FAR = Point.of(p=256, n=80)
Truth = Callable[[float, float], float]

# A sum of four terms: more than one formula of the search has.
PARTS: dict[str, Truth] = {
    "main->solve->spmv": lambda p, n: 2e-3 * n**2,
    "main->solve->dot": lambda p, n: 0.3 * np.log2(p),
    "main->solve->halo": lambda p, n: 0.02 * p**0.5 * n**0.5,
    "main->init": lambda p, n: 1.0 + 0.05 * p,
}
ABOVE = {"main->solve": ["main->solve->spmv", "main->solve->dot", "main->solve->halo"]}
ABOVE["main"] = ["main->solve", "main->init"]


def measured(
    parts: Mapping[str, Truth],
    above: Mapping[str, Sequence[str]],
    own: Mapping[str, Truth] | None = None,
    noise: float = 0.01,
) -> Measurements:
    """Measure parts with noise; what is above them takes their sum and its own share."""
    rng = np.random.default_rng(7)
    values: dict[str, Floats] = {}
    for name, truth in {**parts, **(own or {})}.items():
        exact = np.array([truth(point.number("p"), point.number("n")) for point in POINTS])
        values[name] = exact[:, None] * np.exp(rng.normal(0, noise, (len(POINTS), 2)))
    for parent, children in above.items():
        values[parent] = np.sum([values[child] for child in children], axis=0) + values.get(parent, 0.0)
    return Measurements(("p", "n"), tuple(_series(name, found) for name, found in values.items()))


def _series(name: str, values: Floats, metric: str = "time") -> Measurement:
    known = {point: tuple(map(float, row)) for point, row in zip(POINTS, values, strict=True)}
    return Measurement(name, metric, known)


def truth_of(name: str) -> float:
    p, n = FAR.number("p"), FAR.number("n")
    return PARTS[name](p, n) if name in PARTS else sum(truth_of(child) for child in ABOVE[name])


@pytest.fixture(scope="module")
def models() -> dict[str, Model]:
    return {model.callpath: model for model in with_sums(pmnf())(measured(PARTS, ABOVE))}


def test_parents_of_many_terms_are_sums_and_closer_to_the_truth(models: dict[str, Model]) -> None:
    alone = {model.callpath: model for model in pmnf()(measured(PARTS, ABOVE))}
    for name in ABOVE:
        assert isinstance(models[name], Summed)
        errors = [abs(np.log(found[name].value([FAR])[0] / truth_of(name))) for found in (models, alone)]
        assert errors[0] < 0.03 < errors[1]
        found = models[name].predict([FAR])
        assert found.low[0] < truth_of(name) < found.high[0]


def test_parts_keep_their_models_and_the_order_is_that_of_the_measurements(models: dict[str, Model]) -> None:
    assert list(models) == [item.callpath for item in measured(PARTS, ABOVE).items]
    assert not any(isinstance(models[name], Summed) for name in PARTS)


def test_the_models_of_a_tree_do_not_contradict_each_other(models: dict[str, Model]) -> None:
    known = measured(PARTS, ABOVE)
    run = {item.callpath: item.values[POINTS[0]][0] for item in known.items}
    assert contradictions(list(models.values()), FAR, [run], "time") == []
    total = sum(models[name].value([FAR])[0] for name in ABOVE["main"])
    assert models["main"].value([FAR])[0] == pytest.approx(total)


def test_the_expression_is_the_prediction(models: dict[str, Model]) -> None:
    main = models["main"]
    assert isinstance(main, Summed)
    text = main.expression.replace("log2", "np.log2")
    assert eval(text, {"np": np, "p": 256, "n": 80}) == pytest.approx(main.value([FAR])[0], rel=0.01)
    assert len({str(term["factors"]) for term in main.terms}) == len(main.terms), "equal terms are merged"
    assert main.notes[-1] == "the sum of the models of its parts: ->init, ->solve"
    assert main.document()["parts"] == ["main->init", "main->solve"]


def block(i: float, j: float, k: float) -> Truth:
    return lambda p, n: (p / 16) ** i * (n / 30) ** j * np.log2(p) ** k


def test_the_expression_of_many_parts_is_short_and_still_the_prediction() -> None:
    blocks = [(i, j, k) for i in (0, 0.5, 1, 1.5) for j in (0, 0.5, 1, 2) for k in (0, 1)]
    parts = {f"main->{number}": block(*exponents) for number, exponents in enumerate(blocks)}
    main = with_sums(pmnf())(measured(parts, {"main": list(parts)}))[-1]
    assert isinstance(main, Summed)
    assert len(main.terms) <= 12
    text = main.normal_form.replace("log2", "np.log2")
    assert eval(text, {"np": np, "p": 256, "n": 80}) == pytest.approx(main.value([FAR])[0], rel=0.05)


def test_what_a_call_path_does_itself_is_modelled(models: dict[str, Model]) -> None:
    own: dict[str, Truth] = {"main": lambda p, n: 0.1 * n}
    found = {model.callpath: model for model in with_sums(pmnf())(measured(PARTS, ABOVE, own))}
    main = found["main"]
    assert isinstance(main, Summed)
    assert main.parts[-1].callpath == "main" + REST
    assert main.value([FAR])[0] == pytest.approx(truth_of("main") + 8.0, rel=0.05)
    assert "main" + REST not in found


def test_an_interval_allows_for_what_is_negligible_to_vary() -> None:
    """Exact counts: the parts are known exactly, a remainder of up to 0.1 % is not modelled."""
    rng = np.random.default_rng(2)
    everywhere = [*POINTS, FAR]
    parts = [[1000 * x.number("p") ** k * x.number("n") for x in everywhere] for k in (1, 2)]
    exact = np.round(np.sum(parts, axis=0) * (1 + rng.integers(1, 1000, len(everywhere)) / 1e6))
    counts = {"main": exact, "main->a": np.array(parts[0]), "main->b": np.array(parts[1])}
    items = [_series(name, np.column_stack([row[:-1]] * 2), "basic_blocks") for name, row in counts.items()]
    found = {item.callpath: item for item in with_sums(pmnf())(Measurements(("p", "n"), tuple(items)))}
    main = found["main"]
    assert isinstance(main, Summed) and 0 < main.doubt < 1e-3
    prediction = main.predict([FAR])
    assert prediction.low[0] < exact[-1] < prediction.high[0]
    assert prediction.high[0] < 1.004 * prediction.low[0]


def test_call_paths_that_do_not_include_others_are_no_sums() -> None:
    above = {"main": ["main->init"], "main->solve": ["main->solve->dot"]}
    parts = {name: PARTS[name] for name in ("main->init", "main->solve->dot")}
    known = measured(parts, above)
    by_name = {item.callpath: item for item in known.items}
    assert [whole.parent.callpath for whole in inclusive(known)] == ["main->solve"], "main is exclusive"
    apart = Measurement(
        "main->solve->dot", "time", dict(list(by_name["main->solve->dot"].values.items())[1:])
    )
    kept = tuple(apart if item.callpath == apart.callpath else item for item in known.items)
    assert inclusive(Measurements(known.parameters, kept)) == [], "not measured in the same runs"


def test_the_whole_program_includes_the_outermost_call_paths() -> None:
    flat = {"a": PARTS["main->init"], "b": PARTS["main->solve->spmv"]}
    known = measured(flat, {"main()": ["a", "b"]})
    [whole] = inclusive(known)
    assert (whole.label, whole.scale) == (("main()", "time"), 1.0)
    assert [part.callpath for part in whole.parts] == ["a", "b"]


def test_a_part_whose_model_does_not_fit_does_not_spoil_the_call_path() -> None:
    known = measured({"main->jumps": lambda p, n: 1.0, "main->falls": lambda p, n: 1.0}, {}, noise=0.001)
    jumps, falls = (dict(item.values) for item in known.items)
    for k, point in enumerate(POINTS):  # what one part takes longer the other is faster
        share = 0.9 * (-1) ** (k // 3)
        jumps[point] = tuple((1 + share) * value for value in jumps[point])
        falls[point] = tuple((1 - share) * value for value in falls[point])
    main = {point: tuple(map(sum, zip(jumps[point], falls[point], strict=True))) for point in POINTS}
    items = [Measurement(f"main->{name}", "time", v) for name, v in (("jumps", jumps), ("falls", falls))]
    known = Measurements(("p", "n"), (Measurement("main", "time", main), *items))
    model = with_sums(pmnf())(known)[0]
    assert not isinstance(model, Summed)
    assert model.value([FAR])[0] == pytest.approx(2.0, rel=0.02)


def test_a_rest_that_cannot_be_fitted_leaves_the_own_model() -> None:
    known = measured(PARTS, ABOVE, {"main": lambda p, n: 0.1 * n})

    def no_rest(measurements: Measurements) -> tuple[Model, ...]:
        if any(item.callpath.endswith(REST) for item in measurements.items):
            raise ModelError("no rest")
        return pmnf()(measurements)

    found = {model.callpath: model for model in with_sums(no_rest)(known)}
    assert not isinstance(found["main"], Summed)
    assert isinstance(found["main->solve"], Summed)


def test_errors_that_are_correlated_make_the_interval_of_a_sum_wider(models: dict[str, Model]) -> None:
    solve = models["main->solve"]
    assert isinstance(solve, Summed)
    widths = []
    for correlated in (0.0, 1.0):
        changed = Summed(
            own=solve.own,
            parts=solve.parts,
            scale=solve.scale,
            doubt=solve.doubt,
            correlation=correlated,
            smape=solve.smape,
            points=solve.points,
        )
        found = changed.predict([FAR])
        widths.append(found.high[0] - found.low[0])
    assert widths[0] < widths[1]
    apart = sum(float(part.predict([FAR]).high[0] - part.predict([FAR]).low[0]) for part in solve.parts)
    assert widths[1] == pytest.approx(apart, rel=0.25)


def test_the_belief_of_a_sum_is_that_of_its_intervals(models: dict[str, Model]) -> None:
    main = models["main"]
    assert isinstance(main, Summed)
    belief, found = main.belief([*POINTS, FAR]), main.predict([FAR])
    assert belief.weights.sum() == pytest.approx(1.0)
    assert np.exp(belief.centre[-1]) == pytest.approx(found.value[0], rel=0.02)
    width, spread = np.log(found.high / found.low)[0], 3.29 * np.sqrt(belief.variance[-1])
    assert 0.7 * width < spread < 3 * width, "wider where few draws are far away"
    again = main.belief([FAR])
    assert again.mean[:, 0] == pytest.approx(belief.mean[:, -1]), "the same draws at every call"


def test_categories_are_summed_apart() -> None:
    values = {
        name: {Point.of(p=p, s=s): (f * p * (1 if s == "cg" else 5),) for p in RANKS for s in ("cg", "lu")}
        for name, f in (("main", 3.0), ("main->a", 1.0), ("main->b", 2.0))
    }
    known = Measurements(("p", "s"), tuple(Measurement(name, "time", v) for name, v in values.items()))
    found = [model for model in with_sums(pmnf())(known) if model.callpath == "main"]
    assert len(found) == 2 and all(isinstance(model, Summed) for model in found)
    for model, factor in zip(found, (1, 5), strict=True):
        here = [Point.of(p=64, s=dict(model.category)["s"])]
        assert model.value(here)[0] == pytest.approx(3 * 64 * factor, rel=0.01)
        assert np.isnan(model.value([Point.of(p=64, s="other")])[0])


def test_sums_without_numeric_parameters_are_constants() -> None:
    values = {Point.of(solver=solver): (2.0, 2.0) for solver in ("cg", "lu")}
    items = tuple(Measurement(name, "bytes_sent", values) for name in ("main", "main->solve"))
    found = with_sums(registry.load("model", "auto")())(Measurements(("solver",), items))
    sums = [model for model in found if isinstance(model, Summed)]
    assert [model.terms[0]["coefficient"] for model in sums] == pytest.approx([2.0, 2.0])


def test_the_advantage_is_that_of_the_closer_fit() -> None:
    count = np.full(25, 2.0)
    close, far = np.full(25, 0.01), np.full(25, 0.05)
    assert advantage(np.array([close, far]), count, 0.01) == pytest.approx(
        -advantage(np.array([far, close]), count, 0.01)
    )
    assert advantage(np.array([close, far]), count, 0.01) > 50
    assert abs(advantage(np.array([close, far]), count, 0.5)) < 1, "within the noise"


def test_correlation_of_parts() -> None:
    rng = np.random.default_rng(3)
    shared, alone = rng.normal(size=400), rng.normal(size=(3, 400))
    assert correlation(alone) < 0.1
    assert correlation(np.array([shared, 2 * shared])) == pytest.approx(1.0)
    assert correlation(shared + alone) == pytest.approx(0.5, abs=0.1)
    assert correlation(np.array([shared, -shared])) == 0
    assert correlation(alone[:1]) == 0


def test_the_largest_terms_are_those_of_the_point(models: dict[str, Model]) -> None:
    """The halo grows with the ranks, the sparse product with the size: what is large depends on where."""
    solve = models["main->solve"]
    assert isinstance(solve, Summed)

    def largest(point: Point | None) -> list[set[str]]:
        return [{f["parameter"] for f in term["factors"]} for term in solve.largest_terms(point)]

    assert largest(Point.of(p=4, n=200)) == [{"n"}]
    assert largest(Point.of(p=4096, n=10)) == [{"p", "n"}, {"p"}]
    assert largest(None) == largest(Point.of(p=max(RANKS), n=max(SIZES))) != []
    assert len(largest(FAR)) <= 3 < len(solve.terms)


def test_tables_show_a_long_sum_by_its_largest_terms_and_json_has_all(models: dict[str, Model]) -> None:
    solve = models["main->solve"]
    assert isinstance(solve, Summed)
    found = describe(solve, [Point.of(p=4, n=200)])
    [largest] = [text for text in solve.expression.split(" + ") if text.endswith("* n**2")]
    assert shown(found) == f"sum of 3 parts: {largest} + ..."
    assert found["expression"] == solve.expression and len(found["terms"]) == 4
    assert legend([found]) == SHORTENED
    part = describe(models["main->solve->dot"], [FAR])
    assert shown(part) == part["expression"] and legend([part]) == ""
    # Of one part there is nothing that a sum of all of it could leave out.
    dot = next(part for part in solve.parts if part.callpath.endswith("dot"))
    alone = describe(replace(solve, parts=(dot,)), [Point.of(p=4, n=200)])
    assert shown(alone) == alone["normal_form"] and legend([alone]) == ""
