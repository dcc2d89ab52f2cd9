"""HPCToolkit databases and TAU profiles, through the optional library ``llnl-hatchet``.

Both become trees of functions with inclusive values per rank. Exclusive values are found from these: what
tools call exclusive differs (HPCToolkit books samples on statements, loops or functions, by version).
"""

from __future__ import annotations

import importlib
import math
import re
import struct
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from orchestrator.errors import ReadError
from orchestrator.readers.base import reads
from orchestrator.readers.profile_files import DEPTH, below, over_ranks, without_called
from orchestrator.types import Application, Sample

TIME, VISITS = "time", "visits"

PROFILERS = ("hpctoolkit", "tau")
EXTRA = "pip install 'measurement-orchestrator[hatchet]'"
_INCLUSIVE = " (inc)"
_MICROSECONDS, _SECONDS = 1e-6, 1.0
_CALL_LINE = re.compile(r"^\d+:(?=.)")  # of `62:MPI_Finalize`, where the call stands
_FUNCTION = re.compile(r'".*" \S+ \S+ \S+ \S+ \S+ GROUP=".*"\s*')  # a line of a TAU profile
_PROFILES = "profile.*.*.*"
_ROUNDING = 1e-9  # of an inclusive value

# What the library raises for what it does not expect.
_BROKEN = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, OSError, RuntimeError, StopIteration),
    *(ElementTree.ParseError, TypeError, ValueError, struct.error),
)
_DATABASES: Mapping[str, tuple[str, Mapping[str, Any], float]] = MappingProxyType(
    {
        "meta.db": (
            "from_hpctoolkit_latest",
            {
                "parallel_profiles_mode": True,
                "exclude_non_function_nodes": True,
                "label_function_nodes": False,
            },
            _SECONDS,
        ),
        "experiment.xml": ("from_hpctoolkit", {}, _MICROSECONDS),
    }
)

Callpath = tuple[str, ...]
Values = dict[Callpath, dict[int, float]]
"""Inclusive values of a metric: by call path and rank."""


@reads(*_DATABASES, "profile.db", "*.metric-db")  # the library reads the values of a database there
def hpctoolkit(directory: Path, application: Application, inclusive: bool = False) -> list[Sample]:
    """Return the samples of the one HPCToolkit database (``hpcprof``) below ``directory``; see `samples`.

    Raises
    ------
    ReadError
        Without the library; where there is no database, more than one, or a broken one.
    """
    found = {name: below(directory, name, DEPTH) for name in _DATABASES}
    databases = [(path, name) for name, paths in found.items() for path in paths]
    if not databases:
        raise ReadError(
            f"{directory}: no HPCToolkit database (meta.db or experiment.xml) up to {DEPTH} folders deep: "
            "run hpcprof on the measurements of hpcrun in executor.epilogue"
        )
    (path, name), *others = databases
    if others:
        names = ", ".join(str(item.relative_to(directory)) for item, _ in databases)
        raise ReadError(f"{directory}: several HPCToolkit databases where one was expected: {names}")
    function, options, scale = _DATABASES[name]
    _check_database(path)
    frame = _read(function, path.parent, options, path)
    return samples(frame, {TIME: scale}, str(path), inclusive)


@reads(_PROFILES)
def tau(directory: Path, application: Application, inclusive: bool = False) -> list[Sample]:
    """Return the samples of TAU's profiles (``profile.RANK.CONTEXT.THREAD``) below ``directory``.

    Raises
    ------
    ReadError
        Without the library; where there are no profiles, a truncated or a broken one.
    """
    profiles = [path for path in below(directory, _PROFILES, DEPTH) if path.name.count(".") == 3]
    if not profiles:
        raise ReadError(
            f"{directory}: no TAU profiles (profile.0.0.0) up to {DEPTH} folders deep; was the program "
            "started with tau_exec or built with TAU's compilers, and did it end normally?"
        )
    for path in profiles:
        _check_profile(path)
    folder = profiles[0].parent
    folder = folder.parent if folder.name.startswith("MULTI__") else folder
    frame = _read("from_tau", folder, {}, profiles[0])
    return samples(frame, {TIME: _MICROSECONDS}, str(folder), inclusive)


