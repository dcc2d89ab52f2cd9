"""Evaluation points far beyond the measured values are announced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.report import extrapolation
from orchestrator.types import Measurements, Point
from tests.cli.running import SIMULATED, run, write_campaign

SCALED = """
name: rehearsal
application: generic
program: {arguments: ["{s}"], output: [{callpath: main, pattern: 'time (\\S+)'}]}
parameters: {s: [8, 9, 10, 11, 12, 13, 14]}
stop: {budget: 1 core-hours}
executor: {name: simulated, noise: 1, truth: {main: "1e-3 * 2**s"}}
"""


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1024, "the evaluation point has p=1024, 4 times the largest value 256: "),
        (512, None),
        (513, "p=513, 2 times the largest value 256"),
        (16, None),
        (1e300, "p=1e+300, 3.91e+297 times the largest value 256: "),
        (1, "the evaluation point has p=1, 1/4 of the smallest value 4: "),
        ("large", None),
    ],
)
def test_what_is_far_beyond_is_said(value: int | str, words: str | None) -> None:
    found = extrapolation.announcements(Point.of(p=value, n=10), {"p": (4, 16, 256), "n": (10,)})
    assert len(found) == (words is not None)
    assert words is None or words in found[0]


def test_before_anything_is_measured_status_says_nothing() -> None:
    assert extrapolation.of_measured(Point.of(p=9), Measurements(("p",), ())) == []


def test_plan_run_and_status_say_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "250")
    write_campaign(tmp_path, SIMULATED.replace("{p: 216, s: 35}", "{p: 1000, s: 35}"), None)
    said = "the evaluation point has p=1000, 8 times the largest"
    assert f"{said} value 125" in run("plan", "campaign.yaml").out
    assert f"{said} value 125" in run("run", "campaign.yaml").err
    assert f"{said} measured value 125" in run("status", "rehearsal").out


def test_powers_that_look_like_an_exponential_are_named_once_a_parameter() -> None:
    def row(name: str, exponent: float) -> dict[str, Any]:
        return {"terms": [{"factors": [{"parameter": name, "exponent": exponent}]}]}

    def steep(*rows: dict[str, Any]) -> list[str]:
        return extrapolation.steep(rows, {"scale": 4, "n": 5})

    (line,) = steep(row("scale", 8.66), row("scale", 10.85), row("n", 3.0), {})
    assert line.startswith("models grow as scale**10.8") and "let n = 2**scale be the parameter" in line
    assert steep(row("n", 4.0), row("n", -9.0)) == []
    assert steep(row("n", 5.0), *[row("n", 3.0)] * 3) == []  # one noisy call path of four


def test_model_says_that_a_parameter_may_act_exponentially_or_does(tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    table.write_text("s,time\n" + "".join(f"{s},{1e-6 * 2**s}\n" for s in range(8, 15)))
    asked = ["model", str(table), "--parameters", "s", "--predict", "s=17", "--modeler"]
    shown = " ".join(run(*asked, "pmnf").out.split())
    assert "note: models grow as s**" in shown and "give the program log2(n)" in shown
    shown = " ".join(run(*asked, "auto").out.split())
    assert "models grow as s**" not in shown and "this is a model of 2**s" in shown


def test_a_large_power_through_few_values_is_no_exponential(tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"  # what two ranks exchange, and one does not
    table.write_text(
        "p,n,time\n"
        + "".join(f"{p},{n},{seconds * n}\n" for n in range(4, 9) for p, seconds in ((1, 1e-5), (2, 0.1)))
    )
    shown = " ".join(run("model", str(table), "--parameters", "p,n", "--modeler", "curves").out.split())
    assert "which 2 values of p can hardly show: measure further ones" in shown
    assert "exponentially" not in shown


def test_status_says_that_a_parameter_may_act_exponentially(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "250")
    write_campaign(tmp_path, SCALED + "model: curves\n", None)
    run("run", "campaign.yaml")
    assert "note: models grow as s**" in run("status", "rehearsal").out


def test_status_says_that_a_parameter_acts_exponentially(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "250")
    write_campaign(tmp_path, SCALED, None)
    run("run", "campaign.yaml")
    shown = run("status", "rehearsal").out
    assert "(2**s)" in shown and "models grow as s**" not in shown
