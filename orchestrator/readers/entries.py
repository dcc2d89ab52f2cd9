"""What all readers of measurement files share: text, numbers, and the step from entries to measurements."""

from __future__ import annotations

import math
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import combinations
from pathlib import Path
from types import MappingProxyType

from orchestrator.errors import MissingInput, ReadError
from orchestrator.types import Measurement, Measurements, Point, Value
from orchestrator.units import SIZE, count

DEFAULT_CALLPATH = "<root>"  # as Extra-P calls what a file leaves unnamed
DEFAULT_METRIC = "<default>"

SECONDS = MappingProxyType(
    {
        **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
        **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
        **dict.fromkeys(("us", "\u00b5s", "\u03bcs", "usec", "microsecond", "microseconds"), 1e-6),
        **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), 1e-9),
        **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
        **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    }
)
"""Units of time in files, in seconds."""

_FAILED = frozenset({"fail", "failed", "failure", "error", "timeout", "cancelled", "aborted", "crashed"})

NO_COMMAS = "as commas are not read in numbers"
"""What messages about numbers with commas say."""

Groups = dict[tuple[str, str], dict[tuple[Value, ...], list[float]]]
"""Values by call path and metric, and by point."""

_WITH_UNIT = re.compile(r"(.*\S)\s*(?:\[\s*(\S+)\s*\]|\(\s*(\S+)\s*\))")
_IN_SECONDS = re.compile(r"(.*?)values of (.+) are in seconds from here on", re.DOTALL)  # see `in_seconds`
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NUMBER_AND_UNIT = re.compile(rf"(?P<number>{_NUMBER.pattern})\s*(?P<unit>[^\W\d]+)")
_COUNTED = re.compile(rf"(?P<number>{_NUMBER.pattern})\s*(?P<unit>[^\d\s.,;:].*)")  # 4 nodes, 10 %
_STAMP = re.compile(  # 2026-11-27, 27.11.2026, 11/27/2026, with or without a time of day
    r"(?:\d{4}-\d\d-\d\d|\d\d?([./])\d\d?\1\d{4})(?:[T ]+\d\d?:\d\d.*)?", re.ASCII
)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?", re.ASCII)
_PLAIN_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?", re.ASCII)
_GROUPED = re.compile(  # 10 000 and 10'000,5 with several kinds of blanks and apostrophes, and 1.020.200
    r"[+-]?[1-9]\d{0,2}(?:([ '\u2019\u00a0\u2009\u202f])\d{3}(?:\1\d{3})*(?:[.,]\d+)?|(?:\.\d{3}){2,})",
    re.ASCII,
)
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+|[1-9]\d{0,2}(\.\d{3})+),\d+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Values of one metric at one call path at one point, and where they were found.

    ``point`` has a value per parameter, in order.
    """

    where: str
    callpath: str
    metric: str
    point: tuple[Value, ...]
    values: tuple[float, ...]


def content_of(path: Path) -> bytes:
    """Return the bytes of a file, or raise ``ReadError``."""
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise MissingInput(f"{path}: there is no such file or directory") from error
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror}") from error


def decoded(content: bytes, source: str) -> str:
    """Return the text of UTF-8 bytes, with or without byte order mark, line ends made ``\\n``.

    UTF-16 has such a mark: spreadsheets write it as "Unicode text".
    """
    try:
        text = content.decode("utf-16" if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ReadError(
            f"{source}:{line}: not UTF-8 text (byte {content[error.start]:#04x}); convert it, for example "
            "by: iconv -f latin1 -t utf-8"
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_number(text: str) -> bool:
    """Return whether a text is a decimal number (which excludes ``nan``, ``inf`` and ``1_000``)."""
    return _NUMBER.fullmatch(text) is not None


def comma_remedy(text: str) -> str:
    """Return what to write instead of a number with commas, as in ``1,000`` and ``0,5``; empty for others."""
    found = [text.replace(",", "")] if separates_thousands(text) else []
    found += [text.replace(".", "").replace(",", ".")] if _DECIMAL_COMMA.fullmatch(text) else []
    return f"write {', or '.join(found)}, {NO_COMMAS}" if found else ""


def number_remedy(text: str) -> str:
    """Return what to write instead of a number with commas or separated thousands; empty for others."""
    if (found := _GROUPED.fullmatch(text)) is None:
        return comma_remedy(text)
    return f"write {text.replace(found[1] or '.', '').replace(',', '.')}"


def separates_thousands(text: str) -> bool:
    """Return whether the commas of a number stand where those between thousands do, as in ``1,020,200``."""
    return _THOUSANDS.fullmatch(text) is not None


def unit_remedy(text: str, name: str) -> str:
    """Return what to do about a number with a unit of time, as in ``1.5 ms``; empty for other texts."""
    found = _NUMBER_AND_UNIT.fullmatch(text)
    heading = f"{name} [{found['unit']}]" if found else ""
    if found is None or timed(heading)[1] is None:
        return ""
    return f"write {found['number']}, and the unit in the name of the column: {heading}"


def with_points(rows: Sequence[list[str]]) -> Sequence[list[str]] | None:
    """Return rows whose decimal commas are points; None where commas may be something else, or are not there.

    Commas are decimal where all numbers with a comma have one, none has a point, and one of them shows that
    commas separate no thousands, as 0,5 does and 1,000 does not.
    """
    cells = {cell.strip() for row in rows for cell in row}
    commas = {cell for cell in cells if comma_remedy(cell) or _PLAIN_COMMA.fullmatch(cell)}
    if (
        any(map(has_point, cells))
        or not all(map(_PLAIN_COMMA.fullmatch, commas))
        or all(map(_THOUSANDS.fullmatch, commas))
    ):
        return None
    return [[cell.replace(",", ".") if cell.strip() in commas else cell for cell in row] for row in rows]


def has_point(cell: str) -> bool:
    """Return whether a cell is a number with a point, beside which commas are not decimal."""
    return "." in cell and is_number(cell.strip())


def timed(name: str) -> tuple[str, float | None]:
    """Return a name such as ``time [ms]`` without its unit of time, and that in seconds; None without one.

    In brackets ``min`` may be a minimum, and is no unit.
    """
    found = _WITH_UNIT.fullmatch(name)
    unit = (found[2] or found[3]) if found else ""
    seconds = None if unit == "min" else SECONDS.get(unit)
    return (name, None) if found is None or seconds is None else (found[1], seconds)


def tells_units(name: str, cells: Iterable[object]) -> bool:
    """Return whether a column ``unit`` says in what the values beside it are: some are times."""
    return name.lower() in ("unit", "units") and any(str(cell).strip() in SECONDS for cell in cells)


def bracketed(metric: str, unit: object) -> str:
    """Return a metric with its unit in brackets, which `assemble` understands."""
    text = "" if unit is None else str(unit).strip()
    return f"{metric} [{'minutes' if text == 'min' else text}]" if text else metric


def left_out_units(columns: Mapping[str, Collection[object]]) -> Iterator[str]:
    """Say which columns that were left out hold units of time, in which times may be."""
    for name, cells in columns.items():
        units = dict.fromkeys(str(cell).strip() for cell in cells)
        if cells and all(unit in SECONDS for unit in units) and any(SECONDS[unit] != 1 for unit in units):
            yield (
                f"{name} was left out, though it holds units of time ({', '.join(units)}): values are taken "
                "as they are; convert times to one unit, and write it into the name of their column: "
                f"time [{next(iter(units))}]"
            )


def left_out_failures(columns: Mapping[str, Collection[object]]) -> Iterator[str]:
    """Say which columns that were left out tell that some runs, and not all, have failed."""
    for name, cells in columns.items():
        failed = [text for cell in cells if (text := str(cell).strip()).lower() in _FAILED]
        if 0 < len(failed) < len(cells):
            yield (
                f"{name} was left out, though it has {failed[0]!r} in {count(len(failed), 'row')}: values of "
                "runs that failed count like all others; remove these rows"
            )


def is_stamp(cell: object) -> bool:
    """Return whether a cell is a date, with or without a time of day."""
    return isinstance(cell, date) or (isinstance(cell, str) and _STAMP.fullmatch(cell.strip()) is not None)


def left_out_stamps(names: Sequence[str], remedy: str) -> str:
    """Return the note that columns of dates are no parameters, and how they would be."""
    return f"left out: {', '.join(names)}, which {'holds' if len(names) == 1 else 'hold'} dates; {remedy}"


def number(text: str, where: str) -> int | float:
    """Return a finite number, an integer if it is written as one."""
    if not is_number(text):
        remedy = number_remedy(text) or unit_remedy(text, where.rpartition(": ")[2])
        raise ReadError(f"{where}: {text!r} is not a number{remedy and '; ' + remedy}")
    value = finite(float(text), where)
    return int(text) if _INTEGER.fullmatch(text) else value


def finite(value: object, where: str) -> float:
    """Return a number read by another parser as a finite float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ReadError(f"{where}: {value!r} is not a number")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise ReadError(f"{where}: the value {result} is not finite")
    return result


