"""Tables of measurements: CSV and Parquet.

Long: one row per value, with the columns ``callpath``, ``metric``, ``value`` and one per parameter. Wide: one
row per point (and call path), with one column per parameter and per metric. Rows that agree in all but the
values are repetitions, in the order of the rows. A column ``repetition`` (or ``rep``) is ignored.

Text is read by the `csv` module, not by pandas: it knows the line of every row, which errors name, and a
small file is read before pandas would be imported.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from orchestrator.errors import ReadError
from orchestrator.readers.columns import (
    NOT_MEASURED,
    RESERVED,
    Layout,
    by_position,
    fitting,
    forgotten,
    is_header,
    layout,
    numbered,
    pooled,
)
from orchestrator.readers.entries import (
    DEFAULT_CALLPATH,
    DEFAULT_METRIC,
    NO_COMMAS,
    Entry,
    assemble,
    bracketed,
    coordinate,
    finite,
    has_point,
    in_seconds,
    is_number,
    left_out_failures,
    left_out_units,
    number,
    of_metrics,
    products,
    timed,
    with_points,
)
from orchestrator.readers.reading import EVERYTHING, Reading
from orchestrator.types import Measurements, Value
from orchestrator.units import count, printed_duration

if TYPE_CHECKING:
    from _csv import Reader

_DELIMITERS = (",", ";", "\t")
_BAR = "|"  # of sacct --parsable; elsewhere it may stand in names, as in |V|
_BLANK = " "  # or several
_WITHIN_NUMBER = re.compile(r"(?<=\d),(?=\d)", re.ASCII)
_PANDAS_INDEX = "__index_level_"  # row labels, where they are more than row numbers

Row = tuple[str, Sequence[object]]  # where it was found, and a text or number per column


def read_csv(text: str, source: str, reading: Reading = EVERYTHING) -> Measurements:
    """Read a table of text; comma, semicolon, tabulator or, without these, bars or blanks separate fields.

    Where commas do not, they may be those of decimal numbers: see `orchestrator.readers.entries.with_points`.
    Lines that start with ``#`` are skipped before the header, and after it where they do not have as
    many fields as the header. Without a header, the last of them before the rows names the columns, if it has
    a name for each. Where rows have one field more than the header and begin with row numbers, the
    header lacks the name of that column, which is left out with a note.

    A column is named as in the header or by its position from 0, as ``2=ppn`` also with another name. Where
    no parameters are named, they are the columns left of a column ``callpath``, else those left of the first
    response. A wide table needs one of the three; of a long one all other columns are parameters. Where no
    responses are named, all other columns of a wide table are. Given names replace those of a header line.

    Parameters
    ----------
    text, source
        Content of the file, and what errors call it.
    reading
        Which columns are parameters and responses, and names of all.

    Raises
    ------
    ReadError
        With file and line.
    """
    delimiter = _delimiter(text)
    lines = list(_csv_rows(text, delimiter, source))
    header, rows, named = _split(lines, _comment(text, delimiter), reading, source)
    places: Sequence[str] = [place for place, _ in rows]
    fields: Sequence[list[str]] = [row for _, row in rows]
    where = lines[0][0] if lines else source
    header, fields = _without_empty_ends(header, fields)
    pointed = None if delimiter == "," else with_points(fields)
    commas = [] if pointed is None else ["commas in numbers are taken for decimal points"]
    columns, assumed = fitting(header, pointed or fields, reading, places.__getitem__)
    chosen, more = layout(columns, where, reading, pointed or fields)
    notes = (*named, *assumed, *commas, *more)
    read = zip(places, pointed or fields, strict=True)
    try:
        return _assembled(chosen, reading, read, _from_text, source, notes)
    except ReadError as error:
        if delimiter == "," or NO_COMMAS not in str(error):
            raise
        raise ReadError(f"{error}{_not_decimal(header, fields, places)}") from error


def _not_decimal(names: Sequence[str], rows: Sequence[Sequence[str]], places: Sequence[str]) -> str:
    """Say which number with a point is why commas are not taken for decimal; empty where there is none."""
    for place, row in zip(places, rows, strict=True):
        for name, cell in zip(names, row, strict=False):
            if has_point(cell):
                without = cell.replace(".", "")
                return (
                    f"; they are decimal where no number of the table has a point, as {cell!r} has "
                    f"({place}: {name}): if that point separates thousands, write {without}"
                )
    return ""


def _without_empty_ends(
    header: Sequence[str], rows: Sequence[list[str]]
) -> tuple[Sequence[str], Sequence[list[str]]]:
    """Leave out last columns without a name and a value, which spreadsheets write."""
    width = len(header)
    while (
        width > 1
        and not header[width - 1]
        and all(len(row) == len(header) and not row[width - 1] for row in rows)
    ):
        width -= 1
    return (header, rows) if width == len(header) else (header[:width], [row[:width] for row in rows])


def _split(
    lines: Sequence[tuple[str, list[str]]], comment: Sequence[str], reading: Reading, source: str
) -> tuple[Sequence[str], Sequence[tuple[str, list[str]]], Sequence[str]]:
    """Return the names of the columns, the rows of values, and notes on the names.

    ``comment`` are the fields of the last comment before them, which may name the columns.
    """
    where, first = lines[0] if lines else (source, [])
    headed = len(first) >= 2 and is_header(first)
    if reading.names is not None:
        return reading.names, lines[headed:], ()
    if headed:
        return first, lines[1:], ()
    if len(comment) == len(first) >= 2 and is_header(comment):
        return comment, lines, ["the comment above the rows is taken for the header"]
    if first and by_position(reading):
        return numbered(len(first)), lines, ()
    raise ReadError(
        f"{where}: no header line naming the columns; add one, e.g. p,s,callpath,metric,value, or name them "
        "all (--names p,s,time --parameters p,s)"
    )


def is_table(text: str) -> bool:
    """Return whether a text may be a table: its first line has a delimiter, or blanks part numbers."""
    first = next(content_lines(text), "")
    return any(delimiter in first for delimiter in (*_DELIMITERS, _BAR)) or _is_blank_separated(text)


def _delimiter(text: str) -> str:
    """Return the most frequent delimiter of the first line; commas within numbers are none beside others."""
    first = next(content_lines(text), "")
    other = max(_DELIMITERS[1:], key=first.count)
    if "," not in _WITHIN_NUMBER.sub("", first):
        if other in first:
            return other
        if _BAR in first:
            return _BAR
        if _is_blank_separated(text):
            return _BLANK
    return max(_DELIMITERS, key=first.count)


def _is_blank_separated(text: str) -> bool:
    """Return whether blanks part the first two lines into fields: as many, or one more below the header."""
    first, second = (_parted(line, _BLANK) for line in (*islice(content_lines(text), 2), "", "")[:2])
    return len(first) >= 2 and len(second) - len(first) in (0, 1) and any(map(is_number, second))


def content_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text that are neither empty nor comments."""
    return (line for line in io.StringIO(text) if line.strip() and not line.lstrip().startswith("#"))


