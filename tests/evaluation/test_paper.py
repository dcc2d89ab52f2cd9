from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from orchestrator import registry
from orchestrator.errors import CampaignError
from orchestrator.evaluation.paper.course import Course, course, measured, until_no_gain
from orchestrator.evaluation.paper.draw import SERIES, bench, compounding, draw
from orchestrator.evaluation.paper.study import Cell, Protocol, paper_outcomes
from orchestrator.evaluation.paper.table import document, figure, numbers, paper_rows, table
from orchestrator.evaluation.strategies.contenders import KNOWN
from orchestrator.evaluation.strategies.functions import Function

TRUTH = Function("100+3*a**0.5*b+2*b**1.5")
RUNS = bench(TRUTH, SERIES["text"][:2], 5.0, 10, np.random.default_rng(0))
FULL = RUNS.full_cost(5)


def steps(label: str, most: float = FULL / 2, parameters: int = 2) -> Course:
    truth = Function("+".join(["100", *(f"3*{name}" for name in "abcd"[:parameters])]))
    runs = bench(truth, SERIES["text"][:parameters], 5.0, 10, np.random.default_rng(0))
    return course(
        runs if parameters > 2 else RUNS,
        KNOWN[label],
        most=most,
        batch_size=1,
        maximum_repetitions=10,
        seed=(0,),
        modeler=None,
    )


@pytest.mark.parametrize(("parameters", "points"), [(2, 9), (3, 13), (4, 17)])
def test_starting_sets_have_9_13_and_17_points(parameters: int, points: int) -> None:
    found = steps("gpr", 0.0, parameters).steps
    assert len({step.point for step in found}) == points
    assert {step.repetitions for step in found} == {2} and {step.round for step in found} == {1}


def test_cpf_measures_the_cheapest_new_point_four_times() -> None:
    found = steps("cpf").steps
    later = [step for step in found if step.round > 1]
    assert {step.repetitions for step in found} == {4} and len(later) == len({step.point for step in later})
    costs = [RUNS.cost(step.point, 1) for step in later]
    assert costs == sorted(costs)


def test_a_smaller_budget_holds_the_beginning_and_ends_at_the_first_point_that_does_not_fit() -> None:
    every = steps("gpr")
    for share in (0.1, 0.2, 0.4):
        within = every.within(FULL * share)
        assert within == every.steps[: len(within)]
        assert within[-1].spent <= FULL * share < every.steps[len(within)].spent
    assert every.within(every.steps[8].spent / 2) == ()  # the starting set does not fit


def test_patience_ends_when_the_model_fits_no_closer() -> None:
    modeler = registry.load("model", "extra-p")()
    every = steps("cpf").steps
    found = [until_no_gain(RUNS, every, modeler, patience) for patience in (1, 2, 100)]
    assert len(found[0]) < len(found[1]) < len(every) and found[2] == every
    fits = [
        modeler(RUNS.measured(measured([s for s in found[1] if s.round <= k])))[0].smape
        for k in range(found[1][-1].round - 2, found[1][-1].round + 1)
    ]
    assert fits[0] <= fits[1] <= fits[2]


def test_published_noise_adds_up_and_is_the_same_for_all_functions() -> None:
    factors = compounding(10.0, (200, 4))
    assert np.array_equal(factors, compounding(10.0, (200, 4)))
    ratios = factors[:, 1:] / factors[:, :-1]
    assert np.all(np.abs(ratios - 1) <= 0.05)
    assert np.std(factors[:, 3]) > 1.7 * np.std(factors[:, 0])
    draws = random.Random(10)
    sign = -1 if draws.randint(1, 2) == 1 else 1
    assert factors[0, 0] == pytest.approx(1 + sign * draws.uniform(0, 5) / 100)
    first, second = (bench(Function(text), SERIES["published"][:2], 10.0, 4, None) for text in ("a", "2*a*b"))
    shares = [
        [time / function(point) for time in times]
        for runs, function in ((first, Function("a")), (second, Function("2*a*b")))
        for point, times in runs.seconds.items()
    ]
    assert shares[:25] == [pytest.approx(row) for row in shares[25:]]


