"""LAMMPS: molecular dynamics."""

from __future__ import annotations

import re
from collections.abc import Mapping

from adapters import common
from adapters.common import Settings
from orchestrator.types import Application, Sample, Value

_INPUT = "in.melt"  # written by the template
_LOOP = re.compile(r"^Loop time of (\S+) on (\d+) procs for (\d+) steps with (\d+) atoms", re.MULTILINE)
_SECTION = re.compile(
    r"^(\w+) +\| *([\d.e+-]*) *\| *([\d.e+-]+) *\| *([\d.e+-]*) *\|[^|]*\|[^|]*$", re.MULTILINE
)


def _values(settings: Settings) -> dict[str, Value]:
    common.ranks(settings)
    source = str(settings.get("input", _INPUT))
    if "input" in settings and not source.startswith("/"):
        raise ValueError(
            f"input {source!r} must be an absolute path: every attempt runs in its own directory"
        )
    numbers = {name: common.positive(settings, name, default) for name, default in _DEFAULTS.items()}
    return {"input": source, "t": common.threads(settings), **numbers}


_DEFAULTS = {"x": 10, "y": 10, "z": 10, "steps": 100}


def _output(texts: Mapping[str, str]) -> list[Sample]:
    """Read loop times and the breakdown below each; an input with several runs yields their sums."""
    text = common.output_text(texts, r"^ERROR")
    common.only(r"^LAMMPS \(", text, "banner 'LAMMPS (version)'")
    common.all_of(text, "'Loop time'")
    loops = list(_LOOP.finditer(text))
    if not loops:
        raise ValueError("the output has no 'Loop time of'")
    common.only(r"^Total wall time: ", text, "'Total wall time:'")
    ends = [match.start() for match in loops[1:]] + [len(text)]
    totals: dict[tuple[str, str], float] = {("loop", "value"): sum(float(match[1]) for match in loops)}
    for match, end in zip(loops, ends, strict=True):
        for section in _SECTION.finditer(text, match.end(), end):
            for column, aggregate in ((2, "min"), (3, "mean"), (4, "max")):
                if section[column]:
                    key = (f"loop->{section[1]}", aggregate)
                    totals[key] = totals.get(key, 0.0) + float(section[column])
    if ("loop->Pair", "mean") not in totals:
        raise ValueError("the output has no 'MPI task timing breakdown' with a section Pair")
    return [common.seconds(callpath, value, aggregate) for (callpath, aggregate), value in totals.items()]


APPLICATION = Application(
    name="lammps",
    description="LAMMPS, classical molecular dynamics (a melting Lennard-Jones crystal unless input is set)",
    parameters={
        "p": common.RANKS,
        "t": common.THREADS,
        "x": "unit cells of four atoms in x (-var x, default 10)",
        "y": "unit cells in y (-var y, default 10)",
        "z": "unit cells in z (-var z, default 10)",
        "steps": "time steps (-var steps, default 100)",
        "input": "absolute path of another input, which gets x, y, z and steps as variables",
    },
    required=("p",),
    ranks=common.ranks,
    threads=common.threads,
    values=_values,
    check=common.refusal(_values),
    output=_output,
    start={"p": (1, 2, 4, 8, 16, 32), "x": (8, 16, 24, 32, 40, 48), "steps": (100,)},
)
