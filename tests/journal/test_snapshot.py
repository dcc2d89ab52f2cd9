from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import JournalError
from orchestrator.journal import snapshot
from orchestrator.journal.codec import Entry, decode, encode
from orchestrator.journal.file import FILE_NAME, Position, read, scan
from orchestrator.journal.replay import replay
from orchestrator.journal.snapshot import Fold, Followed, load, path_of, read_through, save
from orchestrator.journal.writer import Journal
from orchestrator.report.controller import JOURNALED
from orchestrator.report.log import LOG, document
from tests.journal.journals import journals

GOLDEN = sorted((Path(__file__).parents[1] / "golden" / "journals").glob("*.jsonl"))
FOLDS: tuple[Fold[Any], ...] = (JOURNALED, LOG)


def write(directory: Path, entries: list[Entry]) -> None:
    (directory / FILE_NAME).write_bytes(b"".join(map(encode, entries)))


def seen(fold: Fold[Any], value: Any) -> Any:
    return value.document() if fold is LOG else value


def at_once(fold: Fold[Any], directory: Path) -> Any:
    value = fold.begin()
    for entry in read(directory / FILE_NAME):
        value = fold.take(value, entry)
    return seen(fold, value)


def keep(directory: Path, fold: Fold[Any]) -> None:
    followed = Followed(directory, fold)
    followed.refresh()
    save(directory, fold, followed.value, followed.position)


@settings(max_examples=30)
@given(journals(), st.data())
def test_a_snapshot_and_the_rest_are_the_whole(entries: list[Entry], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(entries)))
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        write(directory, entries[:cut])
        for fold in FOLDS:
            keep(directory, fold)
        write(directory, entries)
        for fold in FOLDS:
            found = load(directory, fold)
            assert found is not None and found[1].entries == cut
            assert seen(fold, read_through(directory, fold)) == at_once(fold, directory)
        assert read_through(directory, JOURNALED).state == replay(read(directory / FILE_NAME))
        assert read_through(directory, LOG).document() == document(read(directory / FILE_NAME))


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_journals_of_earlier_versions_have_snapshots(golden: Path, tmp_path: Path) -> None:
    lines = golden.read_bytes().splitlines(keepends=True)
    for cut in range(1, len(lines) + 1, 7):
        (tmp_path / FILE_NAME).write_bytes(b"".join(lines[:cut]))
        for fold in FOLDS:
            keep(tmp_path, fold)
        (tmp_path / FILE_NAME).write_bytes(b"".join(lines))
        for fold in FOLDS:
            assert load(tmp_path, fold) is not None
            assert seen(fold, read_through(tmp_path, fold)) == at_once(fold, tmp_path)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    (tmp_path / FILE_NAME).write_bytes(GOLDEN[0].read_bytes())
    keep(tmp_path, JOURNALED)
    assert load(tmp_path, JOURNALED) is not None
    return tmp_path


def _altered(content: bytes) -> bytes:
    """A valid journal of the same length with another history: one figure and the checksum behind it."""
    lines = content.splitlines(keepends=True)
    entry = decode(lines[2])
    lines[2] = encode(Entry(entry.sequence, entry.time + 1.0, entry.event))
    return b"".join(lines)


@pytest.mark.parametrize(
    "harm",
    [
        lambda content: b"".join(content.splitlines(keepends=True)[:-1]),
        lambda content: b"".join(content.splitlines(keepends=True)[:3]),
        _altered,
    ],
    ids=["cut", "cut short", "altered"],
)
def test_of_another_journal_a_snapshot_is_not_used(kept: Path, harm: Callable[[bytes], bytes]) -> None:
    path = kept / FILE_NAME
    path.write_bytes(harm(path.read_bytes()))
    assert load(kept, JOURNALED) is None
    assert read_through(kept, JOURNALED).state == replay(read(path))