def samples(frame: Any, scales: Mapping[str, float], source: str, inclusive: bool) -> list[Sample]:
    """Return samples of every metric at every call path of functions.

    Loops and statements belong to their function; functions of one name below one caller are one call path.
    Aggregates are over ranks, where one that never called a function has zero. Times of the threads of a
    rank combine by maximum, other values by sum.

    Parameters
    ----------
    frame
        A ``hatchet.GraphFrame``.
    scales
        Factors on metrics, such as from microseconds to seconds.
    source
        Names the profile in messages.
    inclusive
        Whether values include those of called functions.

    Raises
    ------
    ReadError
        For a profile without inclusive values, and for a value that is not possible.
    """
    rows = frame.dataframe.reset_index().to_dict("records")
    metrics = [name for name in frame.inc_metrics if name.endswith(_INCLUSIVE)]
    if not rows or not metrics:
        raise ReadError(f"{source}: no inclusive values of functions")
    result: list[Sample] = []
    ranks = sorted({_rank(row) for row in rows})
    for column in metrics:
        metric = column.removesuffix(_INCLUSIVE)
        values = _inclusive(rows, column, metric == TIME, scales.get(metric, 1.0))
        result += _aggregated(
            values if inclusive else without_called(values, _ROUNDING), metric, ranks, source
        )
    if "Calls" in rows[0]:
        result += _aggregated(_inclusive(rows, "Calls", slowest=False, scale=1.0), VISITS, ranks, source)
    return result


def _read(function: str, folder: Path, options: Mapping[str, Any], source: Path) -> Any:
    try:
        library = importlib.import_module("hatchet")
    except ImportError as error:
        raise ReadError(f"{source}: reading it needs llnl-hatchet: {EXTRA}") from error
    read: Callable[..., Any] = getattr(library.GraphFrame, function)
    try:
        return read(str(folder), **options)
    except _BROKEN as error:
        raise ReadError(f"{source}: broken: {type(error).__name__}: {error}") from error


def _check_database(path: Path) -> None:
    """Refuse what is certainly no database, whatever the library would make of it."""
    try:
        start = path.read_bytes()[:200]
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror}") from error
    if not start.startswith(b"HPCTOOLKITmeta") and b"<?xml" not in start:
        raise ReadError(f"{path}: not an HPCToolkit database: it begins with {start[:14]!r}")


def _check_profile(path: Path) -> None:
    """Refuse a profile that has fewer functions than its first line says."""
    try:
        first, *lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror}") from error
    count, _, kind = first.partition(" ")
    if not count.isdecimal() or not kind.startswith("templated_functions"):
        raise ReadError(f"{path}: not a profile of TAU: it begins with {first[:40]!r}")
    there = sum(_FUNCTION.fullmatch(line) is not None for line in lines[1 : 1 + int(count)])
    if there < int(count):
        raise ReadError(f"{path}: truncated: {there} of {count} functions")


def _rank(row: Mapping[str, Any]) -> int:
    return int(row.get("rank", row.get("profile", 0)))


def _callpath(node: Any) -> Callpath:
    """Return the names of the functions that lead to a node, itself included."""
    frames = [item.frame for item in node.path()]
    names = [str(item.get("name")) for item in frames if item.get("type", "function") == "function"]
    return tuple(_CALL_LINE.sub("", name) for name in names)


def _inclusive(rows: Iterable[Mapping[str, Any]], column: str, slowest: bool, scale: float) -> Values:
    """Return the values of functions by call path and rank: threads combined, equal names added up."""
    threads: dict[tuple[Callpath, int], dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for row in rows:
        value, node = row.get(column), row["node"]
        path = _callpath(node)
        if path and value is not None and not math.isnan(value) and node.frame.get("type", "") == "function":
            threads[path, _rank(row)][int(row.get("thread", 0))] += float(value) * scale
    found: Values = defaultdict(dict)
    for (path, rank), values in threads.items():
        found[path][rank] = max(values.values()) if slowest else sum(values.values())
    return dict(found)


def _aggregated(values: Values, metric: str, ranks: list[int], source: str) -> list[Sample]:
    result: list[Sample] = []
    for path, by_rank in values.items():
        row = [by_rank.get(rank, 0.0) for rank in ranks]
        if min(row) < 0:
            raise ReadError(f"{source}: {metric} is {min(row)} at {'->'.join(path)}: not a possible value")
        result += [Sample("->".join(path), metric, value, name) for name, value in over_ranks(row).items()]
    return result
