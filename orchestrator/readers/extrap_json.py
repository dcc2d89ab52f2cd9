"""Extra-P's JSON formats, current and old, and JSON Lines (``docs/file-formats.md`` of extra-p/extrap).

Unlike Extra-P's own readers, these accept call paths without values at some points, and refuse lines whose
parameters differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from orchestrator.errors import ReadError
from orchestrator.readers.entries import DEFAULT_CALLPATH, DEFAULT_METRIC, Entry, assemble, coordinate, finite
from orchestrator.readers.json_parts import list_in, object_in, parsed, part
from orchestrator.types import Measurements, Value
from orchestrator.units import listed

T = TypeVar("T")

_OTHER_JSON = "other JSON is not read: write a table, such as CSV with a column per parameter"


def read_json(text: str, source: str) -> Measurements:
    """Read Extra-P's JSON formats, the current one and the older one with ids.

    Raises
    ------
    ReadError
        With file and line for what is not JSON, else with the place in the document.
    """
    document = parsed(text, source)
    if not isinstance(document, dict):
        raise ReadError(f"{source}: the document is not a JSON object; {_OTHER_JSON}")
    if "callpaths" in document:
        return _read_old_json(document, source)
    if "parameters" not in document or "measurements" not in document:
        raise ReadError(
            f"{source}: neither of Extra-P's JSON formats: expected the keys 'parameters' and "
            f"'measurements', found {listed(list(document), 5) or 'none'}; {_OTHER_JSON}"
        )
    parameters = [_name(name, f"{source}: parameters") for name in list_in(document, "parameters", source)]
    return assemble(parameters, _json_entries(document, parameters, source), source)


def _json_entries(document: Mapping[str, object], parameters: list[str], source: str) -> Iterator[Entry]:
    callpaths = object_in(document, "measurements", source)
    for callpath in callpaths:
        metrics = object_in(callpaths, callpath, f"{source}: measurements")
        for metric in metrics:
            for index, item in enumerate(list_in(metrics, metric, f"{source}: measurements/{callpath}")):
                where = f"{source}: measurements/{callpath}/{metric}[{index}]"
                point = tuple(coordinate(value, f"{where}/point") for value in list_in(item, "point", where))
                values = tuple(finite(value, f"{where}/values") for value in list_in(item, "values", where))
                if len(point) != len(parameters) or not values:
                    raise ReadError(
                        f"{where}: {len(point)} coordinates for {len(parameters)} parameters, "
                        f"{len(values)} values"
                    )
                yield Entry(where=where, callpath=callpath, metric=metric, point=point, values=values)


def _read_old_json(document: Mapping[str, object], source: str) -> Measurements:
    parameters = dict(sorted(_names(document, "parameters", source).items()))
    points = {
        id_: _old_point(item, list(parameters), f"{source}: coordinates, id {id_:g}")
        for id_, item in _by_id(document, "coordinates", source).items()
    }
    return assemble(list(parameters.values()), _old_entries(document, points, source), source)


def _old_point(item: object, parameters: Sequence[float], where: str) -> tuple[Value, ...]:
    pairs = {
        finite(part(pair, "parameter_id", where), where): coordinate(
            part(pair, "parameter_value", where), where
        )
        for pair in list_in(item, "parameter_value_pairs", where)
    }
    if pairs.keys() != set(parameters):
        raise ReadError(f"{where}: values of the parameters {sorted(pairs)}, not of {sorted(parameters)}")
    return tuple(pairs[parameter] for parameter in parameters)


def _old_entries(
    document: Mapping[str, object], points: Mapping[float, tuple[Value, ...]], source: str
) -> Iterator[Entry]:
    callpaths = _names(document, "callpaths", source)
    metrics = _names(document, "metrics", source)
    for index, item in enumerate(list_in(document, "measurements", source)):
        where = f"{source}: measurements[{index}]"
        yield Entry(
            where=where,
            callpath=_referred(callpaths, item, "callpath_id", where),
            metric=_referred(metrics, item, "metric_id", where),
            point=_referred(points, item, "coordinate_id", where),
            values=(finite(part(item, "value", where), where),),
        )


def _referred(table: Mapping[float, T], item: object, key: str, where: str) -> T:
    id_ = finite(part(item, key, where), where)
    if id_ not in table:
        raise ReadError(f"{where}: {key} is {id_:g}, but no entry has this id")
    return table[id_]


def _names(document: Mapping[str, object], table: str, source: str) -> dict[float, str]:
    items = _by_id(document, table, source).items()
    return {id_: _name(part(item, "name", f"{source}: {table}"), f"{source}: {table}") for id_, item in items}


def _by_id(document: Mapping[str, object], name: str, source: str) -> dict[float, object]:
    table: dict[float, object] = {}
    for index, item in enumerate(list_in(document, name, source)):
        where = f"{source}: {name}[{index}]"
        id_ = finite(part(item, "id", where), where)
        if id_ in table:
            raise ReadError(f"{where}: the id {id_:g} is given twice")
        table[id_] = item
    return table


def read_json_lines(text: str, source: str) -> Measurements:
    """Read JSON Lines: an object with ``params`` and ``value`` per line, ``callpath``, ``metric`` optional.

    ``value`` is a number or a list of repetitions. All lines must name the same parameters.

    Raises
    ------
    ReadError
        With file and line.
    """
    lines = ((f"{source}:{n}", line) for n, line in enumerate(text.split("\n"), start=1) if line.strip())
    items = [(where, parsed(line, where)) for where, line in lines]
    if not items:
        raise ReadError(f"{source}: no measurements")
    where, first = items[0]
    if isinstance(first, dict) and "params" not in first:
        found = listed(list(first), 5) or "none"
        raise ReadError(f"{where}: expected the keys 'params' and 'value', found {found}; {_OTHER_JSON}")
    parameters = list(object_in(first, "params", where))
    return assemble(parameters, (_line_entry(item, parameters, where) for where, item in items), source)


def _line_entry(item: object, parameters: list[str], where: str) -> Entry:
    params = object_in(item, "params", where)
    if params.keys() != set(parameters):
        raise ReadError(
            f"{where}: the parameters are {', '.join(params)}, but in the first line {', '.join(parameters)}"
        )
    value = part(item, "value", where)
    values = value if isinstance(value, list) else [value]
    if not values:
        raise ReadError(f"{where}: 'value' is an empty list")
    names = item if isinstance(item, dict) else {}
    return Entry(
        where=where,
        callpath=_name(names.get("callpath", DEFAULT_CALLPATH), where),
        metric=_name(names.get("metric", DEFAULT_METRIC), where),
        point=tuple(coordinate(params[name], f"{where}: {name}") for name in parameters),
        values=tuple(finite(value, where) for value in values),
    )


def _name(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise ReadError(f"{where}: the name {value!r} is not a text")
    return value