def test_drawn_functions_are_sums_and_products_whose_terms_count_everywhere() -> None:
    rng = np.random.default_rng(1)
    drawn = [draw(SERIES["cases"][:3], rng) for _ in range(40)]
    assert {len(function.terms()) for function in drawn} == {1, 3}
    for function in drawn:
        assert all(set(factors) == {"a", "b", "c"} for factors in function.terms() if len(factors) > 1)


def small(**changes: object) -> Protocol:
    chosen = {"parameters": (2,), "noise": (0.0, 5.0), "functions": 2, "budgets": (2.0, 60.0), "seed": 3}
    return Protocol(**{**chosen, **changes})  # type: ignore[arg-type]


def test_a_row_per_cell_strategy_and_budget(tmp_path: Path) -> None:
    (tmp_path / "m2.json").write_text(json.dumps({"functions": ["9+0.5*a**1.5*b**0.5", "5000*a"]}))
    protocol = small(functions_file=tmp_path, modelers=("extra-p", "nearest"), strategies=("full", "cpf"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry.TABLES["model"], "nearest", "tests.models.nearest:modeler")
        results = paper_rows(paper_outcomes(protocol, workers=1), 5.0)

    assert list(results) == [Cell(2, n, name) for n in (0.0, 5.0) for name in ("extra-p", "nearest")]
    found = document(results)
    assert len(found) == 4 * 3 and {row["functions"] for row in found} == {2}
    exact = results[Cell(2, 0.0, "extra-p")]
    assert [(row["strategy"], row["budget_percent"]) for row in exact] == [
        ("full", 100.0),
        ("cpf", 2.0),
        ("cpf", 60.0),
    ]
    assert [row["accurate_percent"] for row in exact] == [100.0, 0.0, 100.0]
    assert [row["feasible_percent"] for row in exact] == [100.0, 0.0, 100.0]

    lines = table(results, 5.0).splitlines()
    assert sum("published" in line for line in lines) == 2  # of ±5 %: full and cpf
    assert "0.0 (0)" in table(results, 5.0) and "published" not in table(results, 10.0)
    assert len({len(line) for line in lines}) == 1
    figure(results, tmp_path / "plots" / "paper.png", 5.0)
    assert (tmp_path / "plots" / "paper.png").read_bytes().startswith(b"\x89PNG")


def test_the_seed_decides_and_strategies_that_look_at_models_get_them() -> None:
    def evaluate(seed: int) -> object:
        return paper_outcomes(
            small(noise=(5.0,), functions=1, budgets=(20.0,), strategies=("bayesian",), seed=seed), workers=1
        )

    assert evaluate(1) == evaluate(1) != evaluate(2)


def test_fewer_functions_have_more_parameters() -> None:
    assert [Protocol(functions=100).number(m) for m in (2, 3, 4)] == [100, 50, 20]
    assert Protocol(functions=1).number(4) == 1


def test_every_number_of_parameters_may_have_its_own_settings() -> None:
    protocol = Protocol(functions={2: 7, 4: 9}, batch_size={3: 2})
    assert [protocol.number(m) for m in (2, 3, 4)] == [7, 50, 9]
    assert [protocol.batch(m) for m in (2, 3, 4)] == [1, 2, 50]
    assert [Protocol(batch_size=6).batch(m) for m in (2, 3, 4)] == [6, 6, 6]


def test_each_number_of_parameters_has_as_many_functions_as_it_was_given() -> None:
    protocol = small(parameters=(2, 3), noise=(0.0,), functions={2: 2, 3: 1}, strategies=("full",))
    results = paper_rows(paper_outcomes(protocol, workers=1), 5.0)
    assert [row["functions"] for found in results.values() for row in found] == [2, 1]
    assert numbers(results) == "2 (m = 2), 1 (m = 3)"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"parameters": (1,)}, "parameters is 1: the paper's evaluation has 2, 3 or 4"),
        ({"series": ("mine",)}, "unknown value series 'mine'"),
        ({"functions": {4: 3}}, "functions has a value for 4 parameters, which are not evaluated"),
        ({"batch_size": {2: 3, 3: 9}}, "batch_size has a value for 3 parameters"),
        ({"strategies": ("oracle",)}, "the oracle has no place"),
        ({"strategies": ("gpx",)}, "unknown strategy 'gpx'"),
    ],
)
def test_what_the_protocol_does_not_have_is_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(CampaignError, match=words):
        small(**changes)
