"""Tables of measurements: CSV, and Parquet where pyarrow is installed.

Long: one row per value, with the columns ``callpath``, ``metric``, ``value`` and one per parameter. Wide: one
row per point (and call path), with one column per parameter and per metric. Rows that agree in all but the
values are repetitions, in the order of the rows. A column ``repetition`` (or ``rep``) is ignored.

CSV is read by the `csv` module, not by pandas: it knows the line of every row, which errors name, and a small
file is read before pandas would be imported.
"""

from __future__ import annotations

import csv
import importlib
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from orchestrator.errors import ReadError
from orchestrator.readers.collect import (
    DEFAULT_CALLPATH,
    DEFAULT_METRIC,
    Entry,
    assemble,
    coordinate,
    finite,
    is_number,
    number,
)
from orchestrator.types import Measurements, Value

REPETITION = ("repetition", "rep")
RESERVED = ("callpath", "metric", "value", *REPETITION)
DELIMITERS = (",", ";", "\t")

_PANDAS_INDEX = "__index_level_"  # row labels, where they are more than row numbers

Row = tuple[str, Sequence[object]]  # where it was found, and a text or number per column


@dataclass(frozen=True, slots=True)
class _Layout:
    parameters: tuple[str, ...]
    metrics: tuple[str, ...]  # one column each; empty for a long table
    columns: dict[str, int]

    def cell(self, row: Sequence[object], name: str, default: str) -> str:
        return str(row[self.columns[name]]) if name in self.columns else default


def read_csv(text: str, source: str, parameters: Sequence[str] | None = None) -> Measurements:
    """Read a CSV file with a header line; comma, semicolon or tabulator separate the fields.

    Lines that start with ``#`` are skipped before the header, and after it where they do not have as
    many fields as the header. A wide table needs a column ``callpath``, whose left neighbours are
    then the parameters and whose right ones the metrics, or ``parameters``.

    Raises
    ------
    ReadError
        With file and line.
    """
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    rows = _csv_rows(lines, source)
    where, header = next(rows, (source, ()))
    names = [str(name).strip() for name in header]
    if len(names) < 2 or all(is_number(name) for name in names):
        raise ReadError(
            f"{where}: no header line naming the columns; add one, e.g. p,s,callpath,metric,value"
        )
    layout = _layout(names, where, parameters)
    return assemble(layout.parameters, _entries(layout, len(names), rows, _from_text), source)


def _delimiter(text: str) -> str:
    first = next((line for line in text.split("\n") if line.strip() and not line.startswith("#")), "")
    return max(DELIMITERS, key=first.count)


def _csv_rows(lines: Iterator[list[str]], source: str) -> Iterator[Row]:
    width = 0
    line = 1
    while True:
        try:
            row = next(lines, None)
        except csv.Error as error:
            raise ReadError(f"{source}:{line}: not CSV: {error}") from error
        if row is None:
            return
        here, line = f"{source}:{line}", line + 1 + sum(field.count("\n") for field in row)
        comment = bool(row) and row[0].startswith("#") and len(row) != width
        if comment or not any(field.strip() for field in row):
            continue
        width = width or len(row)
        yield here, row


def read_parquet(content: bytes, source: str, parameters: Sequence[str] | None = None) -> Measurements:
    """Read a Parquet file with the columns of a CSV file; see `read_csv`.

    Raises
    ------
    ReadError
        With file and row; or where pyarrow is not installed.
    """
    try:
        arrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ReadError(
            f"{source}: reading Parquet needs pyarrow: pip install 'measurement-orchestrator[parquet]'"
        ) from error
    try:
        table = parquet.read_table(io.BytesIO(content))
        kept = [i for i, name in enumerate(table.column_names) if not name.startswith(_PANDAS_INDEX)]
        columns: list[list[object]] = [table.column(index).to_pylist() for index in kept]
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise ReadError(f"{source}: broken Parquet file: {error}") from error
    names: list[str] = [table.column_names[index] for index in kept]
    rows = ((f"{source}: row {n}", row) for n, row in enumerate(zip(*columns, strict=True), start=1))
    layout = _layout(names, source, parameters)
    return assemble(layout.parameters, _entries(layout, len(names), rows, coordinate), source)


def _layout(names: list[str], where: str, parameters: Sequence[str] | None) -> _Layout:
    columns = {name: index for index, name in enumerate(names)}
    if names[:1] == [""]:
        del columns[""]  # the row numbers that pandas writes by default
        names = names[1:]
    if len(columns) != len(names) or "" in columns:
        raise ReadError(f"{where}: every column needs a name of its own; found {', '.join(map(repr, names))}")
    missing = [name for name in parameters or () if name not in columns]
    if missing:
        raise ReadError(f"{where}: no column for parameter {', '.join(missing)}; found {', '.join(names)}")
    free = [name for name in names if name not in RESERVED]
    if "value" in columns:
        return _Layout(tuple(parameters or free), (), columns)
    if "metric" in columns:
        raise ReadError(f"{where}: a column 'metric' needs a column 'value'")
    if parameters is None and "callpath" not in columns:
        raise ReadError(
            f"{where}: which columns are parameters? Name the parameters (--parameters p,s), or "
            "add a column 'callpath' between them, or use the columns callpath, metric, value"
        )
    if parameters is None:
        parameters = [name for name in free if columns[name] < columns["callpath"]]
    metrics = tuple(name for name in free if name not in parameters)
    if not metrics:
        raise ReadError(f"{where}: no column of values; found {', '.join(names)}")
    return _Layout(tuple(parameters), metrics, columns)


def _entries(
    layout: _Layout, width: int, rows: Iterable[Row], parameter: Callable[[object, str], Value]
) -> Iterator[Entry]:
    for where, row in rows:
        if len(row) != width:
            raise ReadError(f"{where}: {len(row)} fields, but {width} columns")
        cells = ((row[layout.columns[name]], f"{where}: {name}") for name in layout.parameters)
        point = tuple(parameter(cell, place) for cell, place in cells)
        callpath = layout.cell(row, "callpath", DEFAULT_CALLPATH)
        metric = layout.cell(row, "metric", DEFAULT_METRIC)
        for name in layout.metrics or ("value",):
            cell = row[layout.columns[name]]
            if layout.metrics and _is_empty(cell):
                continue  # not measured here
            value = float(number(cell.strip(), f"{where}: {name}")) if isinstance(cell, str) else cell
            values = (finite(value, f"{where}: {name}"),)
            yield Entry(
                where=where,
                callpath=callpath,
                metric=name if layout.metrics else metric,
                point=point,
                values=values,
            )


def _is_empty(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _from_text(cell: object, where: str) -> Value:
    text = str(cell).strip()
    if not text:
        raise ReadError(f"{where}: the value of the parameter is missing")
    return number(text, where) if is_number(text) else text
