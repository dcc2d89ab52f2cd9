"""Long fits say how far they are, on a terminal and nowhere else."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from orchestrator.api.progress import Display, fitting
from orchestrator.campaign import loader
from orchestrator.cli import modeling
from orchestrator.cli.modeling import shown_progress
from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.state import State
from orchestrator.models.progress import tracked
from orchestrator.types import Point, Run
from tests.cli.running import SIMULATED, write_campaign


@pytest.fixture(params=[True, False], ids=["terminal", "pipe"])
def is_terminal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    if request.param:
        monkeypatch.setenv("FORCE_COLOR", "1")
    return bool(request.param)


def test_commands_show_a_bar(is_terminal: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress():
        assert list(tracked("abc", "comparing")) == ["a", "b", "c"]
    captured = capsys.readouterr()
    assert ("comparing" in captured.err) is is_terminal and not captured.out


@pytest.mark.parametrize("silent", [0.0, 10.0])
def test_without_a_terminal_one_line_says_what_takes_long(
    silent: float, is_terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modeling, "_SILENT", silent)
    with shown_progress():
        for _ in tracked("abc", "comparing families of models"):
            time.sleep(0.1)
        for _ in tracked("a", "comparing families of models"):
            time.sleep(0.1)
    line = "comparing families of models for 3 call paths, which can take minutes; --modeler formulas takes"
    told = capsys.readouterr().err
    assert told.count(line) == told.count("--modeler") == (not is_terminal and silent == 0)


def test_campaigns_show_it_in_their_line(
    is_terminal: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    campaign = loader.load(write_campaign(tmp_path, SIMULATED, None))
    with Display(campaign):
        list(tracked("ab", "comparing"))
    assert ("comparing: 2 of 2" in capsys.readouterr().err) is is_terminal


def test_nobody_has_to_listen() -> None:
    assert list(tracked([1, 2], "fits")) == [1, 2]


def test_a_narrow_line_leaves_parts_out_and_cuts_none() -> None:
    parts = {
        "round": "round 3",
        "cost": "0.1234 of 50 core-hours",
        "measured": "112 measured",
        "in flight": "12 in flight",
        "waiting": "120 waiting",
        "elapsed": "1 min 12 s",
    }
    assert fitting(parts, 120) == parts
    assert list(fitting(parts, 80)) == ["round", "cost", "measured", "in flight", "waiting"]
    assert list(fitting(parts, 65)) == ["round", "cost", "measured", "in flight"]
    assert list(fitting(parts, 50)) == ["round", "cost", "measured"]
    assert list(fitting(parts, 40)) == ["round", "measured"]


@pytest.mark.parametrize("columns", [60, 120])
def test_the_line_is_of_the_round_that_was_proposed(
    columns: int, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    campaign = loader.load(write_campaign(tmp_path, SIMULATED, None))
    begun = State(campaign=campaign.raw)
    proposed = events.RoundProposed(1, (Run(Point.of(p=1, s=10), "time", 1),), ("because",))
    with Display(campaign) as display:
        display.update(Entry(1, 0.0, events.ControllerStarted(host="h", pid=1, version="1")), begun)
        display.update(Entry(2, 0.0, proposed), begun._replace(round=1))
    text = capsys.readouterr().err
    last = next(line for line in reversed(re.split(r"[\r\n]", text)) if "round 1 · " in line)
    assert " · 0 measured · 0 in flight" in last and "…" not in last and "round 0" not in text
    assert ("━" in last) == (columns == 120)