def _comment(text: str, delimiter: str) -> list[str]:
    """Return the fields of the last comment before the rows; empty where there is none."""
    before = takewhile(lambda line: not line.strip() or line.lstrip().startswith("#"), io.StringIO(text))
    comments = [line for line in before if line.strip()]
    return _parted(comments[-1].lstrip("# \t"), delimiter) if comments else []


def _parted(line: str, delimiter: str) -> list[str]:
    """Return the fields of one line."""
    try:
        return [field.strip() for field in next(_reader([line], delimiter), [])]
    except csv.Error:  # of a comment, or of what is no table
        return []


def _reader(lines: Iterable[str], delimiter: str) -> Reader:
    if delimiter == _BLANK:
        lines = (" ".join(line.split()) for line in lines)  # aligned columns, and tabulators among blanks
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)


def _csv_rows(text: str, delimiter: str, source: str) -> Iterator[tuple[str, list[str]]]:
    lines = _reader(io.StringIO(text, newline=""), delimiter)
    width = 0
    while True:
        line = lines.line_num + 1
        try:
            fields = next(lines, None)
        except csv.Error as error:
            raise ReadError(f"{source}:{line}: not CSV: {error}") from error
        if fields is None:
            return
        row = [field.strip() for field in fields]
        comment = bool(row) and row[0].startswith("#") and (len(row) != width or delimiter == _BLANK)
        if comment or not any(row):
            continue
        width = width or len(row)
        yield f"{source}:{line}", row


