from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cli.running import run

HEADER = "m,n,avg,std\n"
FAST = ("--modeler", "pmnf:members=20", "--workers", "1", "--parameters", "m,n", "--response", "avg")


def written(path: Path, count: int = 60, seed: int = 0) -> Path:
    """Write t = 0.01 m n with 2 % noise at random points."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(count):
        m, n = (int(value) for value in rng.integers(16, 4096, 2))
        lines.append(f"{m},{n},{0.01 * m * n * np.exp(0.02 * rng.standard_normal()):.6g},0.1\n")
    path.write_text(HEADER + "".join(lines))
    return path


@pytest.fixture
def train(tmp_path: Path) -> Path:
    return written(tmp_path / "train.csv")


@pytest.fixture
def test_file(tmp_path: Path) -> Path:
    return written(tmp_path / "test.csv", 30, seed=1)


def test_rows_have_errors_sizes_and_times_per_size_and_seed(
    train: Path, test_file: Path, tmp_path: Path
) -> None:
    found = run(
        *("evaluate", "models", "--train", train, "--test", test_file, "--sizes", "12,48", "--seeds", "2"),
        *("--json", "--figures", tmp_path / "figures", *FAST),
    )
    assert found.code == 0, found.err
    rows = found.document["rows"]
    assert [(row["size"], row["seed"]) for row in rows] == [(12, 0), (12, 1), (48, 0), (48, 1)]
    for row in rows:
        assert row["failure"] is None and row["test"] == 30 and row["modeler"] == "pmnf:members=20"
        assert 0 < row["mlogq"] < 0.3 and row["bytes"] > 100 and row["fit_seconds"] > 0
        assert 0.5 < row["coverage"] <= 1 and row["width"] > 1
    assert rows[2]["mlogq"] < 0.04
    assert len(list((tmp_path / "figures").glob("*.png"))) == 3


def test_extrapolation_is_a_condition(train: Path, test_file: Path) -> None:
    found = run(
        *("evaluate", "models", "--train", train, "--test", test_file, "--json", *FAST),
        *("--train-where", "m < 2048", "--test-where", "m >= 2048"),
    )
    assert found.code == 0, found.err
    [row] = found.document["rows"]
    assert 0 < row["size"] < 60 and 0 < row["test"] < 30 and row["mlogq"] < 0.1


def test_a_table_is_printed_and_test_points_are_held_out(train: Path) -> None:
    found = run("evaluate", "models", "--train", train, "--test-share", "0.25", *FAST)
    assert found.code == 0, found.err
    head, line = found.out.splitlines()
    assert head.split()[:3] == ["size", "modeler", "MLogQ"] and line.split()[:2] == ["45", "pmnf:members=20"]


def test_numbers_may_be_names_of_categories(tmp_path: Path) -> None:
    path = tmp_path / "solvers.csv"
    lines = [f"{m},{solver},{m * (1 + 3 * solver)},0" for m in range(10, 60) for solver in (0, 1)]
    path.write_text(HEADER + "\n".join(lines) + "\n")
    found = run("evaluate", "models", "--train", path, "--categorical", "n", "--json", *FAST)
    assert found.code == 0, found.err
    [row] = found.document["rows"]
    assert row["models"] == 2 and row["mlogq"] < 0.01


def test_test_points_are_never_fitted(train: Path, test_file: Path) -> None:
    both = ("--train", train, test_file, "--test", test_file)
    found = run("evaluate", "models", *both, "--json", *FAST)
    assert found.document["notes"] == ["30 points to fit are test points, too, and were left out"]
    assert found.document["rows"][0]["size"] == 60


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (("--response", "avrg"), 2, "avrg"),
        (("--response", "std"), 2, "choose one of avg, std with --response"),
        (("--parameters", "m,k"), 2, "no column for parameter k"),
        (("--categorical", "nn"), 1, "nn cannot be categorical, as the parameters are m, n"),
        (("--sizes", "500"), 2, "a size of 500 is more than the 48 points there are to fit"),
        (("--sizes", "0"), 2, "'0' is not a whole number from 1"),
        (("--test-where", "m < 0"), 2, "none of the 60 points satisfies m < 0; there are m from"),
        (("--where", "q < 0"), 2, "unknown name 'q'"),
        (("--modeler", "pnmf"), 2, "unknown model 'pnmf': did you mean 'pmnf'"),
        (("--time-limit", "soon"), 2, "'soon' is not a duration"),
        (("--partition", "debug"), 2, "--partition and --sbatch are for --executor slurm"),
    ],
)
def test_wrong_input_is_refused_with_the_remedy(
    train: Path, more: tuple[str, ...], code: int, message: str
) -> None:
    found = run("evaluate", "models", "--train", train, *FAST, *more)
    assert found.code == code and message in found.err and not found.out


def test_runs_that_failed_are_named_and_left_out(tmp_path: Path) -> None:
    path = written(tmp_path / "train.csv", 20)
    path.write_text(path.read_text() + "1,2,nan,0\n")
    found = run("evaluate", "models", "--train", path, *FAST)
    assert found.code == 0 and f"{path}:22" in found.err and "left out" in found.err


def test_a_parameter_that_is_no_number_is_refused_with_its_line(tmp_path: Path) -> None:
    path = written(tmp_path / "train.csv", 20)
    path.write_text(path.read_text() + "nan,2,1,0\n")
    found = run("evaluate", "models", "--train", path, *FAST)
    assert found.code == 1 and f"{path}:22: parameter m is" in found.err


def test_a_constant_response_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "same.csv"
    path.write_text(HEADER + "".join(f"{m},{m},1.5,0\n" for m in range(1, 20)))
    found = run("evaluate", "models", "--train", path, *FAST)
    assert found.code == 2 and "avg is 1.5 at all 15 points: there is nothing to model" in found.err
