"""Counters of computational and communication effort: one file per rank into samples per call path.

The files are written by the runtime in ``orchestrator/instrumentation/runtime``. Metrics are named as in
Score-P profiles that carry the same counters, so that models need not know the source of the counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orchestrator.errors import ReadError
from orchestrator.readers.base import reads
from orchestrator.readers.rank_files import Format, RankFile, read_ranks
from orchestrator.types import Application, Sample

FORMAT = Format(".effort", "orchestrator-effort 1", "counts")

VISITS, BLOCKS, SENT, RECEIVED = "visits", "basic_blocks", "bytes_sent", "bytes_received"
SIZE = "communicator_size"
METRICS = (VISITS, BLOCKS, SENT, RECEIVED, SIZE)

_NOTHING = (
    "the program was not built with a compiler from 'orchestrator effort compiler', or it was killed "
    "(SIGKILL leaves no time to write)"
)

Values = NDArray[np.float64]


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


@reads(f"*{FORMAT.suffix}")
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
    ranks = read_ranks(directory, FORMAT, _NOTHING)
    for item in ranks:
        _check_names(item)
    callpaths = tuple(sorted({path for item in ranks for path in item.values}))
    raw = np.zeros((len(callpaths), len(ranks), 5))
    place = {path: number for number, path in enumerate(callpaths)}
    for column, item in enumerate(ranks):
        for path, counts in item.values.items():
            raw[place[path], column] = counts
    counted = any(item.head.get("mpi") == "counted" for item in ranks)
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


def samples(counts: Profile) -> list[Sample]:
    """Aggregate over ranks by mean, max, min and sum; communicator sizes only over ranks that have one."""
    result: list[Sample] = []
    for number, metric in enumerate(counts.metrics):
        for path, row in zip(counts.callpaths, counts.values[:, :, number], strict=True):
            there = row[~np.isnan(row)]
            if there.size:
                aggregates = {"mean": there.mean(), "max": there.max(), "min": there.min()}
                if metric != SIZE:
                    aggregates["sum"] = there.sum()
                result += [Sample(path, metric, float(value), name) for name, value in aggregates.items()]
    return result


def _check_names(item: RankFile) -> None:
    if "unnamed" in item.head:
        raise ReadError(
            f"{item.path}: the functions of {item.head['unnamed']} have no names: link it without -s, do not "
            "strip it"
        )


def _counted(directory: Path, counts: Profile, mpi: bool) -> Profile:
    """Leave out the metrics that were not counted: absent is not zero."""
    blocks = bool(np.nansum(counts.values[:, :, METRICS.index(BLOCKS)]))
    if not blocks and not mpi:
        raise ReadError(
            f"{directory}: nothing was counted: no function was compiled with 'orchestrator effort "
            "compiler', and no MPI operation was seen"
        )
    left_out = set() if blocks else {BLOCKS}
    left_out |= set() if mpi else {SENT, RECEIVED, SIZE}
    kept = [number for number, metric in enumerate(counts.metrics) if metric not in left_out]
    return Profile(counts.callpaths, tuple(counts.metrics[i] for i in kept), counts.values[:, :, kept])


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
