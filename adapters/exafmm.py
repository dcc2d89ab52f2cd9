"""ExaFMM: the fast multipole method (the program `laplace` of exafmm/exafmm)."""

from __future__ import annotations

from collections.abc import Mapping

from adapters import common
from adapters.common import Settings
from orchestrator.types import Application, Sample, Value

_PARTS = (
    "Partition",
    "Precalculation",
    "Build tree",
    "P2M & M2M",
    "Local essential tree",
    "M2L & P2P",
    "L2L & L2P",
)
_DISTRIBUTIONS = ("cube", "lattice", "octant", "plummer", "sphere")


def _values(settings: Settings) -> dict[str, Value]:
    count, level = common.ranks(settings), common.integer(settings, "level", 4)
    if not 0 <= level <= 9:
        raise ValueError(f"level must be within 0 and 9, not {level}")
    if 8**level < count:
        raise ValueError(f"level {level} divides space into {8**level} cells, fewer than p = {count} ranks")
    images = common.integer(settings, "images", 0)
    if images < 0:
        raise ValueError(f"images must not be negative, but is {images}")
    theta = settings.get("theta", 0.4)
    if isinstance(theta, str) or not 0 < theta <= 1:
        raise ValueError(f"theta must be above 0 and at most 1, not {theta!r}")
    return {
        "t": common.threads(settings),
        "n": common.positive(settings, "n"),
        "order": common.positive(settings, "order", 10),
        "ncrit": common.positive(settings, "ncrit", 64),
        "level": level,
        "theta": theta,
        "images": images,
        "distribution": common.one_of(settings, "distribution", _DISTRIBUTIONS, "cube"),
    }


def _output(texts: Mapping[str, str]) -> list[Sample]:
    """Read the timers of rank 0 between the headings; those of the check that follows are no part of it."""
    text = common.output_text(texts, r"^invalid |^Usage:|terminate called")
    start = common.only(r"^--- FMM Profiling -+ *$", text, "'--- FMM Profiling'").end()
    total = common.only(r"^Total FMM +: (\S+)$", text, "'Total FMM'")
    common.only(r"^--- FMM vs\. direct -+ *$", text, "'--- FMM vs. direct'")
    part = text[start : total.start()]
    samples = [
        common.seconds(f"main->{name}", common.only(rf"^{name} +: (\S+)$", part, f"'{name}'")[1])
        for name in _PARTS
    ]
    return [common.seconds("main", total[1]), *samples]


APPLICATION = Application(
    name="exafmm",
    description="ExaFMM, fast multipole method by dual tree traversal",
    parameters={
        "p": common.RANKS,
        "t": common.THREADS,
        "n": "particles of one rank (-n)",
        "order": "order of the expansions (-P, default 10)",
        "ncrit": "particles per leaf, at most (-c, default 64)",
        "level": "tree level at which ranks divide space: 8**level must be at least p (-l, default 4)",
        "theta": "acceptance criterion of multipoles, up to 1 (-t, default 0.4)",
        "images": "levels of periodic images, 0 for none (-i, default 0)",
        "distribution": "cube, lattice, octant, plummer or sphere (-d, default cube)",
    },
    required=("p", "n"),
    ranks=common.ranks,
    threads=common.threads,
    values=_values,
    check=common.refusal(_values),
    output=_output,
    start={
        "p": (1, 2, 4, 8, 16, 32),
        "n": (2000, 4000, 6000, 8000, 10000, 12000),
        "order": (4, 6, 8, 10, 12, 14),
    },
)
