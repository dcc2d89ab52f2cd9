"""RELeARN: structural plasticity of the brain."""

from __future__ import annotations

import re
from collections.abc import Mapping

from adapters import common
from adapters.common import Settings
from orchestrator.types import Application, Sample, Value

_COLOUR = re.compile(r"\x1b?\[[0-9;]*m")
_TIMER = re.compile(r"^( +)(\S.*?) +: +(\S+) \| +(\S+) \| +(\S+) *$", re.MULTILINE)
_ALGORITHMS = ("barnes-hut", "barnes-hut-inverted")


def _values(settings: Settings) -> dict[str, Value]:
    count = common.ranks(settings)
    if count < 2 or count & (count - 1):
        raise ValueError(f"RELeARN needs a power of two of at least 2 as number of ranks, p is {count}")
    algorithm = common.one_of(settings, "algorithm", _ALGORITHMS, "barnes-hut")
    theta = settings.get("theta", 0.3)
    if isinstance(theta, str) or not 0 < theta <= 0.5:
        raise ValueError(f"theta must be above 0 and at most 0.5, not {theta!r}")
    return {
        "algorithm": algorithm,
        "theta": theta,
        "n": common.positive(settings, "n"),
        "steps": common.positive(settings, "steps", 1000),
        "seed": common.integer(settings, "seed", 0),
        "t": common.threads(settings),
    }


def _output(texts: Mapping[str, str]) -> list[Sample]:
    """Read the tree of timers; two spaces of indentation are one level."""
    clean = {name: _COLOUR.sub("", text) for name, text in texts.items()}
    text = common.output_text(clean, r"\[ERROR|RelearnException|what\(\):|^Run with --help")
    common.only(r"^END: ", text, "'END:'")
    start = common.only(r"^TIMERS: main\(\)$", text, "'TIMERS: main()'").end()
    samples: list[Sample] = []
    path = ["main"]
    for row in _TIMER.finditer(text, start):
        depth = len(row[1]) // 2
        path = [*path[:depth], row[2]]
        callpath = "->".join(path)
        samples += [
            common.seconds(callpath, row[column], aggregate)
            for column, aggregate in ((3, "min"), (4, "mean"), (5, "max"))
        ]
    if "main->Simulation loop" not in {sample.callpath for sample in samples}:
        raise ValueError("the tree of timers has no 'Simulation loop'")
    return samples


APPLICATION = Application(
    name="relearn",
    description="RELeARN, structural plasticity of networks of neurons",
    parameters={
        "p": f"{common.RANKS}, a power of two of at least 2",
        "t": common.THREADS,
        "n": "neurons per rank (--num-neurons-per-rank)",
        "theta": "acceptance criterion of the Barnes-Hut algorithms (-t, up to 0.5, default 0.3)",
        "steps": "steps of the simulation in ms (-s, default 1000)",
        "algorithm": f"{', '.join(_ALGORITHMS)} (-a, default barnes-hut)",
        "seed": "random seed (-r, default 0)",
    },
    required=("p", "n"),
    ranks=common.ranks,
    threads=common.threads,
    values=_values,
    check=common.refusal(_values),
    output=_output,
    start={"p": (2, 4, 8, 16, 32, 64), "n": (100, 200, 300, 400, 500, 600)},
)
