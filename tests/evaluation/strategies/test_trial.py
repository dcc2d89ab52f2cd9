from __future__ import annotations

import math

import numpy as np
import pytest

from orchestrator.evaluation.strategies.bench import Bench
from orchestrator.evaluation.strategies.contenders import KNOWN, contenders
from orchestrator.evaluation.strategies.functions import Function
from orchestrator.evaluation.strategies.rows import rows, table
from orchestrator.evaluation.strategies.synthetic import synthetic_bench
from orchestrator.evaluation.strategies.trial import Conditions, Outcome, run_trial
from orchestrator.models.base import Model
from orchestrator.models.pmnf.known_form import known_form
from orchestrator.models.pmnf.modeler import modeler
from orchestrator.models.symbolic import terms_of
from orchestrator.types import Measurements, Point

TRUTH = Function("3+0.5*a**1.5*b**0.5")


def bench(noise: float = 5.0, seed: int = 1) -> Bench:
    return synthetic_bench(TRUTH, 2, noise, np.random.default_rng(seed))


def test_a_synthetic_bench_has_ten_noisy_runs_per_point_and_the_exact_truth() -> None:
    known = bench()

    assert len(known.space.points) == 25
    assert known.evaluation_point == Point.of(a=128, b=60)
    assert known.truth == {"main": TRUTH(known.evaluation_point)}
    for point in known.space:
        assert len(known.times["main"][point]) == 10
        assert len(set(known.times["main"][point])) == 10
        assert known.times["main"][point] == pytest.approx([TRUTH(point)] * 10, rel=0.0501)


def test_a_run_costs_its_time_on_as_many_cores_as_there_are_processes() -> None:
    known = bench(noise=0.0)
    point = Point.of(a=16, b=30)

    assert known.cost(point, 3) == pytest.approx(16 * TRUTH(point))
    assert known.full_cost(5) == pytest.approx(5 * sum(p.number("a") * TRUTH(p) for p in known.space))


@pytest.mark.slow
@pytest.mark.parametrize("label", sorted(KNOWN))
def test_every_contender_stays_within_its_budget_and_finds_an_easy_truth(label: str) -> None:
    known = bench(noise=1.0)
    (contender,) = contenders([label])
    told = known_form(TRUTH.terms()) if contender.oracle else modeler()
    budget = 100.0 if contender.whole else 15.0
    (outcome,) = run_trial(
        known, contender, told, Conditions(budget_percent=budget, full_cost=known.full_cost(5), batch_size=2)
    )

    assert outcome.feasible
    assert outcome.cost_percent <= budget * (1 + 1e-6)
    assert outcome.runs >= outcome.points >= 6
    assert abs(outcome.error_percent) < 5.0


@pytest.mark.slow
def test_a_trial_is_reproducible_and_depends_on_the_seed_of_a_random_strategy() -> None:
    known = bench()

    def points(seed: int) -> Outcome:
        (outcome,) = run_trial(
            known,
            KNOWN["random"],
            modeler(),
            Conditions(budget_percent=20, full_cost=known.full_cost(5), seed=(seed,)),
        )
        return outcome

    assert points(1) == points(1)
    assert points(1) != points(2)


def test_a_starting_set_over_budget_is_infeasible_not_wrong() -> None:
    known = bench()
    (outcome,) = run_trial(
        known, KNOWN["cpf"], modeler(), Conditions(budget_percent=1.0, full_cost=known.full_cost(5))
    )

    assert not outcome.feasible
    assert math.isnan(outcome.error_percent)
    assert (outcome.runs, outcome.cost_percent) == (0, 0.0)


def test_full_measures_every_point_five_times() -> None:
    known = bench()
    (outcome,) = run_trial(
        known, KNOWN["full"], modeler(), Conditions(budget_percent=100, full_cost=known.full_cost(5))
    )

    assert (outcome.points, outcome.runs) == (25, 125)
    assert outcome.cost_percent == pytest.approx(100.0)


def test_strategies_are_not_shown_the_true_cost_of_what_they_have_not_measured() -> None:
    known = bench(noise=0.0)
    seen: list[tuple[Model, ...]] = []

    def useless(measurements: Measurements) -> tuple[Model, ...]:
        models = known_form([{}])(measurements)  # a constant, far below the true growth
        seen.append(models)
        return models

    (outcome,) = run_trial(
        known, KNOWN["cpf-2"], useless, Conditions(budget_percent=8, full_cost=known.full_cost(5))
    )
    assert seen
    assert outcome.cost_percent <= 8.0  # expected to fit, but skipped when it really costs more
    assert outcome.error_percent < -50.0


def test_the_oracle_recovers_exact_coefficients_and_refuses_negative_ones() -> None:
    known = bench(noise=0.0)
    measured = known.measured(dict.fromkeys(list(known.space)[:9], 2))
    (exact,) = known_form(TRUTH.terms())(measured)
    (bounded,) = known_form([*TRUTH.terms(), {"a": (3.0, 0.0)}])(measured)

    assert exact.predict([known.evaluation_point]).value[0] == pytest.approx(TRUTH(known.evaluation_point))
    assert all(float(str(term["coefficient"])) >= 0 for term in terms_of(bounded))


def test_rows_count_infeasible_functions_as_not_accurate() -> None:
    def outcome(error: float, feasible: bool = True, covered: bool = True) -> Outcome:
        return Outcome(
            strategy="cpf",
            budget_percent=10.0,
            subject="f",
            feasible=feasible,
            error_percent=error,
            covered=covered,
            cost_percent=8.0 if feasible else 0.0,
            runs=30,
            points=12,
        )

    results = [
        outcome(1.0),
        outcome(-7.0, covered=False),
        outcome(4.0),
        outcome(float("nan"), feasible=False),
    ]
    (row,) = rows(results, tolerance=5.0)

    assert row == {
        "strategy": "cpf",
        "budget_percent": 10.0,
        "functions": 4,
        "accurate_percent": 50.0,
        "feasible_percent": 75.0,
        "median_error_percent": 4.0,
        "median_cost_percent": 8.0,
        "median_runs": 30.0,
        "interval_coverage_percent": pytest.approx(100 * 2 / 3),
    }
    assert rows(results, tolerance=10.0)[0]["accurate_percent"] == 75.0
    line = ["cpf", "10", "%", "50.0", "%", "75.0", "%", "4.00", "%", "8.00", "%", "30", "66.7", "%", "4"]
    assert table([row]).splitlines()[1].split() == line