def _header(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    def harm(content: bytes) -> bytes:
        first, rest = content.split(b"\n", 1)
        head = json.loads(first)
        change(head)
        return json.dumps(head).encode() + b"\n" + rest

    return harm


@pytest.mark.parametrize(
    "harm",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b"1", b"2"),
        lambda content: b"[]\n{}",
        lambda content: b"\xff\xfe\n\x00",
        _header(lambda head: head.update(program="0.0.1 00000000")),
        _header(lambda head: head.update(format=99)),
        _header(lambda head: head.update(position=[10**12, 5])),
        _header(lambda head: head.update(position="no")),
        _header(lambda head: head.clear()),
    ],
)
def test_a_snapshot_that_is_damaged_or_of_another_program_is_not_used(
    kept: Path, harm: Callable[[bytes], bytes]
) -> None:
    path = path_of(kept, JOURNALED)
    path.write_bytes(harm(path.read_bytes()))
    assert load(kept, JOURNALED) is None
    assert read_through(kept, JOURNALED).state == replay(read(kept / FILE_NAME))


def test_content_that_somebody_made_up_is_no_state(kept: Path) -> None:
    import zlib

    path = path_of(kept, JOURNALED)
    first, _ = path.read_bytes().split(b"\n", 1)
    for content in (b"null", b"{}", b"[1, 2]", b'[["os.system", "true"], ["h", 1, 0, true]]'):
        head = {**json.loads(first), "content": zlib.crc32(content)}
        path.write_bytes(json.dumps(head).encode() + b"\n" + content)
        assert load(kept, JOURNALED) is None


def test_who_reads_much_leaves_a_snapshot_and_nothing_in_directories_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / FILE_NAME).write_bytes(GOLDEN[0].read_bytes())
    read_through(tmp_path, JOURNALED)
    assert not path_of(tmp_path, JOURNALED).exists()
    monkeypatch.setattr(snapshot, "WORTH", 10)
    monkeypatch.setattr("os.geteuid", lambda: tmp_path.stat().st_uid + 1)
    read_through(tmp_path, JOURNALED)
    assert not path_of(tmp_path, JOURNALED).exists()
    monkeypatch.undo()
    monkeypatch.setattr(snapshot, "WORTH", 10)
    read_through(tmp_path, JOURNALED)
    assert path_of(tmp_path, JOURNALED).exists()


def test_a_journal_is_followed_line_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = GOLDEN[0].read_bytes().splitlines(keepends=True)
    path = tmp_path / FILE_NAME
    path.write_bytes(b"".join(lines[:3]))
    followed = Followed(tmp_path, JOURNALED)
    assert followed.refresh() and followed.position.entries == 3
    begins: list[Position] = []

    def scanned(path: Path, begin: Position) -> Iterator[tuple[Entry, Position]]:
        begins.append(begin)
        return scan(path, begin)

    monkeypatch.setattr(snapshot, "scan", scanned)
    assert not followed.refresh()
    with path.open("ab") as file:
        file.write(lines[3] + lines[4][:10])
    assert followed.refresh() and followed.position.entries == 4
    with path.open("ab") as file:
        file.write(lines[4][10:])
    assert followed.refresh() and followed.position.entries == 5
    assert [begin.entries for begin in begins] == [3, 3, 4], "nothing is read twice"
    assert followed.value.state == replay(read(path))
    path.write_bytes(b"".join(lines[:2]))
    assert followed.refresh() and followed.value.state == replay(read(path)), "cut"
    other = tmp_path / "other"
    other.write_bytes(b"".join(lines[:6]))
    other.replace(path)
    assert followed.refresh() and followed.value.state == replay(read(path)), "replaced"
    path.unlink()
    with pytest.raises(JournalError, match="cannot read the journal"):
        followed.refresh()
    path.write_bytes(b"".join(lines))
    assert followed.refresh() and followed.value.state == replay(read(path)), "back again"


def test_a_controller_leaves_snapshots_when_its_journal_has_grown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from orchestrator.campaign import loader
    from orchestrator.control import keeping, session
    from tests.cli.running import SIMULATED

    monkeypatch.setattr(keeping, "WORTH", 20)
    state = session.run(loader.loads(SIMULATED, "test", tmp_path), tmp_path)
    for fold in FOLDS:
        found = load(tmp_path, fold)
        assert found is not None and found[1].entries >= 20
        assert seen(fold, read_through(tmp_path, fold)) == at_once(fold, tmp_path)
    assert read_through(tmp_path, JOURNALED).state == state
    path = path_of(tmp_path, JOURNALED)
    path.write_bytes(b"nonsense")
    with Journal(tmp_path) as journal:  # a controller never looks at it
        assert replay(journal.entries()) == state
