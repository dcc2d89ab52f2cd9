"""AMG: algebraic multigrid, the proxy of hypre's BoomerAMG."""

from __future__ import annotations

import re
from collections.abc import Mapping

from adapters import common
from adapters.common import Settings
from orchestrator.types import Application, Sample, Value

_CALLPATHS = {
    "Spatial Operator": "main->matrix",
    "RHS and Initial Guess": "main->rhs",
    "PCG Setup": "main->setup",
    "PCG Solve": "main->solve",
    "GMRES Solve": "main->solve",
}
_TIMER = re.compile(r"^ *([A-Z][\w ]+):\n *wall clock time = (\S+) seconds", re.MULTILINE)


def _values(settings: Settings) -> dict[str, Value]:
    return {
        "t": common.threads(settings),
        **common.axes("p", common.rank_grid(settings, "grid")),
        **common.axes("n", common.block(settings)),
        "problem": common.one_of(settings, "problem", ("1", "2"), "1"),
    }


def _output(texts: Mapping[str, str]) -> list[Sample]:
    text = common.output_text(texts, r"^Error:|^ *Error!|^ERROR")
    common.only(r"^Figure of Merit \(FOM_[12]\): \S+", text, "'Figure of Merit'")
    timers = {match[1]: match[2] for match in _TIMER.finditer(text)}
    if not {"PCG Solve", "GMRES Solve"} & timers.keys():
        raise ValueError("the output has no wall clock time of 'PCG Solve' or 'GMRES Solve'")
    iterations = common.only(r"^(?:Cum\. No\. of )?Iterations = (\d+)", text, "'Iterations ='")
    samples = [common.seconds(path, timers[timer]) for timer, path in _CALLPATHS.items() if timer in timers]
    return [*samples, Sample("main->solve", "iterations", float(iterations[1]))]


APPLICATION = Application(
    name="amg",
    description="AMG, algebraic multigrid solution of a 27-point Laplacian (proxy of BoomerAMG)",
    parameters={
        "p": common.RANKS,
        "t": common.THREADS,
        "grid": "grid of ranks 'x,y,z' (-P, default the most cubic one with p ranks)",
        "s": "grid points along each edge of one rank's block (-n)",
        "block": "grid points of one rank 'x,y,z' (-n), instead of s",
        "nx": "grid points of one rank in x (-n), with ny and nz instead of s",
        "ny": "grid points of one rank in y",
        "nz": "grid points of one rank in z",
        "problem": "1: conjugate gradients with AMG; 2: GMRES with AMG in time steps (-problem, default 1)",
    },
    required=("p",),
    ranks=common.ranks,
    threads=common.threads,
    values=_values,
    check=common.refusal(_values),
    output=_output,
    start={"p": (1, 2, 4, 8, 16, 32), "s": (10, 15, 20, 25, 30, 35)},
)
