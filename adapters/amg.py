"""AMG: algebraic multigrid, the proxy of hypre's BoomerAMG."""

from __future__ import annotations

import re
from collections.abc import Mapping

from adapters import common
from adapters.common import Settings
from orchestrator.types import Application, Sample

_CALLPATHS = {
    "Spatial Operator": "main->matrix",
    "RHS and Initial Guess": "main->rhs",
    "PCG Setup": "main->setup",
    "PCG Solve": "main->solve",
    "GMRES Solve": "main->solve",
}
_TIMER = re.compile(r"^ *([A-Z][\w ]+):\n *wall clock time = (\S+) seconds", re.MULTILINE)


def _plan(settings: Settings) -> list[str]:
    grid = common.rank_grid(settings, "grid")
    common.threads(settings)
    if ("s" in settings) == ("block" in settings):
        raise ValueError("set exactly one of s and block, the grid points of one rank")
    edge = common.positive(settings, "s", 1)
    block = common.triple(settings, "block") or (edge, edge, edge)
    problem = common.one_of(settings, "problem", ("1", "2"), "1")
    return ["-problem", problem, "-n", *map(str, block), "-P", *map(str, grid)]


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
        "problem": "1: conjugate gradients with AMG; 2: GMRES with AMG in time steps (-problem, default 1)",
    },
    required=("p",),
    ranks=common.ranks,
    threads=common.threads,
    arguments=_plan,
    check=common.refusal(_plan),
    output=_output,
)
