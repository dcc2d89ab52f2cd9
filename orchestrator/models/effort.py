"""Counted effort: which counts belong to which measured time, and whether they are reproducible.

De Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, sections III-A
and III-C.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.models.callpaths import names
from orchestrator.models.mpi_costs import POLLING, RECEIVED, SENT, operation
from orchestrator.types import Measurements, Point, format_value

if TYPE_CHECKING:  # numpy, which counting does without
    from orchestrator.models.base import Category

BLOCKS = "basic_blocks"
SIZE = "communicator_size"
CALLS = ("calls", "visits")
EFFORT = frozenset({BLOCKS, SENT, RECEIVED, SIZE, *CALLS})
# Relative difference between effort runs at one point up to which counts are reproducible. Chosen by hand.
TOLERANCE = 0.01

Values = Mapping[Point, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Effort:
    """Everything that was counted for one measured time."""

    callpath: str  # that of the time
    counts: Mapping[str, Mapping[str, Values]]  # per call path whose effort belongs to it, its metrics
    # Metrics of MPI operations below it that have a time of their own.
    below: Mapping[str, Mapping[str, Values]]


@dataclass(frozen=True, slots=True)
class CountCheck:
    """Whether the effort models of one category predict counts, and a sentence why (not)."""

    settled: bool
    reason: str


UNCOUNTED = CountCheck(False, "nothing was counted so far")


def category(point: Point, categorical: Iterable[str]) -> Category:
    """Return the values of the categorical parameters at a point."""
    return tuple((name, format_value(point[name])) for name in categorical)


def has_effort(known: Measurements) -> bool:
    """Return whether there are counts to make priors of."""
    return any(item.metric in (BLOCKS, SENT, RECEIVED) for item in known.items)


def assign(known: Measurements, times: Iterable[str]) -> tuple[dict[str, Effort], tuple[str, ...]]:
    """Assign the effort of every call path to itself, if it has a time, or to its nearest caller with a time.

    The build that counts and the build that is timed may have different call trees. A function that was
    inlined or filtered in one build still exists in the other, and its cost is in the time of its caller. The
    two builds may also write names differently (`orchestrator.models.callpaths`).

    Parameters
    ----------
    known
        All measurements.
    times
        Call paths with a time.

    Returns
    -------
    The effort of every call path with a time (if it has any), and the call paths that belong to none.
    """
    counts: dict[str, dict[str, Values]] = {}
    for item in known.items:
        if item.metric in EFFORT:
            counts.setdefault(item.callpath, {})[item.metric] = item.values
    timed = names(times, counts)
    owned: dict[str, dict[str, Mapping[str, Values]]] = {}
    below: dict[str, dict[str, Mapping[str, Values]]] = {}
    lost = []
    for callpath, metrics in counts.items():
        callers, itself = timed.callers(callpath), timed.find(callpath)
        if not callers:
            lost.append(callpath)
            continue
        mine = owned.setdefault(callers[0], {})
        mine[callpath if itself is None or itself in mine else itself] = metrics
        if operation(callpath) is not None:
            for caller in callers:
                if caller != itself:
                    below.setdefault(caller, {})[callpath] = metrics
    found = {name: Effort(name, parts, below.get(name, {})) for name, parts in owned.items()}
    return found, tuple(lost)


def unmatched(known: Measurements, times: Iterable[str]) -> tuple[frozenset[str], float]:
    """Return the call paths whose effort belongs to no time, and their share of the basic blocks."""
    lost = frozenset(assign(known, times)[1])
    total_of = {
        item.callpath: sum(sum(values) for values in item.values.values())
        for item in known.items
        if item.metric == BLOCKS
    }
    everything = sum(total_of.values())
    part = sum(count for path, count in total_of.items() if path in lost)
    return lost, part / everything if everything else 0.0


def total(parts: Sequence[Values]) -> Values:
    """Add counts of several call paths; a call path that does not occur at a point adds nothing there."""
    if len(parts) == 1:
        return parts[0]
    points = dict.fromkeys(point for part in parts for point in part)
    sums = {}
    for point in points:
        there = [part[point] for part in parts if part.get(point)]
        runs = min(map(len, there), default=0)
        sums[point] = tuple(sum(values[k] for values in there) for k in range(runs))
    return sums


def blocks(effort: Effort, tolerance: float) -> tuple[Values | None, dict[str, float]]:
    """Return the executed basic blocks outside MPI, None where there are none that are reproducible.

    Call paths whose blocks differ by more than ``tolerance`` between effort runs at one point are left out.
    They are returned with their variation.
    """
    parts = {
        name: metrics[BLOCKS]
        for name, metrics in effort.counts.items()
        if BLOCKS in metrics and operation(name) is None and occurs(metrics[BLOCKS])
    }
    left_out = {name: change for name, v in parts.items() if (change := variation(v)) > tolerance}
    kept = [values for name, values in parts.items() if name not in left_out]
    return total(kept) if kept else None, left_out


def transfers(effort: Effort) -> list[tuple[str, Mapping[str, Values]]]:
    """Return (operation, counts) for every MPI operation whose time is in the measured one.

    A call path that is no MPI operation itself has bytes in inclusive profiles. They are the bytes of the
    operations below it. Without such operations they count as point-to-point messages.
    """
    found = [(name, metrics) for name, metrics in effort.counts.items() if operation(name) is not None]
    own = effort.counts.get(effort.callpath, {})
    plain = operation(effort.callpath) is None
    if plain and any(occurs(own[metric]) for metric in (SENT, RECEIVED) if metric in own):
        known = {name for name, _ in found}
        found += [(name, metrics) for name, metrics in effort.below.items() if name not in known]
        if not found:
            return [("sendrecv", {metric: own[metric] for metric in (SENT, RECEIVED) if metric in own})]
    return [(operation(name) or "", metrics) for name, metrics in found]


def occurs(values: Values) -> bool:
    """Return whether any count is other than zero."""
    return any(any(v) for v in values.values())


def variation(values: Values) -> float:
    """Largest (max - min) / max between effort runs at one point; 0 where none was repeated."""
    spread = [(max(v) - min(v)) / max(v) for v in values.values() if len(v) > 1 and max(v) > 0]
    return max(spread, default=0.0)


def repeated(values: Values) -> bool:
    """Return whether any point has more than one effort run."""
    return any(len(v) > 1 for v in values.values())


def polls(name: str, metrics: Mapping[str, Values], tolerance: float) -> bool:
    """Return whether a program polls by an MPI operation, so that its number of calls is not reproducible.

    Without repeated effort runs the name of the operation decides.
    """
    calls = next((metrics[metric] for metric in CALLS if metric in metrics), None)
    if calls is not None and repeated(calls):
        return variation(calls) > tolerance
    return name in POLLING
