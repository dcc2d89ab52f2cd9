"""Text files that the measuring runtime writes, one per rank: complete sets of whole files.

The files are written by the runtime in ``orchestrator/instrumentation/runtime``: counts of effort and times
in MPI operations have the same layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import ReadError
from orchestrator.readers.profile_files import DEPTH, below

_LARGEST = 2**63  # a 64-bit counter beyond this has wrapped around, or was made from a negative number
_FIELDS = 9  # of a node's line: thread, id, parent, five values, name


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file: its suffix, its first line, and what it holds (``counts``)."""

    suffix: str
    first_line: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFile:
    """What one rank has written: further lines by their first word, and five sums per call path.

    The sums are of visits, of what the format is about, of bytes sent and received, and of sizes of
    communicators.
    """

    path: Path
    rank: int
    ranks: int
    head: Mapping[str, str]
    values: Mapping[str, tuple[int, ...]]


def read_ranks(directory: Path, form: Format, nothing: str) -> list[RankFile]:
    """Return the files of all ranks below a directory, by rank.

    Parameters
    ----------
    directory
        An attempt's directory.
    form
        The kind of file.
    nothing
        Why there may be none, for the message.

    Raises
    ------
    ReadError
        Where there is no file; where a rank's file is missing, broken or there twice; where a rank did not
        end by itself; for a value that has overflowed.
    """
    files = [_rank_file(path, form) for path in below(directory, f"*{form.suffix}", DEPTH)]
    if not files:
        raise ReadError(
            _cut(directory, form)
            or f"{directory}: no *{form.suffix} file up to {DEPTH} folders deep: {nothing}"
        )
    _check_complete(directory, files, form)
    return sorted(files, key=lambda item: item.rank)


def _cut(directory: Path, form: Format) -> str:
    """Return what happened to a file that was not written to its end; empty without such a file."""
    for path in below(directory, f"*{form.suffix}.part", DEPTH):
        return f"{path}: the process was killed, or the disk was full, while it wrote its {form.content}"
    return ""


def _check_complete(directory: Path, files: Sequence[RankFile], form: Format) -> None:
    by_rank: dict[int, RankFile] = {}
    for item in files:
        other = by_rank.setdefault(item.rank, item)
        if other is not item:
            raise ReadError(
                f"{item.path}: rank {item.rank} has written {other.path.name}, too: several programs ran in "
                "one attempt; measure one, and let the others run without the runtime's library"
            )
        if item.ranks != files[0].ranks:
            raise ReadError(
                f"{item.path}: one of {item.ranks} ranks, but {files[0].path} is one of {files[0].ranks}"
            )
    missing = [rank for rank in range(files[0].ranks) if rank not in by_rank]
    if missing or len(files) > files[0].ranks:
        names = ", ".join(map(str, missing[:10])) + (" ..." if len(missing) > 10 else "")
        raise ReadError(
            f"{directory}: {len(files)} of {files[0].ranks} ranks have left {form.content}; missing: rank "
            f"{names}. "
            + (_cut(directory, form) or "Was it killed, or does its node write to another file system?")
        )


def _rank_file(path: Path, form: Format) -> RankFile:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror}") from error
    if lines[0] != form.first_line:
        raise ReadError(
            f"{path}:1: not a file of {form.content}: {lines[0][:40]!r} is not {form.first_line!r}"
        )
    head: dict[str, str] = {}
    nodes: list[list[str]] = []
    for number, line in enumerate(lines[1:-1], 2):
        word, _, rest = line.partition(" ")
        if word == "node":
            fields = rest.split(" ", _FIELDS - 1)
            if len(fields) < _FIELDS or not all(field.isdecimal() for field in fields[:-1]):
                raise ReadError(f"{path}:{number}: not eight counts and a name: {line[:80]!r}")
            nodes.append(fields)
        else:
            head[word] = rest
    if "end" not in head or lines[-1]:
        raise ReadError(f"{path}: cut off: its last line is {lines[-1][:40]!r}")
    return _checked(path, head, nodes, form)


def _checked(path: Path, head: Mapping[str, str], nodes: Sequence[Sequence[str]], form: Format) -> RankFile:
    try:
        rank, ranks = (int(word) for word in head["rank"].split())
    except (KeyError, ValueError):
        raise ReadError(f"{path}: no line 'rank NUMBER RANKS'") from None
    if head["end"] != "exit":
        raise ReadError(
            f"{path}: rank {rank} was ended by {head['end']}: its {form.content} are not those of a whole run"
        )
    values = _by_callpath(path, nodes)
    return RankFile(path=path, rank=rank, ranks=ranks, head=head, values=values)


def _by_callpath(path: Path, nodes: Sequence[Sequence[str]]) -> dict[str, tuple[int, ...]]:
    """Add up threads and nodes of one call path."""
    links = {(fields[0], fields[1]): (fields[2], fields[8]) for fields in nodes}
    names: dict[tuple[str, str], str] = {}

    def name(key: tuple[str, str]) -> str:
        chain = [key]
        while chain[-1] not in names:
            parent, own = links[chain[-1]]
            if parent == "0":
                names[chain[-1]] = own
            else:
                chain.append((key[0], parent))
        for child in reversed(chain[:-1]):
            parent, own = links[child]
            names[child] = f"{names[child[0], parent]}->{own}"
        return names[key]

    totals: dict[str, tuple[int, ...]] = {}
    for fields in nodes:
        counts = tuple(map(int, fields[3:8]))
        if not any(counts):
            continue  # only the caller of a call path that another thread has counted
        try:
            callpath = name((fields[0], fields[1]))
        except KeyError as error:
            raise ReadError(f"{path}: node {fields[1]} of thread {fields[0]} has no caller {error}") from None
        before = totals.get(callpath, (0,) * 5)
        totals[callpath] = tuple(a + b for a, b in zip(before, counts, strict=True))
        if max(totals[callpath]) >= _LARGEST:
            raise ReadError(f"{path}: a counter has overflowed at {callpath}: {max(totals[callpath])}")
    return totals
