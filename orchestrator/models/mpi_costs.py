"""Theoretical run times of MPI operations: de Morais et al., Denoising Application Performance Models with
Noise-Resilient Priors, Table I (after Chan et al. 2007 and Zhang et al. 2019).

With latency α, time per byte β, computation per byte γ, all of them unknown and found by regression:

========== =======================================
operation  expected run time
========== =======================================
Send       ``α + B β``
Receive    ``α + B β``
Broadcast  ``log2(p) α + B β``
Scatter    ``log2(p) α + B (p-1)/p β``
Gather     ``log2(p) α + B (p-1)/p β``
Allgather  ``log2(p) α + B (p-1)/p β``
Reduce     ``log2(p) α + (β + (p-1)/p γ) B``
Allreduce  ``log2(p) α + (β + (p-1)/p γ) B``
========== =======================================

``B(p, x)`` is the length of the whole vector. What profiles count are bytes per rank, as Score-P does:
the root of a broadcast has sent p times what each rank has received, a scatter or gather moves one p-th of
the vector per rank, and allreduce counts the vector once per rank of the communicator. `Row.metric` and
`Row.power` turn these counts (mean or maximum over ranks) into B.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

SENT, RECEIVED = "bytes_sent", "bytes_received"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of Table I.

    Attributes
    ----------
    operation
        Its name there.
    tree
        Whether the latency grows with log2(p).
    metric
        Which count holds the transferred bytes; empty where none are transferred.
    power
        B is the count times ``p**power``.
    fraction
        Whether β comes with (p-1)/p.
    reduces
        Whether there is a term (p-1)/p γ B.
    """

    operation: str
    tree: bool
    metric: str = ""
    power: int = 0
    fraction: bool = False
    reduces: bool = False


SEND = Row(operation="Send", tree=False, metric=SENT)
RECEIVE = Row(operation="Receive", tree=False, metric=RECEIVED)
_ROWS = {
    "bcast": Row(operation="Broadcast", tree=True, metric=RECEIVED),
    "scatter": Row(operation="Scatter", tree=True, metric=RECEIVED, power=1, fraction=True),
    "gather": Row(operation="Gather", tree=True, metric=SENT, power=1, fraction=True),
    "allgather": Row(operation="Allgather", tree=True, metric=RECEIVED, fraction=True),
    "reduce": Row(operation="Reduce", tree=True, metric=SENT, reduces=True),
    "allreduce": Row(operation="Allreduce", tree=True, metric=SENT, power=-1, reduces=True),
    # Not in the table: a reduction of nothing.
    "barrier": Row(operation="Barrier", tree=True),
}

# Names without MPI_, in lower case. Variants with counts per rank (v) and without blocking (i) share a row.
TABLE: Mapping[str, tuple[Row, ...]] = MappingProxyType(
    {
        **{name: (row,) for name, row in _ROWS.items()},
        **{f"{name}v": (_ROWS[name],) for name in ("scatter", "gather", "allgather")},
        **dict.fromkeys(("send", "bsend", "rsend", "ssend", "start", "startall"), (SEND,)),
        **dict.fromkeys(("recv", "mrecv", "wait", "waitall", "waitany", "waitsome"), (RECEIVE,)),
        **dict.fromkeys(("test", "testall", "testany", "testsome"), (RECEIVE,)),
        **dict.fromkeys(("sendrecv", "sendrecv_replace"), (SEND, RECEIVE)),
    }
)

# Operations that programs call again and again until something has arrived.
POLLING = frozenset({"test", "testall", "testany", "testsome", "iprobe", "improbe", "request_get_status"})

_REGION = re.compile(r"^p?mpi_(\w+?)(?:_c|_)?(?:\(.*)?$", re.IGNORECASE)


def operation(callpath: str) -> str | None:
    """Return the MPI operation that a call path ends with (``bcast``), in lower case; None for other regions.

    Profiling names (``PMPI_``), those of Fortran (``mpi_bcast_``) and of large counts (``MPI_Bcast_c``)
    count as the operation.
    """
    match = _REGION.match(callpath.rpartition("->")[2].strip())
    return match[1].lower() if match else None


def rows(name: str) -> tuple[Row, ...]:
    """Return the rows of Table I for an operation, none where it has none."""
    if name in TABLE:
        return TABLE[name]
    return TABLE.get(name[1:], ()) if name.startswith("i") else ()
