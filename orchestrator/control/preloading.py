"""Libraries of ours that are preloaded into a program as it is: built here, for the program's MPI."""

from __future__ import annotations

from functools import cache

from orchestrator.instrumentation import build
from orchestrator.launch.mpi import compiler_for

MPI_TIME = "mpi"
"""The profiler whose library is preloaded."""


@cache
def libraries(profiler: str, executable: str) -> tuple[str, ...]:
    """Return the libraries that a profiler needs in a program; built at the first call.

    Raises
    ------
    CampaignError
        Without a compiler of the program's MPI.
    EffortError
        For a compiler that cannot build the library.
    """
    if profiler != MPI_TIME:
        return ()
    return (str(build.timer(build.build(compiler_for(executable)))),)