def coordinate(value: object, where: str) -> Value:
    """Return a parameter's value: a finite number, or the text of a category."""
    if isinstance(value, str):
        return value
    result = finite(value, where)
    return value if isinstance(value, int) else result


def assemble(parameters: Sequence[str], entries: Iterable[Entry], source: str) -> Measurements:
    """Group entries by call path and metric; entries of one point are repetitions, in order.

    Metrics whose names have a unit of time, such as ``time [ms]``, are in seconds from here on.

    Raises
    ------
    ReadError
        Without parameters or entries, for parameters named twice, for a parameter with both
        numbers and texts, and for a metric that is given in two units at one point.
    """
    if not parameters:
        raise ReadError(f"{source}: no parameters")
    if "" in parameters or len(set(parameters)) != len(parameters):
        raise ReadError(f"{source}: every parameter needs a name of its own, not {', '.join(parameters)}")
    groups: Groups = {}
    kinds: dict[str, Value] = {}
    checked: set[tuple[type, ...]] = set()
    for entry in entries:
        types = tuple(map(type, entry.point))
        if types not in checked:
            _check_kinds(parameters, entry, kinds)
            checked.add(types)
        groups.setdefault((entry.callpath, entry.metric), {}).setdefault(entry.point, []).extend(entry.values)
    if not groups:
        raise ReadError(f"{source}: no measurements")
    groups, converted = _without_units(groups, source)
    coordinates = dict.fromkeys(key for values in groups.values() for key in values)
    points = {key: Point(tuple(zip(parameters, key, strict=True))) for key in coordinates}
    items = tuple(
        Measurement(callpath, metric, {points[key]: tuple(found) for key, found in values.items()})
        for (callpath, metric), values in groups.items()
    )
    notes = (f"{source}: {in_seconds(converted)}",) if converted else ()
    return Measurements(tuple(parameters), items, notes=notes)


