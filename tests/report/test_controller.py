"""Which controller is running in a campaign directory, seen without disturbing any."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.writer import HOLDER_NAME, LOCK_NAME, Journal
from orchestrator.report import controller

HERE = socket.gethostname()
T = 1_700_000_000.0
MOMENT = "2023-11-14T22:13:20.000000+00:00"


def observed(*what: events.Event) -> controller.ControllerHistory:
    history = controller.ControllerHistory()
    list(history.observe(Entry(number, T, event) for number, event in enumerate(what, start=1)))
    return history


def started(host: str = HERE, pid: int | None = None) -> events.ControllerStarted:
    return events.ControllerStarted(host=host, pid=os.getpid() if pid is None else pid, version="1.0")


def test_the_one_who_holds_the_lock_is_at_work(tmp_path: Path) -> None:
    with Journal(tmp_path):
        assert (tmp_path / HOLDER_NAME).exists()
        found = controller.look(tmp_path, observed(started()), T + 9, False)
    assert found == {"state": "at work", "host": HERE, "pid": os.getpid(), "since": MOMENT}


def test_one_that_reads_its_journal_first_is_named_although_another_one_wrote_last(tmp_path: Path) -> None:
    with Journal(tmp_path):
        found = controller.look(tmp_path, observed(started(pid=1)), T, False)
    assert found == {"state": "at work", "host": HERE, "pid": os.getpid(), "since": None}


def test_one_that_has_yet_to_write_its_name_is_at_work(tmp_path: Path) -> None:
    with Journal(tmp_path):
        (tmp_path / HOLDER_NAME).write_text("")
        found = controller.look(tmp_path, observed(started("elsewhere", 1)), T, False)
    assert found == {"state": "at work", "host": None, "pid": None, "since": None}


@pytest.mark.parametrize(
    "end", [events.ControllerStopped("interrupted"), events.CampaignStopped("budget", "")]
)
def test_one_that_has_stopped_is_not_at_work(tmp_path: Path, end: events.Event) -> None:
    with Journal(tmp_path):
        pass
    found = controller.look(tmp_path, observed(started(), end), T, False)
    assert found == {"state": "nobody", "host": None, "pid": None, "since": MOMENT}


def test_since_a_campaign_is_over_nobody_is_missed(tmp_path: Path) -> None:
    end = events.CampaignStopped("budget", "")
    assert controller.look(tmp_path, observed(started(), end), T, True)["since"] is None


def test_one_that_left_its_lock_without_a_word_was_killed_even_if_its_pid_lives_again(tmp_path: Path) -> None:
    with Journal(tmp_path):
        pass
    found = controller.look(tmp_path, observed(started()), T, False)
    assert found == {"state": "nobody", "host": HERE, "pid": os.getpid(), "since": MOMENT}


def test_of_another_host_a_free_lock_proves_nothing(tmp_path: Path) -> None:
    found = controller.look(tmp_path, observed(started("elsewhere", 7)), T, False)
    assert found == {"state": "unknown", "host": "elsewhere", "pid": 7, "since": MOMENT}


@pytest.mark.parametrize("lives", [True, False])
def test_where_locks_cannot_be_seen_the_process_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lives: bool
) -> None:
    def missing(descriptor: int, operation: int) -> None:
        raise OSError(38, "Function not implemented")

    ended = subprocess.Popen(["true"])
    ended.wait()
    (tmp_path / LOCK_NAME).touch()
    monkeypatch.setattr(fcntl, "flock", missing)
    history = observed(started(pid=os.getpid() if lives else ended.pid))
    assert controller.look(tmp_path, history, T, False)["state"] == ("unknown" if lives else "nobody")


def test_looking_leaves_no_trace_and_no_lock(tmp_path: Path) -> None:
    assert controller.look(tmp_path, observed(started()), T, False)["state"] == "nobody"
    assert list(tmp_path.iterdir()) == []
    (tmp_path / LOCK_NAME).touch(0o444)
    before = (tmp_path / LOCK_NAME).stat()
    with (tmp_path / LOCK_NAME).open() as other:
        fcntl.flock(other, fcntl.LOCK_SH)  # somebody else looks at this moment
        assert controller.look(tmp_path, observed(started()), T, False)["state"] == "nobody"
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert (tmp_path / LOCK_NAME).stat().st_mtime_ns == before.st_mtime_ns


def test_a_controller_starts_while_others_look_all_the_time(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from orchestrator.report import controller\n"
        "while True: controller.look(Path(sys.argv[1]), controller.ControllerHistory(), 0.0, False)"
    )
    lookers = [subprocess.Popen([sys.executable, "-c", code, tmp_path]) for _ in range(2)]
    try:
        for _ in range(20):
            with Journal(tmp_path):
                holder = json.loads((tmp_path / HOLDER_NAME).read_text())
                assert holder["pid"] == os.getpid()
    finally:
        for looker in lookers:
            looker.kill()
            looker.wait()
