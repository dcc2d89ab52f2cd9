from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from orchestrator.errors import CampaignError
from orchestrator.evaluation.strategies.figures import accuracy_figure, usage_figure
from orchestrator.evaluation.strategies.functions import Function
from orchestrator.evaluation.strategies.rows import rows
from orchestrator.evaluation.strategies.rules import Rules
from orchestrator.evaluation.strategies.synthetic import Setting, synthetic_bench, synthetic_outcomes

PNG = b"\x89PNG\r\n"


@pytest.mark.slow
def test_the_same_seed_gives_the_same_rows_whatever_the_number_of_workers() -> None:
    def evaluate(seed: int, workers: int) -> object:
        rules = Rules(strategies=("cpf-2", "random"), budgets=(20.0,), seed=seed)
        return rows(synthetic_outcomes(Setting(functions=2), rules, workers=workers))

    alone = evaluate(3, 1)
    assert alone == evaluate(3, 2)
    assert alone != evaluate(4, 1)


def test_a_row_per_strategy_and_budget_and_the_full_matrix_once() -> None:
    rules = Rules(strategies=("full", "cpf-2", "oracle"), budgets=(30, 60))
    results = rows(synthetic_outcomes(Setting(parameters=1, functions=3), rules, workers=1))

    assert [(row["strategy"], row["budget_percent"]) for row in results] == [
        ("full", 100.0),
        ("cpf-2", 30),
        ("cpf-2", 60),
        ("oracle", 30),
        ("oracle", 60),
    ]
    assert {row["functions"] for row in results} == {3}


def test_functions_have_independent_noise_and_contenders_share_it(tmp_path: Path) -> None:
    path = tmp_path / "same.json"
    path.write_text(json.dumps({"functions": ["3+0.5*a**1.5*b**0.5"] * 2}))
    setting = Setting(functions=2, functions_file=path)
    outcomes = synthetic_outcomes(setting, Rules(strategies=("full", "full")), workers=1)
    errors = [outcome.error_percent for outcome in outcomes]

    assert errors[0] == errors[1]
    assert errors[2] == errors[3]
    assert errors[0] != errors[2]


def test_without_noise_the_full_matrix_finds_the_truth() -> None:
    (row,) = rows(synthetic_outcomes(Setting(noise=0.0, functions=5), Rules(strategies=("full",)), workers=1))

    assert row["accurate_percent"] == 100.0
    assert row["median_error_percent"] < 0.1


def test_unknown_strategies_and_numbers_of_parameters_are_refused() -> None:
    with pytest.raises(CampaignError, match="unknown strategy 'gpx'"):
        Rules(strategies=("gpx",))
    with pytest.raises(CampaignError, match="parameters is 5"):
        Setting(parameters=5)


@pytest.mark.slow
def test_figures_are_drawn_from_rows(tmp_path: Path) -> None:
    setting = Setting(parameters=1, noise=2.0, functions=2)
    outcomes = synthetic_outcomes(setting, Rules(strategies=("full", "cpf-2"), budgets=(50, 90)), workers=1)
    panels = {f"±{tolerance} %": rows(outcomes, tolerance) for tolerance in (5, 10, 15, 20, 25)}
    accuracy_figure(panels, tmp_path / "figures" / "accuracy.png")
    usage_figure({"case": rows(outcomes)}, tmp_path / "figures" / "usage.png")

    for name in ("accuracy", "usage"):
        content = (tmp_path / "figures" / f"{name}.png").read_bytes()
        assert content.startswith(PNG)
        assert len(content) > 10_000


def test_slowed_runs_are_added_to_the_same_noise() -> None:
    function = Function("10+2*a**1*log2(a)**0")
    calm = synthetic_bench(function, 1, 5.0, np.random.default_rng(4))
    rough = synthetic_bench(function, 1, 5.0, np.random.default_rng(4), outliers=20.0)
    ratios = [r / c for p in calm.seconds for r, c in zip(rough.seconds[p], calm.seconds[p], strict=True)]
    assert any(ratio > 1.9 for ratio in ratios) and any(ratio == 1.0 for ratio in ratios)
