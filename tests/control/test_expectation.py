"""A rehearsal before a campaign: it ends with its time, and says how far it came."""

from __future__ import annotations

import multiprocessing
import os
import time
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Any, cast

import pytest

from orchestrator.control import expectation, rehearsal, session
from orchestrator.journal.state import State
from orchestrator.models import compiling
from orchestrator.report.rehearsal_text import expectation as lines
from tests.cli.running import SIMULATED


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    path = tmp_path / "campaign.yaml"
    path.write_text(SIMULATED.replace("patience: 2", "patience: 9"))
    return path


class Received:
    """The end of a pipe that keeps what is sent."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def send(self, message: dict[str, Any]) -> None:
        self.messages.append(message)


def test_what_is_expected_after_every_round(campaign: Path, tmp_path: Path) -> None:
    sent = []
    for name in ("first", "second"):
        received = Received()
        wanted = (campaign, (), rehearsal.Options())
        expectation.rehearse(cast(Connection, received), wanted, tmp_path / name)
        sent.append(received.messages)
    assert sent[0] == sent[1]
    part, whole = sent[0][1], sent[0][-1]
    assert whole["complete"] and whole["final_uncertainty_percent"] is None
    assert not part["complete"] and part["stop_rule"] is None
    assert 0 < part["core_hours"] < whole["core_hours"]
    assert 0 < part["rounds"] < whole["rounds"]
    assert lines({**part, "seconds": 10.0})[0].startswith(f"after 10 s of rehearsal, round {part['round']}: ")
    assert "(mean width of the 90 % intervals) so far" in lines({**part, "seconds": 10.0})[1]
    assert lines({**whole, "seconds": 10.0})[0].startswith("expected by a rehearsal: ")


def test_without_a_complete_round_nothing_is_said(campaign: Path) -> None:
    found = expectation.expect(campaign, seconds=0)
    reason = "no round of it was complete after 0 s; orchestrator simulate rehearses without this limit"
    assert found == {"reason": reason}
    assert lines(found) == [f"nothing is expected of a rehearsal: {reason}"]
    assert lines(None) == []
    assert multiprocessing.active_children() == []


def crash(*_: object) -> None:
    os._exit(7)


def test_compiling_the_modeler_first_is_told_and_gives_more_time(
    campaign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(compiling, "_tell", [])
    receiver, sender = multiprocessing.Pipe(duplex=False)

    def run(*_: object) -> State:
        compiling.begins()
        time.sleep(1)
        return State()

    monkeypatch.setattr(session, "run", run)
    monkeypatch.setattr(expectation, "_expected", lambda *_: {"round": 1})
    wanted = (campaign, (), rehearsal.Options())

    def rehearse() -> None:
        expectation.rehearse(sender, wanted, tmp_path)
        sender.close()  # as the end of a process does

    process = Thread(target=rehearse)
    process.start()
    assert receiver.poll(60)
    compiling.when_compiling(lambda: told.append("compiling"))
    heard = expectation.Heard(time.monotonic() + 0.1)
    heard.listen(receiver)
    process.join()
    assert (heard.latest, told, heard.ended) == ({"round": 1}, ["compiling"], True)


def test_a_crash_is_not_taken_for_too_little_time(campaign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expectation, "rehearse", crash)
    reason = "its process ended with exit code 7; orchestrator simulate shows what is wrong"
    assert expectation.expect(campaign, seconds=120) == {"reason": reason}


def test_a_campaign_that_cannot_be_rehearsed_says_why(tmp_path: Path) -> None:
    (tmp_path / "campaign.yaml").write_text("name: nothing\n")
    assert "application" in expectation.expect(tmp_path / "campaign.yaml", seconds=120)["reason"]


def test_notifications_are_for_campaigns(campaign: Path, tmp_path: Path) -> None:
    program = tmp_path / "notify"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/notified\n")
    program.chmod(0o755)
    campaign.write_text(campaign.read_text() + f"notify: {{command: [{program}]}}\n")
    assert expectation.expect(campaign, seconds=120)["complete"]
    assert not (tmp_path / "notified").exists()
