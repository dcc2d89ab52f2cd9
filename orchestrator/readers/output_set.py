"""Outputs that runs left in files, one per run: where each was measured stands in its path."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.errors import MissingInput, ReadError
from orchestrator.readers import stdout
from orchestrator.readers.path_shape import NUMBER, WORD, names_in, value_of, values_in
from orchestrator.readers.profile_set import Profile, measurements
from orchestrator.readers.select import select
from orchestrator.types import Application, Measurements, Sample, Value
from orchestrator.units import count

_OF_CAMPAIGNS = ", then see reread"  # what remedies say of kept outputs: files are read anew each time


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """What a campaign says of the program whose outputs are read."""

    application: Application  # finds the values in them
    parameters: Sequence[str]
    metrics: Collection[str] | None = None  # those that the campaign wants
    check: Callable[[Path], None]  # raises ``ReadError`` for what a run printed that did not do its work


def read(
    paths: Iterable[Path],
    printed: Printed,
    parameters: Sequence[str] | None = None,
    metrics: Collection[str] | None = None,
    aggregate: str = "mean",
    shape: str | None = None,
) -> Measurements:
    """Read files as outputs of runs, those of folders too; several of one point are its repetitions.

    A file in which the program printed none of the values, or that it failed, is left out with a note.
    ``shape`` says where paths have the values of parameters: see `path_shape.values_in`.

    Raises
    ------
    ReadError
        Where no file is that of such a run, for a path that does not say the value of a parameter, and for a
        shape with other parameters.
    """
    wanted = printed.metrics if metrics is None else metrics
    names = _names(printed, parameters, shape)
    found: dict[Path, Sequence[Sample]] = {}
    left_out: list[str] = []
    files = list(_files(paths))
    for path in files:
        try:
            samples = stdout.read_file(path, printed.application)
            printed.check(path)
            select(samples, wanted, aggregate)
        except ReadError as error:
            why = str(error).replace(_OF_CAMPAIGNS, "")
            left_out.append(why if str(path) in why else f"{path}: {why}")
        else:
            found[path] = samples
    if not found:
        raise ReadError(left_out[0] if left_out else "no files to load measurements from")
    profiles = [
        Profile(path, names, _point(path, names, shape), index)
        for index, path in enumerate(sorted(found, key=_key))
    ]
    source = ", ".join(str(path) for path in paths)
    # Two sets are compared in the parameters of their campaign, whatever varies in each.
    known = measurements(profiles, found.__getitem__, wanted, aggregate, source, constant=True)
    if not left_out:
        return known
    less = (
        f"{len(left_out)} of {count(len(files), 'file')} left out, as no run that did its work printed them: "
    )
    return replace(known, notes=(*known.notes, f"{less}{left_out[0]}"))


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.exists():
            raise MissingInput(f"{path}: there is no such file or directory")
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (item for item in inside if item.is_file() and not item.name.startswith("."))


def _key(path: Path) -> list[tuple[int, str]]:
    """Return what sorts ``rep10`` behind ``rep9``."""
    return [(int(text) if text.isdecimal() else -1, text) for text in re.split(r"(\d+)", str(path))]


def _names(printed: Printed, parameters: Sequence[str] | None, shape: str | None) -> tuple[str, ...]:
    if shape is None:
        return tuple(printed.parameters if parameters is None else parameters)
    there = names_in(shape)
    names = tuple(name for name in printed.parameters if name in there) if parameters is None else parameters
    if unknown := [name for name in there if name not in printed.parameters]:
        raise ReadError(
            f"--named {shape!r}: {', '.join(unknown)} is no parameter of the campaign, which has "
            f"{', '.join(printed.parameters)}; write * for what differs and is none"
        )
    if missing := [name for name in names if name not in there]:
        raise ReadError(f"--named {shape!r}: has no {', '.join(missing)}, which --parameters names")
    return tuple(names)


def _point(path: Path, names: Sequence[str], shape: str | None) -> tuple[Value, ...]:
    if shape is not None:
        there = values_in(path, shape)
        return tuple(there[name] for name in names)
    missing = [name for name in names if _value(path, name) is None]
    if missing:
        example = "_".join(f"{name}{number}" for number, name in enumerate(names, 1))
        raise ReadError(
            f"{path}: the path does not say the value of {', '.join(missing)}: name files, or their folders, "
            f"like {example}_rep1.log, or say by --named where the values stand; --parameters names what "
            "varies in them, if that is less than in the campaign"
        )
    return tuple(value for name in names if (value := _value(path, name)) is not None)


def _value(path: Path, name: str) -> Value | None:
    """Return what stands behind the last mention of a parameter: a number, or else a word."""
    before = rf"(?<![^\W\d_]){re.escape(name)}"
    numbers = re.findall(rf"{before}[=_-]?({NUMBER})", str(path))
    found = numbers or re.findall(rf"{before}[=_-]({WORD})", str(path))
    return value_of(found[-1], path) if found else None
