"""Tables of measurements: pandas DataFrames from and to `Measurements`.

Wide: one row per run (and call path), one column per parameter and per metric. Long: one row per value, with
the columns ``callpath``, ``metric`` and ``value`` and one per parameter, as `orchestrator.read` returns it.
Rows at one point are repetitions, in the order of the table.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from orchestrator.api.arguments import texts
from orchestrator.api.points import LARGEST, is_plain, plain, point_of
from orchestrator.errors import MeasurementError, ReadError
from orchestrator.readers.columns import (
    REPETITION,
    RESERVED,
    chosen_beside,
    heading_of,
    numbers_runs,
    taken_for_repetitions,
)
from orchestrator.readers.entries import (
    DEFAULT_CALLPATH,
    DEFAULT_METRIC,
    Entry,
    assemble,
    bracketed,
    is_number,
    is_stamp,
    left_out_failures,
    left_out_stamps,
    left_out_units,
    names_like_numbers,
    numbers_as_texts,
    of_metrics,
    products,
    separates_thousands,
    tells_units,
    timed,
    unit_remedy,
)
from orchestrator.report.export import COLUMNS, rows
from orchestrator.types import Measurements, Point, Value
from orchestrator.units import did_you_mean, listed

Names = str | Sequence[str]

_CALLPATH, _METRIC, _REPETITION, _VALUE = COLUMNS
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
_TO_CATEGORY = "{}.astype('category')"
_SHOWN = 5  # rows that an error names
# Models write the names of parameters into expressions, and find values by them.
_AS_TEXT = "column names must be text: frame.columns = frame.columns.map(str)"


def to_measurements(
    frame: pd.DataFrame,
    parameters: Names | None,
    response: Names | None,
    callpath: str | None,
) -> Measurements:
    """Return the measurements of a table.

    Parameters
    ----------
    frame
        Wide or long, see the module. Texts, truth values and pandas' categories are categorical parameters.
    parameters
        Columns that are execution parameters. Needed for a wide table; all others of a long one by default.
    response
        Columns of measured values, one per metric. None for a long table.
    callpath
        Column that names the code region; by default ``callpath`` where there is such a column, else all rows
        are of one region.

    Raises
    ------
    MeasurementError
        For columns that do not exist, an empty table, and values that are missing, not finite or no numbers.
    """
    _check_frame(frame)
    long = _is_long(frame, response)
    wanted = _columns(response, "response")
    if callpath is not None and not isinstance(callpath, str):
        raise MeasurementError(f"callpath={callpath!r}: give the name of one column; {_AS_TEXT}")
    if callpath is None and _CALLPATH in frame.columns:
        callpath = _CALLPATH
    stamps = _stamps(frame) if parameters is None else []
    units = _units(frame, parameters) if long else []  # one column, or none
    names = _parameters(frame, parameters, [*stamps, *units], long)
    runs = _runs(frame, names, callpath) if parameters is None else None
    names = [name for name in names if name != runs]
    metrics = [_VALUE] if long else [_heading(frame, name) or name for name in wanted]
    if not metrics:
        raise MeasurementError(
            "which column was measured? Give response='time', or a table with the columns "
            f"{_CALLPATH}, {_METRIC}, {_VALUE}; this one has {_listed(frame.columns)}"
        )
    extra = [name for name in (callpath, _METRIC if long else None) if name is not None]
    _check_columns(frame, [*names, *metrics, *extra])
    if repeated := {name for name in names if name in metrics or name == callpath}:
        raise MeasurementError(f"column {_listed(repeated)} cannot be a parameter and something else, too")
    columns = {name: _coordinates(frame[name]) for name in names}
    paths = [DEFAULT_CALLPATH] * len(frame) if callpath is None else _texts(frame[callpath])
    labels = _texts(frame[_METRIC]) if long else None
    if labels and units:
        labels = list(map(bracketed, labels, frame[units[0]].astype(object).fillna("")))
    values = {name: _values(frame[name], may_miss=len(metrics) > 1) for name in metrics}
    entries = _entries(list(frame.index), columns, paths, labels, values)
    try:
        found = assemble(names, entries, "the table")
        found = of_metrics(found, wanted, "the table") if long and wanted not in ([], [_VALUE]) else found
    except ReadError as error:
        raise MeasurementError(str(error)) from None
    categories = (name for name in names if isinstance(frame[name].dtype, pd.CategoricalDtype))
    found = replace(found, categorical=frozenset(categories))
    notes = (
        [left_out_stamps(stamps, f"parameters={[*names, *stamps]} makes them categories")] if stamps else []
    )
    if runs is not None:
        notes += [taken_for_repetitions(runs, f"parameters={[*names, runs]}")]
    notes += [_numbers_as_texts(frame[name]) for name in numbers_as_texts(found)]
    notes += [*names_like_numbers(found), *products(found)]
    used = (*names, *metrics, *extra, *units)
    left = {str(name): list(frame[name]) for name in frame.columns if name not in used}
    notes += left_out_failures(left)
    if not any(timed(name)[1] for name in metrics):
        notes += left_out_units(left)
    notes += _pooled(frame, [*names, *extra], [*names, *metrics, *extra, *units, *_stamps(frame)])
    return replace(found, notes=(*found.notes, *notes))


def _numbers_as_texts(column: pd.Series[Any]) -> str:
    return (
        f"{column.name} has numbers that are texts, so it is a category: "
        f"{_assigned(column, 'pandas.to_numeric({})')} makes them numbers; if it is one, "
        f"{_assigned(column, _TO_CATEGORY)} says so"
    )


def _pooled(frame: pd.DataFrame, points: Sequence[str], used: Sequence[str]) -> Iterator[str]:
    """Say which columns were left out, though rows of the same point differ in them as in a parameter."""
    free = [name for name in frame.columns if name not in used and str(name).lower() not in RESERVED]
    cells = {name: list(map(str, frame[name])) for name in free if not frame[name].isna().any()}
    rows = list(zip(*(frame[name] for name in points), strict=True)) if cells else []
    for name in chosen_beside(rows, cells):
        said = f"column {name} was left out, though rows of the same point differ in it, as in a parameter"
        yield f"{said}; if it is one, parameters=[..., {name!r}] says so" + (
            ""
            if pd.api.types.is_numeric_dtype(frame[name])
            else f"; if it names the code region, callpath={name!r}"
        )


def to_frame(known: Measurements) -> pd.DataFrame:
    """Return measurements as a long table: the parameters, callpath, metric, repetition, value."""
    frame = pd.DataFrame(rows(known), columns=[*known.parameters, *COLUMNS])
    for name in known.parameters:
        if known.is_categorical(name):
            frame[name] = frame[name].astype("category")
    return frame


def to_points(frame: pd.DataFrame, known: Measurements) -> list[Point]:
    """Return the points that the rows of a table name, a column per parameter of the measurements."""
    _check_frame(frame)
    _check_columns(frame, list(known.parameters))
    columns = [_coordinates(frame[name]) for name in known.parameters]
    return [
        point_of(dict(zip(known.parameters, row, strict=True)), known) for row in zip(*columns, strict=True)
    ]


def _check_frame(frame: object) -> None:
    if not isinstance(frame, pd.DataFrame):
        remedy = (
            "pandas.DataFrame(...) makes one from lists and dictionaries, orchestrator.read(...) from files"
        )
        if isinstance(frame, pd.Series):
            remedy = "series.reset_index() makes one, with the index as columns"
        raise MeasurementError(f"expected a pandas DataFrame, not {type(frame).__name__}; {remedy}")
    if frame.empty:
        raise MeasurementError("the table is empty: it needs at least one row")
    if frame.columns.nlevels > 1:
        raise MeasurementError(
            f"the columns have {frame.columns.nlevels} levels of names; give each one name: "
            "frame.columns = ['_'.join(map(str, names)) for names in frame.columns]"
        )
    if not frame.columns.is_unique:
        repeated = frame.columns[frame.columns.duplicated()]
        raise MeasurementError(f"two columns have the same name: {_listed(repeated)}; rename one")


def _check_columns(frame: pd.DataFrame, names: Sequence[str]) -> None:
    for name in names:
        if name not in frame.columns:
            known = [str(column) for column in frame.columns]
            if name in known:
                raise MeasurementError(f"column {name} has a name that is a number or the like: {_AS_TEXT}")
            if name in frame.index.names:
                raise MeasurementError(f"no column {name!r}, it is in the index: frame = frame.reset_index()")
            raise MeasurementError(f"no column {name!r}: {did_you_mean(str(name), known)}")


def _is_long(frame: pd.DataFrame, response: Names | None) -> bool:
    """Return whether a column names the metrics; then responses are metrics, unless they are columns."""
    there = {_METRIC, _VALUE} <= set(frame.columns)
    names = _columns(response, "response")
    return there and (names == [_VALUE] or not any(_heading(frame, name) for name in names))


def _heading(frame: pd.DataFrame, name: str) -> str | None:
    """Return the column of a name, which may lack its unit of time."""
    return heading_of(name, [column for column in frame.columns if isinstance(column, str)])


def _stamps(frame: pd.DataFrame) -> list[str]:
    """Return the columns that hold nothing but dates: they say when runs were made."""
    free = (name for name in frame.columns if str(name).lower() not in RESERVED)
    return [
        name
        for name in free
        if not isinstance(frame[name].dtype, pd.CategoricalDtype) and all(map(is_stamp, frame[name]))
    ]


def _units(frame: pd.DataFrame, parameters: Names | None) -> list[str]:
    """Return the column that says in what the values of a long table are, unless it is a parameter."""
    given = [] if parameters is None else _columns(parameters, "parameters")
    free = (name for name in frame.columns if isinstance(name, str) and name not in given)
    return [name for name in free if tells_units(name, frame[name])][:1]


def _runs(frame: pd.DataFrame, names: Sequence[str], callpath: str | None) -> str | None:
    """Return the column of a long table that numbers runs; None without one, or beside repetitions."""
    if any(str(name).lower() in REPETITION for name in frame.columns):
        return None
    there = [name for name in (callpath, _METRIC) if name in frame.columns]
    cells = {name: list(frame[name]) for name in names}
    return numbers_runs(cells, [list(frame[name]) for name in there])


def _parameters(frame: pd.DataFrame, given: Names | None, stamps: Sequence[str], long: bool) -> list[str]:
    if given is not None:
        names = _columns(given, "parameters")
    elif long:
        names = _columns(
            [name for name in frame.columns if name not in stamps and str(name).lower() not in RESERVED],
            "parameters",
        )
    else:
        names = []
    if not names:
        raise MeasurementError(
            f"which columns are parameters? Give parameters=['p']; the table has {_listed(frame.columns)}"
        )
    if len(set(names)) < len(names):
        raise MeasurementError(f"a parameter is named twice: {_listed(names)}")
    return names


def _columns(given: object, option: str) -> list[str]:
    """Return the columns that an option names: one as a text, or several in an order."""
    if isinstance(given, set | frozenset):
        raise MeasurementError(f"{option} is a set, which has no order: give a list of columns")
    return texts(given, option, _AS_TEXT)


def _coordinates(column: pd.Series[Any]) -> list[Value]:
    _refuse_missing(column)
    if not isinstance(column.dtype, pd.CategoricalDtype):  # a category may be anything
        for label, cell in zip(column.index, column, strict=True):
            if not is_plain(cell):
                why = (
                    f"{_meaning(cell, column)}; or make it a category: {_assigned(column, '{}.astype(str)')}"
                )
                raise MeasurementError(f"column {column.name!r} has {cell!r} in row {label!r}, {why}")
    found = [plain(cell) for cell in column]
    are_texts = {isinstance(value, str) for value in found}
    if len(are_texts) > 1:
        raise MeasurementError(
            f"column {column.name!r} has numbers and texts; make all of them numbers (pandas.to_numeric) or "
            "all of them texts (astype(str)), which are categories"
        )
    if not any(are_texts):
        bad = [label for label, v in zip(column.index, found, strict=True) if not _is_finite(v)]
        _refuse(bad, column, "is not finite, or too large; remove these rows")
    return found


def _is_finite(value: Value) -> bool:
    return not isinstance(value, str) and -LARGEST <= value <= LARGEST


def _comma_ways(cell: str, column: pd.Series[Any]) -> Iterator[str]:
    """Yield what the commas of a text may mean in a number, and how to convert the column then."""
    if _DECIMAL_COMMA.fullmatch(cell):
        convert = _assigned(column, "{}.str.replace(',', '.').astype(float)")
        yield f"if its comma is a decimal point, convert it: {convert}"
    if separates_thousands(cell):
        convert = _assigned(column, "{}.str.replace(',', '').astype(float)")
        yield f"if its commas separate thousands, convert it: {convert}"


def _meaning(cell: object, column: pd.Series[Any]) -> str:
    """Return what a cell is that is no number, and how to make it one."""
    if isinstance(cell, str) and (ways := list(_comma_ways(cell.strip(), column))):
        return f"which is not a number; {'; '.join(ways)}"
    if isinstance(cell, str) and (remedy := unit_remedy(cell.strip(), str(column.name))):
        return f"which is not a number; {remedy}"
    if isinstance(cell, str) and not is_number(cell.strip()):
        return "which is not a number; remove these rows"
    if isinstance(cell, str):
        return f"which is not a number; convert it: {_assigned(column, 'pandas.to_numeric({})')}"
    if isinstance(cell, datetime.timedelta):
        durations = "{}" if pd.api.types.is_timedelta64_dtype(column) else "pandas.to_timedelta({})"
        return f"which is a duration; make it seconds: {_assigned(column, f'{durations}.dt.total_seconds()')}"
    if isinstance(cell, datetime.date | pd.Period):
        return "which is a time stamp and no duration; subtract a start, and take .dt.total_seconds() of that"
    if type(cell).__name__.startswith("bool"):
        return f"which is a truth value; make it a number: {_assigned(column, '{}.astype(int)')}"
    return "which is not a real number; convert it to float"


def _assigned(column: pd.Series[Any], pattern: str) -> str:
    name = f"frame[{column.name!r}]"
    return f"{name} = {pattern.format(name)}"


def _texts(column: pd.Series[Any]) -> list[str]:
    _refuse_missing(column)
    return [str(cell) for cell in column]


def _values(column: pd.Series[Any], may_miss: bool) -> list[float]:
    """Return measured values; NaN where one of several metrics was not measured in a run."""
    found: list[float] = []
    for label, cell, missing in zip(column.index, column, column.isna(), strict=True):
        value = math.nan if missing else plain(cell)
        if isinstance(value, str):
            where = f"column {column.name!r} has {cell!r} in row {label!r}"
            raise MeasurementError(f"{where}, {_meaning(cell, column)}")
        found.append(float(value) if missing or _is_finite(value) else math.inf)
    if not may_miss:
        _refuse_missing(column)
    bad = [label for label, value in zip(column.index, found, strict=True) if math.isinf(value)]
    _refuse(bad, column, "is infinite; remove these rows")
    return found


def _refuse_missing(column: pd.Series[Any]) -> None:
    bad = list(column.index[column.isna()])
    _refuse(bad, column, f"has no value; remove these rows: frame.dropna(subset=[{column.name!r}])")


def _refuse(labels: Sequence[Hashable], column: pd.Series[Any], why: str) -> None:
    if labels:
        where = listed(list(map(repr, labels)), _SHOWN)
        raise MeasurementError(f"column {column.name!r}, row {where}: {why}")


def _entries(
    labels: Sequence[Hashable],
    columns: Mapping[str, Sequence[Value]],
    paths: Sequence[str],
    metrics: Sequence[str] | None,
    values: Mapping[str, Sequence[float]],
) -> Iterator[Entry]:
    """Yield an entry per value; a row of several metrics must have at least one."""
    for position, label in enumerate(labels):
        point = tuple(column[position] for column in columns.values())
        measured = False
        for name, found in values.items():
            value = found[position]
            if not math.isnan(value):
                measured = True
                metric = name if metrics is None else metrics[position]
                yield Entry(
                    where=f"row {label!r}",
                    callpath=paths[position],
                    metric=metric or DEFAULT_METRIC,
                    point=point,
                    values=(value,),
                )
        if not measured:
            raise MeasurementError(
                f"row {label!r} has no value in any of the columns {_listed(values)}; remove it: "
                "frame.dropna(subset=[...], how='all')"
            )


def _listed(names: Any) -> str:
    return ", ".join(map(str, names))
