from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli.main import main
from tests.cli.running import run

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


@pytest.mark.slow
def test_there_is_a_row_for_every_strategy_and_budget(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["--strategy", "cpf", "--strategy", "oracle", "--budget", "10", "--budget", "20"]
    found = [(row["strategy"], row["budget_percent"]) for row in rows(capsys, *SYNTHETIC, *chosen)]
    assert found == [("cpf", 10.0), ("cpf", 20.0), ("oracle", 10.0), ("oracle", 20.0)]


def test_a_starting_set_over_budget_is_reported_apart_and_counts_as_wrong(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (row,) = rows(capsys, *SYNTHETIC, "--strategy", "cpf", "--budget", "0.01")
    assert row["feasible_percent"] == row["accurate_percent"] == 0
    assert row["median_error_percent"] is None  # no model, no number
    assert (
        main([word for word in SYNTHETIC if word != "--json"] + ["--strategy", "cpf", "--budget", "0.01"])
        == 0
    )
    shown = capsys.readouterr()
    assert shown.out.split("\n")[1].split() == ["cpf", "0.01", "%", "0.0", "%", "0.0", "%", *4 * "-", "3"]
    assert shown.err.endswith("a budget of 0.01 %, so there are no models: give a larger --budget\n")


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
        (["synthetic", "--noise", "1", "--noise", "2"], "--noise is given 2 times: give it once"),
        (["synthetic", "--patience", "3"], "--patience is part of the paper's protocol: add --paper"),
        (["synthetic", "--paper", "--parameters", "5"], "parameters is 5: the paper's evaluation has"),
        (["synthetic", "--functions", "2=40"], "--functions 2=40: a value for each number of parameters is"),
        (["synthetic", "--batch-size", "2=4,3=9"], "--batch-size 2=4,3=9: a value for each number"),
        (
            ["synthetic", "--paper", "--parameters", "2", "--functions", "4=8"],
            "functions has a value for 4 parameters, which are not evaluated: leave it out",
        ),
        (["synthetic", "--paper", "--outliers", "2"], "--outliers has no place in --paper"),
        (["synthetic", "--paper", "--functions-file", "none.json"], "none.json: No such file"),
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


def test_the_paper_protocol_has_several_levels_in_one_command(tmp_path: Path) -> None:
    (tmp_path / "m2.json").write_text(json.dumps({"functions": ["9+0.5*a**1.5*b**0.5"]}))
    argv = ["synthetic", "--paper", "--functions-file", str(tmp_path), "--parameters", "2", "--noise", "0"]
    argv += ["--noise", "1", "--budget", "50", "--strategy", "cpf", "--workers", "1", "--series", "published"]
    found = run("evaluate", *argv, "--figures", tmp_path / "figures", "--json")
    rows = json.loads(found.out)["rows"]
    assert [(row["noise"], row["modeler"], row["accurate_percent"]) for row in rows] == [
        (0, "extra-p", 100),
        (1, "extra-p", 100),
    ]
    assert (tmp_path / "figures" / "paper-seed0.png").exists()
    assert "| 2 | ±1 %  | published | cpf " in run("evaluate", *argv).out


PERCENT = ("-5", "nan", "inf", "much")
COUNT = ("0", "-3", "1.5", "many")
EACH = "a whole number from 1 for each number of parameters, such as 2=40,3=20,4=10"


@pytest.mark.parametrize(
    ("kind", "option", "values", "allowed"),
    [
        ("synthetic", "--functions", COUNT, "a whole number from 1"),
        ("synthetic", "--functions", ("2=0", "2=", "=3", "2=4,", "2=4,2=5", "two=4"), EACH),
        ("synthetic", "--batch-size", ("4=1.5", "4=-1"), EACH),
        ("synthetic", "--noise", ("100", *PERCENT), "a percentage from 0 to below 100"),
        ("synthetic", "--outliers", ("500", *PERCENT), "a percentage from 0 to 100"),
        ("synthetic", "--budget", ("0", *PERCENT), "a percentage greater than 0"),
        ("synthetic", "--tolerance", PERCENT, "a percentage from 0"),
        ("synthetic", "--batch-size", COUNT, "a whole number from 1"),
        ("synthetic", "--workers", COUNT, "a whole number from 1"),
        ("synthetic", "--seed", ("-1", "0.5"), "a whole number from 0"),
        ("replay", "--repetitions", COUNT, "a whole number from 1"),
        ("replay", "--budget", ("0", *PERCENT), "a percentage greater than 0"),
        ("replay", "--seed", ("-1",), "a whole number from 0"),
        ("noise", "--functions", COUNT, "a whole number from 1"),
        ("noise", "--injections", COUNT, "a whole number from 1"),
        ("noise", "--natural", ("100", *PERCENT), "a percentage from 0 to below 100"),
        ("noise", "--level", ("1001", *PERCENT), "a percentage from 0 to 1000"),
        ("noise", "--workers", COUNT, "a whole number from 1"),
        ("noise", "--seed", ("-1",), "a whole number from 0"),
    ],
)
def test_an_impossible_number_is_refused_with_what_is_allowed(
    kind: str, option: str, values: tuple[str, ...], allowed: str
) -> None:
    needed = {"replay": ["file.csv", "--processes", "p", "--holdout", "p=2"]}.get(kind, [])
    for value in values:
        result = run("evaluate", kind, *needed, option, value)
        assert result.code == 2
        assert f"argument {option}: {value!r} is not {allowed}\n" in result.err


def test_the_least_numbers_are_accepted() -> None:
    least = ["--functions", "1", "--noise", "0", "--outliers", "0", "--tolerance", "0", "--batch-size", "1"]
    chosen = ["--strategy", "cpf-2", "--seed", "0", "--workers", "1", "--budget", "0.5"]
    assert run("evaluate", "synthetic", *least, *chosen).code == 0


@pytest.mark.parametrize(
    ("content", "strategy", "message"),
    [
        ("a*b\nb +\n", "cpf", "functions.txt, line 2: expression 'b +': invalid syntax"),
        ("a*b\nc*2\n", "cpf", "functions.txt, line 2: expression 'c*2': unknown name 'c'"),
        ("a*0\n", "cpf", "functions.txt, line 1: expression 'a*0' gives 0 at P(a=4, b=10)"),
        (
            "a*b\nexp(a)\n",
            "oracle",
            "functions.txt, line 2: expression 'exp(a)': 'exp(a)' is not part of",
        ),
        (None, "cpf", "error: functions.txt: No such file or directory\n"),
    ],
)
def test_functions_that_cannot_be_used(content: str | None, strategy: str, message: str) -> None:
    if content is not None:
        Path("functions.txt").write_text(content)
    result = run("evaluate", "synthetic", "--functions-file", "functions.txt", "--strategy", strategy)
    assert result.code == 2
    assert message in result.err


@pytest.mark.parametrize("processes", ["0", "p - 2"])
def test_a_replayed_run_occupies_at_least_one_core(processes: str, tmp_path: Path) -> None:
    data = measured(tmp_path / "data.jsonl")
    result = run("evaluate", "replay", data, "--processes", processes, "--holdout", "p=64,n=60")
    assert result.code == 2
    assert result.err.startswith(f"error: --processes {processes!r} gives 0 at P(p=2, n=10): ")
