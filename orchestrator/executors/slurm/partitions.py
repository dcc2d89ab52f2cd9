"""The partitions of a Slurm and the nodes in them, as ``sinfo`` reports them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from orchestrator.executors.slurm.commands import answer

# Jobs may name hidden partitions, too.
_SIZES = ("sinfo", "--all", "--noheader", "--exact", "--format=%P|%s")
SINFO = ("sinfo", "--all", "--noheader", "--exact", "--format=%P|%a|%T|%D|%c|%z|%l")
_DOWN = ("down", "drain", "error", "fail", "future", "inval", "maint", "perfctrs", "reboot", "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition; ``cores`` are the distinct numbers of cores of its nodes, ``time`` seconds or None.

    ``threads`` are the most hardware threads that Slurm counts per core, ``most`` the most nodes of a job
    where there is such a limit.
    """

    name: str
    default: bool
    up: bool
    nodes: int
    usable: int
    cores: tuple[int, ...]
    threads: int
    time: float | None
    most: int | None = None

    @property
    def most_nodes(self) -> int:
        """The most nodes that a job can ever get."""
        return self.nodes if self.most is None else min(self.nodes, self.most)


def meant(known: Sequence[Partition], name: str | None) -> list[Partition]:
    """Return the partitions that ``executor.partition`` names; for None the default one."""
    return [item for item in known if (item.default if name is None else item.name in name.split(","))]


def partitions(ask: Callable[[Sequence[str]], str | None] = answer) -> tuple[Partition, ...]:
    """Ask ``sinfo`` for the partitions; empty where it does not answer."""
    found = parse_partitions(ask(SINFO) or "")
    limits = parse_sizes(ask(_SIZES) or "") if found else {}
    return tuple(replace(item, most=limits.get(item.name)) for item in found)


def parse_sizes(text: str) -> dict[str, int]:
    """Read lines of ``sinfo --format=%P|%s``: the most nodes of a job by partition, where it is limited."""
    rows = (line.strip().split("|") for line in text.splitlines())
    pairs = ((row[0].rstrip("*"), row[1].rpartition("-")[2]) for row in rows if len(row) == 2)
    return {name: int(most) for name, most in pairs if most.isdecimal()}


def parse_partitions(text: str) -> tuple[Partition, ...]:
    """Read lines of ``sinfo --exact --format=%P|%a|%T|%D|%c|%z|%l``: by partition, state and kind of node."""
    rows: dict[str, list[list[str]]] = {}
    for line in text.splitlines():
        fields = line.strip().split("|")
        if len(fields) == 7:
            rows.setdefault(fields[0], []).append(fields)
    return tuple(_partition(name, lines) for name, lines in rows.items())


def _partition(name: str, lines: Sequence[Sequence[str]]) -> Partition:
    layouts = [_layout(line[4], line[5]) for line in lines]
    return Partition(
        name=name.rstrip("*"),
        default=name.endswith("*"),
        up=lines[0][1] == "up",
        nodes=sum(_count(line[3]) for line in lines),
        usable=sum(_count(line[3]) for line in lines if not _is_down(line[2])),
        cores=tuple(sorted({cores for cores, _ in layouts if cores})),
        threads=max(threads for _, threads in layouts),
        time=parse_time(lines[0][6]),
    )


def _layout(cpus: str, layout: str) -> tuple[int, int]:
    """Return cores of a node and threads per core from ``%c`` and ``%z`` (sockets:cores:threads)."""
    parts = layout.split(":")
    if len(parts) == 3 and all(part.isdigit() for part in parts):
        sockets, cores, threads = map(int, parts)
        if _count(cpus) == sockets * cores * threads:
            return sockets * cores, threads
    return _count(cpus), 1  # CPUs=, or cores counted as CPUs although they have several threads


def _count(text: str) -> int:
    """Read ``64``, and ``64+`` or ``1.5K``, as ``sinfo`` shortens large numbers."""
    found = re.match(r"(\d+(?:\.\d+)?)([KM]?)", text)
    return int(float(found[1]) * {"": 1, "K": 1024, "M": 1024**2}[found[2]]) if found else 0


def _is_down(state: str) -> bool:
    """Return whether nodes in a state accept no jobs; a final ``*`` marks a node that does not answer."""
    return state.endswith("*") or state.lower().startswith(_DOWN)


def parse_time(text: str) -> float | None:
    """Read a time limit as Slurm prints it, in seconds; None for none.

    ``[days-]hours:minutes:seconds``, ``minutes:seconds``, ``days-hours`` or minutes alone.
    """
    days, dash, clock = text.strip().rpartition("-")
    parts = clock.split(":")
    if not all(part.isdigit() for part in [*parts, days or "0"]):
        return None  # infinite, UNLIMITED, n/a, empty
    numbers = [int(part) for part in parts]
    # Without days, one number counts minutes and two count minutes and seconds; with days, hours come first.
    first = 0 if dash or len(numbers) == 3 else 1
    weights = (3600, 60, 1)[first:]
    return 86400.0 * int(days or 0) + sum(n * weight for n, weight in zip(numbers, weights, strict=False))
