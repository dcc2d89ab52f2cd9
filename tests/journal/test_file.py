from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import JournalError, JournalWriteError
from orchestrator.journal import events
from orchestrator.journal import file as journal
from orchestrator.journal.file import Entry, Journal
from orchestrator.types import Attempt, FailureClass, Point, Run
from tests.journal.attempts import attempt_finished

finite = st.floats(allow_nan=False, allow_infinity=False)
values = st.one_of(st.integers(-(10**9), 10**9), finite, st.text(max_size=8))
points = st.dictionaries(st.text(min_size=1, max_size=5), values, min_size=1, max_size=3).map(Point.of)
runs = st.builds(Run, points, st.sampled_from(["time", "effort"]), st.integers(1, 99))
attempts = st.builds(Attempt, runs, st.integers(1, 9))
samples = st.dictionaries(st.text(max_size=6), st.dictionaries(st.text(max_size=9), finite), max_size=2)
any_event = st.one_of(
    st.builds(events.ControllerStarted, host=st.text(), pid=st.integers(1, 2**31), version=st.text()),
    st.builds(
        events.AttemptIntended,
        attempt=attempts,
        name=st.text(),
        cores=st.integers(1, 99),
        limit=finite,
        reserved=finite,
    ),
    st.builds(events.AttemptSubmitted, attempts, st.text()),
    st.builds(
        events.AttemptFinished,
        attempt=attempts,
        elapsed=finite,
        cost=finite,
        samples=samples,
        failure=st.one_of(st.none(), st.sampled_from(FailureClass)),
        reason=st.text(),
    ),
    st.lists(runs, max_size=3).map(lambda r: events.RoundProposed(1, tuple(r), ("why",) * len(r))),
    st.builds(events.RunGivenUp, runs, st.text()),
    st.builds(
        events.RoundCompleted,
        round=st.integers(1, 2**63 - 1),
        smape=st.one_of(st.none(), finite),
        width=finite,
        improved=st.booleans(),
    ),
)


def write(directory: Path, *batches: Sequence[events.Event]) -> bytes:
    with Journal(directory) as opened:
        for batch in batches:
            opened.append(batch, 1.5)
    return (directory / journal.FILE_NAME).read_bytes()


SOME = [events.ControllerStopped(f"reason {i}") for i in range(4)]


@given(any_event, st.integers(1, 10**6), finite)
def test_an_entry_reads_back_as_it_was_written(event: events.Event, sequence: int, time: float) -> None:
    entry = Entry(sequence, time, event)
    line = journal.encode(entry)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert journal.decode(line) == entry


@given(st.data())
def test_any_altered_byte_is_noticed(data: st.DataObject) -> None:
    line = bytearray(journal.encode(Entry(1, 0.0, SOME[0])).rstrip(b"\n"))
    position = data.draw(st.integers(0, len(line) - 1))
    line[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ValueError, match=r".+"):
        journal.decode(bytes(line))


def test_every_truncation_loses_only_the_torn_line(tmp_path: Path) -> None:
    content = write(tmp_path, SOME[:2], SOME[2:])
    path = tmp_path / journal.FILE_NAME
    for length in range(len(content) + 1):
        path.write_bytes(content[:length])
        complete = content[:length].count(b"\n")
        with Journal(tmp_path) as opened:
            assert [entry.event for entry in opened.entries()] == SOME[:complete]
            opened.append([SOME[3]], 2.0)
        assert [entry.event for entry in journal.read(path)] == [*SOME[:complete], SOME[3]]


def test_a_torn_tail_is_kept_beside_the_journal(tmp_path: Path) -> None:
    content = write(tmp_path, SOME)
    (tmp_path / journal.FILE_NAME).write_bytes(content + b'{"schema":1,"sequ')
    with Journal(tmp_path) as opened:
        assert len(list(opened.entries())) == len(SOME)
    assert (tmp_path / f"{journal.FILE_NAME}.torn-{len(content)}").read_bytes() == b'{"schema":1,"sequ'


def test_damage_in_the_middle_is_reported_with_line_and_remedy_and_nothing_changes(tmp_path: Path) -> None:
    content = write(tmp_path, SOME)
    path = tmp_path / journal.FILE_NAME
    damaged = content.replace(b"reason 1", b"reason X")
    path.write_bytes(damaged)
    with pytest.raises(JournalError, match=r"journal.jsonl, line 2: its checksum .* head -n 1"):
        write(tmp_path, SOME)
    assert path.read_bytes() == damaged


def test_a_missing_line_is_noticed(tmp_path: Path) -> None:
    lines = write(tmp_path, SOME).splitlines(keepends=True)
    (tmp_path / journal.FILE_NAME).write_bytes(b"".join(lines[:1] + lines[2:]))
    with pytest.raises(JournalError, match="line 2: its sequence number is 3"):
        list(journal.read(tmp_path / journal.FILE_NAME))


