"""Rehearsals with measured values: only points that the data set holds are in their search space."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from orchestrator.errors import ReadError
from orchestrator.readers.load import load
from orchestrator.types import Application, Value

Check = Callable[[Mapping[str, Value]], str | None]


@dataclass(frozen=True, slots=True)
class _Held:
    parameters: tuple[str, ...]
    points: frozenset[tuple[Value, ...]]


def check(dataset: str | None, parameters: Collection[str], metrics: Sequence[str]) -> Check:
    """Return what says why nothing can be replayed at a point, or None where it can.

    Where no data set is replayed, or it cannot be read (which is said when the rehearsal begins), nothing is
    said of any point.

    Parameters
    ----------
    dataset
        Path of the data set that is replayed, or None.
    parameters
        Names of the campaign's parameters.
    metrics
        What a run must yield.
    """
    held = _held(dataset, metrics)
    if held is None:
        return lambda values: None
    missing = [name for name in held.parameters if name not in parameters]
    if missing:
        return lambda values: f"the data set has the parameter {missing[0]}, which the campaign does not vary"

    def reason(values: Mapping[str, Value]) -> str | None:
        there = tuple(values[name] for name in held.parameters) in held.points
        return None if there else lacking(metrics)

    return reason


def restricted(spec: Application, lacks: Check, wanted: Mapping[str, Value] | None) -> Application:
    """Return the application that is impossible where ``lacks`` (see `check`) says so, but at P₊."""
    check = spec.check
    return replace(spec, check=lambda values: check(values) or (None if values == wanted else lacks(values)))


def lacking(metrics: Sequence[str]) -> str:
    """Return what `check` says of a point that the data set does not hold."""
    return f"the data set has no {' or no '.join(metrics)} there"


def _held(dataset: str | None, metrics: Sequence[str]) -> _Held | None:
    if dataset is None:
        return None
    try:
        found = Path(dataset).stat()
        return _read(dataset, tuple(metrics), found.st_mtime_ns, found.st_size)
    except (OSError, ReadError):
        return None


@lru_cache(maxsize=4)
def _read(path: str, metrics: tuple[str, ...], changed: int, size: int) -> _Held:
    """Return the points with values of all metrics; ``changed`` and ``size`` tell a file from a later one."""
    known = load([Path(path)])
    points = set(known.points)
    for metric in metrics:
        having = (item.values for item in known.items if item.metric == metric)
        points &= {point for values in having for point in values if values[point]}
    return _Held(known.parameters, frozenset(tuple(value for _, value in point.items) for point in points))
