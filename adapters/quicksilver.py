"""Quicksilver: Monte Carlo particle transport."""

from __future__ import annotations

import re
from collections.abc import Mapping

from adapters import common
from adapters.common import Settings
from orchestrator.types import Application, Sample

_MICROSECOND = 1e-6
_TIMER = re.compile(r"^(main|cycle\w+) +\d+ +(\S+) +(\S+) +(\S+) +\S+ +\S+ *$", re.MULTILINE)


def _values(settings: Settings) -> dict[str, int]:
    """Derive mesh and particles; refuse domains that do not match the ranks: Quicksilver hangs for ever."""
    domains = common.rank_grid(settings, "domains")
    mesh = common.cells(settings, domains, "mesh")
    for axis, count, parts in zip("xyz", mesh, domains, strict=True):
        if count < parts:
            raise ValueError(f"{count} mesh elements in {axis} are fewer than {parts} domains in {axis}")
    elements = mesh[0] * mesh[1] * mesh[2]
    if "particles" in settings and "density" in settings:
        raise ValueError("particles and density both give the number of particles: set one of them")
    particles = common.positive(
        settings, "particles", _particles(elements, common.positive(settings, "density", 1))
    )
    if particles < 10 * elements:
        raise ValueError(
            f"{particles} particles are fewer than 10 per mesh element ({elements} elements): "
            "Quicksilver would create none at all"
        )
    return {
        "t": common.threads(settings),
        **common.axes("n", mesh),
        **common.axes("p", domains),
        "particles": particles,
        "steps": common.positive(settings, "steps", 10),
        "seed": common.positive(settings, "seed", 1029384756),
    }


def _particles(elements: int, density: int) -> int:
    """Return ``-n`` for ``density`` new particles per element and step.

    Quicksilver creates ``int(n / (10 elements))`` in each element, so n goes to the middle of a step.
    """
    return (10 * density + 5) * elements


def _callpath(timer: str) -> str:
    if timer == "main":
        return "main"
    return f"main->cycleTracking->{timer}" if timer.startswith("cycleTracking_") else f"main->{timer}"


def _output(texts: Mapping[str, str]) -> list[Sample]:
    text = common.output_text(texts, r"\bERROR\b")
    header = common.only(r"^Timer( +Cumulative){6} *$", text, "table of cumulative timers")
    merit = common.only(r"^Figure Of Merit +(\S+)", text, "'Figure Of Merit'")
    if float(merit[1]) == 0:
        raise ValueError("no particle was tracked (Figure Of Merit 0): fewer than 10 particles per element")
    rows = list(_TIMER.finditer(text, header.end()))
    if "main" not in {row[1] for row in rows}:
        raise ValueError("the table of cumulative timers has no line 'main'")
    return [
        common.seconds(_callpath(row[1]), float(row[column]) * _MICROSECOND, aggregate)
        for row in rows
        for column, aggregate in ((2, "min"), (3, "mean"), (4, "max"))
    ]


APPLICATION = Application(
    name="quicksilver",
    description="Quicksilver, Monte Carlo particle transport",
    parameters={
        "p": common.RANKS,
        "t": common.THREADS,
        "domains": "grid of ranks 'x,y,z' (-I -J -K, default the most cubic one with p ranks)",
        "s": "mesh elements along each edge of one rank's domain (weak scaling)",
        "n": "mesh elements along each edge of the whole mesh (strong scaling)",
        "mesh": "mesh elements of the whole mesh 'x,y,z' (-x -y -z; -X -Y -Z give each a size of 1 cm)",
        "density": "particles created per mesh element and step (default 1)",
        "particles": "-n, instead of density; at least 10 per mesh element, acts in steps of that",
        "steps": "time steps (-N, default 10)",
        "seed": "seed of the particles' random numbers (-s, default that of Quicksilver)",
    },
    required=("p",),
    ranks=common.ranks,
    threads=common.threads,
    values=_values,
    check=common.refusal(_values),
    output=_output,
    start={"p": (1, 2, 4, 8, 16, 32), "s": (4, 6, 8, 10, 12, 14), "steps": (5,)},
)
