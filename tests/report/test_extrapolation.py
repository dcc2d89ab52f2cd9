"""Evaluation points far beyond the measured values are announced."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.report import extrapolation
from orchestrator.types import Measurements, Point
from tests.cli.running import SIMULATED, run, write_campaign


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1024, "the evaluation point has p=1024, 4 times the largest value 256: "),
        (512, None),
        (513, "p=513, 2 times the largest value 256"),
        (16, None),
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
