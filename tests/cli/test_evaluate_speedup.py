from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.cli.running import run

COMMAND = ("evaluate", "speedup", "--workers", "1")
FEW = ("--contender", "aggregate", "--contender", "oliveira")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Write two programs, n**2 (1 - f + f/p) seconds, on up to 4 nodes of up to 8 processes."""
    lines = ["nodes,ppn,n,callpath,time"]
    for (name, f), nodes, ppn, n in product((("a", 0.99), ("b", 0.9)), (1, 2, 4), (1, 2, 4, 8), (10, 20, 30)):
        lines.append(f"{nodes},{ppn},{n},{name},{n**2 * (1 - f + f / (nodes * ppn)):.6g}")
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_simulated_runs(tmp_path: Path) -> None:
    found = run(
        *(
            *COMMAND,
            "--machine",
            "GPU",
            "--program",
            "MiniFE",
            "--levels",
            "1",
            "--scaling",
            "strong",
            "--json",
        ),
        *(*FEW, "--contender", "noise", "--figures", tmp_path),
    )
    assert found.code == 0, found.err
    rows = {row["contender"]: row for row in found.document["rows"]}
    assert list(rows) == ["aggregate", "oliveira", "noise"]
    assert all(row["failure"] is None and row["program"] == "MiniFE" for row in rows.values())
    assert rows["noise"]["relative_rmse"] < 0.1 < rows["oliveira"]["relative_rmse"] < 0.6
    assert rows["aggregate"]["relative_rmse"] > 1
    assert (tmp_path / "errors-gpu-strong.png").read_bytes().startswith(b"\x89PNG")


def test_measured_runs_are_tested_above_the_median(table: Path) -> None:
    expressions = ("--processes", "nodes * ppn", "--nodes", "nodes", "--size", "n**2")
    found = run(*COMMAND, table, *expressions, *FEW)
    assert found.code == 0, found.err
    header, *lines = found.out.splitlines()[1:]
    assert header.split() == ["model", "a", "b"]
    assert found.out.startswith(
        "RMSE of speedups (relative): runs, strong scaling, several processes per node"
    )
    errors = np.array([[float(cell.strip("()")) for cell in line.split()[-3::2]] for line in lines])
    assert np.all(errors[0] < 0.01) and np.all(np.isfinite(errors))  # the times follow Amdahl's law


def test_sensitivity_is_drawn(table: Path, tmp_path: Path) -> None:
    cutoffs = ("--cutoff", "4", "--cutoff", "8", "--size-share", "0.5", "--size-share", "1")
    expressions = ("--processes", "nodes * ppn", "--size", "n**2")
    found = run(
        *(*COMMAND, table, *expressions, *cutoffs, "--contender", "aggregate", "--json"),
        *("--figures", tmp_path / "figures"),
    )
    assert found.code == 0, found.err
    rows = [row for row in found.document["rows"] if row["program"] == "a"]
    assert [(row["cutoff"], round(row["size_share"], 2)) for row in rows] == [
        (4, 0.44),
        (8, 0.44),
        (6, 0.5),
        (6, 1),
    ]
    names = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert names == ["cutoff-runs-strong.png", "size-runs-strong.png"]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("TABLE",), "--processes p"),
        (("TABLE", "--processes", "ranks"), "unknown name 'ranks'"),
        (("TABLE", "--processes", "nodes", "--machine", "CPU"), "--machine: it chooses among simulated runs"),
        (("--processes", "p"), "--processes: give INPUT files with it"),
        (("--contender", "forrest"), "unknown contender 'forrest'"),
        (("TABLE", "--processes", "nodes - 1"), "positive numbers are needed"),
        (("TABLE", "--processes", "nodes", "--cutoff", "64"), "to test above 64 processes"),
        (("missing.csv", "--processes", "p"), "missing.csv"),
    ],
)
def test_mistakes(table: Path, arguments: tuple[str, ...], what: str) -> None:
    found = run(*COMMAND, *(str(table) if word == "TABLE" else word for word in arguments))
    assert found.code == 2 or (found.code == 1 and "missing" in what)
    assert what in found.err
