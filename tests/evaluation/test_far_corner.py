"""The benchmark on held-out far corners, on cases of its own whose scores are known."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
# Factors by which other methods are off, the same in every case but the last.
FACTORS = {"extrap": 1.5, "ridge2": 1.1, "power": 0.5, "v1": 1.2}
MARKS = "<!-- far corner: pmnf -->\nold\n<!-- end of far corner -->\n"


def truth(k: int, p: float, n: float) -> float:
    return (k + 1) * (2 + p * n)


def case(k: int, worse: float = 1.0) -> dict[str, Any]:
    train = [[[p, n], [truth(k, p, n)] * 2] for p, n in product((2, 4, 8, 16, 32), (10, 20, 30, 40))]
    value = truth(k, 64, 50)
    return {
        "id": f"main->f{k}",
        "group": "all",
        "parameters": ["p", "n"],
        "train": train,
        "test": [[[64, 50], [0.99 * value, 1.01 * value]]],
        "baselines": {name: [worse * factor * value] for name, factor in FACTORS.items()},
    }


def benchmark(*arguments: str | Path) -> str:
    command = [sys.executable, ROOT / "benchmarks" / "far_corner.py", "--workers", "1", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Two sets, of which one is scored: its scores, and the page with the tables."""
    folder = tmp_path_factory.mktemp("cases")
    sets = folder / "far-corner"
    sets.mkdir()
    cases = [*(case(k) for k in range(9)), case(9, worse=2.0)]
    (sets / "products_inner.json").write_text(json.dumps(cases))
    (sets / "other.json").write_text("[]")
    page, scores = folder / "page.md", folder / "scores.json"
    page.write_text(f"before\n{MARKS}after\n{MARKS.replace('pmnf', 'auto')}")
    options = ("--only", "products", "--modeler", "pmnf", "--write", page, "--json", scores)
    benchmark("--cases", sets, *options)
    return page, json.loads(scores.read_text())["pmnf"]


def test_scores_are_those_of_known_predictions(found: tuple[Path, dict[str, Any]]) -> None:
    scores = found[1]["products_inner"]
    assert list(found[1]) == ["products_inner"] and scores["n"] == 10
    assert scores["tool"]["mlogq"] < 0.01 and scores["tool"]["within10"] == 100
    for name, factor in FACTORS.items():
        expected = 0.9 * abs(math.log(factor)) + 0.1 * abs(math.log(2 * factor))
        assert scores["baselines"][name]["mlogq"] == pytest.approx(expected)
    assert scores["baselines"]["ridge2"]["within10"] == 0  # 1.1 is off by a little more than 10 %
    assert scores["baselines"]["ridge2"]["within20"] == 90
    assert scores["mean"]["95.0"]["width"] >= scores["mean"]["50.0"]["width"] >= 1
    assert scores["measured"]["90.0"]["width"] >= scores["mean"]["90.0"]["width"]


def test_conformal_intervals_are_as_wide_as_the_other_cases_demand(
    found: tuple[Path, dict[str, Any]],
) -> None:
    scores = found[1]["products_inner"]
    usual = math.log(1.1 * 1.2) / 2  # error of the median of 0.5, 1.1, 1.2 and 1.5
    assert scores["baselines"]["median"]["mlogq"] == pytest.approx(usual + 0.1 * math.log(2))
    # Of nine other cases the largest error counts: that of the odd one in all cases but its own.
    widths = [2 * (usual + math.log(2))] * 9 + [2 * usual]
    assert math.log(scores["conformal"]["width"]) == pytest.approx(sum(widths) / 10)
    assert scores["conformal"]["holds"] == 90


def test_the_block_of_the_modeler_is_rewritten_and_no_other(found: tuple[Path, dict[str, Any]]) -> None:
    text = found[0].read_text()
    assert text.startswith("before\n<!-- far corner: pmnf -->\n") and text.endswith(
        f"<!-- end of far corner -->\nafter\n{MARKS.replace('pmnf', 'auto')}"
    )
    assert "| products_inner | 10 | 100/100 | **0.00" in text
    assert "At or below the best single method in 1 of 1 sets" in text
    assert "p ↗↗↗↗, n ↗↗↗, beyond ↗" in text
    assert max(len(line) for line in text.splitlines() if not line.startswith("|")) <= 100


def test_any_measured_file_can_be_held_out(tmp_path: Path) -> None:
    rows = [f"{p},{n},main,time,{truth(0, p, n)}" for p, n in product((2, 4, 8, 16, 32), (10, 20, 30, 40))]
    file = tmp_path / "measured.csv"
    file.write_text("p,n,callpath,metric,value\n" + "\n".join(rows) + "\n")
    shown = benchmark(file, "--modeler", "pmnf")
    (line,) = (line for line in shown.splitlines() if line.startswith("| ") and "100.00" in line)
    assert "p * n" in line
    assert abs(float(line.split("|")[3])) < 5


def test_lines_leave_out_what_a_campaign_does_not_begin_with(tmp_path: Path) -> None:
    """All other points of the grid are wrong: a model that was fitted to them could not be right."""
    known = {(4, 20), (32, 40)}
    values = {
        (p, n): truth(0, p, n) * (1 if p == 2 or n == 10 or (p, n) in known else 1000)
        for p, n in product((2, 4, 8, 16, 32), (10, 20, 30, 40))
    }
    rows = [f"{p},{n},main,time,{value}" for (p, n), value in values.items()]
    file = tmp_path / "measured.csv"
    file.write_text("p,n,callpath,metric,value\n" + "\n".join(rows) + "\n")
    shown = benchmark("--lines", file, "--modeler", "pmnf")
    (line,) = (line for line in shown.splitlines() if line.startswith("| ") and "p * n" in line)
    assert abs(float(line.split("|")[3])) < 5
