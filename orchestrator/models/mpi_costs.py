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

Four operations are not in the table. Their costs are those of the algorithms that MPICH uses for all but
short messages (Thakur, Rabenseifner and Gropp 2005, Optimization of Collective Communication Operations in
MPICH, section 4, with n for B); the last one is a reduction of nothing:

============== ===================================== ====================================================
Alltoall       ``(p-1) α + B (p-1)/p β``             pairwise exchange: a message to every other rank
Reduce_scatter ``log2(p) α + (β + γ) B (p-1)/p``     recursive halving
Scan, Exscan   ``log2(p) (α + (β + γ) B)``           recursive doubling: whole vectors in every round
Barrier        ``log2(p) α``                         dissemination
============== ===================================== ====================================================

The paper by Thakur et al. has no scan; its algorithm is the one in MPICH's source (``scan.c``), which sends
and combines the vector in each of log2(p) rounds. For messages of up to 256 bytes to each rank, MPICH's
alltoall is Bruck's algorithm, ``log2(p) (α + B/2 β)``: there the row above has too much latency.

``B(p, x)`` is the length of the whole vector. What profiles count are bytes per rank, as Score-P does:
the root of a broadcast has sent p times what each rank has received, a scatter or gather moves one p-th of
the vector per rank, and allreduce counts the vector once per rank of the communicator. In a scan a rank sends
to itself and those after it, on average to (p+1)/2 ranks (exscan: (p-1)/2). `Row.whole` turns these counts
(mean over ranks; but for scans also the maximum) into B.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

SENT, RECEIVED = "bytes_sent", "bytes_received"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the tables above."""

    operation: str  # its name there
    tree: bool  # whether the latency grows with log2(p)
    metric: str = ""  # which count holds the transferred bytes; empty where none are transferred
    power: int = 0  # B is the count times ``p**power``
    # What a rank counts goes to the ranks after it, and so many more: 1 with itself, -1 without; 0 where it
    # goes to all alike. On average these are ``(p + later) / 2``.
    later: int = 0
    partners: bool = False  # whether there is a latency for every other rank, p-1 of them
    fraction: bool = False  # whether β comes with (p-1)/p
    rounds: bool = False  # whether β and γ come with log2(p)
    reduces: bool = False  # whether there is a term (p-1)/p γ B

    def whole(self, count: float, ranks: float) -> float:
        """Return B, the bytes of the whole vector, from those that a rank counts.

        Parameters
        ----------
        count
            Bytes of one rank.
        ranks
            In the communicator.
        """
        if not self.later:
            return float(count * ranks**self.power)
        receivers = (ranks + self.later) / 2
        return float(count / receivers) if receivers > 0 else 0.0


SEND = Row(operation="Send", tree=False, metric=SENT)
RECEIVE = Row(operation="Receive", tree=False, metric=RECEIVED)
_ROWS = {
    "bcast": Row(operation="Broadcast", tree=True, metric=RECEIVED),
    "scatter": Row(operation="Scatter", tree=True, metric=RECEIVED, power=1, fraction=True),
    "gather": Row(operation="Gather", tree=True, metric=SENT, power=1, fraction=True),
    "allgather": Row(operation="Allgather", tree=True, metric=RECEIVED, fraction=True),
    "reduce": Row(operation="Reduce", tree=True, metric=SENT, reduces=True),
    "allreduce": Row(operation="Allreduce", tree=True, metric=SENT, power=-1, reduces=True),
    # Not in the paper's table.
    "alltoall": Row(operation="Alltoall", tree=False, partners=True, metric=SENT, fraction=True),
    "reduce_scatter": Row(operation="Reduce_scatter", tree=True, metric=SENT, fraction=True, reduces=True),
    "scan": Row(operation="Scan", tree=True, metric=SENT, later=1, rounds=True, reduces=True),
    "exscan": Row(operation="Exscan", tree=True, metric=SENT, later=-1, rounds=True, reduces=True),
    "barrier": Row(operation="Barrier", tree=True),
}

# Names without MPI_, in lower case. Variants with counts per rank (v) and without blocking (i) share a row.
TABLE: Mapping[str, tuple[Row, ...]] = MappingProxyType(
    {
        **{name: (row,) for name, row in _ROWS.items()},
        **{f"{name}v": (_ROWS[name],) for name in ("scatter", "gather", "allgather", "alltoall")},
        "alltoallw": (_ROWS["alltoall"],),
        "reduce_scatter_block": (_ROWS["reduce_scatter"],),
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
    """Return the rows of the tables above for an operation, none where it has none."""
    if name in TABLE:
        return TABLE[name]
    return TABLE.get(name[1:], ()) if name.startswith("i") else ()
