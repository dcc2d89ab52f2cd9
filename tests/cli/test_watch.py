"""The live view on a pseudo terminal, of a campaign that grows, vanishes and comes back."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import pytest

from orchestrator.journal.file import FILE_NAME
from tests.cli.running import SIMULATED, run, start, write_campaign

_PATIENCE = 60.0


class Screen:
    """A terminal in which a command runs."""

    def __init__(self, process: Popen[str], terminal: int):
        self.process, self._terminal = process, terminal
        self.text = ""

    def shows(self, text: str) -> bool:
        """Whether a text appears after all that was seen before."""
        end = time.monotonic() + _PATIENCE
        while text not in self.text and time.monotonic() < end:
            if select.select([self._terminal], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self._terminal, 65536).decode(errors="replace")
                except OSError:  # the command has ended
                    break
        found = text in self.text
        self.text = self.text.partition(text)[2]
        return found

    def press(self, key: bytes) -> None:
        os.write(self._terminal, key)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # shells let commands in the background ignore it


@contextmanager
def watching(directory: Path, *options: str) -> Iterator[Screen]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    command = ("watch", directory, "--interval", "0.1", *options)
    process = start(
        *map(str, command),
        environment={"TERM": "xterm-256color"},
        start_new_session=True,
        preexec_fn=_interruptible,
        **streams,
    )
    os.close(theirs)
    try:
        yield Screen(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("watch")
    run("run", write_campaign(folder, SIMULATED, None), "--directory", folder / "done")
    return folder / "done"


def test_the_view_follows_the_journal_and_ends_with_q(done: Path, tmp_path: Path) -> None:
    lines = (done / FILE_NAME).read_bytes().splitlines(keepends=True)
    journal = tmp_path / FILE_NAME
    flying = next(n for n, line in enumerate(lines, 1) if b'"attempt_started"' in line)
    journal.write_bytes(b"".join(lines[:flying]))
    with watching(tmp_path) as screen:
        assert screen.shows("rehearsal (") and screen.shows("round 1")
        assert screen.shows("end of this round: ") and screen.shows("in flight") and screen.shows("attempt-1")
        assert screen.shows("what happened") and screen.shows("round 1: ")
        with journal.open("ab") as file:
            file.write(b"".join(lines[flying:]))
        assert screen.shows("stop rule: ") and screen.shows("campaign stopped: ")
        screen.press(b"q")
        assert screen.shows("campaign rehearsal: stopped")
        assert screen.process.wait(_PATIENCE) == 0


def test_the_view_survives_a_directory_that_vanishes_and_a_terminal_that_changes(done: Path) -> None:
    away = done.with_name("away")
    with watching(done) as screen:
        assert screen.shows("rehearsal (")
        done.rename(away)
        assert screen.shows("there is no such directory")
        away.rename(done)
        assert screen.shows("rehearsal (")
        screen.resize(12, 50)
        assert screen.shows("rehearsal (")
        screen.press(b"x")
        screen.press(b"q")
        assert screen.process.wait(_PATIENCE) == 0


def test_an_interrupt_ends_the_view_and_leaves_the_terminal_as_it_was(done: Path) -> None:
    with watching(done) as screen:
        assert screen.shows("rehearsal (")
        screen.process.send_signal(signal.SIGINT)
        assert screen.shows("\x1b[?1049l"), "the screen before is back"
        assert screen.process.wait(_PATIENCE) == 0


def test_a_journal_that_cannot_be_read_ends_the_view_with_the_reason(done: Path, tmp_path: Path) -> None:
    lines = (done / FILE_NAME).read_bytes().splitlines(keepends=True)
    (tmp_path / FILE_NAME).write_bytes(b"".join([*lines[:3], b"damage\n", *lines[4:]]))
    with watching(tmp_path) as screen:
        assert screen.shows("reading "), "before anything is read"
        assert screen.shows("\x1b[?1049l"), "the screen before is back"
        assert screen.shows("line 4: its checksum does not match")
        assert screen.process.wait(_PATIENCE) == 1


@pytest.mark.parametrize("command", [("watch",), ("status", "--watch")])
def test_without_a_terminal_it_says_what_to_use(done: Path, command: tuple[str, ...]) -> None:
    result = run(*command, done)
    assert result.code == 2 and "watch needs a terminal" in result.err
    assert f"orchestrator status {done}" in result.err