def products(known: Measurements) -> list[str]:
    """Return a note on every parameter that is the product of two others at all points.

    A table often has such a column beside its factors. Points that have other values of it do not exist, but
    `orchestrator suggest` would propose some.
    """
    names = [name for name in known.parameters if _varies(known, name)]
    return [
        f"{name} is {first} * {second} at all points: leave it out of the parameters, as it cannot vary alone"
        for name in names
        for first, second in combinations([other for other in names if other != name], 2)
        if all(_is_product(point, name, first, second) for point in known.points)
    ]


def _varies(known: Measurements, name: str) -> bool:
    return len(known.values_of(name)) > 1 and not known.is_categorical(name)


def _is_product(point: Point, name: str, first: str, second: str) -> bool:
    product, one, other = (float(point[key]) for key in (name, first, second))
    return math.isclose(product, one * other)


def _without_units(groups: Groups, source: str) -> tuple[Groups, list[str]]:
    """Return groups with times in seconds, by their names without units, and the names that were converted.

    Raises
    ------
    ReadError
        For a point at which a call path has one metric in two units.
    """
    converted_groups: Groups = {}
    converted: dict[str, None] = {}
    for (callpath, heading), values in groups.items():
        name, unit = timed(heading)
        there = converted_groups.setdefault((callpath, name), {})
        if there.keys() & values.keys():
            raise ReadError(
                f"{source}: {name} of {callpath} has two units at the same points, also as {heading}; "
                "leave out one of them, or rename it"
            )
        if unit not in (None, 1.0):
            converted[heading] = None
            values = {point: [value * unit for value in there] for point, there in values.items()}
        there.update(values)
    return converted_groups, list(converted)


