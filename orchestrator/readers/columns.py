"""Which columns of a table hold parameters and which hold values: what the header says, and what users say.

A column is named as in the header, or by its position among the fields of a row, from 0; ``15=time`` and
``avg=time`` also say what it is called from there on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.errors import ColumnsError, ReadError
from orchestrator.readers.entries import in_seconds, is_number, is_stamp, left_out_stamps, tells_units, timed
from orchestrator.readers.reading import Reading

REPETITION = ("repetition", "rep")
LONG = frozenset({"callpath", "metric", "value"})
"""Columns of long tables."""
NOT_MEASURED = frozenset({"nan", "inf", "infinity", "na", "n/a", "none", "null", "failed", "timeout"})
"""What tools write in place of a value, in small letters."""
RESERVED = (*sorted(LONG), *REPETITION)

_RUNS = frozenset({"run", "trial", "repeat", "replicate", "sample"})  # also numbers of repetitions
_POSITION = re.compile(r"\d+", re.ASCII)
_MOST = 0.75  # of its different values, which a parameter has at one value of the others
_NAME = re.compile(r"[^\W\d]")  # how a name begins
_ROW_NUMBERS = ""  # the name of their column, as pandas writes it


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where what is: pairs of a name and the position of its column.

    ``metrics`` is empty for a long table. ``columns`` are all that have a name. ``seconds`` is the unit of
    columns of times, by position, where the header names one. ``unit`` is the position of the column with the
    unit of every value of a long table, where there is one.
    """

    parameters: tuple[tuple[str, int], ...]
    metrics: tuple[tuple[str, int], ...]
    columns: dict[str, int]
    seconds: dict[int, float] = field(default_factory=dict)
    unit: int | None = None


def by_position(reading: Reading) -> bool:
    """Return whether users name all columns by their positions, so that no name of the header is needed."""
    texts = [*(reading.parameters or ()), *reading.responses]
    given = reading.parameters is not None and bool(reading.responses)
    return given and all(_POSITION.fullmatch(text.partition("=")[0].strip()) for text in texts)


def is_header(fields: Sequence[str]) -> bool:
    """Return whether a line names columns: no field is a number, as every row of measurements has one.

    With all columns of a long table it does in any case: then a number is the name of a parameter.
    """
    return set(fields) >= LONG or not any(map(is_number, fields))


def numbered(width: int) -> list[str]:
    """Return names of columns that have none."""
    return [f"column{index}" for index in range(width)]


def fitting(
    names: Sequence[str], rows: Sequence[Sequence[str]], reading: Reading, where: Callable[[int], str]
) -> tuple[list[str], list[str]]:
    """Return a name for every field of a row, and notes on what had to be assumed.

    The name of the first column is missing where it holds row numbers (as R and pandas write tables): rows
    then have one field more than the header.

    Parameters
    ----------
    names
        As the header, or the user, gives them.
    rows
        Fields of all rows.
    reading
        If it names all columns by position, names that do not fit are no matter.
    where
        Where a row was found.

    Raises
    ------
    ReadError
        For a row with another number of fields.
    """
    # Rows of an incomplete table may begin with the incomplete ones.
    widths = Counter(map(len, rows))
    width = max(widths, key=lambda each: (widths[each], each == len(names)), default=len(names))
    odd = next((k for k, row in enumerate(rows) if len(row) != width), None)
    if odd is None and width == len(names):
        return list(names), []
    if odd is None and width == len(names) + 1 and names[0] != _ROW_NUMBERS and _numbers_rows(rows):
        some = ", ".join(row[0].strip() for row in rows[:3])
        return [_ROW_NUMBERS, *names], [
            f"rows have {width} fields but the header {len(names)} names: the first column "
            f"({some}{', ...' if len(rows) > 3 else ''}) is taken for row numbers"
        ]
    if odd is None and by_position(reading):
        return numbered(width), [
            f"rows have {width} fields but the header {len(names)} names: the names are not used"
        ]
    if odd is not None:
        raise ReadError(f"{where(odd)}: {len(rows[odd])} fields, but {width} columns")
    raise ColumnsError(f"{where(0)}: {width} fields, but {len(names)} columns{_remedy(names, width)}")


