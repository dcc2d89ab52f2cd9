from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from orchestrator.errors import CampaignError, ExpressionError
from orchestrator.evaluation.strategies.contenders import REPLAYED
from orchestrator.evaluation.strategies.replay import replay_bench, replay_outcomes
from orchestrator.evaluation.strategies.rows import rows
from orchestrator.evaluation.strategies.rules import Rules
from orchestrator.readers.load import load
from orchestrator.types import Measurement, Measurements, Point
from tests.requirements import measurement_data

RANKS, SIZES = (8, 16, 32, 64, 128, 256), (10, 20, 30, 40, 50)
BEYOND = {"p": 256, "s": 50}


def data(repetitions: int = 3, root: bool = False) -> Measurements:
    """Two call paths that matter and one that does not, ±2 % noise."""
    rng = np.random.default_rng(2)
    points = [Point.of(p=p, s=s) for p, s in product(RANKS, SIZES)]
    functions: dict[str, Callable[[float, float], float]] = {
        "solve": lambda p, s: 2.0 + 0.01 * s**2,
        "exchange": lambda p, s: 1.0 + 0.05 * p**0.5 * s,
        "setup": lambda p, s: 1e-4 * p,
    }
    series = {
        path: {
            point: tuple(
                function(point.number("p"), point.number("s")) * float(rng.uniform(0.98, 1.02))
                for _ in range(repetitions)
            )
            for point in points
        }
        for path, function in functions.items()
    }
    if root:
        series["main"] = {
            point: tuple(1.5 * sum(runs) for runs in zip(*(s[point] for s in series.values()), strict=True))
            for point in points
        }
    items = tuple(Measurement(path, "time", values) for path, values in series.items())
    return Measurements(("p", "s"), (*items, Measurement("solve", "visits", {points[0]: (1.0,)})))


def test_the_held_out_point_is_the_truth_and_never_offered() -> None:
    measurements = data()
    bench = replay_bench(measurements, "p", BEYOND)
    beyond = Point.of(BEYOND)

    assert bench.evaluation_point == beyond
    assert beyond not in bench.space
    assert len(bench.space.points) == 29
    assert set(bench.truth) == {"solve", "exchange"}  # setup takes less than 1 % there
    assert bench.truth["solve"] == pytest.approx(float(np.mean(measurements.items[0].values[beyond])))


def test_inside_offers_only_points_below_the_held_out_one() -> None:
    bench = replay_bench(data(), "p", BEYOND, inside=True)

    assert len(bench.space.points) == 20
    assert max(point.number("p") for point in bench.space) == 128
    assert [p.values for p in bench.space.parameters] == [RANKS[:-1], SIZES[:-1]]


def test_a_run_takes_the_time_of_the_root_or_of_all_call_paths() -> None:
    point = Point.of(p=8, s=10)
    flat, rooted = replay_bench(data(), "2 * p", BEYOND), replay_bench(data(root=True), "2 * p", BEYOND)

    expected = [sum(item.values[point][k] for item in data().items[:3]) for k in range(3)]
    assert flat.seconds[point] == pytest.approx(expected)
    assert rooted.seconds[point] == pytest.approx([1.5 * seconds for seconds in expected])
    assert flat.cost(point, 2) == pytest.approx(16 * expected[1])


@pytest.mark.slow
@pytest.mark.parametrize("together", [False, True])
def test_every_strategy_models_both_call_paths_within_its_budget(together: bool) -> None:
    outcomes = replay_outcomes(
        replay_bench(data(), "p", BEYOND),
        Rules(strategies=REPLAYED, budgets=(40.0,), batch_size=4),
        together=together,
        workers=1,
    )
    results = rows(outcomes, tolerance=10.0)

    assert {row["functions"] for row in results} == {2}
    assert all(row["median_cost_percent"] <= row["budget_percent"] * (1 + 1e-6) for row in results)
    full = results[0]
    assert full["strategy"] == "full"
    assert full["median_cost_percent"] == pytest.approx(100.0)  # all three runs of every point
    assert full["accurate_percent"] == 100.0
    assert sum(row["accurate_percent"] for row in results) > 50 * len(results)


