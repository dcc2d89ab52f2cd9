"""Sets of profiles, one per run: where each was measured, and all of them as measurements.

The point is in the name of a profile's folder, as Extra-P writes it (``docs/file-formats.md`` of
extra-p/extrap): ``[PREFIX "."] PARAMETER VALUE *(["." | ","] PARAMETER VALUE) [".r" REPETITION]``, where a
comma in a value is a decimal point. Parameters that are the same everywhere are left out, as Extra-P does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.errors import ReadError
from orchestrator.readers.entries import Entry, assemble, number
from orchestrator.readers.path_shape import values_in
from orchestrator.readers.select import select
from orchestrator.types import Measurement, Measurements, Sample, Value, order_of

_REPETITION = re.compile(r"\.r(\d+)$", re.ASCII)
_PAIR = re.compile(r"([^\W\d]+)([0-9][0-9.,]*)")
REMEDY = (
    "name folders like lulesh.p64.s20.r1: prefix, a name and a value per parameter, repetition; or say by "
    "--named where the values stand"
)


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile and where it was measured: a value per parameter, and which repetition it is."""

    path: Path
    names: tuple[str, ...]
    point: tuple[Value, ...]
    repetition: int = 0


def named(path: Path, shape: str | None = None) -> Profile:
    """Return a profile's point from the name of its folder, or from where a ``shape`` says that it stands.

    Raises
    ------
    ReadError
        For a name without parameters; as `path_shape.values_in`.
    """
    if shape is not None:
        there = values_in(path, shape)
        return Profile(path, tuple(there), tuple(there.values()))
    folder = path.resolve().parent.name
    match = _REPETITION.search(folder)
    rest = folder[: match.start()] if match else folder
    repetition = int(match[1]) if match else 0
    while True:
        pairs = _PAIR.findall(rest)
        if pairs and "".join(name + value for name, value in pairs) == rest:
            break
        _prefix, dot, rest = rest.partition(".")
        if not dot:
            raise ReadError(f"{path.parent}: no parameters in the name of the folder; {REMEDY}")
    where = str(path.parent)
    values = tuple(number(value.rstrip(".,").replace(",", "."), where) for _, value in pairs)
    return Profile(path, tuple(name for name, _ in pairs), values, repetition)


def measurements(
    profiles: Sequence[Profile],
    samples: Callable[[Path], Sequence[Sample]],
    metrics: Collection[str] | None,
    aggregate: str,
    source: str,
    *,
    constant: bool = False,
) -> Measurements:
    """Read profiles as one set; several profiles of a point are its repetitions.

    A call path has values only at those points where it occurs. Metrics that are zero everywhere are left
    out unless ``metrics`` names them.

    Parameters
    ----------
    profiles
        The profiles, at least one.
    samples
        Reads one of them.
    metrics, aggregate
        The wanted metrics (None for all), and how ranks become one value: see `select`.
    source
        Names the set in messages.
    constant
        Whether parameters that are the same everywhere stay.

    Raises
    ------
    ReadError
        Naming the folder, for parameters other than those of its siblings; naming the file, for broken
        profiles and for profiles without a wanted metric.
    """
    for other in profiles[1:]:
        if other.names != profiles[0].names:
            raise ReadError(
                f"{other.path.parent}: has the parameters {', '.join(other.names)}, but "
                f"{profiles[0].path.parent} has {', '.join(profiles[0].names)}; names and order must agree"
            )
    ordered = sorted(profiles, key=lambda item: (*map(order_of, item.point), item.repetition))
    distinct = [len({item.point[i] for item in ordered}) for i in range(len(profiles[0].names))]
    kept = [i for i, count in enumerate(distinct) if count > 1 or constant] or list(range(len(distinct)))
    entries = [
        Entry(
            where=str(item.path),
            callpath=callpath,
            metric=metric,
            point=tuple(item.point[i] for i in kept),
            values=(value,),
        )
        for item in ordered
        for (callpath, metric), value in _values(item.path, samples, metrics, aggregate).items()
    ]
    found = assemble([profiles[0].names[i] for i in kept], entries, source)
    return found if metrics is not None else _without_zeros(found)


def _values(
    path: Path, samples: Callable[[Path], Sequence[Sample]], metrics: Collection[str] | None, aggregate: str
) -> Mapping[tuple[str, str], float]:
    found = samples(path)
    try:
        return select(found, metrics, aggregate)
    except ReadError as error:
        raise ReadError(f"{path}: {error}") from error


def _without_zeros(measurements: Measurements) -> Measurements:
    def is_zero(item: Measurement) -> bool:
        return not any(any(values) for values in item.values.values())

    used = {item.metric for item in measurements.items if not is_zero(item)}
    items = tuple(item for item in measurements.items if item.metric in used)
    return replace(measurements, items=items)