def _remedy(names: Sequence[str], width: int) -> str:
    return (
        f" ({', '.join(names)}), so it is not known which is which: name every column (--names "
        f"{','.join(numbered(width)[:3])},...), or say what columns are by their positions from 0, "
        "such as --parameters 1=p,2=s --response 3=time"
    )


def _numbers_rows(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first fields number the rows: all different, or never counted up from 0.

    A last field that is always empty is the end of a line with a delimiter too many.
    """
    first = [row[0].strip() for row in rows]
    if not all(map(_POSITION.fullmatch, first)) or not any(row[-1].strip() for row in rows):
        return False
    numbers = set(map(int, first))
    return len(numbers) == len(rows) or numbers == {0}


def layout(
    names: Sequence[str], where: str, reading: Reading, rows: Sequence[Sequence[object]]
) -> tuple[Layout, list[str]]:
    """Return where parameters and values are in rows with these names, and notes on what was assumed.

    Columns of dates are neither, unless the user names them: they say when runs were made. A column of names
    that nobody named tells the call paths of a wide table that has none.

    Raises
    ------
    ReadError
        For names that are missing or not unique, and for columns that are not there.
    """
    stamps = _stamps_among(names, rows)
    begin = 1 if list(names[:1]) == [_ROW_NUMBERS] else 0
    names = _as_reserved(names, reading)
    columns = {name: index for index, name in enumerate(names) if index >= begin}
    if len(columns) != len(names) - begin or _ROW_NUMBERS in columns:
        raise ReadError(f"{where}: every column needs a name of its own; found {', '.join(map(repr, names))}")
    parameters = _chosen(reading.parameters, "parameter", names, where)
    columns |= {name: index for name, index in parameters if name == "callpath"}
    parameters = tuple((name, index) for name, index in parameters if name != "callpath")
    if "value" in columns and ("metric" in columns or not reading.responses):
        unit = _unit_among(columns, parameters, rows)
        parameters = parameters or _free(
            columns, (), lambda index: index != unit and names[index] not in stamps
        )
        runs, notes = _runs_among(parameters, columns, reading, rows)
        parameters = tuple(pair for pair in parameters if pair not in runs)
        chosen = Layout(parameters=parameters, metrics=(), columns=columns, unit=unit)
        return chosen, _left_out(stamps, reading) + notes
    if "metric" in columns and not reading.responses:
        raise ReadError(f"{where}: a column 'metric' needs a column 'value'")
    metrics = _chosen(reading.responses, "response", names, where)
    notes = _left_out([name for name in stamps if name not in dict(metrics)], reading)
    runs = ()
    if reading.parameters is None:
        end = _end_of_parameters(columns, metrics, where, names)
        parameters = _free(columns, metrics, lambda index: index < end and names[index] not in stamps)
        runs, more = _runs_among(parameters, columns, reading, rows)
        parameters = tuple(pair for pair in parameters if pair not in runs)
        notes += more
        if "callpath" not in columns:
            some = ", ".join(name for name, _ in parameters)
            notes += [f"parameters are the columns before {metrics[0][0]}: {some}; --parameters names others"]
    if not metrics:
        used = {*(index for _, index in (*parameters, *runs)), columns.get("callpath", -1)}
        texts = [name for name in _texts_among(columns, used, rows) if name not in stamps]
        columns, more = _with_callpaths(columns, texts, reading, where)
        notes += more
        taken = [(name, columns[name]) for name in ("callpath", *texts) if name in columns]
        metrics = _free(columns, (*parameters, *runs, *taken), lambda index: names[index] not in stamps)
    if not metrics:
        raise ReadError(f"{where}: no column of values; found {', '.join(columns)}")
    metrics, seconds, converted = _without_units(metrics, names)
    _check_different(parameters, metrics, where)
    chosen = Layout(parameters=parameters, metrics=metrics, columns=columns, seconds=seconds)
    return chosen, notes + converted


def _runs_among(
    parameters: tuple[tuple[str, int], ...],
    columns: Mapping[str, int],
    reading: Reading,
    rows: Sequence[Sequence[object]],
) -> tuple[tuple[tuple[str, int], ...], list[str]]:
    """Return the one of parameters, which nobody named, that numbers runs, and the note on it."""
    guessing = reading.parameters is None and not columns.keys() & set(REPETITION)
    if not guessing or not any(name.lower() in _RUNS for name, _ in parameters):
        return (), []
    cells = {name: [row[index] for row in rows] for name, index in parameters}
    others = [[row[columns[name]] for row in rows] for name in ("callpath", "metric") if name in columns]
    found = numbers_runs(cells, others)
    if found is None:
        return (), []
    return ((found, columns[found]),), [taken_for_repetitions(found, f"--parameters {','.join(cells)}")]


def numbers_runs(
    parameters: Mapping[str, Sequence[object]], others: Sequence[Sequence[object]]
) -> str | None:
    """Return the parameter that numbers runs: it is called so, and tells rows of the same point apart.

    Parameters
    ----------
    parameters
        The cells of each, by name.
    others
        Cells of what else tells rows apart, such as call paths.
    """
    for name, cells in parameters.items():
        rest = [column for other, column in parameters.items() if other != name]
        points = list(zip(*rest, *others, strict=True))
        if (
            name.lower() in _RUNS
            and rest
            and all(_POSITION.fullmatch(str(cell)) for cell in cells)
            and len(set(zip(points, cells, strict=True))) == len(cells) > len(set(points))
        ):
            return name
    return None


def taken_for_repetitions(name: str, remedy: str) -> str:
    """Return the note that a column was taken for the number of the repetition."""
    return f"{name} is taken for the number of the repetition; {remedy} makes it a parameter"


def _unit_among(
    columns: Mapping[str, int], parameters: tuple[tuple[str, int], ...], rows: Sequence[Sequence[object]]
) -> int | None:
    """Return the position of the column with the units of values; None without one, or for a parameter."""
    taken = {index for _, index in parameters}
    units = (
        index
        for name, index in columns.items()
        if index not in taken and tells_units(name, (row[index] for row in rows))
    )
    return next(units, None)


def _end_of_parameters(
    columns: Mapping[str, int], metrics: tuple[tuple[str, int], ...], where: str, names: Sequence[str]
) -> int:
    """Return the position of the call paths, or else of the first metric, before which parameters are."""
    end = columns.get("callpath", min((index for _, index in metrics), default=-1))
    if end < 0:
        raise ColumnsError(
            f"{where}: which columns are parameters? Name them (--parameters p,s), and what to model "
            f"(--response time); found {_numbered(names)}; or add a column 'callpath' behind the "
            "parameters, or use the columns callpath, metric, value"
        )
    return end


def _without_units(
    metrics: tuple[tuple[str, int], ...], names: Sequence[str]
) -> tuple[tuple[tuple[str, int], ...], dict[int, float], list[str]]:
    """Return metrics by names without units of time, these units by position, and the note on them."""
    units = {index: timed(names[index])[1] for _, index in metrics}
    seconds = {index: unit for index, unit in units.items() if unit is not None}
    metrics = tuple((timed(name)[0] if index in seconds else name, index) for name, index in metrics)
    converted = [names[index] for index, unit in seconds.items() if unit != 1]
    return metrics, seconds, [in_seconds(converted)] if converted else []


def _with_callpaths(
    columns: dict[str, int], texts: Sequence[str], reading: Reading, where: str
) -> tuple[dict[str, int], list[str]]:
    """Return columns of which one of names tells the call paths, and the note on it.

    Raises
    ------
    ReadError
        Where it is not known which of several does.
    """
    if not texts:
        return columns, []
    given = ",".join(reading.parameters or ())
    remedy = (
        f"--parameters {given},{texts[0]} makes it a category, and --parameters "
        f"{given},{texts[0]}=callpath says that it names the call paths"
    )
    if len(texts) > 1 or "callpath" in columns:
        hold = "holds" if len(texts) == 1 else "hold"
        raise ColumnsError(f"{where}: {', '.join(texts)} {hold} names, not numbers: {remedy}")
    return {**columns, "callpath": columns[texts[0]]}, [
        f"{texts[0]} is taken for the call paths; --parameters {given},{texts[0]} makes it a category"
    ]


def _texts_among(
    columns: Mapping[str, int], used: Collection[int], rows: Sequence[Sequence[object]]
) -> list[str]:
    """Return the columns that hold nothing but names, and more than one."""
    return [
        name
        for name, index in columns.items()
        if name not in RESERVED
        and index not in used
        and len({row[index] for row in rows}) > 1
        and all(_is_name(row[index]) for row in rows)
    ]


def _is_name(cell: object) -> bool:
    text = cell.strip() if isinstance(cell, str) else ""
    return bool(_NAME.match(text)) and text.lower() not in NOT_MEASURED


def _stamps_among(names: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return the columns that hold nothing but dates."""
    return [
        name
        for index, name in enumerate(names)
        if rows and name not in RESERVED and all(is_stamp(row[index]) for row in rows)
    ]


def _left_out(stamps: Collection[str], reading: Reading) -> list[str]:
    if not stamps or reading.parameters is not None:
        return []
    return [left_out_stamps(list(stamps), "--parameters makes them parameters")]


def _as_reserved(names: Sequence[str], reading: Reading) -> list[str]:
    """Return names with ``Repetition``, ``Value``, ... in small letters, unless the user names them."""
    said = {text.partition("=")[0].strip() for text in (*(reading.parameters or ()), *reading.responses)}
    free = {low for name in names if name not in said and (low := name.lower()) in RESERVED} - set(names)
    return [name.lower() if name.lower() in free and name not in said else name for name in names]


def pooled(chosen: Layout, rows: Sequence[Sequence[object]]) -> dict[str, bool]:
    """Return the columns that were left out though they differ at a point as on a grid; true for names."""
    points = _points(chosen, rows)
    used = {index for _, index in (*chosen.parameters, *chosen.metrics)} | {
        chosen.columns.get("callpath", -1)
    }
    texts = _texts_among(chosen.columns, used, rows)
    numbers = [
        name
        for name, index in chosen.columns.items()
        if name not in RESERVED and index not in used and all(_is_number(row[index]) for row in rows)
    ]
    cells = {name: [row[chosen.columns[name]] for row in rows] for name in (*texts, *numbers)}
    return {name: name in texts for name in chosen_beside(points, cells)}


def chosen_beside(
    points: Sequence[tuple[object, ...]], columns: Mapping[str, Sequence[object]]
) -> tuple[str, ...]:
    """Return the columns that look chosen beside the points of the rows, as parameters and call paths are.

    A column that numbers the rows which agree in everything else is that of repetitions, and left out.
    """
    crossed = {name: cells for name, cells in columns.items() if _is_crossed(points, cells)}
    kept = [
        name
        for name, cells in crossed.items()
        if not _numbers_each(
            zip(points, *(others for other, others in crossed.items() if other != name), strict=True), cells
        )
    ]
    return tuple(kept or (crossed if len(crossed) > 1 else ()))


def _numbers_each(points: Iterable[object], cells: Sequence[object]) -> bool:
    """Return whether cells number the rows of every point, from 0 or 1."""
    there: dict[object, list[float]] = {}
    for point, cell in zip(points, cells, strict=True):
        if not _is_number(cell):
            return False
        there.setdefault(point, []).append(float(str(cell)))
    return any(
        all(sorted(found) == list(range(first, first + len(found))) for found in there.values())
        for first in (0, 1)
    )


def _is_number(cell: object) -> bool:
    return is_number(str(cell).strip())


def _points(chosen: Layout, rows: Sequence[Sequence[object]]) -> list[tuple[object, ...]]:
    places = [index for _, index in chosen.parameters]
    places += [chosen.columns["callpath"]] if "callpath" in chosen.columns else []
    return [tuple(row[place] for place in places) for row in rows]


def forgotten(chosen: Layout, rows: Sequence[Sequence[object]]) -> tuple[str, ...]:
    """Return the metrics of a wide table that look like parameters nobody named; never all of them."""
    points = _points(chosen, rows)
    found = tuple(name for name, index in chosen.metrics if _is_crossed(points, [row[index] for row in rows]))
    return found if len(found) < len(chosen.metrics) else ()


def _is_crossed(points: Sequence[tuple[object, ...]], cells: Sequence[object]) -> bool:
    """Return whether a column is chosen beside the points, as on grids and lines, not measured at them.

    Some point then has most of its values, and every other point one of these. Of what is measured, every
    point has values of its own.
    """
    there: dict[tuple[object, ...], set[object]] = {}
    for point, cell in zip(points, cells, strict=True):
        if cell not in (None, ""):
            there.setdefault(point, set()).add(cell)
    most = max(there.values(), key=len, default=set())
    several = len(there) > 1 and len(most) > 1
    return (
        several
        and len(most) >= _MOST * len(set().union(*there.values()))
        and all(most & found for found in there.values())
    )


def _free(
    columns: dict[str, int], taken: Collection[tuple[str, int]], wanted: Callable[[int], bool]
) -> tuple[tuple[str, int], ...]:
    """Return the columns that are neither reserved nor taken, as far as their positions are wanted."""
    indices = {index for _, index in taken}
    free = ((name, index) for name, index in columns.items() if name not in RESERVED)
    return tuple((name, index) for name, index in free if index not in indices and wanted(index))


def _check_different(
    parameters: tuple[tuple[str, int], ...], metrics: tuple[tuple[str, int], ...], where: str
) -> None:
    both = {index for _, index in parameters} & {index for _, index in metrics}
    if both:
        twice = ", ".join(name for name, index in metrics if index in both)
        raise ColumnsError(f"{where}: {twice} cannot be both a parameter and a response")
    called = [name for name, _ in metrics]
    if len(set(called)) != len(called):
        raise ColumnsError(
            f"{where}: every response needs a name of its own, not {', '.join(called)}: choose one, or "
            "rename it (--response COLUMN=NAME)"
        )


def _chosen(
    texts: Sequence[str] | None, what: str, names: Sequence[str], where: str
) -> tuple[tuple[str, int], ...]:
    columns = [(text, _found(text, names)) for text in texts or ()]
    missing = [text for text, column in columns if column is None]
    if missing:
        raise ColumnsError(f"{where}: no column for {what} {', '.join(missing)}; found {_numbered(names)}")
    return tuple(column for _, column in columns if column is not None)


def _numbered(names: Sequence[str]) -> str:
    """Return columns with their positions, by which they may be named, too."""
    return ", ".join(f"{index}={name}" for index, name in enumerate(names) if name)


def heading_of(text: str, names: Collection[str]) -> str | None:
    """Return the heading that a text names, also without its unit of time; None where there is none."""
    if text in names:
        return text
    found = [name for name in names if timed(name)[0] == text]
    return found[0] if len(found) == 1 else None


def _found(text: str, names: Sequence[str]) -> tuple[str, int] | None:
    """Return the name and position of the column that a text names; None where there is none."""
    if (heading := heading_of(text, names)) is not None:
        return text, names.index(heading)
    column, equals, name = (part.strip() for part in text.partition("="))
    if equals and not name:
        return None
    if column in names:
        return name or column, names.index(column)
    if _POSITION.fullmatch(column) and int(column) < len(names):
        index = int(column)
        return name or names[index] or numbered(index + 1)[index], index
    return None