@pytest.mark.slow
def test_call_paths_measured_together_share_their_runs_and_alone_they_do_not() -> None:
    def outcomes(together: bool) -> list[tuple[int, float]]:
        found = replay_outcomes(
            replay_bench(data(), "p", BEYOND),
            Rules(strategies=("gpr",), budgets=(30.0,), batch_size=2),
            together=together,
            workers=1,
        )
        return [(outcome.runs, outcome.cost_percent) for outcome in found]

    first, second = outcomes(together=True)
    assert first == second
    first, second = outcomes(together=False)
    assert first != second


def test_no_more_repetitions_are_used_than_were_measured_or_allowed() -> None:
    def runs(repetitions: int | None) -> int:
        (outcome,) = replay_outcomes(
            replay_bench(data(), "p", BEYOND),
            Rules(strategies=("full",)),
            repetitions=repetitions,
            together=True,
            workers=1,
        )[:1]
        return outcome.runs

    assert runs(None) == runs(9) == 3 * 29
    assert runs(2) == 2 * 29


def test_mistakes_name_what_was_measured() -> None:
    with pytest.raises(CampaignError, match=r"holdout p=7, s=50 is not among the measured points.*p: 8, 16"):
        replay_bench(data(), "p", {"p": 7, "s": 50})
    with pytest.raises(CampaignError, match="nothing to measure remains"):
        replay_bench(data(), "p", {"p": 8, "s": 10}, inside=True)
    with pytest.raises(ExpressionError, match=r"^--processes: .*unknown name 'ranks'"):
        replay_bench(data(), "ranks", BEYOND)
    with pytest.raises(ExpressionError, match=r"^--processes: .*cannot be evaluated at p=8"):
        replay_bench(data(), "log2(p - 8)", BEYOND)


@pytest.mark.parametrize("processes", ["0", "8 - p", "p / 16"])
def test_a_run_occupies_at_least_one_core(processes: str) -> None:
    with pytest.raises(CampaignError, match=r"^--processes '.*' gives .* at P\(p=8, s=10\): .* one core"):
        replay_bench(data(), processes, BEYOND)


@pytest.mark.slow
def test_the_published_measurements_of_a_simulation_are_replayed() -> None:
    measurements = load([measurement_data() / "relearn" / "relearn_data.txt"])
    bench = replay_bench(measurements, "p", {"p": 512, "n": 9000}, inside=True)

    assert len(bench.space.points) == 16
    assert bench.truth["main()"] == pytest.approx(2536.75)
    assert len(bench.truth) == 5
    rules = Rules(strategies=("cpf",), budgets=(100.0,), batch_size=4)
    outcomes = replay_outcomes(bench, rules, workers=1)
    (row,) = rows(outcomes, tolerance=10.0)
    assert row["feasible_percent"] == 100.0


@pytest.mark.parametrize("held", [1, 2, 3])
def test_every_category_can_be_held_out_also_of_numbers(held: int) -> None:
    rng = np.random.default_rng(5)
    truth: dict[int, Callable[[int], float]] = {
        1: lambda n: 1e-3 * n,
        2: lambda n: 5e-5 * n**2,
        3: lambda n: 0.02,
    }
    values = {
        Point.of(k=k, n=n): tuple(float(time(n) * rng.uniform(0.99, 1.01)) for _ in range(3))
        for k, time in truth.items()
        for n in SIZES
    }
    known = Measurements(("k", "n"), (Measurement("main", "time", values),), frozenset({"k"}))
    (outcome,) = replay_outcomes(
        replay_bench(known, "1", {"k": held, "n": 50}),
        Rules(strategies=("full",), budgets=(100.0,)),
        workers=1,
    )
    assert abs(outcome.error_percent) < 5
