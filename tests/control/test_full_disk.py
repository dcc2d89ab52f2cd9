"""A disk that is full for a while: nothing is begun, nothing fails, and the campaign goes on by itself."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.control import disk, session, settle
from orchestrator.errors import JournalWriteError
from orchestrator.executors.attempt import directory as files
from orchestrator.executors.attempt.directory import DirectoryUnwritable
from orchestrator.executors.base import DISK, Outage
from orchestrator.journal import events
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.journal.state import State
from orchestrator.report import event_text
from orchestrator.storage import free_at
from orchestrator.types import FailureClass
from tests.cli.running import LOCAL, PROGRAM
from tests.control.finishing import finished


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Campaign:
    program = tmp_path / "program.sh"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(disk, "_PAUSE", 0.01)
    monkeypatch.setattr(disk, "_TICK", 0.01)
    return loader.loads(LOCAL, base_directory=tmp_path)


def failing(real: Callable[..., Any], times: int, after: int = 0) -> Callable[..., Any]:
    """Return a function that fails some times for want of space, from some call on."""
    calls = []

    def function(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if after < len(calls) <= after + times:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments, **options)

    return function


def failures(directory: Path) -> list[str]:
    happened = (entry.event for entry in read(directory / FILE_NAME))
    return [item.reason for item in happened if isinstance(item, events.AttemptFinished) and item.failure]


@pytest.mark.parametrize(
    ("where", "name", "after"), [(os, "write", 12), (files, "write_atomically", 4)], ids=["journal", "runs"]
)
def test_the_controller_waits_for_space(
    where: Any, name: str, after: int, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    monkeypatch.setattr(where, name, failing(getattr(where, name), 3, after))
    state = session.run(campaign, Path("c"), session.Hooks(remark=heard.append, patient=True))
    assert state.stopped is not None and not failures(Path("c"))
    [said] = [text for text in heard if "No space left on device" in text]
    assert "MB free at c" in said and "df -h" in said


@pytest.mark.parametrize(
    ("where", "name", "after"), [(os, "write", 12), (files, "write_atomically", 4)], ids=["journal", "runs"]
)
def test_a_user_who_does_not_wait_can_resume(
    where: Any, name: str, after: int, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    hooks = session.Hooks(
        remark=heard.append, interrupted=lambda: any("No space" in text for text in heard), patient=True
    )
    with monkeypatch.context() as patch:
        patch.setattr(where, name, failing(getattr(where, name), 10**9, after))
        with pytest.raises((JournalWriteError, DirectoryUnwritable)) as caught:
            session.run(campaign, Path("c"), hooks)
    assert caught.value.exit_code == 3
    assert session.run(campaign, Path("c")).stopped is not None
    assert not failures(Path("c"))


def test_nothing_is_begun_while_the_disk_is_nearly_full(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []

    def outage(watched: disk.Disk, now: float) -> Outage | None:
        looks.append(now)
        return Outage(now, f"0.2 MB free at {watched.directory}", blocking=True) if len(looks) < 4 else None

    monkeypatch.setattr(disk.Disk, "outage", outage)
    state = session.run(campaign, Path("c"))
    assert state.stopped is not None and not state.outages
    lines = [event_text.describe(entry.event) for entry in read(Path("c") / FILE_NAME)]
    [began] = [n for n, text in enumerate(lines) if "the disk has been full since" in text]
    [ended] = [n for n, text in enumerate(lines) if text.startswith("there is space on the disk again")]
    happened = [entry.event for entry in read(Path("c") / FILE_NAME)]
    [first, *_] = [n for n, event in enumerate(happened) if isinstance(event, events.AttemptIntended)]
    assert "0.2 MB free at c" in lines[began]
    assert began < ended < first


def test_a_full_disk_is_reported_at_once() -> None:
    full = Outage(100.0, "0 MB free", blocking=True)
    assert settle.outages({DISK: full}, State(), 100.0)
    assert not settle.outages({"slurmctld": full}, State(), 100.0)


def test_what_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(blocks: int, free: int, files: int = 0, unused: int = 0) -> os.statvfs_result:
        return os.statvfs_result((4096, 4096, blocks, free, free, files, unused, unused, 0, 255))

    for answer, full in (
        (found(10**6, 10**5), False),
        (found(10**6, 1000), True),  # 4 MB
        (found(1000, 100), False),  # a tenth of a tiny one
        (found(1000, 10), True),
        (found(10**6, 10**5, 10**6, 10), True),  # no inodes
        (found(10**6, 10**5, 10**6, 10**5), False),
    ):
        monkeypatch.setattr(os, "statvfs", lambda path, answer=answer: answer)
        assert (disk.Disk(tmp_path).outage(1.0) is not None) is full, answer
    assert "files free" not in free_at(tmp_path)


@pytest.mark.parametrize("exit_code", [0, 3])
def test_what_was_written_to_a_full_disk_is_no_measurement_and_no_failure_of_the_application(
    exit_code: int, tmp_path: Path
) -> None:
    event = finished(exit_code, tmp_path, full="Disk quota exceeded")
    assert event.failure is FailureClass.INFRASTRUCTURE and not event.samples
    assert event.reason.startswith("Disk quota exceeded") and str(tmp_path) in event.reason


def test_a_quota_is_full_where_nothing_more_can_be_written_which_is_tried_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, tried = [0.0], []
    watched = disk.Disk(tmp_path, lambda: now[0])
    assert watched.outage(1.0) is None
    assert not list(tmp_path.iterdir())

    def write(file: int, data: bytes) -> int:
        tried.append(now[0])
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        outages = []
        for now[0] in range(40):
            outages.append(watched.outage(1.0))
    assert outages[:15] == [None] * 15
    assert outages[15:] == [Outage(1.0, f"Disk quota exceeded at {tmp_path}", blocking=True)] * 25
    assert tried == [15, 30]
    now[0] = 45.0
    assert watched.outage(1.0) is None
    assert not list(tmp_path.iterdir())