def read_parquet(content: bytes, source: str, reading: Reading = EVERYTHING) -> Measurements:
    """Read a Parquet file with the columns of a CSV file; see `read_csv`.

    Raises
    ------
    ReadError
        With file and row.
    """
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    try:
        table = parquet.read_table(io.BytesIO(content))
        kept = [i for i, name in enumerate(table.column_names) if not name.startswith(_PANDAS_INDEX)]
        columns: list[list[object]] = [table.column(index).to_pylist() for index in kept]
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise ReadError(f"{source}: broken Parquet file: {error}") from error
    names: list[str] = [table.column_names[index] for index in kept]
    fields = list(zip(*columns, strict=True))
    rows = ((f"{source}: row {n}", row) for n, row in enumerate(fields, start=1))
    chosen, notes = layout(names, source, reading, fields)
    known = _assembled(chosen, reading, rows, coordinate, source, notes)
    categories = (
        name for name, k in chosen.parameters if arrow.types.is_dictionary(table.field(kept[k]).type)
    )
    return replace(known, categorical=frozenset(categories))


def _assembled(
    chosen: Layout,
    reading: Reading,
    rows: Iterable[Row],
    parameter: Callable[[object, str], Value],
    source: str,
    notes: Sequence[str],
) -> Measurements:
    """Return what rows hold; a response that is no finite number comes from a run that failed."""
    failed: list[str] = []
    empty: dict[str, list[str]] = {}
    durations: dict[str, float] = {}
    rows = list(rows)
    skips = reading.responses and chosen.metrics
    entries = _entries(chosen, rows, parameter, empty, failed if skips else None, durations)
    known = assemble([name for name, _ in chosen.parameters], entries, source)
    if reading.responses and not chosen.metrics:
        known = of_metrics(known, reading.responses, source)
    doubts = [*_doubts(chosen, reading, [row for _, row in rows]), *_left_out(chosen, rows)]
    left_out = (
        [f"left out: {count(len(failed), 'value')} of runs that failed, the first at {failed[0]}"]
        if failed
        else []
    )
    seconds = [in_seconds(list(durations))] if durations else []
    said = (*notes, *seconds, *doubts, *products(known), *_unmeasured(empty), *left_out)
    return replace(known, notes=(*known.notes, *(f"{source}: {note}" for note in said)))


def _left_out(chosen: Layout, rows: Sequence[Row]) -> Iterator[str]:
    """Say what columns that were left out tell about the values."""
    used = {index for _, index in (*chosen.parameters, *chosen.metrics)} | {chosen.unit}
    free = {
        name: index for name, index in chosen.columns.items() if index not in used and name not in RESERVED
    }
    left = {name: [row[index] for _, row in rows] for name, index in free.items()}
    yield from left_out_failures(left)
    if chosen.metrics and not chosen.seconds and not any(timed(name)[1] for name, _ in chosen.metrics):
        yield from left_out_units(left)


