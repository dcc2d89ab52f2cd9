"""Snapshots: what follows from the first lines of a journal, kept beside it.

A snapshot says of which bytes it was made, by their number and SHA-256, and by which program. It is used only
if the journal still begins with exactly these bytes and the program is the same. Else the whole journal is
read, as without a snapshot. It is JSON, from which fixed forms rebuild values: `orchestrator.journal.forms`.

Only those who look at a campaign use snapshots. A controller always replays the whole journal.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import orjson

from orchestrator import __version__
from orchestrator.errors import DamagedJournal
from orchestrator.journal.codec import Entry
from orchestrator.journal.file import FILE_NAME, START, Position, damaged, reading, scan
from orchestrator.journal.forms import Form
from orchestrator.journal.replay import garbage_collection_off
from orchestrator.storage import write_atomically

T = TypeVar("T")

WORTH = 1000  # entries that were read behind a snapshot, from which on the next reader should be spared them
_FORMAT = 1
_BLOCK = 1 << 20
_TAIL = 64  # bytes before a position that show whether the file is still the one that was read: a checksum


@dataclass(frozen=True, slots=True)
class Fold(Generic[T]):
    """What is learned from a journal, entry by entry."""

    name: str  # of the snapshot: ``snapshot.NAME.json``
    # begin, take: the value before the first entry, and after one more. ``take`` may change its argument.
    begin: Callable[[], T]
    take: Callable[[T, Entry], T]
    form: Form  # how the value is JSON


def path_of(directory: Path, fold: Fold[Any]) -> Path:
    """Return the file of a snapshot."""
    return directory / f"snapshot.{fold.name}.json"


def load(directory: Path, fold: Fold[T]) -> tuple[T, Position] | None:
    """Return what a snapshot holds, and of which part of the journal; None where none can be used."""
    try:
        first, _, content = path_of(directory, fold).read_bytes().partition(b"\n")
        head = orjson.loads(first)
        position = Position(*map(int, head["position"]))
        made_by = head["format"], head["program"], head["content"]
        if made_by != (_FORMAT, _program(fold.take), zlib.crc32(content)):
            return None
        if _digest(directory / FILE_NAME, position.offset) != head["sha256"]:
            return None
        with garbage_collection_off():
            return fold.form.unpack(orjson.loads(content)), position
    except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError):
        return None  # there is none, or it is damaged, or somebody made it up


def save(directory: Path, fold: Fold[T], value: T, position: Position) -> None:
    """Write a snapshot in the place of an earlier one; nothing where that is not possible.

    Whoever looks at the campaign of another user leaves nothing in it.
    """
    try:
        if directory.stat().st_uid != os.geteuid():
            return
        with garbage_collection_off():
            content = orjson.dumps(fold.form.pack(value))
        head = {
            "format": _FORMAT,
            "program": _program(fold.take),
            "position": list(position),
            "sha256": _digest(directory / FILE_NAME, position.offset),
            "content": zlib.crc32(content),
        }
        write_atomically(path_of(directory, fold), orjson.dumps(head) + b"\n" + content)
    except (OSError, TypeError):  # a full disk; an integer that is too large
        return


class _Content(NamedTuple):
    """What changes when the content of a file does: device and number, bytes, nanoseconds."""

    file: tuple[int, int]
    size: int
    modified: int


class Followed(Generic[T]):
    """What follows from a journal that may grow, be replaced or vanish: each line is read once.

    Parameters
    ----------
    directory, fold
        The campaign directory, and what is learned from its journal.
    leave
        Whether a snapshot is left for the next reader where much was read.

    Attributes
    ----------
    value
        After the last entry that was read; that of an empty journal where the journal is damaged.
    position
        The end of that entry.
    """

    def __init__(self, directory: Path, fold: Fold[T], *, leave: bool = True):
        self._directory, self._fold, self._leave = directory, fold, leave
        self._path = directory / FILE_NAME
        self._file: tuple[int, int] | None = None  # device and number of what was read
        self._tail = b""
        self._damage: tuple[_Content, str] | None = None
        self._empty()

    def _empty(self) -> None:
        self.value = self._fold.begin()
        self.position = self._saved = START

    def refresh(self) -> bool:
        """Read what was appended since the last time; return whether there was anything.

        A journal that was replaced or cut is read from its start, a damaged one not before it has changed.

        Raises
        ------
        JournalError
            If the journal is gone or damaged.
        """
        now = self._content()
        if self._damage is not None and self._damage[0] == now:
            raise DamagedJournal(self._damage[1])
        before = self.position
        begun = self._damage is not None or self._file is None or not self._continues(now)
        if begun:
            self._restart(now)
        self._read(now)
        self._tail = self._bytes_before(self.position)
        self._save()
        return begun or self.position != before

    def _read(self, now: _Content) -> None:
        try:
            with garbage_collection_off():
                self._take()
        except DamagedJournal as error:
            self._damage = now, str(error)
            self._empty()
            raise
        except BaseException:
            self._file = None  # the value may be in between two entries
            raise

    def _take(self) -> None:
        try:
            for entry, position in scan(self._path, self.position):
                self.value = self._fold.take(self.value, entry)
                self.position = position
        except ValueError as error:  # an event that cannot follow the state
            raise damaged(self._path, self.position.entries + 1, str(error)) from error

    def _save(self) -> None:
        if self._leave and self.position.entries - self._saved.entries >= WORTH:
            save(self._directory, self._fold, self.value, self.position)
            self._saved = self.position

    def _restart(self, now: _Content) -> None:
        self.value, self.position = load(self._directory, self._fold) or (self._fold.begin(), START)
        self._saved = self.position
        self._file, self._damage = now.file, None

    def _continues(self, now: _Content) -> bool:
        same = now.file == self._file and now.size >= self.position.offset
        return same and self._bytes_before(self.position) == self._tail

    def _content(self) -> _Content:
        with reading(self._path):
            status = self._path.stat()
        return _Content((status.st_dev, status.st_ino), status.st_size, status.st_mtime_ns)

    def _bytes_before(self, position: Position) -> bytes:
        with reading(self._path), self._path.open("rb") as file:
            file.seek(max(0, position.offset - _TAIL))
            return file.read(min(_TAIL, position.offset))


def read_through(directory: Path, fold: Fold[T]) -> T:
    """Return what follows from a journal as it is now; raise `JournalError` where it cannot be read."""
    followed = Followed(directory, fold)
    followed.refresh()
    return followed.value


def _digest(path: Path, length: int) -> str | None:
    """Return the SHA-256 of the first bytes of a file; None where there are fewer."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while length > 0:
            block = file.read(min(length, _BLOCK))
            if not block:
                return None
            digest.update(block)
            length -= len(block)
    return digest.hexdigest()


@cache
def _program(take: Callable[..., Any]) -> str:
    """Return the version of this program with a checksum of all that replays a journal."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    files += [Path(__file__).parents[1] / "types.py", Path(take.__code__.co_filename)]
    checksum = 0
    for path in files:
        checksum = zlib.crc32(path.read_bytes(), checksum)
    return f"{__version__} {checksum:08x}"
