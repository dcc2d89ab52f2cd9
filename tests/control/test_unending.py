"""A budget of days of this machine is announced before it is spent: its unit may be a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.control import cautions
from tests.cli.running import LOCAL, run, write_campaign

NOTE = "the budget of 600 core-hours keeps 2 slots of this machine busy for 12.5 days"


def of(stop: str, slots: int) -> str:
    text = LOCAL.replace("slots: 1, max_pending: 1", f"slots: {slots}").replace("./program.sh", "'true'")
    return text.replace("budget: 1 core-hour", stop)


@pytest.mark.parametrize(
    ("stop", "slots", "told"),
    [
        ("budget: 600", 2, NOTE),
        ("budget: 36000 core-minutes", 1, "36000 core-minutes keeps 1 slot of this machine busy for 25 days"),
        ("budget: 600, wall_time: 1 h", 2, ""),
        ("budget: 600 core-seconds", 2, ""),
        ("budget: 23 core-hours", 1, ""),
    ],
)
def test_a_budget_of_days_of_this_machine_is_told(stop: str, slots: int, told: str) -> None:
    notes = cautions.unending(loader.loads(of(stop, slots)))
    assert [told in note for note in notes] == [True] * bool(told)


def test_plan_tells_it(tmp_path: Path) -> None:
    file = write_campaign(tmp_path, LOCAL)
    shown = run("plan", file, "--no-rehearsal", "--set", "stop.budget=600")
    assert shown.code == 0, shown.err
    assert "keeps 1 slot of this machine busy for 25 days" in " ".join(shown.out.split())
