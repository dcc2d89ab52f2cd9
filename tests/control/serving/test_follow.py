"""A journal is followed: what is added is read once, and nothing before it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.control.serving import follow
from orchestrator.control.serving.follow import FollowedJournal
from orchestrator.errors import JournalError
from orchestrator.journal import file
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.journal.state import replay
from tests.control.serving.running import GOLDEN, LINES, begin, go_on


def test_the_state_is_that_of_a_whole_reading_wherever_lines_and_parts_of_lines_were_added(
    tmp_path: Path,
) -> None:
    path = tmp_path / FILE_NAME
    path.touch()
    followed = FollowedJournal(tmp_path)
    content = GOLDEN.read_bytes()
    for end in range(0, len(content), 3001):
        with path.open("ab") as file:
            file.write(content[path.stat().st_size : end])
        followed.advance()
        assert followed.state == replay(read(path))
    with path.open("ab") as file:
        file.write(content[path.stat().st_size :])
    assert followed.advance()
    assert followed.state == replay(read(GOLDEN))
    assert followed.state.stopped is not None
    assert followed.offset == len(content)
    assert not followed.advance()


def test_no_line_is_decoded_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []

    def decode(line: bytes) -> Any:
        decoded.append(line)
        return original(line)

    original = file.decode
    monkeypatch.setattr(follow, "decode", decode)
    folder = begin(tmp_path / "c", 50)
    followed = FollowedJournal(folder)
    for end in range(50, len(LINES), 7):
        followed.advance()
        followed.advance()
        go_on(folder, end, end + 7)
    followed.advance()
    assert decoded == (folder / FILE_NAME).read_bytes().splitlines(keepends=True)


def test_milestones_are_what_changes_models(tmp_path: Path) -> None:
    folder = begin(tmp_path / "c", 95)
    followed = FollowedJournal(folder)
    followed.advance()
    assert followed.milestone == 0
    go_on(folder, 95, 96)
    followed.advance()
    assert followed.milestone == followed.offset, "a round was completed"
    go_on(folder, 96, 110)
    followed.advance()
    assert 0 < followed.milestone < followed.offset


def test_a_journal_that_was_replaced_is_read_from_its_start(tmp_path: Path) -> None:
    folder = begin(tmp_path / "c", 100)
    followed = FollowedJournal(folder)
    followed.advance()
    (folder / FILE_NAME).write_bytes(b"".join(LINES[:30]))
    assert followed.advance()
    assert followed.state == replay(read(folder / FILE_NAME))
    (folder / "other").write_bytes(b"".join(LINES[:120]))
    (folder / "other").replace(folder / FILE_NAME)
    assert followed.advance()
    assert followed.state == replay(read(folder / FILE_NAME))


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
    followed = FollowedJournal(folder)
    with pytest.raises(JournalError, match=reason):
        followed.advance()
    with monkeypatch.context() as patched:
        patched.setattr(follow, "decode", lambda line: pytest.fail("read again"))
        with pytest.raises(JournalError, match=reason):
            followed.advance()
    (folder / FILE_NAME).write_bytes(GOLDEN.read_bytes())
    assert followed.advance()
    assert followed.state.stopped is not None


def test_a_journal_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="No such file"):
        FollowedJournal(tmp_path).advance()
