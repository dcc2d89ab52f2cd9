"""Validate data against the schema, and say what is wrong in the words of the campaign file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from orchestrator.campaign.schema import EXECUTORS, PLUGIN, Document, Section
from orchestrator.campaign.yaml import Path, Problem, dotted
from orchestrator.units import closest, did_you_mean

_PLACEHOLDERS: Mapping[str, Any] = {
    "name": "placeholder",
    "application": "generic",
    "parameters": {"placeholder": (1,)},
    "stop": {"budget": 1},
    "executor": {"name": "slurm"},  # sets no limit of its own to the size of a run
}
"""Stand in for sections that are broken, so that the other sections can still be checked."""

_EXPECTED = {
    "int": "a whole number, without quotes",
    "float": "a number, without quotes",
    "bool": "true or false",
    "string": "text; put it in quotes",
    "tuple": "a list such as [a, b]",
    "mapping": "a mapping of keys to values",
    "dict": "a mapping of keys to values",
    "model": "a mapping of keys to values",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "greater than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}


def validate(
    data: Mapping[str, Any], context: str | None = None
) -> tuple[Document, frozenset[str], list[Problem]]:
    """Return the document, the top-level keys in it that are placeholders, and all problems.

    ``context``: `orchestrator.campaign.fields.READ` for a campaign that is only read.
    """
    try:
        return Document.model_validate(data, context=context), frozenset(), []
    except ValidationError as error:
        details = [_as_written(detail) for detail in error.errors(include_url=False)]
    problems, meant = _problems(details, data)
    broken = frozenset(str(path[0]) for path in (*meant, *(detail["loc"] for detail in details)))
    rest = {key: value for key, value in data.items() if key not in broken}
    stand_in = {key: value for key, value in _PLACEHOLDERS.items() if key in broken}
    return Document.model_validate({**rest, **stand_in}, context=context), broken, problems


def _as_written(detail: ErrorDetails) -> ErrorDetails:
    """Return a mistake at the path that stands in the file: without the marks that pydantic puts into it."""
    path = tuple(part for part in detail["loc"] if part != "[key]")
    if path[:1] == ("executor",) and path[1:2] and path[1] in (*EXECUTORS, PLUGIN):
        path = (path[0], *path[2:])
    return {**detail, "loc": path}


def _problems(details: list[ErrorDetails], data: Mapping[str, Any]) -> tuple[list[Problem], set[Path]]:
    """Return what to say, and the paths of keys that stand in the file under a misspelt name."""
    problems: list[Problem] = []
    meant: set[Path] = set()
    for detail in details:
        if detail["type"] == "extra_forbidden":
            text, key = _unknown_key(detail["loc"], data)
            problems.append(Problem(detail["loc"], text))
            meant.update([(*detail["loc"][:-1], key)] if key else [])
    for detail in details:
        kind, value = detail["type"], detail["input"]
        path: Path = detail["loc"]
        if kind == "too_short" and any(item["loc"][:-1] == path for item in details):
            continue  # wrong items do not count: of them the list's length says nothing
        if kind == "missing" and path not in meant:
            problems.append(Problem(path, f"is required; add it{_under(path[:-1])}"))
        elif kind not in ("missing", "extra_forbidden"):
            problems.append(Problem(path, f"{_because(kind, detail, value)} (value: {shown(value)})"))
    return problems, meant


def _because(kind: str, detail: ErrorDetails, value: object) -> str:
    context = detail.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        known = re.findall(r"'([^']*)'", context["expected"])
        hint = did_you_mean(value, known) if isinstance(value, str) else f"known: {', '.join(known)}"
        return f"unknown value; {hint}"
    if kind == "too_short":
        return "is empty; remove it or give it at least one item"
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"must be {words} {context[key]:g}"
    expected = _EXPECTED.get(kind.removesuffix("_type"))
    if expected is None:
        return detail["msg"]
    return f"is empty; remove it or give it {expected}" if value is None else f"must be {expected}"


def shown(value: object) -> str:
    """Return a value as it would stand in a campaign file, shortened."""
    if value is None or isinstance(value, bool):
        return {None: "empty", True: "true", False: "false"}[value]
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else text[:77] + "..."


# Keys that there are not, and what is written for them.
_OTHERWISE: dict[Path, str] = {
    ("program", "command"): "the program is executable, and what follows it program.arguments"
}


def _unknown_key(path: Path, data: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return what to say of an unknown key, and the key that was meant in its place, if one is known."""
    if path in _OTHERWISE:
        return f"unknown key; {_OTHERWISE[path]}", None
    key, parent = str(path[-1]), path[:-1]
    present: Any = data
    for part in parent:
        present = present[part]
    owners = [name for name, options in EXECUTORS.items() if key in keys(options)]
    if parent == ("executor",) and owners:
        return _of_another(owners), None
    sections = sections_at(parent)
    known = list(dict.fromkeys(name for section in sections for name in keys(section)))
    # A misspelt key is most likely one that is not there in its right spelling, too.
    absent = [name for name in known if not isinstance(present, Mapping) or name not in present]
    meant = closest(key, absent) or closest(key, known)
    if meant is not None:
        return f"unknown key; did you mean {meant!r}?", meant
    elsewhere = [dotted(place) for place, _ in places(Document) if place[-1] == key]
    if elsewhere:
        return f"unknown key here; it belongs at {' or '.join(elsewhere)}", None
    return f"unknown key; known{_under(parent)}: {', '.join(known)}", None


def _of_another(owners: Sequence[str]) -> str:
    """Return what to say of a key that only other executors have."""
    several = "s" if len(owners) > 1 else ""
    return (
        f"belongs to executor{several} {' and '.join(owners)}; "
        f"remove it or set executor.name: {' or '.join(owners)}"
    )


def _under(path: Path) -> str:
    return f" under {dotted(path)}" if path else ""


def keys(section: type[Section]) -> list[str]:
    """Return the keys of a section as they are written in a file."""
    return [field.alias or name for name, field in section.model_fields.items()]


def _inner(annotation: Any) -> tuple[tuple[type[Section], ...], bool]:
    """Return the sections that an annotation allows, and whether they stand in a mapping or list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return ((annotation,) if issubclass(annotation, Section) else ()), False
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _inner(arguments[0])
    found = [section for argument in arguments for section in _inner(argument)[0]]
    return tuple(dict.fromkeys(found)), bool(found) and origin in (tuple, Mapping)


def places(*sections: type[Section], prefix: Path = ()) -> Iterator[tuple[Path, FieldInfo]]:
    """Yield every key that sections may have, once, as a path in which ``*`` stands for any name or index."""
    for key, field in _fields(sections).items():
        path = (*prefix, key)
        yield path, field
        inner, nested = _inner(field.annotation)
        if inner:
            yield from places(*inner, prefix=(*path, "*") if nested else path)


def _fields(sections: Sequence[type[Section]]) -> dict[str | int, FieldInfo]:
    """Return the fields of sections by their keys; the first section that has a key counts."""
    items = [item for section in reversed(sections) for item in section.model_fields.items()]
    return {field.alias or name: field for name, field in items}


def sections_at(path: Path) -> tuple[type[Section], ...]:
    """Return the sections that may stand at a path: several for ``executor``."""
    sections: tuple[type[Section], ...] = (Document,)
    remaining = list(path)
    while remaining and sections:
        key = remaining.pop(0)
        field = _fields(sections).get(key)
        sections, nested = _inner(field.annotation) if field else ((), False)
        if nested and remaining:
            remaining.pop(0)
    return sections
