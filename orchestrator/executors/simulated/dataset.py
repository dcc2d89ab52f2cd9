"""Rehearsals with measured values: their search space has only points that the data set holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from orchestrator.errors import ColumnsError, ReadError
from orchestrator.readers.load import load
from orchestrator.readers.reading import Reading
from orchestrator.types import Application, Measurements, Value

Check = Callable[[Mapping[str, Value]], str | None]


@dataclass(frozen=True, slots=True)
class _Held:
    parameters: tuple[str, ...]
    points: frozenset[tuple[Value, ...]]
    repetitions: int  # most values of one metric at one point


def read(path: str, parameters: Sequence[str]) -> Measurements:
    """Load a data set; a table that does not say which columns are parameters has those of the campaign.

    Raises
    ------
    ReadError
        If it cannot be read, or has no such columns either.
    """
    try:
        return load([Path(path)])
    except ColumnsError:
        return load([Path(path)], Reading(parameters=parameters))


def check(dataset: str | None, parameters: Sequence[str], metrics: Sequence[str]) -> Check:
    """Return what says why nothing can be replayed at a point, or None where it can.

    Where no data set is replayed, or it cannot be read, every point passes. That a data set cannot be read
    is reported when the rehearsal begins.

    Parameters
    ----------
    dataset
        Path of the data set that is replayed, or None.
    parameters
        Names of the campaign's parameters.
    metrics
        What a run must yield.
    """
    held = _held(dataset, parameters, metrics)
    if held is None:
        return lambda values: None
    missing = [name for name in held.parameters if name not in parameters]
    if missing:
        return lambda values: f"the data set has the parameter {missing[0]}, which the campaign does not vary"

    def reason(values: Mapping[str, Value]) -> str | None:
        there = tuple(values[name] for name in held.parameters) in held.points
        return None if there else lacking(metrics)

    return reason


def points(
    dataset: str | None, parameters: Sequence[str], metrics: Sequence[str]
) -> list[tuple[Value, ...]] | None:
    """Return the coordinates of all points at which something can be replayed.

    None where no data set is replayed, where it cannot be read, or where it does not vary all ``parameters``
    and no others.
    """
    held = _held(dataset, parameters, metrics)
    if held is None or set(held.parameters) != set(parameters):
        return None
    order = [held.parameters.index(name) for name in parameters]
    return [tuple(values[index] for index in order) for values in held.points]


def repetitions(dataset: str | None, parameters: Sequence[str], metrics: Sequence[str]) -> int | None:
    """Return how many repetitions a data set holds at most of a point; None where none can be replayed.

    Further ones would yield values again, as if the machine had no noise.
    """
    held = _held(dataset, parameters, metrics)
    return None if held is None else held.repetitions


def restricted(spec: Application, missing: Check, wanted: Mapping[str, Value] | None) -> Application:
    """Return the application that is impossible where ``missing`` (see `check`) gives a reason, but at P₊."""
    check = spec.check
    return replace(
        spec, check=lambda values: check(values) or (None if values == wanted else missing(values))
    )


def lacking(metrics: Sequence[str]) -> str:
    """Return the reason that `check` gives for a point that the data set does not hold."""
    return f"the data set has no {' or no '.join(metrics)} there"


def _held(dataset: str | None, parameters: Sequence[str], metrics: Sequence[str]) -> _Held | None:
    if dataset is None:
        return None
    try:
        found = Path(dataset).stat()
        return _read(dataset, tuple(parameters), tuple(metrics), found.st_mtime_ns, found.st_size)
    except (OSError, ReadError):
        return None


@lru_cache(maxsize=4)
def _read(path: str, parameters: tuple[str, ...], metrics: tuple[str, ...], changed: int, size: int) -> _Held:
    """Return the points with values of all metrics; ``changed`` and ``size`` distinguish its versions."""
    known = read(path, parameters)
    points = set(known.points)
    for metric in metrics:
        having = (item.values for item in known.items if item.metric == metric)
        points &= {point for values in having for point in values if values[point]}
    most = max((len(found) for item in known.items for found in item.values.values()), default=1)
    coordinates = frozenset(tuple(value for _, value in point.items) for point in points)
    return _Held(known.parameters, coordinates, max(most, 1))
