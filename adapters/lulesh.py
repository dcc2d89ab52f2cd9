"""LULESH 2.0: Lagrangian hydrodynamics, a cube of elements per rank."""

from __future__ import annotations

from collections.abc import Mapping

from adapters import common
from adapters.common import Settings
from orchestrator.types import Application, Sample


def _values(settings: Settings) -> dict[str, int]:
    count = common.ranks(settings)
    if round(count ** (1 / 3)) ** 3 != count:
        raise ValueError(
            f"LULESH needs a cube of an integer as number of ranks (1, 8, 27, ...), p is {count}"
        )
    return {
        "t": common.threads(settings),
        "s": common.positive(settings, "s"),
        "i": common.positive(settings, "i", 50),
        "r": common.positive(settings, "r", 1),
        "b": common.integer(settings, "b", 1),
        "c": common.integer(settings, "c", 1),
    }


def _output(texts: Mapping[str, str]) -> list[Sample]:
    """Recover the elapsed time from the grind time: `Elapsed time` itself has two significant digits."""
    text = common.output_text(texts, "must be a cube of an integer|^Parse Error|^Missing integer")
    size = int(common.only(r"^ *Problem size +=\s*(\d+)", text, "'Problem size'")[1])
    cycles = int(common.only(r"^ *Iteration count +=\s*(\d+)", text, "'Iteration count'")[1])
    grind = common.only(r"^Grind time \(us/z/c\) +=\s*(\S+) \(per dom\)", text, "'Grind time'")
    return [common.seconds("main", float(grind[1]) * 1e-6 * cycles * size**3)]


APPLICATION = Application(
    name="lulesh",
    description="LULESH 2.0, Lagrangian shock hydrodynamics on an unstructured mesh",
    parameters={
        "p": f"{common.RANKS}, a cube of an integer",
        "t": common.THREADS,
        "s": "elements along each edge of one rank's cube (-s)",
        "i": "time steps (-i, default 50); without a fixed number they would depend on s and p",
        "r": "regions (-r, default 1, which is even work for all elements; LULESH's own default is 11)",
        "b": "imbalance of region sizes (-b, default 1)",
        "c": "extra cost of expensive regions (-c, default 1)",
    },
    required=("p", "s"),
    ranks=common.ranks,
    threads=common.threads,
    values=_values,
    check=common.refusal(_values),
    output=_output,
    start={"p": (1, 8, 27, 64, 125, 216), "s": (10, 15, 20, 25, 30, 35), "i": (50,)},
)
