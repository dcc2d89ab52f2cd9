"""Counters of computational and communication effort: one file per rank into samples per call path.

The files are written by the runtime in ``orchestrator/instrumentation/runtime``. Metrics are named as in
Score-P profiles that carry the same counters, so that models need not know the source of the counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orchestrator.errors import ReadError
from orchestrator.types import Application, Sample

SUFFIX = ".effort"
DEPTH = 2  # folders below the attempt's directory

VISITS, BLOCKS, SENT, RECEIVED = "visits", "basic_blocks", "bytes_sent", "bytes_received"
SIZE = "communicator_size"
METRICS = (VISITS, BLOCKS, SENT, RECEIVED, SIZE)

_FIRST_LINE = "orchestrator-effort 1"
_LARGEST = 2**63  # a 64-bit counter beyond this has wrapped around, or was made from a negative number
_FIELDS = 9  # of a node's line: thread, id, parent, five values, name

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankCounts:
    """What one rank has counted: per call path visits, blocks, bytes sent and received, sum of sizes."""

    path: Path
    rank: int
    ranks: int
    mpi: str
    counts: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Profile:
    """The counts of all ranks: ``values`` has shape (call paths, ranks, metrics).

    ``metrics`` are those that were counted: there are no bytes without MPI, and no basic blocks in a program
    that was compiled without the counters. A value that makes no sense is NaN: bytes and communicator size of
    a function, basic blocks of an MPI operation.
    """

    callpaths: tuple[str, ...]
    metrics: tuple[str, ...]
    values: Values


def read(directory: Path, application: Application, inclusive: bool = False) -> list[Sample]:
    """Return the effort of an attempt; see `profile` and `samples`.

    Raises
    ------
    ReadError
        As `profile`.
    """
    return samples(profile(directory, inclusive))


def profile(directory: Path, inclusive: bool = False) -> Profile:
    """Read the files of all ranks up to `DEPTH` folders below ``directory``, and put them together.

    A call path joins the names of its functions by ``->``. Counts of threads are added. A rank that never
    reached a call path has zero there. With ``inclusive`` a call path's counts include those of all regions
    it calls.

    Raises
    ------
    ReadError
        Where there is no file, a rank's file is missing, broken or there twice, a rank did not end by
        itself, a counter has overflowed, or nothing was counted.
    """
    ranks = [_rank_counts(path) for path in find(directory)]
    if not ranks:
        raise ReadError(_nothing_in(directory))
    _check_complete(directory, ranks)
    ranks.sort(key=lambda item: item.rank)
    callpaths = tuple(sorted({path for item in ranks for path in item.counts}))
    raw = np.zeros((len(callpaths), len(ranks), 5))
    place = {path: number for number, path in enumerate(callpaths)}
    for column, item in enumerate(ranks):
        for path, counts in item.counts.items():
            raw[place[path], column] = counts
    counted = any(item.mpi == "counted" for item in ranks)
    return _counted(directory, Profile(callpaths, METRICS, _values(callpaths, raw, inclusive)), counted)


def _values(callpaths: Sequence[str], raw: Values, inclusive: bool) -> Values:
    """Return the values of `METRICS` from sums, NaN where a metric makes no sense."""
    with np.errstate(invalid="ignore", divide="ignore"):
        size = np.where(raw[:, :, 4] > 0, raw[:, :, 4] / raw[:, :, 0], np.nan)
    values = np.concatenate([raw[:, :, :4], size[:, :, None]], axis=2)
    if inclusive:
        values[:, :, :4] = _inclusive(callpaths, raw[:, :, :4])
        return values
    operations = np.array([path.rpartition("->")[2].startswith("MPI_") for path in callpaths], dtype=bool)
    values[operations, :, METRICS.index(BLOCKS)] = np.nan
    for metric in (SENT, RECEIVED):
        values[~operations, :, METRICS.index(metric)] = np.nan
    return values


def samples(found: Profile) -> list[Sample]:
    """Aggregate over ranks by mean, max, min and sum; communicator sizes only over ranks that have one."""
    result: list[Sample] = []
    for number, metric in enumerate(found.metrics):
        for path, row in zip(found.callpaths, found.values[:, :, number], strict=True):
            there = row[~np.isnan(row)]
            if there.size:
                aggregates = {"mean": there.mean(), "max": there.max(), "min": there.min()}
                if metric != SIZE:
                    aggregates["sum"] = there.sum()
                result += [Sample(path, metric, float(value), name) for name, value in aggregates.items()]
    return result


def find(directory: Path, suffix: str = SUFFIX) -> list[Path]:
    """Return the files of counts up to `DEPTH` folders below ``directory``."""
    return [
        path for depth in range(DEPTH + 1) for path in sorted(directory.glob("*/" * depth + f"*{suffix}"))
    ]


def _nothing_in(directory: Path) -> str:
    if cut := _cut(directory):
        return cut
    return (
        f"{directory}: no *{SUFFIX} file up to {DEPTH} folders deep: the program was not built with a "
        "compiler from 'orchestrator effort compiler', or it was killed (SIGKILL leaves no time to write)"
    )


def _cut(directory: Path) -> str:
    """Return what happened to a file of counts that was not written to its end; empty without such a file."""
    for path in find(directory, SUFFIX + ".part"):
        return f"{path}: the process was killed, or the disk was full, while it wrote its counts"
    return ""


def _check_complete(directory: Path, found: Sequence[RankCounts]) -> None:
    by_rank: dict[int, RankCounts] = {}
    for item in found:
        other = by_rank.setdefault(item.rank, item)
        if other is not item:
            raise ReadError(
                f"{item.path}: rank {item.rank} has written {other.path.name}, too: several programs ran in "
                "one attempt; count one, and let the others run without the counters' library"
            )
        if item.ranks != found[0].ranks:
            raise ReadError(
                f"{item.path}: one of {item.ranks} ranks, but {found[0].path} is one of {found[0].ranks}"
            )
    missing = [rank for rank in range(found[0].ranks) if rank not in by_rank]
    if missing or len(found) > found[0].ranks:
        names = ", ".join(map(str, missing[:10])) + (" ..." if len(missing) > 10 else "")
        raise ReadError(
            f"{directory}: {len(found)} of {found[0].ranks} ranks have left counts; missing: rank {names}. "
            + (_cut(directory) or "Was it killed, or does its node write to another file system?")
        )


def _counted(directory: Path, found: Profile, mpi: bool) -> Profile:
    """Leave out the metrics that were not counted: absent is not zero."""
    blocks = bool(np.nansum(found.values[:, :, METRICS.index(BLOCKS)]))
    if not blocks and not mpi:
        raise ReadError(
            f"{directory}: nothing was counted: no function was compiled with 'orchestrator effort "
            "compiler', and no MPI operation was seen"
        )
    left_out = set() if blocks else {BLOCKS}
    left_out |= set() if mpi else {SENT, RECEIVED, SIZE}
    kept = [number for number, metric in enumerate(found.metrics) if metric not in left_out]
    return Profile(found.callpaths, tuple(found.metrics[i] for i in kept), found.values[:, :, kept])


def _inclusive(callpaths: Sequence[str], values: Values) -> Values:
    result = values.copy()
    place = {path: number for number, path in enumerate(callpaths)}
    for number, path in enumerate(callpaths):
        for end in _ends(path):
            if (caller := place.get(path[:end])) is not None:
                result[caller] += values[number]
    return result


def _ends(path: str) -> Iterator[int]:
    """Yield where the call paths that lead to this one end."""
    end = path.find("->")
    while end >= 0:
        yield end
        end = path.find("->", end + 2)


def _rank_counts(path: Path) -> RankCounts:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror}") from error
    if lines[0] != _FIRST_LINE:
        raise ReadError(f"{path}:1: not a file of effort counters: {lines[0][:40]!r} is not {_FIRST_LINE!r}")
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
    return _checked(path, head, nodes)


def _checked(path: Path, head: Mapping[str, str], nodes: Sequence[Sequence[str]]) -> RankCounts:
    try:
        rank, ranks = (int(word) for word in head["rank"].split())
    except (KeyError, ValueError):
        raise ReadError(f"{path}: no line 'rank NUMBER RANKS'") from None
    if head["end"] != "exit":
        raise ReadError(
            f"{path}: rank {rank} was ended by {head['end']}: its counts are not those of a whole run"
        )
    if "unnamed" in head:
        raise ReadError(
            f"{path}: the functions of {head['unnamed']} have no names: link it without -s, do not strip it"
        )
    counts = _by_callpath(path, nodes)
    return RankCounts(path=path, rank=rank, ranks=ranks, mpi=head.get("mpi", "none"), counts=counts)


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
