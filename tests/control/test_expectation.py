"""A rehearsal before a campaign: it ends with its time, and says how far it came."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestrator.control import expectation, rehearsal
from orchestrator.report.rehearsal_text import expectation as lines
from tests.cli.running import SIMULATED


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    path = tmp_path / "campaign.yaml"
    path.write_text(SIMULATED.replace("patience: 2", "patience: 9"))
    return path


@contextmanager
def after_steps(steps: int) -> Iterator[Callable[[], bool]]:
    """A bound in steps of the loop instead of seconds."""
    left = iter(range(steps))
    yield lambda: next(left, None) is None


def test_a_bound_that_is_reached_is_told(campaign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [expectation.expect(campaign)]
    monkeypatch.setattr(expectation, "_bounded", lambda seconds: after_steps(40))
    found += [expectation.expect(campaign) for _ in range(2)]
    whole, part, again = found
    assert whole["complete"] and whole["final_uncertainty_percent"] is None
    assert not part["complete"] and part["stop_rule"] is None
    assert part == again
    assert 0 < part["core_hours"] < whole["core_hours"]
    assert 0 < part["rounds"] < whole["rounds"]
    assert lines(part)[0].startswith(f"after 10 s of rehearsal, round {part['round']}: ")
    assert "(mean width of the 90 % intervals) so far" in lines(part)[1]
    assert lines(whole)[0].startswith("expected by a rehearsal: ")


def test_without_a_complete_round_nothing_is_said(campaign: Path) -> None:
    found = expectation.expect(campaign, seconds=0)
    reason = "no round of it was complete after 0 s; orchestrator simulate rehearses without this limit"
    assert found == {"reason": reason}
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
    assert lines(found) == [f"nothing is expected of a rehearsal: {reason}"]
    assert lines(None) == []


def test_a_step_is_interrupted(campaign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGALRM)
    forever = threading.Event()
    monkeypatch.setattr(rehearsal, "prepare", lambda *arguments: forever.wait(60))
    assert "reason" in expectation.expect(campaign, seconds=0.01)
    assert signal.getsignal(signal.SIGALRM) is before


def test_in_another_thread_it_ends_between_steps(campaign: Path) -> None:
    found: list[dict[str, Any]] = []
    thread = threading.Thread(target=lambda: found.append(expectation.expect(campaign, seconds=0)))
    thread.start()
    thread.join()
    assert "reason" in found[0]


def test_notifications_are_for_campaigns(campaign: Path, tmp_path: Path) -> None:
    program = tmp_path / "notify"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/notified\n")
    program.chmod(0o755)
    campaign.write_text(campaign.read_text() + f"notify: {{command: [{program}]}}\n")
    assert expectation.expect(campaign)["complete"]
    assert not (tmp_path / "notified").exists()
