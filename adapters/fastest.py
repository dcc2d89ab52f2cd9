"""FASTEST: a flow solver with block-structured grids. No times are known in its output."""

from __future__ import annotations

from adapters import common
from adapters.common import Settings
from orchestrator.types import Application, Value


def _values(settings: Settings) -> dict[str, Value]:
    cases = str(settings.get("cases", ""))
    if not cases.startswith("/"):
        raise ValueError(f"cases {cases!r} must be an absolute path: every attempt runs in its own directory")
    return {
        "p": common.ranks(settings),
        "t": common.threads(settings),
        "s": common.positive(settings, "s"),
        "cases": cases,
    }


APPLICATION = Application(
    name="fastest",
    description="FASTEST, flows in block-structured grids",
    parameters={
        "p": common.RANKS,
        "t": common.THREADS,
        "s": "cells of one rank",
        "cases": "absolute path of the folder with the prepared cases, one p<p>-s<s> for each point",
    },
    required=("p", "s", "cases"),
    ranks=common.ranks,
    threads=common.threads,
    values=_values,
    check=common.refusal(_values),
    start={
        "p": (16, 32, 64, 128, 256, 512),
        "s": (8192, 16384, 32768, 65536, 131072, 262144),
        "cases": ("/path/to/cases",),
    },
)
