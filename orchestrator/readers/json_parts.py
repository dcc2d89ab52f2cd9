"""Parts of JSON documents, checked where they are read: errors name the place in the document."""

from __future__ import annotations

import json
from collections.abc import Iterable

from orchestrator.errors import ReadError


def parsed(text: str, where: str) -> object:
    """Return a document in which no object gives a key twice.

    Raises
    ------
    ReadError
        With the line, for what is no JSON.
    """

    def unique(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
        result: dict[str, object] = {}
        for key, value in pairs:
            if key in result:
                raise ReadError(f"{where}: the key {key!r} is given twice in one object")
            result[key] = value
        return result

    try:
        result: object = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        line = f"{where}:{error.lineno}" if error.lineno > 1 else where
        raise ReadError(f"{line}: not JSON: {error}") from error
    except (ValueError, RecursionError) as error:
        raise ReadError(f"{where}: not JSON: {error}") from error
    return result


def part(container: object, key: str, where: str) -> object:
    """Return what an object has under a key; a `ReadError` where it has not."""
    if not isinstance(container, dict) or key not in container:
        raise ReadError(f"{where}: {key!r} is missing")
    return container[key]


def list_in(container: object, key: str, where: str) -> list[object]:
    """Return the list under a key; a `ReadError` where there is none."""
    value = part(container, key, where)
    if not isinstance(value, list):
        raise ReadError(f"{where}: {key!r} is not a list")
    return value


def object_in(container: object, key: str, where: str) -> dict[str, object]:
    """Return the object under a key; a `ReadError` where there is none."""
    value = part(container, key, where)
    if not isinstance(value, dict):
        raise ReadError(f"{where}: {key!r} is not an object")
    return value


def objects_in(container: object, key: str, where: str) -> list[dict[str, object]]:
    """Return the list of objects under a key; a `ReadError` where there is none."""
    found: list[dict[str, object]] = []
    for item in list_in(container, key, where):
        if not isinstance(item, dict):
            raise ReadError(f"{where}: {key!r} holds {item!r}, which is not an object")
        found.append(item)
    return found
