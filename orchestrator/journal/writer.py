"""The single writer of a journal: its lock, durable appends, and what happens when the disk is full.

An append is durable (fsync) when it returns. A torn last line, which a crash leaves, is cut off on opening.
"""

from __future__ import annotations

import errno
import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from orchestrator.errors import JournalError, JournalWriteError
from orchestrator.journal import events
from orchestrator.journal.codec import Entry, encode
from orchestrator.journal.file import FILE_NAME, Position, scan
from orchestrator.storage import FULL, remedy, write_atomically

LOCK_NAME = "controller.lock"
HOLDER_NAME = "controller.json"
_SPACE = FULL - {errno.EFBIG}
"""Those that pass when somebody frees some space."""
Patience = Callable[[OSError], bool]
"""Waits after a write that failed for want of space; returns whether to try again."""
# Seconds. A process that a killed controller was just starting shares the lock until it executes its program.
_PATIENCE = 2.0


def holder_of(directory: Path) -> str:
    """Return `` (host H, pid N)`` of the last controller of a directory, or an empty text."""
    found = holder(directory)
    return "" if found is None else f" (host {found[0]}, pid {found[1]})"


def holder(directory: Path) -> tuple[str, int] | None:
    """Return host and pid of the last controller of a directory; None where they cannot be read."""
    try:
        found = json.loads((directory / HOLDER_NAME).read_bytes())
        return str(found["host"]), int(found["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def persistently(write: Callable[[], None], patience: Patience | None) -> None:
    """Write; where the disk is full, again, as long as there is patience."""
    while True:
        try:
            return write()
        except OSError as error:
            if not waited(error, patience):
                raise


def waited(error: BaseException | None, patience: Patience | None) -> bool:
    """Wait where an error is a want of space and there is patience; return whether to try again."""
    if not isinstance(error, OSError) or error.errno not in _SPACE:
        return False
    return patience is not None and patience(error)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise `JournalWriteError`, after which the campaign can be resumed, where a file cannot be written."""
    try:
        yield
    except OSError as error:
        raise _stopped_by(f"cannot write {path}", error) from error


def _stopped_by(what: str, error: OSError) -> JournalWriteError:
    then = f"{remedy(error) or 'fix that'}, then resume it"
    return JournalWriteError(f"{what}: {error.strerror}. The campaign has stopped, nothing is lost: {then}")


def _unusable(what: str, path: Path, error: OSError) -> JournalError:
    """Return the error to raise for an unusable file; after a full disk, the same can be tried again."""
    if error.errno in FULL:
        again = f"Nothing is lost: {remedy(error)}, then repeat the command"
        return JournalWriteError(f"{what} {path}: {error.strerror}. {again}")
    elsewhere = ""
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        elsewhere = (
            ". Only who may write there can continue a campaign or change it: copy the directory when no "
            "attempt is in flight (cp -r), and resume the copy"
        )
    return JournalError(f"{what} {path}: {error.strerror}{elsewhere}")


Boundary = Callable[[str, Sequence[Entry]], None]


class Journal:
    """The single writer of a campaign's journal. Use as a context manager.

    Parameters
    ----------
    directory
        The campaign directory; must exist.
    boundary
        Called with ``"before"`` or ``"after"`` and the entries around each append; tests end the process
        there.
    patience
        For a full disk; without it, that is an error.
    """

    def __init__(self, directory: Path, boundary: Boundary | None = None, patience: Patience | None = None):
        self.path = directory / FILE_NAME
        self._holder = directory / HOLDER_NAME
        # Imported here: it loads asyncio, and those who only read a journal need no lock.
        from filelock import FileLock

        self._lock = FileLock(directory / LOCK_NAME)
        self._patience = patience
        self._boundary = boundary or (lambda moment, entries: None)
        self._descriptor = -1
        self._sequence = 0
        self._length = 0

    def __enter__(self) -> Journal:
        self._acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self._release()

    def _acquire(self) -> None:
        import socket

        from filelock import Timeout

        try:
            self._lock.acquire(timeout=_PATIENCE, poll_interval=0.05)
        except Timeout as error:
            raise JournalError(
                f"{self.path.parent} is held by another controller{holder_of(self.path.parent)}: "
                "wait for it, or stop it (Ctrl-C) first; if no controller runs on that host any "
                f"more (a file system without locks), delete {self.path.parent / LOCK_NAME}"
            ) from error
        except OSError as error:
            raise _unusable("cannot lock", self.path.parent, error) from error
        try:
            write_atomically(self._holder, json.dumps({"host": socket.gethostname(), "pid": os.getpid()}))
        except OSError as error:
            self._lock.release()
            raise _unusable("cannot write", self._holder, error) from error

    def _release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._lock.release()

    def _repair(self) -> None:
        """Cut a torn tail off; it is kept in a file beside the journal."""
        size = os.fstat(self._descriptor).st_size
        if size > self._length:
            tail = os.pread(self._descriptor, size - self._length, self._length)
            self.path.with_name(f"{FILE_NAME}.torn-{self._length}").write_bytes(tail)
            os.ftruncate(self._descriptor, self._length)
            os.fsync(self._descriptor)

    def entries(self) -> Iterator[Entry]:
        """Yield the existing entries, then repair a torn tail and open the file for appending."""
        if self.path.exists():
            for entry, end in scan(self.path):
                self._sequence, self._length = entry.sequence, end.offset
                yield entry
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            self._repair()
        except OSError as error:
            raise _unusable("cannot open the journal", self.path, error) from error

    @property
    def position(self) -> Position:
        """The end of what was read or written."""
        return Position(self._length, self._sequence)

    def append(self, new: Sequence[events.Event], time: float, durable: bool = True) -> list[Entry]:
        """Append events in one write; durable when it returns unless ``durable`` is false.

        Raises
        ------
        JournalWriteError
            If they could not be written; the journal is then as it was before. Or if it is no longer this
            controller's own: deleted, moved, or written to by another one.
        """
        if self._descriptor < 0:
            deque(self.entries(), maxlen=0)
        entries = [Entry(self._sequence + i, time, event) for i, event in enumerate(new, start=1)]
        content = b"".join(encode(entry) for entry in entries)
        self._boundary("before", entries)
        try:
            persistently(lambda: self._write(content, durable), self._patience)
        except OSError as error:
            raise _stopped_by(f"cannot write to {self.path}", error) from error
        self._sequence += len(entries)
        self._length += len(content)
        self._boundary("after", entries)
        return entries

    def _write(self, content: bytes, durable: bool) -> None:
        try:
            self._check()
            _write_all(self._descriptor, content)
            if durable:
                os.fsync(self._descriptor)
        except OSError:
            self._undo()
            raise

    def _check(self) -> None:
        """Raise `JournalWriteError` unless the file is the one that was opened, and unchanged since."""
        own = os.fstat(self._descriptor)
        try:
            there = self.path.stat()
        except FileNotFoundError:
            self._refuse("was deleted or moved")
        if (own.st_dev, own.st_ino) != (there.st_dev, there.st_ino):
            self._refuse("was replaced by another file")
        if own.st_size != self._length:
            self._refuse(f"has {own.st_size} bytes instead of {self._length}: another program writes to it")

    def _refuse(self, what: str) -> NoReturn:
        raise JournalWriteError(
            f"{self.path} {what}. This controller has stopped; what it had begun may still run. Put the "
            "campaign directory back where it was, see that no other controller works there "
            f"({HOLDER_NAME} names the last one), and resume it"
        )

    def _undo(self) -> None:
        try:
            os.ftruncate(self._descriptor, self._length)
        except OSError:
            return  # the torn tail will be cut off on the next opening


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
