"""Load measurements from files of any known format: the one function that all callers use."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator.errors import ReadError
from orchestrator.readers import ramble, reframe
from orchestrator.readers.collect import Entry, assemble, content_of, decoded
from orchestrator.readers.extrap_json import read_json, read_json_lines
from orchestrator.readers.extrap_text import KEYWORDS, read_text
from orchestrator.readers.table import DELIMITERS, read_csv, read_parquet
from orchestrator.types import Measurements


def load(
    paths: Sequence[Path],
    *,
    parameters: Sequence[str] | None = None,
    metrics: Collection[str] | None = None,
    aggregate: str = "mean",
    inclusive: bool = False,
) -> Measurements:
    """Load measurements from files and CUBE sets; several paths are put together.

    The format is recognised by the content: sets of CUBE or Caliper profiles and Ramble workspaces
    (folders), Extra-P text, JSON (both), JSON Lines, results of Ramble and ReFrame, CSV, Parquet.

    Parameters
    ----------
    paths
        Files and folders of profiles; their parameters must be the same, in any order. Values of one point in
        several files are repetitions.
    parameters
        The columns of tables, globals of Caliper profiles, variables of Ramble or parameters of ReFrame
        that are parameters, where files do not say.
    metrics
        The wanted metrics; None for all.
    aggregate, inclusive
        For profiles: how ranks become one value, and whether it includes called regions.

    Raises
    ------
    ReadError
        Naming file and line. Where no format fits, the message lists the formats that were tried.
    """
    paths = [_results(path) for path in paths]
    folders = [path for path in paths if path.is_dir()]
    parts = _profile_sets(folders, parameters, metrics, aggregate, inclusive)
    parts += [_file(path, parameters) for path in paths if not path.is_dir()]
    if not parts:
        raise ReadError("no files to load measurements from")
    source = ", ".join(map(str, paths))
    return _wanted(_merged(parts, source), metrics, source)


def _results(path: Path) -> Path:
    """Return the file of results in the folder of a Ramble workspace without profiles; else the path."""
    found = ramble.results_in(path) if path.is_dir() else None
    return path if found is None or next(path.rglob("*.cali"), None) is not None else found


def _profile_sets(
    folders: Sequence[Path],
    parameters: Sequence[str] | None,
    metrics: Collection[str] | None,
    aggregate: str,
    inclusive: bool,
) -> list[Measurements]:
    if not folders:
        return []
    from orchestrator.readers import caliper_set, cubeset  # only profiles need numpy and pycubexr

    caliper = [
        folder for folder in folders if not cubeset.profiles_in(folder) and caliper_set.profiles_in(folder)
    ]
    cubes = [folder for folder in folders if folder not in caliper]
    parts = [cubeset.read(cubes, metrics, aggregate, inclusive)] if cubes else []
    return parts + ([caliper_set.read(caliper, metrics, aggregate, inclusive, parameters)] if caliper else [])


def _file(path: Path, parameters: Sequence[str] | None) -> Measurements:
    content = content_of(path)
    source = str(path)
    if not content.strip():
        raise ReadError(f"{source}: the file is empty")
    if content.startswith(b"PAR1"):
        return read_parquet(content, source, parameters)
    if path.suffix in (".cubex", ".cali"):
        raise ReadError(
            f"{source}: one profile does not say at which point it was measured: give its folder, "
            "or the folder of all points, named like lulesh.p64.s20.r1"
        )
    if content.startswith(b"PK\x03\x04"):
        raise ReadError(
            f"{source}: a ZIP archive; if it is an Extra-P experiment, load the files it was made from: "
            "an experiment holds means and medians, as a rule without the repetitions"
        )
    text = decoded(content, source)
    start = next(
        (line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")), ""
    )
    if start.lstrip().startswith(("{", "[")) and path.suffix.lower() != ".csv":
        return _json(path, text, parameters)
    if start.split()[:1] and start.split()[0] in KEYWORDS:
        return read_text(text, source)
    if any(delimiter in start for delimiter in DELIMITERS):
        return read_csv(text, source, parameters)
    raise ReadError(
        f"{source}: format not recognised from {start.strip()[:40]!r}; tried Extra-P text (starts with "
        f"{', '.join(KEYWORDS)}), JSON and JSON Lines (start with '{{'), CSV (a header with commas, "
        "semicolons or tabulators), Parquet, profiles of CUBE or Caliper (a folder)"
    )


def _json(path: Path, text: str, parameters: Sequence[str] | None) -> Measurements:
    if ramble.MARK in text:
        return ramble.read(text, str(path), parameters)
    if all(mark in text for mark in reframe.MARKS):
        return reframe.read(text, str(path), parameters)
    if path.suffix == ".jsonl" or _is_record(text.strip().partition("\n")[0]):
        return read_json_lines(text, str(path))
    return read_json(text, str(path))


def _is_record(line: str) -> bool:
    try:
        item = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(item, dict) and "measurements" not in item


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
    return replace(assemble(names, entries, source), categorical=categorical)


def _wanted(measurements: Measurements, metrics: Collection[str] | None, source: str) -> Measurements:
    if metrics is None:
        return measurements
    there = measurements.metrics()
    missing = [metric for metric in metrics if metric not in there]
    if missing:
        raise ReadError(f"{source}: no measurements of {', '.join(missing)}; there are {', '.join(there)}")
    items = tuple(item for item in measurements.items if item.metric in metrics)
    return replace(measurements, items=items)
