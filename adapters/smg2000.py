"""SMG2000: semicoarsening multigrid, an ASC Purple benchmark. Its timers are those of hypre."""

from __future__ import annotations

import re
from collections.abc import Mapping

from adapters import common
from adapters.common import Settings
from orchestrator.types import Application, Sample, Value

_PHASES = {"Setup phase times": "main->setup", "Solve phase times": "main->solve"}
_PHASE = re.compile(r"^=+\n(.+):\n=+$", re.MULTILINE)
_TIMER = re.compile(r"^ *(\w[\w ]*):\n *wall clock time = (\S+) seconds", re.MULTILINE)
_WHOLE = re.compile(r"^(?:SMG|PCG) (?:Setup|Solve)$")


def _grid(settings: Settings) -> tuple[int, int, int]:
    """Return the grid of ranks: px, py and what remains of p, else the most cubic one."""
    count = common.ranks(settings)
    if not {"px", "py", "pz"} & settings.keys():
        return common.most_cubic(count)
    x, y = common.positive(settings, "px", 1), common.positive(settings, "py", 1)
    z = common.positive(settings, "pz", max(1, count // (x * y)))
    if x * y * z != count:
        raise ValueError(f"px x py x pz = {x} x {y} x {z} are {x * y * z} ranks, but p is {count}")
    return x, y, z


def _values(settings: Settings) -> dict[str, Value]:
    return {
        "t": common.threads(settings),
        **common.axes("n", common.block(settings)),
        **common.axes("p", _grid(settings)),
        "cx": common.at_least_zero(settings, "cx", 1),
        "cy": common.at_least_zero(settings, "cy", 1),
        "cz": common.at_least_zero(settings, "cz", 1),
        "solver": common.one_of(settings, "solver", ("0", "1", "2", "3"), "0"),
    }


def _output(texts: Mapping[str, str]) -> list[Sample]:
    """Read the timers of both phases; ``SMG`` alone is the same work as the whole phase."""
    text = common.output_text(texts, r"^Error:|^ERROR")
    iterations = common.only(r"^Iterations = (\d+)$", text, "'Iterations ='")
    headings = list(_PHASE.finditer(text))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    samples = []
    for heading, end in zip(headings, ends, strict=True):
        path = _PHASES.get(heading[1])
        for timer in _TIMER.finditer(text, heading.end(), end) if path else ():
            if timer[1] != "SMG":
                below = "" if _WHOLE.match(timer[1]) else f"->{timer[1]}"
                samples.append(common.seconds(f"{path}{below}", timer[2]))
    if {"main->setup", "main->solve"} - {sample.callpath for sample in samples}:
        raise ValueError("the output has no wall clock times of both the setup and the solve phase")
    if not any(sample.value for sample in samples):
        raise ValueError("every time is 0: this build has no clock (compile timer.c with TIMER_USE_MPI)")
    return [*samples, Sample("main->solve", "iterations", float(iterations[1]))]


APPLICATION = Application(
    name="smg2000",
    description="SMG2000, semicoarsening multigrid for diffusion on structured grids",
    parameters={
        "p": common.RANKS,
        "t": common.THREADS,
        "s": "grid points along each edge of one rank's block (-n)",
        "nx": "grid points of one rank in x (-n), with ny and nz instead of s",
        "ny": "grid points of one rank in y",
        "nz": "grid points of one rank in z",
        "block": "grid points of one rank 'x,y,z' (-n), instead of s",
        "px": "ranks in x (-P, default the most cubic grid with p ranks)",
        "py": "ranks in y",
        "pz": "ranks in z (default what remains: p / px / py)",
        "cx": "diffusion coefficient in x (-c, default 1)",
        "cy": "diffusion coefficient in y",
        "cz": "diffusion coefficient in z",
        "solver": "0: SMG; CG preconditioned by 1: SMG, 2: diagonal scaling, 3: nothing (-solver, default 0)",
    },
    required=("p",),
    ranks=common.ranks,
    threads=common.threads,
    values=_values,
    check=common.refusal(_values),
    output=_output,
    start={"p": (1, 2, 4, 8, 16, 32), "s": (10, 15, 20, 25, 30, 35)},
)
