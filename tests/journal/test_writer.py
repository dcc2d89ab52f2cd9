from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.errors import JournalError, JournalWriteError
from orchestrator.journal import events, writer
from orchestrator.journal.codec import Entry, encode
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.journal.writer import Journal
from tests.journal.written import SOME, write


def test_every_truncation_loses_only_the_torn_line(tmp_path: Path) -> None:
    content = write(tmp_path, SOME[:2], SOME[2:])
    path = tmp_path / FILE_NAME
    for length in range(len(content) + 1):
        path.write_bytes(content[:length])
        complete = content[:length].count(b"\n")
        with Journal(tmp_path) as opened:
            assert [entry.event for entry in opened.entries()] == SOME[:complete]
            opened.append([SOME[3]], 2.0)
        assert [entry.event for entry in read(path)] == [*SOME[:complete], SOME[3]]


def test_a_torn_tail_is_kept_beside_the_journal(tmp_path: Path) -> None:
    content = write(tmp_path, SOME)
    (tmp_path / FILE_NAME).write_bytes(content + b'{"schema":1,"sequ')
    with Journal(tmp_path) as opened:
        assert len(list(opened.entries())) == len(SOME)
    assert (tmp_path / f"{FILE_NAME}.torn-{len(content)}").read_bytes() == b'{"schema":1,"sequ'


def test_a_second_controller_is_refused_and_told_who_the_first_is(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from orchestrator.journal.writer import Journal\n"
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


def test_where_nothing_was_begun_a_full_disk_leaves_nothing_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(writer, "write_atomically", full)
    with (
        pytest.raises(JournalWriteError, match=r"free some space, then repeat the command$"),
        Journal(tmp_path),
    ):
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
    assert [entry.event for entry in read(tmp_path / FILE_NAME)] == [SOME[0], SOME[2]]


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
from orchestrator.journal.writer import Journal
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
    content = (tmp_path / FILE_NAME).read_bytes()
    assert content.endswith(b"\n")
    assert [entry.event for entry in read(tmp_path / FILE_NAME)] == [events.ControllerStopped("kept")]


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
        file.write(encode(Entry(2, 2.0, SOME[1])))


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
