"""How values are JSON, and are rebuilt from it: events, the state of a campaign, and what else follows.

A form follows from the types that a class declares. It rebuilds only what it was made for, and names no class
or function in the data: a snapshot that somebody else wrote can hold a wrong figure, and can start nothing.
Pure.
"""

from __future__ import annotations

from collections import Counter, abc
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import immutables

from orchestrator.types import Attempt, Point, Run, RunKind, Value


class Form(NamedTuple):
    """Two functions that undo each other: to what JSON holds, and back."""

    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


PLAIN = Form(_same, _same)
"""What JSON holds as it is; a float must be finite."""


def _run_to_json(run: Run) -> dict[str, Any]:
    return {"point": run.point.as_dict(), "kind": run.kind, "repetition": run.repetition}


@lru_cache(maxsize=1 << 18)
def _run(items: tuple[tuple[str, Value], ...], kind: RunKind, repetition: int) -> Run:
    return Run(Point(items), kind, repetition)


def _run_from_json(data: Mapping[str, Any]) -> Run:
    """Rebuild a run; each stands in several events, and one object serves them all."""
    return _run(tuple(data["point"].items()), data["kind"], data["repetition"])


RUN = Form(_run_to_json, _run_from_json)
_OWN = {
    Point: Form(lambda point: point.as_dict(), Point.of),
    Run: RUN,
    Attempt: Form(
        lambda attempt: {**_run_to_json(attempt.run), "attempt": attempt.number},
        lambda data: Attempt(_run_from_json(data), data["attempt"]),
    ),
    Counter: Form(dict, Counter),
    # It came from JSON; the default of such fields of the state is an empty persistent map.
    abc.Mapping: Form(
        lambda found: None if isinstance(found, immutables.Map) and not found else dict(found),
        lambda data: immutables.Map() if data is None else data,
    ),
}


def form_of(kind: Any) -> Form:
    """Return the form of a type: a class with fields, a collection, a word, or what JSON holds as it is."""
    of = [form_of(item) for item in get_args(kind) if item not in (NoneType, ...)]
    whole = get_origin(kind) or kind
    if whole is UnionType:
        return _optional(of[0])
    if whole in _OWN:
        return _OWN[whole]
    if whole is immutables.Map or (whole is dict and (of[1] is not PLAIN or get_args(kind)[0] is not str)):
        return _pairs(of[0], of[1], whole)
    if whole in (tuple, frozenset, set) or (whole is list and of[0] is not PLAIN):
        return _sequence(of[0], whole)
    if is_dataclass(whole):
        return _members(whole)
    if isinstance(whole, type) and issubclass(whole, tuple):
        return _record(whole)
    if isinstance(whole, type) and issubclass(whole, StrEnum):
        return Form(str, whole)
    return PLAIN


def _optional(form: Form) -> Form:
    """Return the form of a value or None."""
    if form is PLAIN:
        return PLAIN
    return Form(
        lambda value: None if value is None else form.pack(value),
        lambda data: None if data is None else form.unpack(data),
    )


def _sequence(form: Form, kind: Callable[[Any], Any]) -> Form:
    """Return the form of a collection without keys."""
    if form is PLAIN:
        return Form(list, kind)
    return Form(lambda values: [*map(form.pack, values)], lambda data: kind(map(form.unpack, data)))


def _pairs(key: Form, value: Form, kind: Callable[[Any], Any]) -> Form:
    """Return the form of a mapping, in its order."""

    def pack(found: Mapping[Any, Any]) -> list[list[Any]]:
        return [[key.pack(name), value.pack(item)] for name, item in found.items()]

    def unpack(data: list[list[Any]]) -> Any:
        return kind([(key.unpack(name), value.unpack(item)) for name, item in data])

    return Form(pack, unpack)


def _record(kind: Any) -> Form:
    """Return the form of a named tuple: a list of its fields. There are many of them, so names are spared."""
    hints = get_type_hints(kind)
    forms = [form_of(hints[name]) for name in kind._fields]
    special = [(index, form) for index, form in enumerate(forms) if form is not PLAIN]

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


def _members(kind: Any) -> Form:
    """Return the form of a dataclass: fields by name, of which unknown and missing ones do no harm."""
    hints = get_type_hints(kind)
    forms = [(item.name, form_of(hints[item.name])) for item in fields(kind)]

    def pack(value: Any) -> dict[str, Any]:
        found = ((name, form, getattr(value, name)) for name, form in forms)
        return {name: item if form is PLAIN else form.pack(item) for name, form, item in found}

    def unpack(data: Mapping[str, Any]) -> Any:
        return kind(
            **{
                name: data[name] if form is PLAIN else form.unpack(data[name])
                for name, form in forms
                if name in data
            }
        )

    return Form(pack, unpack)
