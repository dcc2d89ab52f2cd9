"""``orchestrator evaluate noise`` with measurements: their noise, and models against a stated theory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.report.test_html_sections import read


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two repetitions that are 2 % apart at every point; solve has most of the time."""
    lines = []
    for n in (10, 20, 40, 80, 160, 320):
        for path, factor in (("main", 0.2), ("main->solve", 0.19)):
            values = [factor * n * 0.99, factor * n * 1.01]
            row = {"params": {"n": n}, "callpath": path, "metric": "time"}
            lines += [json.dumps({**row, "value": value}) for value in values]
    file = tmp_path / "runs.jsonl"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_the_noise_of_measurements_is_reported(runs: Path, tmp_path: Path) -> None:
    found = run("evaluate", "noise", runs, "--json", "--figures", tmp_path / "figures").document
    assert found["rows"] == []
    assert found["noise"]["all"] == {name: pytest.approx(2.0) for name in ("mean", "median", "least", "most")}
    assert [len(kernel["points"]) for kernel in found["noise"]["kernels"]] == [6, 6]
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["violins.png"]
    assert "2.00 %" in run("evaluate", "noise", runs).out


def test_models_are_compared_with_a_theory(runs: Path, tmp_path: Path) -> None:
    words = ["--against-theory", "solve=n", "--modeler", "pmnf", "--level", "0", "--level", "20"]
    chosen = ["--pattern", "uniform", "--injections", "2", "--workers", "1", "--figures", str(tmp_path)]
    found = run("evaluate", "noise", runs, *words, *chosen, "--json").document["rows"]
    models = {(row["noise_percent"], row["repetitions"]): row["models"] for row in found}
    assert models == {(0.0, 1): 2, (0.0, 2): 1, (20.0, 2): 2}
    assert found[0]["deviations"] == {"n": 0.0} and found[0]["error_percent"] < 2.0
    assert {path.name for path in tmp_path.glob("*.png")} == {"violins.png", "noise-2.png", "repetitions.png"}


def test_repetitions_that_were_not_measured_are_refused(runs: Path) -> None:
    done = run("evaluate", "noise", runs, "--against-theory", "solve=n", "--repetitions", "3")
    assert done.code == 2 and "there are at most 2" in done.err
    done = run("evaluate", "noise", runs, "--modeler", "pmnf")
    assert done.code == 2 and "state it by --against-theory CALLPATH=EXPRESSION" in done.err
    done = run("evaluate", "noise", "--against-theory", "solve=n")
    assert done.code == 2 and "name their files" in done.err


def test_an_exploration_shows_the_noise(runs: Path, tmp_path: Path) -> None:
    assert run("explore", runs, "--output", tmp_path / "page.html").code == 0
    page = read(tmp_path / "page.html")
    assert "Noise" in page.text and len(page.sources) == 4
