"""A journal is followed: what is added is read once, and nothing before it again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import JournalError
from orchestrator.journal import events, file, snapshot
from orchestrator.journal.codec import Entry, decode, encode
from orchestrator.journal.events import AttemptStarted
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.journal.replay import replay
from orchestrator.journal.snapshot import Followed
from orchestrator.journal.state import RunStatus, State
from orchestrator.journal.writer import Journal
from orchestrator.report.controller import JOURNALED, Journaled
from orchestrator.types import Attempt, Point, Run
from tests.control.serving.running import GOLDEN, LINES, begin, go_on


def follow(directory: Path) -> Followed[Journaled]:
    return Followed(directory, JOURNALED)


def state(followed: Followed[Journaled]) -> State:
    return followed.value.state


def refitted(followed: Followed[Journaled]) -> int:
    return followed.value.controllers.refitted


def test_the_state_is_that_of_a_whole_reading_wherever_lines_and_parts_of_lines_were_added(
    tmp_path: Path,
) -> None:
    path = tmp_path / FILE_NAME
    path.touch()
    followed = follow(tmp_path)
    content = GOLDEN.read_bytes()
    for end in range(0, len(content), 3001):
        with path.open("ab") as file:
            file.write(content[path.stat().st_size : end])
        followed.refresh()
        assert state(followed) == replay(read(path))
    with path.open("ab") as file:
        file.write(content[path.stat().st_size :])
    assert followed.refresh()
    assert state(followed) == replay(read(GOLDEN))
    assert state(followed).stopped is not None
    assert followed.position.offset == len(content)
    assert not followed.refresh()


def test_no_line_is_decoded_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []

    def noted(line: bytes) -> Entry:
        decoded.append(line)
        return decode(line)

    monkeypatch.setattr(file, "decode", noted)
    folder = begin(tmp_path / "c", 50)
    followed = follow(folder)
    for end in range(50, len(LINES), 7):
        followed.refresh()
        followed.refresh()
        go_on(folder, end, end + 7)
    followed.refresh()
    assert decoded == (folder / FILE_NAME).read_bytes().splitlines(keepends=True)


def test_entries_that_may_change_models_are_told_from_others(tmp_path: Path) -> None:
    folder = begin(tmp_path / "c", 95)
    followed = follow(folder)
    followed.refresh()
    assert refitted(followed) == 0
    go_on(folder, 95, 96)
    followed.refresh()
    assert refitted(followed) == followed.position.entries, "a round was completed"
    go_on(folder, 96, 110)
    followed.refresh()
    assert 0 < refitted(followed) < followed.position.entries
    runs = [run for run, item in state(followed).runs.items() if item.status is RunStatus.MEASURED][:1]
    with Journal(folder) as journal:
        list(journal.entries())
        for event in (events.MeasurementsDiscarded, events.MeasurementsRestored):
            journal.append([event(tuple(runs), "hot")], 1.0)
            followed.refresh()
            assert refitted(followed) == followed.position.entries


def test_a_journal_that_was_replaced_is_read_from_its_start(tmp_path: Path) -> None:
    folder = begin(tmp_path / "c", 100)
    followed = follow(folder)
    followed.refresh()
    (folder / FILE_NAME).write_bytes(b"".join(LINES[:30]))
    assert followed.refresh()
    assert state(followed) == replay(read(folder / FILE_NAME))
    (folder / "other").write_bytes(b"".join(LINES[:120]))
    (folder / "other").replace(folder / FILE_NAME)
    assert followed.refresh()
    assert state(followed) == replay(read(folder / FILE_NAME))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda lines: [*lines[:10], b"{}\n", *lines[10:]], "line 11: its checksum does not match"),
        (lambda lines: [*lines[:10], *lines[11:]], "line 11: its sequence number is 12"),
    ],
)
def test_damage_is_named_and_read_again_only_after_a_change(
    tmp_path: Path, change: Any, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = begin(tmp_path / "c", 5)
    (folder / FILE_NAME).write_bytes(b"".join(change(LINES)))
    followed = follow(folder)
    with pytest.raises(JournalError, match=reason):
        followed.refresh()
    with monkeypatch.context() as patched:
        patched.setattr(file, "decode", lambda line: pytest.fail("read again"))
        with pytest.raises(JournalError, match=reason):
            followed.refresh()
    (folder / FILE_NAME).write_bytes(GOLDEN.read_bytes())
    assert followed.refresh()
    assert state(followed).stopped is not None


def test_a_journal_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="No such file"):
        follow(tmp_path).refresh()


def test_an_event_that_cannot_follow_is_damage_in_its_line(tmp_path: Path) -> None:
    folder = begin(tmp_path / "c", 20)
    entries = [decode(line) for line in LINES]
    begun = next(entry.event for entry in entries if isinstance(entry.event, AttemptStarted))
    unknown = Attempt(Run(Point.of({"p": 99, "n": 1})))
    impossible = Entry(21, entries[19].time, replace(begun, attempt=unknown))
    with (folder / FILE_NAME).open("ab") as journal:
        journal.write(encode(impossible))
    followed = follow(folder)
    for _ in range(2):
        with pytest.raises(JournalError, match=r"line 21: .*p=99"):
            followed.refresh()
    assert state(followed) == State()


def test_who_only_looks_may_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "WORTH", 10)
    folder = begin(tmp_path / "c", 50)
    Followed(folder, JOURNALED, leave=False).refresh()
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]
    follow(folder).refresh()
    assert snapshot.path_of(folder, JOURNALED).exists()
