"""Whether a call path does other work, or the same work at another speed: its counts beside its times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from orchestrator.models.base import Key
from orchestrator.models.comparison.compared import Compared, compared
from orchestrator.models.comparison.pairs import Aligned
from orchestrator.models.effort import (
    BLOCKS,
    TOLERANCE,
    Effort,
    Values,
    assign,
    blocks,
    has_effort,
    total,
    transfers,
)
from orchestrator.models.mpi_costs import RECEIVED, SENT
from orchestrator.models.sums import inclusive, parts_first
from orchestrator.types import Measurement, Measurements, Point

_BYTES = "bytes"
_SPEED = "time per count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What was counted, and the ratios of counts and of times per count.

    ``count``: ``basic_blocks``, or ``bytes`` of MPI operations where no blocks are executed.
    """

    count: str
    amount: Compared
    speed: Compared


class _Counts(NamedTuple):
    """What was counted for a call path: the mean of the effort runs at each point."""

    kind: str
    means: Mapping[Point, float]
    exact: bool  # whether the effort runs at a point agree


def works(both: Aligned, metric: str) -> dict[Key, Work]:
    """Compare counts, and times per count, of every call path where both have them at common points.

    Parameters
    ----------
    both
        Measurements with effort.
    metric
        The time.
    """
    if not (has_effort(both.first) and has_effort(both.second)):
        return {}
    parts = _parts(both, metric)
    mine, yours = (_counted(side, metric, parts) for side in (both.first, both.second))
    # Blocks of one and bytes of the other are no pair.
    alike = {path for path in mine if path in yours and mine[path].kind == yours[path].kind}
    if not alike:
        return {}
    sides = [
        _measurements(side, metric, {path: counts[path] for path in alike})
        for side, counts in ((both.first, mine), (both.second, yours))
    ]
    joint = Aligned(first=sides[0], second=sides[1], only_first=(), only_second=(), renamed={})
    found = {row.key: row for row in compared(joint, (), ())}
    return {
        (path, metric, category): Work(count=mine[path].kind, amount=row, speed=found[path, _SPEED, category])
        for (path, name, category), row in found.items()
        if name != _SPEED and (path, _SPEED, category) in found
    }


def _parts(both: Aligned, metric: str) -> dict[str, set[str]]:
    """Return what call paths include whose times are, in both, those of others and their own."""
    found = []
    for side in (both.first, both.second):
        times = replace(side, items=tuple(item for item in side.items if item.metric == metric))
        found.append({w.parent.callpath: {part.callpath for part in w.parts} for w in inclusive(times)})
    first, second = found
    return {path: first[path] | second[path] for path in sorted(first, key=parts_first) if path in second}


def _counted(known: Measurements, metric: str, parts: Mapping[str, set[str]]) -> dict[str, _Counts]:
    """Return what was counted for every call path with a time.

    Counts are those of a call path alone, so those of what its time includes are added.
    """
    times = [item.callpath for item in known.items if item.metric == metric]
    found: dict[str, _Counts] = {}
    for path, effort in assign(known, times)[0].items():
        name, values = _of(effort)
        means = {point: sum(v) / len(v) for point, v in values.items() if v and min(v) > 0}
        found[path] = _Counts(name, means, all(min(values[point]) == max(values[point]) for point in means))
    for path, names in parts.items():
        if path in found:
            own = found[path]
            others = [found[k] for k in sorted(names) if k in found and found[k].kind == own.kind]
            there = [point for point in own.means if all(point in other.means for other in others)]
            sums = {point: own.means[point] + sum(other.means[point] for other in others) for point in there}
            found[path] = _Counts(own.kind, sums, own.exact and all(other.exact for other in others))
    return {path: counts for path, counts in found.items() if counts.means}


def _of(effort: Effort) -> tuple[str, Values]:
    executed, _ = blocks(effort, TOLERANCE)
    if executed is not None:
        return BLOCKS, executed
    moved = [part[name] for _, part in transfers(effort) for name in (SENT, RECEIVED) if name in part]
    return _BYTES, total(moved) if moved else {}


def _measurements(known: Measurements, metric: str, counts: Mapping[str, _Counts]) -> Measurements:
    """Return counts and times per count as measurements."""
    items = []
    for item in known.items:
        if item.metric != metric or item.callpath not in counts:
            continue
        name, means, exact = counts[item.callpath]
        there = {point: values for point, values in item.values.items() if point in means}
        speeds = {point: tuple(x / means[point] for x in values) for point, values in there.items()}
        origins = {point: names for point, names in item.origins.items() if point in there}
        # One value would leave the noise to a guess, which is far above that of counts.
        runs = 2 if exact else 1
        items.append(Measurement(item.callpath, name, {point: (means[point],) * runs for point in there}))
        items.append(Measurement(item.callpath, _SPEED, speeds, origins))
    return Measurements(known.parameters, tuple(items), known.categorical)