def test_a_journal_of_a_newer_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "SCHEMA", 2)
    write(tmp_path, SOME)
    monkeypatch.undo()
    with pytest.raises(JournalError, match="schema 2, this version reads up to 1; a newer version"):
        list(journal.read(tmp_path / journal.FILE_NAME))


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
    (tmp_path / journal.FILE_NAME).write_bytes(content)
    with pytest.raises(JournalError) as caught:
        list(journal.read(tmp_path / journal.FILE_NAME))
    assert words in str(caught.value) and "update measurement-orchestrator" in str(caught.value)
    assert "head -n" not in str(caught.value)


def test_an_unreadable_journal_is_an_error(tmp_path: Path) -> None:
    (tmp_path / journal.FILE_NAME).mkdir()
    with pytest.raises(JournalError, match="cannot read the journal"):
        list(journal.read(tmp_path / journal.FILE_NAME))


def test_a_second_controller_is_refused_and_told_who_the_first_is(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from orchestrator.journal.file import Journal\n"
    code += "with Journal(Path(sys.argv[1])): pass"
    with Journal(tmp_path):
        second = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
        )
    assert second.returncode != 0
    assert "held by another controller" in second.stderr
    assert f"pid {os.getpid()}" in second.stderr and os.uname().nodename in second.stderr
    with Journal(tmp_path):  # and free again afterwards
        pass


def test_a_full_disk_leaves_the_journal_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_write = os.write

    def write_half_then_fail(descriptor: int, content: memoryview) -> int:
        if len(content) > 10:
            return real_write(descriptor, content[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Journal(tmp_path) as opened:
        opened.append(SOME[:1], 1.0)
        before = opened.path.read_bytes()
        monkeypatch.setattr(os, "write", lambda fd, content: write_half_then_fail(fd, content[:15]))
        with pytest.raises(JournalWriteError, match=r"No space left on device.*resume"):
            opened.append(SOME[1:2], 2.0)
        monkeypatch.undo()
        assert opened.path.read_bytes() == before
        opened.append(SOME[2:3], 3.0)
    assert [entry.event for entry in journal.read(tmp_path / journal.FILE_NAME)] == [SOME[0], SOME[2]]


def test_only_a_full_disk_is_told_to_be_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with Journal(tmp_path) as opened:
        monkeypatch.setattr(os, "fsync", broken)
        with pytest.raises(JournalWriteError, match=r"Input/output error\..*: fix that, then resume it"):
            opened.append(SOME[:1], 1.0)


def test_a_refusal_of_the_kernel_leaves_the_journal_as_it_was(tmp_path: Path) -> None:
    """A limit on the file's size refuses the end of a write, as a quota does."""
    code = """
import resource, signal, sys
from pathlib import Path
from orchestrator.journal import events
from orchestrator.errors import JournalWriteError
from orchestrator.journal.file import Journal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with Journal(Path(sys.argv[1])) as opened:
    opened.append([events.ControllerStopped("kept")], 1.0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (opened.path.stat().st_size + 20,) * 2)
    try:
        opened.append([events.ControllerStopped("lost")], 2.0)
    except JournalWriteError as error:
        sys.exit(error.exit_code)
"""
    uncompiled = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # else modules may be cut, too
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False, env=uncompiled)
    assert done.returncode == 3
    content = (tmp_path / journal.FILE_NAME).read_bytes()
    assert content.endswith(b"\n")
    assert [entry.event for entry in journal.read(tmp_path / journal.FILE_NAME)] == [
        events.ControllerStopped("kept")
    ]


@pytest.mark.parametrize("cut", [1, 20, -2])
def test_a_line_whose_rest_arrives_while_it_is_read_is_no_damage(
    cut: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = write(tmp_path, SOME)
    first, rest = content.splitlines(keepends=True)[0], content.splitlines(keepends=True)[1]
    pieces = [first, rest[:cut], rest[cut:]]
    opened = io.BytesIO(b"")
    monkeypatch.setattr(Path, "open", lambda *_: opened)
    monkeypatch.setattr(journal, "enumerate", lambda file, start: enumerate(pieces, start), raising=False)
    assert [entry.event for entry in journal.read(tmp_path / journal.FILE_NAME)] == [SOME[0]]


def _delete(path: Path) -> None:
    path.unlink()


def _move(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


def _replace(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


def _write_too(path: Path) -> None:
    with path.open("ab") as file:
        file.write(journal.encode(Entry(2, 2.0, SOME[1])))


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 3)


@pytest.mark.parametrize("harm", [_delete, _move, _replace, _write_too, _cut])
def test_nothing_is_written_to_a_journal_that_is_no_longer_ones_own(
    harm: Callable[[Path], None], tmp_path: Path
) -> None:
    directory = tmp_path / "campaign"
    directory.mkdir()
    with Journal(directory) as opened:
        opened.append(SOME[:1], 1.0)
        held = os.open(opened.path, os.O_RDONLY)
        harm(opened.path)
        size = os.fstat(held).st_size
        with pytest.raises(JournalWriteError, match=r"has stopped.*resume"):
            opened.append(SOME[1:2], 2.0)
        assert os.fstat(held).st_size == size
        os.close(held)


def test_who_may_not_write_into_the_directory_of_another_user_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("filelock.FileLock.acquire", refuse)
    with pytest.raises(
        JournalError, match=r"cannot lock .*: Permission denied. Only who may write .*resume the"
    ):
        Journal(tmp_path).__enter__()