def _unmeasured(empty: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Say how many cells are empty, by column, where any is."""
    for name, places in empty.items():
        cells = count(len(places), "empty cell")
        yield f"left out as not measured: {cells} of {name}, the first at {places[0]}"


def _doubts(chosen: Layout, reading: Reading, rows: Sequence[Sequence[object]]) -> list[str]:
    """Return a note on columns that nobody named and that may be parameters: models would pool over them."""
    if reading.parameters is None or not chosen.metrics:
        return []
    if reading.responses:
        given = ",".join(reading.parameters)
        return [
            f"{name} was left out, though rows of the same point differ in it: --parameters {given},{name} "
            f"makes it a {'category' if holds_names else 'parameter'}"
            + (f", and --parameters {given},{name}=callpath says that it names the call paths" * holds_names)
            for name, holds_names in pooled(chosen, rows).items()
        ]
    names = forgotten(chosen, rows)
    if not names:
        return []
    others = [name for name, _ in chosen.metrics if name not in names]
    several = len(names) > 1
    were = "columns {} were taken as metrics" if several else "column {} was taken as a metric"
    return [
        f"{were.format(', '.join(names))} beside {', '.join(others)}; "
        f"{'are they parameters' if several else 'is it a parameter'}? "
        f"--parameters {','.join([*reading.parameters, *names])} says so; if not, --response {others[0]} "
        "chooses what is modelled"
    ]


def _entries(
    chosen: Layout,
    rows: Iterable[Row],
    parse: Callable[[object, str], Value],
    empty: dict[str, list[str]],
    failed: list[str] | None,
    durations: dict[str, float],
) -> Iterator[Entry]:
    """Yield the values of rows.

    ``empty`` takes the places of metrics that were not measured, by metric, and ``failed`` those of values
    that are not finite; without it they are mistakes, and so are durations such as ``0:01:23``, of which
    ``durations`` takes one of each metric.
    """
    columns = chosen.columns
    parameter = _remembering(parse)
    for where, row in rows:
        point = tuple([parameter(row[index], where, name) for name, index in chosen.parameters])
        callpath = str(row[columns["callpath"]]) if "callpath" in columns else DEFAULT_CALLPATH
        metric = str(row[columns["metric"]]) if "metric" in columns else DEFAULT_METRIC
        if chosen.unit is not None:
            metric = bracketed(metric, row[chosen.unit])
        for name, index in chosen.metrics or (("value", columns["value"]),):
            cell = row[index]
            unit = chosen.seconds.get(index, 1.0)
            value = _finite_number(cell)
            if value is None and chosen.metrics and _is_empty(cell):
                empty.setdefault(name, []).append(where)
                continue
            if value is None and failed is not None and _is_not_measured(cell):
                failed.append(where)
                continue
            if value is None and failed is not None and index not in chosen.seconds:
                value = printed_duration(str(cell).strip())
                if value is not None:
                    durations[name] = value
            if value is None:
                value = _number(cell, where, name, wide=bool(chosen.metrics))
            yield Entry(
                where=where,
                callpath=callpath,
                metric=name if chosen.metrics else metric,
                point=point,
                values=(value * unit,),
            )


def _remembering(parse: Callable[[object, str], Value]) -> Callable[[object, str, str], Value]:
    """Return what parses a cell, given where it is and the column's name: every text once, as most recur."""
    known: dict[str, Value] = {}

    def parsed(cell: object, where: str, name: str) -> Value:
        if not isinstance(cell, str):
            return parse(cell, f"{where}: {name}")
        found = known.get(cell)
        if found is None:
            found = known[cell] = parse(cell, f"{where}: {name}")
        return found

    return parsed


def _finite_number(cell: object) -> float | None:
    """Return the value of a cell as a rule; None for what needs a closer look."""
    if isinstance(cell, str):
        text = cell.strip()
        value = float(text) if is_number(text) else math.nan
    else:
        value = cell if isinstance(cell, float) else math.nan
    return value if math.isfinite(value) else None


def _number(cell: object, where: str, name: str, *, wide: bool) -> float:
    """Return the value of a cell that is an integer, or raise ``ReadError`` with the remedy."""
    if _is_empty(cell) or _is_not_measured(cell):
        text = cell.strip() if isinstance(cell, str) else cell
        remedy = "remove the row"
        if wide:
            remedy = f"leave the cell empty, or give --response {name}, which leaves such cells out"
        raise ReadError(f"{where}: {name}: {text!r} is not a number; if the run failed, {remedy}")
    place = f"{where}: {name}"
    return finite(number(cell.strip(), place) if isinstance(cell, str) else cell, place)


def _is_empty(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _is_not_measured(cell: object) -> bool:
    if isinstance(cell, str):
        return cell.strip().lstrip("+-").lower() in NOT_MEASURED
    return isinstance(cell, float) and not math.isfinite(cell)


def _from_text(cell: object, where: str) -> Value:
    text = str(cell)
    if not text:
        raise ReadError(f"{where}: the value of the parameter is missing")
    return number(text, where) if is_number(text) else text
