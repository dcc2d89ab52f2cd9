"""How values of the journal's state are JSON, and are rebuilt from it: forms of their parts, put together.

A form rebuilds only what it was made for, and names no class or function in the data: a snapshot that
somebody else wrote can hold a wrong figure, and can start nothing. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import immutables

from orchestrator.journal import events
from orchestrator.types import Point


class Form(NamedTuple):
    """Two functions that undo each other: to what JSON holds, and back."""

    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


PLAIN = Form(_same, _same)
"""What JSON holds as it is."""
NUMBER = Form(lambda value: value if math.isfinite(value) else str(value), float)
"""A float that may be infinite."""
POINT = Form(lambda point: point.as_dict(), Point.of)
RUN = Form(events.run_to_json, events.run_from_json)
ATTEMPT = Form(events.attempt_to_json, events.attempt_from_json)
EVENT = Form(
    lambda event: [events.name_of(event), events.to_json(event)],
    lambda data: events.from_json(data[0], data[1]),
)
# A mapping that came from JSON; the default of such fields is an empty persistent one.
MAPPING = Form(
    lambda found: None if isinstance(found, immutables.Map) and not found else dict(found),
    lambda data: immutables.Map() if data is None else data,
)
TEXTS = Form(list, tuple)
"""A tuple of what JSON holds as it is."""


def word(kind: type[StrEnum]) -> Form:
    """Return the form of the members of an enumeration."""
    members = {str(item): item for item in kind}
    return Form(str, members.__getitem__)


def optional(form: Form) -> Form:
    """Return the form of a value or None."""
    return Form(
        lambda value: None if value is None else form.pack(value),
        lambda data: None if data is None else form.unpack(data),
    )


def sequence(form: Form, kind: Callable[[Any], Any] = tuple) -> Form:
    """Return the form of a tuple, or of another ``kind`` of collection without keys."""
    return Form(lambda values: [*map(form.pack, values)], lambda data: kind(map(form.unpack, data)))


def pairs(key: Form, value: Form, kind: Callable[[Any], Any] = immutables.Map) -> Form:
    """Return the form of a persistent map, or of another ``kind`` of mapping, in its order."""

    def pack(found: Mapping[Any, Any]) -> list[list[Any]]:
        return [[key.pack(name), value.pack(item)] for name, item in found.items()]

    def unpack(data: list[list[Any]]) -> Any:
        return kind([(key.unpack(name), value.unpack(item)) for name, item in data])

    return Form(pack, unpack)


def record(kind: Any, **parts: Form) -> Form:
    """Return the form of a named tuple: a list of its fields, `PLAIN` but for ``parts``."""
    special = [(kind._fields.index(name), form) for name, form in parts.items()]

    def pack(value: Any) -> list[Any]:
        data = list(value)
        for index, form in special:
            data[index] = form.pack(data[index])
        return data

    def unpack(data: list[Any]) -> Any:
        for index, form in special:
            data[index] = form.unpack(data[index])
        return kind._make(data)

    return Form(pack, unpack)


def joined(form: Form, names: tuple[int, int], key: Form, values: tuple[Form, Form]) -> Form:
    """Return the form of a record of which two maps have the same keys, or fewer in the second one.

    Parameters
    ----------
    form
        Of the record, which leaves the two fields as they are.
    names
        The places of the two fields.
    key, values
        The forms of the keys, and of the values of both.
    """
    one, two = names
    first, second = values

    def pack(value: Any) -> list[Any]:
        data = form.pack(value)
        other = data[two]
        data[one] = [
            [key.pack(name), first.pack(item), second.pack(other[name]) if name in other else None]
            for name, item in data[one].items()
        ]
        data[two] = None
        return list(data)

    def unpack(data: list[Any]) -> Any:
        rows = [(key.unpack(row[0]), first.unpack(row[1]), row[2]) for row in data[one]]
        data[one] = immutables.Map([(name, item) for name, item, _ in rows])
        data[two] = immutables.Map(
            [(name, second.unpack(item)) for name, _, item in rows if item is not None]
        )
        return form.unpack(data)

    return Form(pack, unpack)


def members(make: Callable[[], Any], **parts: Form) -> Form:
    """Return the form of an object that ``make`` begins: its variables by name, `PLAIN` but for ``parts``."""

    def pack(value: Any) -> dict[str, Any]:
        return {name: parts.get(name, PLAIN).pack(item) for name, item in vars(value).items()}

    def unpack(data: dict[str, Any]) -> Any:
        value = make()
        for name in vars(value):
            setattr(value, name, parts.get(name, PLAIN).unpack(data[name]))
        return value

    return Form(pack, unpack)
