"""What measured programs inherit from the process that starts them: the user's environment and CPUs.

Libraries change both inside the controller. scikit-learn sets ``KMP_DUPLICATE_LIB_OK`` and
``KMP_INIT_AT_FORK`` when it is imported, numba reads and writes ``NUMBA_*``, an OpenMP runtime may bind the
thread that loads it to one core. A measured program must see none of that.

The process on the node that owns an attempt imports this module, so it needs nothing but the standard
library. Whoever starts heavy libraries imports it first.
"""

from __future__ import annotations

import os
from functools import cache

LIBRARIES = (
    *("KMP_", "__KMP_", "OMP_", "GOMP_", "LIBOMP"),
    *("MKL_", "OPENBLAS_", "GOTO_", "BLIS_", "VECLIB_", "ARMPL_", "ATLAS_", "FLEXIBLAS"),
    *("NUMBA_", "NUMEXPR_", "TBB_", "JOBLIB_", "LOKY_"),
    "LC_CTYPE",  # which Python sets at its start in the locale C
)
"""How the names of variables begin that only the user, no library, may set for measured programs."""

_CPUS = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset[int]()


def environment() -> dict[str, str]:
    """Return the environment for measured programs.

    Variables of `LIBRARIES` are as they were when this process began, all others as they are now: a caller of
    the Python functions may set those for programs.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LIBRARIES)}
    return kept | _at_start()


def cpus() -> frozenset[int]:
    """Return the CPUs that this process might use when this module was imported; empty where unknown."""
    return _CPUS


@cache
def _at_start() -> dict[str, str]:
    """Return the variables of `LIBRARIES` at the start of this process."""
    try:
        with open("/proc/self/environ", "rb") as file:  # noqa: PTH123 (an attempt starts without pathlib)
            items = os.fsdecode(file.read()).split("\0")
    except OSError:  # no Linux
        return {}
    pairs = (item.partition("=") for item in items)
    return {name: value for name, separator, value in pairs if separator and name.startswith(LIBRARIES)}
