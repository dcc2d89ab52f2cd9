"""What a profiler needs of the run that it measures: variables, as shell text.

Each profiler writes one profile, below the attempt's directory, so that a program that changes its folder or
has its own default name for profiles leaves it where the reader looks.
"""

from __future__ import annotations

from collections.abc import Mapping
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
        "caliper": {"CALI_CONFIG": "'" + _CALIPER.replace("%s", "'\"$PWD\"'") + "'"},
    }
)


def profiler_variables(profiler: str) -> dict[str, str]:
    """Return the variables that a profiler is told by what to measure and where to write, as shell text."""
    return dict(_VARIABLES.get(profiler, {}))
