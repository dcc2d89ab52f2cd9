"""The live view on terminals of several widths."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from orchestrator.report.watch_screen import screen

FLIGHT = {
    "run": "n=128000,r=24/time-2",
    "attempt": 1,
    "node": "node-0123",
    "state": "running",
    "since": 60.0,
    "started": None,
    "limit": 3600.0,
    "job": "1234567",
}
FOUND: dict[str, Any] = {
    "campaign": "generic",
    "id": "0123abcd",
    "virtual": False,
    "state": "running",
    "controller": {"state": "at work"},
    "round": 12,
    "started": 0.0,
    "now": 660.0,
    "cost": {"spent": 1.0, "reserved": 0.5, "left": 8.5, "budget": 10.0, "shown_in": "core-hours"},
    "runs": {"measured": 12, "in flight": 1},
    "points": 6,
    "stop_reason": None,
    "paused": None,
    "outages": [],
    "pace": None,
    "nearest_rule": "budget: 15 % spent or reserved",
    "uncertainty_percent": None,
    "uncertainty_targets": 0,
    "next_round_seconds": None,
    "flying": 1,
    "waiting": 0,
    "queue": [],
    "in_flight": [FLIGHT],
    "models": [],
    "models_outdated": None,
    "metrics": [],
    "events": [{"time": "1970-01-01T00:11:00+00:00", "kind": "round", "text": "round 12 begins"}],
}


def shown(width: int, **changes: Any) -> list[str]:
    console = Console(width=width, height=30)
    with console.capture() as capture:
        console.print(screen({**FOUND, **changes}, width, 30), height=30)
    return [line.rstrip() for line in capture.get().splitlines()]


@pytest.mark.parametrize(
    ("width", "heads"),
    [
        (120, ["in", "flight", "node", "state", "since", "for", "limit", "job"]),
        (80, ["in", "flight", "node", "state", "since", "for", "limit"]),
        (60, ["in", "flight", "state", "since", "for"]),
    ],
)
def test_columns_without_space_are_left_out_instead_of_cut(width: int, heads: list[str]) -> None:
    lines = shown(width)
    position = next(number for number, line in enumerate(lines) if line.startswith("in flight"))
    assert lines[position].split() == heads
    assert lines[position + 1].startswith("n=128000,r=24/time-2/attempt-1 ")
    assert not any("…" in line for line in lines)


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_how_to_quit_stands_at_the_end_of_the_first_line(width: int) -> None:
    assert shown(width)[0].endswith("q quits")


def test_the_end_of_a_round_may_be_unknown() -> None:
    sentence = "end of this round: not known yet (no run like these was measured); 1 in flight, 0 waiting"
    assert sentence in shown(120)


def test_a_rehearsal_is_named_with_times_since_its_start() -> None:
    lines = shown(120, virtual=True)
    assert "running, rehearsal  round 12" in lines[0]
    assert "0:11:00  round 12 begins" in lines
