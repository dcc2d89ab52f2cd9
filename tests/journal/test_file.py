from __future__ import annotations

import io
import zlib
from pathlib import Path

import pytest

from orchestrator.errors import JournalError
from orchestrator.journal import events, file
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.types import Attempt, FailureClass, Point, Run
from tests.journal.attempts import attempt_finished
from tests.journal.written import SOME, write


def test_damage_in_the_middle_is_reported_with_line_and_remedy_and_nothing_changes(tmp_path: Path) -> None:
    content = write(tmp_path, SOME)
    path = tmp_path / FILE_NAME
    damaged = content.replace(b"reason 1", b"reason X")
    path.write_bytes(damaged)
    with pytest.raises(JournalError, match=r"journal.jsonl, line 2: its checksum .* head -n 1"):
        write(tmp_path, SOME)
    assert path.read_bytes() == damaged


def test_a_missing_line_is_noticed(tmp_path: Path) -> None:
    lines = write(tmp_path, SOME).splitlines(keepends=True)
    (tmp_path / FILE_NAME).write_bytes(b"".join(lines[:1] + lines[2:]))
    with pytest.raises(JournalError, match="line 2: its sequence number is 3"):
        list(read(tmp_path / FILE_NAME))


def test_a_journal_of_a_newer_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "SCHEMA", 2)
    write(tmp_path, SOME)
    monkeypatch.undo()
    with pytest.raises(JournalError, match="schema 2, this version reads up to 1; a newer version"):
        list(read(tmp_path / FILE_NAME))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b'"event":"run_given_up"', b'"event":"run_handed_over"', "an event 'run_handed_over'"),
        (b'"failure":"timeout"', b'"failure":"boredom"', "'boredom' is not a valid FailureClass"),
    ],
)
def test_what_a_newer_version_added_asks_for_an_update_not_for_a_repair(
    tmp_path: Path, old: bytes, new: bytes, words: str
) -> None:
    run = Run(Point.of(p=1))
    some: list[events.Event] = [
        events.RunGivenUp(run, "why"),
        attempt_finished(Attempt(run), failure=FailureClass.TIMEOUT),
    ]
    lines = write(tmp_path, some).splitlines()
    content = b""
    for line in lines:
        body = line[: -len(b',"checksum":"01234567"}')].replace(old, new)
        content += body + b',"checksum":"%08x"}\n' % zlib.crc32(body)
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(JournalError) as caught:
        list(read(tmp_path / FILE_NAME))
    assert words in str(caught.value) and "update measurement-orchestrator" in str(caught.value)
    assert "head -n" not in str(caught.value)


def test_an_unreadable_journal_is_an_error(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(JournalError, match="cannot read the journal"):
        list(read(tmp_path / FILE_NAME))


@pytest.mark.parametrize("cut", [1, 20, -2])
def test_a_line_whose_rest_arrives_while_it_is_read_is_no_damage(
    cut: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = write(tmp_path, SOME)
    first, rest = content.splitlines(keepends=True)[0], content.splitlines(keepends=True)[1]
    pieces = [first, rest[:cut], rest[cut:]]
    opened = io.BytesIO(b"")
    monkeypatch.setattr(Path, "open", lambda *_: opened)
    monkeypatch.setattr(file, "enumerate", lambda lines, start: enumerate(pieces, start), raising=False)
    assert [entry.event for entry in read(tmp_path / FILE_NAME)] == [SOME[0]]
