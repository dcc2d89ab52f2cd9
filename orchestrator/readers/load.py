"""Load measurements from files of any known format: the one function that all callers use."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator.errors import ReadError
from orchestrator.readers import output_set, ramble, reframe
from orchestrator.readers.entries import (
    Entry,
    assemble,
    content_of,
    decoded,
    names_like_numbers,
    numbers_as_texts,
    of_metrics,
)
from orchestrator.readers.extrap_json import read_json, read_json_lines
from orchestrator.readers.extrap_text import KEYWORDS, read_text
from orchestrator.readers.reading import EVERYTHING, Reading
from orchestrator.readers.table import content_lines, is_table, read_csv, read_parquet
from orchestrator.types import Measurements
from orchestrator.units import SIZE


def load(paths: Sequence[Path], reading: Reading = EVERYTHING) -> Measurements:
    """Load measurements from files and CUBE sets; several paths are put together.

    The format is recognised by the content: sets of CUBE or Caliper profiles and Ramble workspaces
    (folders), Extra-P text, JSON (both), JSON Lines, results of Ramble and ReFrame, tables of text, Parquet.

    Parameters
    ----------
    paths
        Files and folders of profiles; their parameters must be the same, in any order. Values of one point in
        several files are repetitions.
    reading
        What to take from them.

    Raises
    ------
    ReadError
        Naming file and line. Where no format fits, the message lists the formats that were tried.
    """
    _check_once(paths)
    _check_folders(paths)
    if reading.printed is not None:
        wanted = reading.metrics if reading.metrics is not None else reading.responses or None
        known = output_set.read(
            paths, reading.printed, reading.parameters, wanted, reading.aggregate, reading.named
        )
        return _with_categories(known, reading.categorical, ", ".join(map(str, paths)))
    paths = [_results(path) for path in paths]
    if reading.named is not None and (others := [path for path in paths if not path.is_dir()]):
        raise ReadError(
            f"{others[0]}: --named is for folders of profiles and for outputs (--output-of): this file says "
            "itself at which points it was measured"
        )
    folders = [path for path in paths if path.is_dir()]
    parts = _profile_sets(folders, reading)
    parts = [_of_responses(part, reading, ", ".join(map(str, folders))) for part in parts]
    parts += [_file(path, reading) for path in paths if not path.is_dir()]
    if not parts:
        raise ReadError("no files to load measurements from")
    source = ", ".join(map(str, paths))
    known = _with_categories(_merged(parts, source), reading.categorical, source)
    return known if reading.metrics is None else of_metrics(known, reading.metrics, source)


def _check_once(paths: Sequence[Path]) -> None:
    places = [path.resolve() for path in paths]
    twice = next((path for path, place in zip(paths, places, strict=True) if places.count(place) > 1), None)
    if twice is not None:
        raise ReadError(f"{twice}: given twice, so every value would count as two repetitions; name it once")


def _check_folders(paths: Sequence[Path]) -> None:
    """Refuse folders that cannot be listed: what they hold would be left out without a word."""

    def refuse(error: OSError) -> None:
        raise ReadError(
            f"{error.filename}: cannot be listed: {error.strerror}; get the right to read it, or name the "
            "other folders one by one"
        ) from error

    for path in filter(Path.is_dir, paths):
        for folder, below, _ in os.walk(path, onerror=refuse):
            # Sets have a folder per run, or one per point with those of its runs; others may be large.
            is_deepest = len(Path(folder).relative_to(path).parts) == 2
            below[:] = [] if is_deepest else [name for name in below if not name.startswith(".")]


def _with_categories(known: Measurements, categorical: Collection[str], source: str) -> Measurements:
    if missing := [name for name in categorical if name not in known.parameters]:
        raise ReadError(
            f"{source}: {', '.join(missing)} cannot be categorical, as the parameters are "
            f"{', '.join(known.parameters)}"
        )
    known = replace(known, categorical=known.categorical | frozenset(categorical))
    doubts = [
        f"{source}: {name} has numbers that are written as texts, so it is a category: write them without "
        f"quotes, or, if it is one, --categorical {name} says so"
        for name in numbers_as_texts(known)
    ]
    doubts += [
        f"{source}: {name} has sizes with units, which are text, so it is a category, and no model says what "
        f"lies between or beyond its values: write numbers, or, if it is one, --categorical {name} says so"
        for name in known.parameters
        if name not in known.categorical
        and all(isinstance(value, str) and SIZE.fullmatch(value) for value in known.values_of(name))
    ]
    doubts += [f"{source}: {note}" for note in names_like_numbers(known)]
    return replace(known, notes=(*known.notes, *doubts))


def _results(path: Path) -> Path:
    """Return the file of results in the folder of a Ramble workspace without profiles; else the path."""
    found = ramble.results_in(path) if path.is_dir() else None
    return path if found is None or next(path.rglob("*.cali"), None) is not None else found


def _profile_sets(folders: Sequence[Path], reading: Reading) -> list[Measurements]:
    if not folders:
        return []
    from orchestrator.readers import caliper_set, cube_set  # only profiles need numpy and pycubexr

    caliper = [
        folder for folder in folders if not cube_set.profiles_in(folder) and caliper_set.profiles_in(folder)
    ]
    cubes = [folder for folder in folders if folder not in caliper]
    wanted = (reading.metrics, reading.aggregate, reading.inclusive)
    parts = [cube_set.read(cubes, *wanted, reading.named)] if cubes else []
    if not caliper:
        return parts
    return [*parts, caliper_set.read(caliper, *wanted, reading.parameters, reading.named)]


def _file(path: Path, reading: Reading) -> Measurements:
    content = content_of(path)
    source = str(path)
    if not content.strip():
        raise ReadError(f"{source}: the file is empty")
    if content.startswith(b"PAR1"):
        return read_parquet(content, source, reading)
    if path.suffix in (".cubex", ".cali"):
        raise ReadError(
            f"{source}: one profile does not say at which point it was measured: give its folder, "
            "or the folder of all points, named like lulesh.p64.s20.r1"
        )
    if content.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")):
        raise ReadError(f"{source}: the file is compressed: unpack it first, for example with gunzip")
    if content.startswith(b"PK\x03\x04") and b"xl/" in content:
        raise ReadError(f"{source}: a workbook of a spreadsheet: save its table as CSV")
    if content.startswith(b"PK\x03\x04"):
        raise ReadError(
            f"{source}: a ZIP archive; if it is an Extra-P experiment, load the files it was made from: "
            "an experiment holds means and medians, as a rule without the repetitions"
        )
    text = decoded(content, source)
    start = next(content_lines(text), "")
    if start.lstrip().startswith(("{", "[")) and path.suffix.lower() != ".csv":
        return _of_responses(_json(path, text, reading.parameters), reading, source)
    if start.split()[:1] and start.split()[0] in KEYWORDS:
        return _of_responses(read_text(text, source), reading, source)
    if is_table(text):
        return read_csv(text, source, reading)
    raise ReadError(
        f"{source}: format not recognised from {start.strip()[:40]!r}; tried Extra-P text (starts with "
        f"{', '.join(KEYWORDS)}), JSON and JSON Lines (start with '{{'), tables (a header, "
        "and commas, semicolons, tabulators or blanks between the fields), Parquet, profiles of CUBE or "
        "Caliper (a folder)"
    )


def _of_responses(known: Measurements, reading: Reading, source: str) -> Measurements:
    return of_metrics(known, reading.responses, source) if reading.responses else known


def _json(path: Path, text: str, parameters: Sequence[str] | None) -> Measurements:
    if ramble.MARK in text:
        return ramble.read(text, str(path), parameters)
    if all(mark in text for mark in reframe.MARKS):
        return reframe.read(text, str(path), parameters)
    if path.suffix == ".jsonl" or _is_record(*text.strip().partition("\n")):
        return read_json_lines(text, str(path))
    return read_json(text, str(path))


def _is_record(line: str, _: str, rest: str) -> bool:
    """Return whether the first line is a record of JSON Lines, and not a whole document without line ends."""
    try:
        item = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(item, dict) and ("params" in item or bool(rest))


def _merged(parts: Sequence[Measurements], source: str) -> Measurements:
    if len(parts) == 1:
        return parts[0]
    names = parts[0].parameters
    for part in parts[1:]:
        if set(part.parameters) != set(names):
            raise ReadError(
                f"{source}: the files have different parameters: {', '.join(names)} and "
                f"{', '.join(part.parameters)}"
            )
    entries = (
        Entry(
            where=source,
            callpath=item.callpath,
            metric=item.metric,
            point=tuple(point[name] for name in names),
            values=values,
        )
        for part in parts
        for item in part.items
        for point, values in item.values.items()
    )
    categorical = frozenset().union(*(part.categorical for part in parts))
    notes = tuple(note for part in parts for note in part.notes)
    return replace(assemble(names, entries, source), categorical=categorical, notes=notes)
