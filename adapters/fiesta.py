"""FIESTA: finite volumes for compressible flow. Its input is a Lua script, which the template writes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from adapters import common
from adapters.common import Settings
from orchestrator.types import Application, Sample, Value

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_TIMER = re.compile(r"^ {8,}(\S.*?) {2,}(\d\.\d+e[+-]\d+)$", re.MULTILINE)
_COMPLAINTS = r"^\[ *\d+\.\d+\] +Error|^Invalid MPI communication scheme|terminate called|what\(\):"
_CALLPATHS = {
    "Total Execution Time": "main",
    "Total Startup Time": "main->startup",
    "Initial Condition Generation": "main->startup->Initial Condition Generation",
    "Grid Generation": "main->startup->Grid Generation",
    "Initial Condition Write Time": "main->startup->Initial Condition Write Time",
    "Total Simulation Time": "main->simulation",
}


def _values(settings: Settings) -> dict[str, Value]:
    grid = common.rank_grid(settings, "grid")
    cells = common.positive(settings, "n")
    for axis, ranks in zip("xyz", grid, strict=True):
        if cells < 3 * ranks:
            raise ValueError(
                f"n {cells}: {ranks} ranks in {axis} would have fewer than 3 cells, the width of their halo"
            )
    return {
        "t": common.threads(settings),
        "n": cells,
        **common.axes("p", grid),
        "steps": common.positive(settings, "steps", 100),
        "scheme": common.one_of(settings, "scheme", ("weno5", "centered4", "quick"), "weno5"),
        "exchange": common.one_of(settings, "exchange", ("host", "gpu-aware", "gpu-type"), "host"),
        "gpus": common.integer(settings, "gpus", 0),
    }


def _output(texts: Mapping[str, str]) -> list[Sample]:
    clean = {name: _COLOUR.sub("", text) for name, text in texts.items()}
    text = common.output_text(clean, _COMPLAINTS)
    common.only(r"^ +Total Execution Time +\S+$", text, "'Total Execution Time'")
    end = common.only(r"^ +Total Simulation Time +\S+$", text, "'Total Simulation Time'").start()
    samples = []
    for timer in _TIMER.finditer(text):
        below = f"main->simulation->{timer[1]}" if timer.start() > end else None
        path = _CALLPATHS.get(timer[1], below)
        if path is not None:
            samples.append(common.seconds(path, timer[2]))
    return samples


APPLICATION = Application(
    name="fiesta",
    description="FIESTA, finite volumes for shocks in compressible flow",
    parameters={
        "p": common.RANKS,
        "t": common.THREADS,
        "n": "cells of the whole domain in each dimension (fiesta.grid.ni)",
        "grid": "grid of ranks 'x,y,z' (fiesta.mpi.procs, default the most cubic one with p ranks)",
        "steps": "time steps (fiesta.time.nt, default 100)",
        "scheme": "weno5, centered4 or quick (fiesta.advection_scheme, default weno5)",
        "exchange": "halo exchange: host, gpu-aware or gpu-type (fiesta.mpi.type, default host)",
        "gpus": "GPUs of a node (--kokkos-num-devices, default 0: none)",
    },
    required=("p", "n"),
    ranks=common.ranks,
    threads=common.threads,
    values=_values,
    check=common.refusal(_values),
    output=_output,
    start={"p": (1, 2, 4, 8, 16, 32), "n": (20, 30, 40, 50, 60, 70), "steps": (20,)},
)