def in_seconds(names: Iterable[str]) -> str:
    """Return the note that metrics, named with their units, were converted."""
    return f"values of {', '.join(names)} are in seconds from here on"


def numbers_as_texts(known: Measurements) -> tuple[str, ...]:
    """Return the parameters whose values are numbers, but written as texts, which makes them categories."""
    return tuple(
        name
        for name in known.parameters
        if name not in known.categorical
        and all(isinstance(value, str) and is_number(value.strip()) for value in known.values_of(name))
    )


def names_like_numbers(known: Measurements) -> Iterator[str]:
    """Say which categories have names that look like numbers: ``1,000``, ``1 000``, ``4 nodes``."""
    for name in known.parameters:
        texts = [value for value in known.values_of(name) if isinstance(value, str)]
        remedies = {text: number_remedy(text) for text in texts if not is_number(text)}
        if not all(remedies.values()):
            remedies = _numbers_of_one_unit(texts)
        if name not in known.categorical and remedies:
            text, remedy = next(iter(remedies.items()))
            some = f"parameter {name} is taken for a category, with names such as {text!r}"
            yield f"{some}; if they are numbers, {remedy}"


def _numbers_of_one_unit(texts: Sequence[str]) -> dict[str, str]:
    """Return what to write instead of numbers with the same word or sign behind each; empty for others.

    Sizes, whose words may also differ, have a note of their own.
    """
    found = {text: _COUNTED.fullmatch(text) for text in texts if not SIZE.fullmatch(text)}
    if len({match and match["unit"] for match in found.values()}) != 1 or len(found) < 2:
        return {}
    return {text: f"write {match['number']}" for text, match in found.items() if match}


def of_metrics(known: Measurements, metrics: Collection[str], source: str) -> Measurements:
    """Return the measurements of some metrics.

    Raises
    ------
    ReadError
        If one of them was not measured.
    """
    there = known.metrics()
    metrics = [metric if metric in there else timed(metric)[0] for metric in metrics]
    missing = [metric for metric in metrics if metric not in there]
    if missing:
        raise ReadError(f"{source}: no measurements of {', '.join(missing)}; there are {', '.join(there)}")
    items = tuple(item for item in known.items if item.metric in metrics)
    notes = (note for text in known.notes if (note := _without_others(text, metrics)))
    return replace(known, items=items, notes=tuple(notes))


def _without_others(note: str, metrics: Collection[str]) -> str:
    """Return a note as it is of some metrics only: empty if it says nothing of them."""
    match = _IN_SECONDS.fullmatch(note)
    names = match[2].split(", ") if match else []
    if match is None or any(timed(name)[1] is None for name in names):  # or a name has a comma
        return note
    kept = [name for name in names if timed(name)[0] in metrics]
    return match[1] + in_seconds(kept) if kept else ""


def _check_kinds(parameters: Sequence[str], entry: Entry, kinds: dict[str, Value]) -> None:
    for name, value in zip(parameters, entry.point, strict=True):
        other = kinds.setdefault(name, value)
        if isinstance(value, str) != isinstance(other, str):
            remedy = number_remedy(value if isinstance(value, str) else str(other))
            raise ReadError(
                f"{entry.where}: parameter {name} is {value!r} here but {other!r} before: "
                f"its values must all be numbers, or all be names{remedy and '; ' + remedy}"
            )
