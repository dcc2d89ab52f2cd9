"""Time in MPI operations of a program as it is: one file per rank into samples per operation and call site.

The files are written by a preloaded library (``orchestrator/instrumentation/runtime/mpi_time.c``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from orchestrator.errors import ReadError
from orchestrator.readers.base import reads
from orchestrator.readers.profile_files import over_ranks
from orchestrator.readers.rank_files import Format, RankFile, read_ranks
from orchestrator.types import Application, Sample

FORMAT = Format(".mpitime", "orchestrator-mpi-time 1", "times")

ROOT = "main"
TIME, VISITS, SENT, RECEIVED = "time", "visits", "bytes_sent", "bytes_received"

_NOTHING = (
    "the program made no MPI call that could be timed: it is not linked with an MPI library dynamically, "
    "did not call MPI_Init, or was killed (SIGKILL leaves no time to write)"
)

Row = dict[str, float]  # value by metric, of one rank at one call path


@reads(f"*{FORMAT.suffix}")
def read(directory: Path, application: Application, inclusive: bool = False) -> list[Sample]:
    """Return the time of each MPI operation at each call site, and of everything else.

    The call path ``main->exchange->MPI_Waitall`` is the operation as called by the function ``exchange``,
    whatever called that; ``main->MPI_Waitall`` as called by main, or by a function without a name. ``main``
    is the whole process: its own time is what was spent outside MPI. Aggregates are over ranks; one that
    never called an operation has zero there.

    Parameters
    ----------
    directory
        The attempt's directory.
    application
        Not used: any MPI program will do.
    inclusive
        Whether the time of ``main``, and of functions, includes the MPI operations below it.

    Raises
    ------
    ReadError
        As `orchestrator.readers.rank_files.read_ranks`; where no operation was seen; for a rank
        that spent more time in MPI than it ran.
    """
    found = read_ranks(directory, FORMAT, _NOTHING)
    rows = [_rows(item, inclusive) for item in found]
    callpaths = dict.fromkeys(path for row in rows for path in row)
    return [
        Sample(path, metric, value, aggregate)
        for path in callpaths
        for metric in dict.fromkeys(metric for row in rows for metric in row.get(path, ()))
        for aggregate, value in over_ranks([row.get(path, {}).get(metric, 0.0) for row in rows]).items()
    ]


def _rows(item: RankFile, inclusive: bool) -> dict[str, Row]:
    if item.head.get("mpi") != "counted" or not item.values:
        raise ReadError(
            f"{item.path}: no MPI operation was seen, although MPI was used: through a static library, or "
            "Fortran with other names than gfortran's; use measure.profiler: time or scorep"
        )
    elapsed, inside = _elapsed(item)
    rows: dict[str, Row] = {ROOT: {TIME: elapsed if inclusive else elapsed - inside, VISITS: 1.0}}
    for name, (visits, nanoseconds, sent, received, _sizes) in sorted(item.values.items()):
        row = {TIME: nanoseconds * 1e-9, VISITS: float(visits), SENT: float(sent), RECEIVED: float(received)}
        rows[f"{ROOT}->{name}"] = row
    return {**rows, **(_functions(rows) if inclusive else {})}


def _functions(rows: Mapping[str, Row]) -> dict[str, Row]:
    """Return the functions that call operations, with the time in these."""
    callers: dict[str, Row] = {}
    for path, row in rows.items():
        caller = path.rpartition("->")[0]
        if caller not in ("", ROOT):
            total = callers.setdefault(caller, {TIME: 0.0})
            total[TIME] += row[TIME]
    return callers


def _elapsed(item: RankFile) -> tuple[float, float]:
    """Return the seconds that a rank ran, and those of its first thread in MPI operations."""
    try:
        elapsed, inside = (int(word) * 1e-9 for word in item.head["elapsed"].split())
    except (KeyError, ValueError):
        raise ReadError(f"{item.path}: no line 'elapsed NANOSECONDS NANOSECONDS'") from None
    if inside > elapsed:
        raise ReadError(f"{item.path}: {inside} s in MPI operations, but only {elapsed} s in all")
    return elapsed, inside
