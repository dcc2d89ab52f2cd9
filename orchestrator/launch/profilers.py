"""What a profiler needs of the run that it measures: variables, as shell text.

Each profiler writes one profile, below the attempt's directory, so that a program that changes its folder or
has its own default name for profiles leaves it where the reader looks.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from types import MappingProxyType

# A quote within a value keeps what a path may hold, such as the comma of `p=8,s=10`, apart from its syntax.
_CALIPER = 'spot(output="%s/caliper.cali",time.exclusive,region.count,profile.mpi)'

_VARIABLES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        # Score-P would otherwise choose a name with the time of day, or move an existing folder aside.
        "scorep": {
            "SCOREP_ENABLE_PROFILING": "true",
            "SCOREP_ENABLE_TRACING": "false",
            "SCOREP_EXPERIMENT_DIRECTORY": '"$PWD"/scorep',
            "SCOREP_OVERWRITE_EXPERIMENT_DIRECTORY": "true",
        },
        "effort": {"ORCHESTRATOR_EFFORT_DIRECTORY": '"$PWD"/effort'},
        "tau": {
            "TAU_PROFILE": "1",
            "TAU_CALLPATH": "1",
            "TAU_CALLPATH_DEPTH": "100",
            "PROFILEDIR": '"$PWD"',
        },
        "mpi": {"ORCHESTRATOR_MPI_TIME_DIRECTORY": '"$PWD"/mpi-time'},
        "caliper": {"CALI_CONFIG": "'" + _CALIPER.replace("%s", "'\"$PWD\"'") + "'"},
    }
)


def profiler_variables(profiler: str) -> dict[str, str]:
    """Return the variables that a profiler is told by what to measure and where to write, as shell text."""
    return dict(_VARIABLES.get(profiler, {}))


def preloading(libraries: Sequence[str]) -> list[str]:
    """Return the words, as shell text, before a command that libraries are to be preloaded into.

    They are not exported: the launcher, which may belong to another MPI, must not load them. What is
    preloaded already stays so.
    """
    if not libraries:
        return []
    return ["env", f'LD_PRELOAD={shlex.quote(":".join(libraries))}"${{LD_PRELOAD:+:$LD_PRELOAD}}"']
