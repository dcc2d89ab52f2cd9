"""Kripke: deterministic particle transport. Version 1.1 and the current one differ in options and timers."""

from __future__ import annotations

from collections.abc import Mapping

from adapters import common
from adapters.common import Settings
from orchestrator.types import Application, Sample, Value, format_value

_LAYOUTS = ("DGZ", "DZG", "GDZ", "GZD", "ZDG", "ZGD")
_ARCHITECTURES = ("Sequential", "OpenMP", "CUDA", "HIP")
_PARENTS = {
    "Generate": "",
    "Solve": "",
    "Sweep_Kernel": "Solve->Sweep->",
    "SweepSubdomain": "Solve->SweepSolver->",
}
_COMPLAINTS = (
    r"^Number of .* (?:must|needs? to) be|^ERROR|^Assertion Failed|^Unknwon option|^Usage:|"
    r"^You must run at least|^Invalid nesting"
)


def _directions(settings: Settings) -> tuple[str, int]:
    text = format_value(settings.get("quad", 96))
    parts = text.split(":")
    if len(parts) > 2 or not all(part.isdecimal() for part in parts):
        raise ValueError(f"quad must be a number of directions or polar:azimuthal, not {text!r}")
    if len(parts) == 1:
        return text, int(text)
    polar, azimuthal = int(parts[0]), int(parts[1])
    if polar % 4 or azimuthal % 2:
        raise ValueError(f"quad {text}: polar must be a multiple of 4, azimuthal of 2")
    return text, polar * azimuthal


def _sets(settings: Settings) -> dict[str, str]:
    groups, group_sets = common.positive(settings, "groups", 32), common.positive(settings, "gset", 2)
    if groups % group_sets:
        raise ValueError(f"gset {group_sets} does not divide groups {groups}")
    quad, directions = _directions(settings)
    direction_sets = common.positive(settings, "dset", 8)
    if direction_sets % 8:
        raise ValueError(f"dset {direction_sets} is not a multiple of 8")
    if directions < 8 or directions % direction_sets:
        raise ValueError(f"dset {direction_sets} does not divide the {directions} directions of quad")
    return {"groups": str(groups), "gset": str(group_sets), "quad": quad, "dset": str(direction_sets)}


def _space(settings: Settings, even: bool) -> dict[str, str]:
    grid = common.rank_grid(settings, "procs")
    zones = common.cells(settings, grid, "zones")
    zone_sets = common.triple(settings, "zset") or (1, 1, 1)
    for axis, count, ranks, sets in zip("xyz", zones, grid, zone_sets, strict=True):
        if count < ranks * sets or (even and count % (ranks * sets)):
            rule = "must be a multiple of" if even else "must be at least"
            raise ValueError(f"{count} zones in {axis} {rule} procs x zset = {ranks} x {sets} in {axis}")
    return {
        "procs": common.joined(grid),
        "zones": common.joined(zones),
        "zset": common.joined(zone_sets),
    }


def _common(settings: Settings, even: bool) -> dict[str, str]:
    legendre = common.integer(settings, "legendre", 4)
    if legendre < 0:
        raise ValueError(f"legendre must not be negative, but is {legendre}")
    return {
        "t": str(common.threads(settings)),
        **_space(settings, even),
        **_sets(settings),
        "legendre": str(legendre),
        "niter": str(common.positive(settings, "niter", 10)),
        "pmethod": common.one_of(settings, "pmethod", ("sweep", "bj"), "sweep"),
    }


def _values_1_1(settings: Settings) -> dict[str, str]:
    zone_sets = common.triple(settings, "zset") or (1, 1, 1)
    for axis, ranks, sets in zip("xyz", common.rank_grid(settings, "procs"), zone_sets, strict=True):
        if ranks > 1 and sets > 1:
            raise ValueError(
                f"Kripke 1.1 hangs for ever with {sets} zone sets in {axis}, which {ranks} ranks share: "
                f"zset must be 1 in {axis}"
            )
    return {**_common(settings, even=False), "nest": common.one_of(settings, "nest", _LAYOUTS, "DGZ")}


def _values_current(settings: Settings) -> dict[str, str]:
    default = "Sequential" if common.threads(settings) == 1 else "OpenMP"
    return {
        **_common(settings, even=True),
        "layout": common.one_of(settings, "layout", _LAYOUTS, "DGZ"),
        "arch": common.one_of(settings, "arch", _ARCHITECTURES, default),
    }


def _output(texts: Mapping[str, str]) -> list[Sample]:
    """Read the machine-readable lines, which have a digit more than the table; rank 0 only."""
    text = common.output_text(texts, _COMPLAINTS)
    names = common.only(r"^TIMER_NAMES:(\S+)$", text, "'TIMER_NAMES:'")[1].split(",")
    times = common.only(r"^TIMER_DATA:(\S+)$", text, "'TIMER_DATA:'")[1].split(",")
    if len(names) != len(times):
        raise ValueError(f"TIMER_NAMES has {len(names)} entries, TIMER_DATA {len(times)}")
    if "Solve" not in names:
        raise ValueError(f"TIMER_NAMES has no 'Solve', only {', '.join(names)}")
    return [
        common.seconds(f"main->{_PARENTS.get(name, 'Solve->')}{name}", time)
        for name, time in zip(names, times, strict=True)
    ]


_PARAMETERS = {
    "p": common.RANKS,
    "t": common.THREADS,
    "procs": "grid of ranks 'x,y,z' (--procs, default the most cubic one with p ranks)",
    "s": "zones along each edge of one rank's block (weak scaling)",
    "n": "zones along each edge of the whole domain (strong scaling)",
    "zones": "zones of the whole domain 'x,y,z' (--zones)",
    "groups": "energy groups (--groups, default 32)",
    "gset": "group sets, a divisor of groups (--gset, default 2)",
    "quad": "directions, or polar:azimuthal (--quad, default 96)",
    "dset": "direction sets, a multiple of 8 that divides the directions (--dset, default 8)",
    "zset": "zone sets per rank 'x,y,z' (--zset, default 1,1,1)",
    "legendre": "scattering order (--legendre, default 4)",
    "niter": "solver iterations (--niter, default 10)",
    "pmethod": "sweep or bj (--pmethod, default sweep)",
}

_START: dict[str, tuple[Value, ...]] = {
    "p": (1, 2, 4, 8, 16, 32),
    "s": (4, 6, 8, 10, 12, 14),
    "groups": (8, 16, 24, 32, 40, 48),
    "gset": (1,),
    "niter": (5,),
}

APPLICATION = Application(
    name="kripke",
    description="Kripke (current), deterministic Sn particle transport with parallel sweeps",
    parameters={
        **_PARAMETERS,
        "layout": "data layout and loop nesting (--layout, default DGZ)",
        "arch": "Sequential, OpenMP, CUDA or HIP (--arch, default Sequential, OpenMP where t > 1)",
    },
    required=("p",),
    ranks=common.ranks,
    threads=common.threads,
    values=_values_current,
    check=common.refusal(_values_current),
    output=_output,
    start=_START,
)

APPLICATION_1_1 = Application(
    name="kripke-1.1",
    description="Kripke 1.1, deterministic Sn particle transport with parallel sweeps",
    parameters={**_PARAMETERS, "nest": "loop nesting and data layout (--nest, default DGZ)"},
    required=("p",),
    ranks=common.ranks,
    threads=common.threads,
    values=_values_1_1,
    check=common.refusal(_values_1_1),
    output=_output,
    start=_START,
)
