"""Folders of Score-P profiles whose names carry the measurement point: ``lulesh.p64.s20.r1``.

The names follow Extra-P (``docs/file-formats.md`` of extra-p/extrap):
``[PREFIX "."] PARAMETER VALUE *(["." | ","] PARAMETER VALUE) [".r" REPETITION]``, where a comma in a
value is a decimal point. Parameters that are the same everywhere are left out, as Extra-P does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.errors import ReadError
from orchestrator.readers.collect import Entry, assemble, number
from orchestrator.readers.scorep import profile
from orchestrator.readers.select import select
from orchestrator.types import Measurement, Measurements

_REPETITION = re.compile(r"\.r(\d+)$", re.ASCII)
_PAIR = re.compile(r"([^\W\d]+)([0-9][0-9.,]*)")
_REMEDY = "name folders like lulesh.p64.s20.r1: prefix, a name and a value per parameter, repetition"


@dataclass(frozen=True, slots=True)
class _Profile:
    path: Path
    names: tuple[str, ...]
    point: tuple[int | float, ...]
    repetition: int


def profiles_in(folder: Path) -> list[Path]:
    """Return the profiles of a CUBE set, or of a single point's folder; hidden files are ignored."""
    own = sorted(folder.glob("*.cubex"))
    return [path for path in own or sorted(folder.glob("*/*.cubex")) if not path.name.startswith(".")]


def read(
    folders: Sequence[Path],
    metrics: Collection[str] | None = None,
    aggregate: str = "mean",
    inclusive: bool = False,
) -> Measurements:
    """Read CUBE sets as one; several profiles of a point are its repetitions.

    A call path has values only at those points where it occurs. Metrics that are zero everywhere are
    left out unless ``metrics`` names them.

    Parameters
    ----------
    folders
        CUBE sets, or folders of single points.
    metrics
        The wanted metrics; None for all.
    aggregate, inclusive
        How ranks become one value, see `orchestrator.readers.scorep.profile` and `select`.

    Raises
    ------
    ReadError
        Naming the folder, for names without parameters or with others than its siblings; naming the
        file, for broken profiles and for profiles without a wanted metric.
    """
    profiles = [_profile(path) for folder in folders for path in profiles_in(folder)]
    source = ", ".join(map(str, folders))
    if not profiles:
        raise ReadError(f"{source}: no .cubex files in subfolders; {_REMEDY}")
    for other in profiles[1:]:
        if other.names != profiles[0].names:
            raise ReadError(
                f"{other.path.parent}: has the parameters {', '.join(other.names)}, but "
                f"{profiles[0].path.parent} has {', '.join(profiles[0].names)}; names and order must agree"
            )
    profiles.sort(key=lambda item: (item.point, item.repetition))
    distinct = [len({item.point[i] for item in profiles}) for i in range(len(profiles[0].names))]
    kept = [i for i, count in enumerate(distinct) if count > 1] or list(range(len(distinct)))
    entries = [
        Entry(
            where=str(item.path),
            callpath=callpath,
            metric=metric,
            point=tuple(item.point[i] for i in kept),
            values=(value,),
        )
        for item in profiles
        for (callpath, metric), value in _values(item.path, metrics, aggregate, inclusive).items()
    ]
    measurements = assemble([profiles[0].names[i] for i in kept], entries, source)
    return measurements if metrics is not None else _without_zeros(measurements)


def _values(
    path: Path, metrics: Collection[str] | None, aggregate: str, inclusive: bool
) -> dict[tuple[str, str], float]:
    samples = profile(path, inclusive)
    try:
        return select(samples, metrics, aggregate)
    except ReadError as error:
        raise ReadError(f"{path}: {error}") from error


def _profile(path: Path) -> _Profile:
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
            raise ReadError(f"{path.parent}: no parameters in the name of the folder; {_REMEDY}")
    where = str(path.parent)
    values = tuple(number(value.rstrip(".,").replace(",", "."), where) for _, value in pairs)
    return _Profile(path, tuple(name for name, _ in pairs), values, repetition)


def _without_zeros(measurements: Measurements) -> Measurements:
    def is_zero(item: Measurement) -> bool:
        return not any(any(values) for values in item.values.values())

    used = {item.metric for item in measurements.items if not is_zero(item)}
    items = tuple(item for item in measurements.items if item.metric in used)
    return replace(measurements, items=items)
