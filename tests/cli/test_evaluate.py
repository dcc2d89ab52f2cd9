from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli.main import main

KEYS = {
    "strategy",
    "budget_percent",
    "functions",
    "accurate_percent",
    "feasible_percent",
    "median_error_percent",
    "median_cost_percent",
    "median_runs",
    "interval_coverage_percent",
}
SYNTHETIC = ["evaluate", "synthetic", "--functions", "3", "--workers", "1", "--seed", "5", "--json"]


def rows(capsys: pytest.CaptureFixture[str], *argv: str) -> list[dict[str, object]]:
    assert main(list(argv)) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"rows"} and all(set(row) == KEYS for row in document["rows"])
    found: list[dict[str, object]] = document["rows"]
    return found


def measured(path: Path) -> Path:
    """Write t = 1 + 0.01 p n with ±1 % over two repetitions, on a grid with one more step for P+."""
    lines = [
        json.dumps(
            {
                "params": {"p": p, "n": n},
                "callpath": "main",
                "metric": "time",
                "value": [(1 + 0.01 * p * n) * (1 + noise) for noise in (-0.01, 0.01)],
            }
        )
        for p in (2, 4, 8, 16, 32, 64)
        for n in (10, 20, 30, 40, 50, 60)
    ]
    path.write_text("\n".join(lines))
    return path


def test_the_same_seed_gives_the_same_rows_whatever_the_number_of_workers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    chosen = ["--strategy", "cpf", "--strategy", "oracle", "--budget", "10", "--budget", "50"]
    first = rows(capsys, *SYNTHETIC, *chosen)
    assert [(row["strategy"], row["budget_percent"]) for row in first] == [
        ("cpf", 10.0),
        ("cpf", 50.0),
        ("oracle", 10.0),
        ("oracle", 50.0),
    ]
    assert first == rows(capsys, *[{"1": "2"}.get(word, word) for word in SYNTHETIC], *chosen)


def test_a_starting_set_over_budget_is_reported_apart_and_counts_as_wrong(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (row,) = rows(capsys, *SYNTHETIC, "--strategy", "cpf", "--budget", "0.01")
    assert row["feasible_percent"] == row["accurate_percent"] == 0
    assert row["median_error_percent"] is None  # no model, no number


def test_measured_data_are_replayed_and_drawn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = rows(
        capsys,
        *("evaluate", "replay", str(measured(tmp_path / "data.jsonl")), "--processes", "p"),
        *("--holdout", "p=64,n=60", "--inside", "--strategy", "cpf-2", "--strategy", "full"),
        *("--budget", "40", "--workers", "1", "--figures", str(tmp_path / "figures"), "--json"),
    )
    assert [row["accurate_percent"] for row in found] == [100.0, 100.0]
    assert [row["functions"] for row in found] == [1, 1]
    for figure in (tmp_path / "figures").iterdir():
        assert figure.read_bytes().startswith(b"\x89PNG")
    assert len(list((tmp_path / "figures").iterdir())) == 2


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["synthetic", "--strategy", "cpff"], "unknown strategy 'cpff'"),
        (["synthetic", "--parameters", "9"], "parameters is 9"),
        (["replay", "FILE", "--processes", "p", "--holdout", "p=7,n=60"], "not among the measured points"),
        (["replay", "FILE", "--processes", "q", "--holdout", "p=64,n=60"], "unknown name 'q'"),
    ],
)
def test_wrong_usage_is_refused(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    data = str(measured(tmp_path / "data.jsonl"))
    assert main(["evaluate", *[data if word == "FILE" else word for word in argv]]) == 2
    assert words in capsys.readouterr().err
