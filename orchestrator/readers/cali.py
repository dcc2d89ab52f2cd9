"""Caliper's files (``.cali``): their records and globals, from complete files only.

``caliper-reader`` reads a truncated file without complaint as far as its last whole record, or raises one of
several exceptions. A complete file ends with the record of its globals: everything else is refused here.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from caliperreader import CaliperReader
from caliperreader.readererror import ReaderError

from orchestrator.errors import ReadError
from orchestrator.readers.entries import content_of, decoded

_LAST = "__rec=globals"
_NODE = re.compile(r"^__rec=node,id=(\d+),", re.MULTILINE)
_OWN_PARENT = re.compile(r"^__rec=node,id=(\d+),.*\bparent=\1$", re.MULTILINE)

_OF_ONE_RANK = "a Caliper built without MPI writes the file of every rank into the same one"

# What the library raises for what it does not expect.
_BROKEN = (
    ReaderError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Record:
    """One record: names of the nested regions it belongs to, and its other attributes as text."""

    path: tuple[str, ...]
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Contents:
    """The records and globals of a file, and the unit of every attribute that has one."""

    records: Sequence[Record]
    globals: Mapping[str, str]
    units: Mapping[str, str]


def read_cali(path: Path) -> Contents:
    """Read a complete file.

    Raises
    ------
    ReadError
        Naming the file: for one that cannot be read, is no Caliper file, or is truncated or damaged.
    """
    text = decoded(content_of(path), str(path))
    if not text.startswith("__rec="):
        raise ReadError(f"{path}: not a Caliper file: it begins with {text[:20]!r}, not with '__rec='")
    if not (text.endswith("\n") and text[text.rfind("\n", 0, -1) + 1 :].startswith(_LAST)):
        raise ReadError(
            f"{path}: truncated: it does not end with the record of its globals, which Caliper writes last; "
            f"was the program killed, or the disk full? {_OF_ONE_RANK}"
        )
    if loop := _OWN_PARENT.search(text):
        raise ReadError(f"{path}: damaged: node {loop[1]} is its own parent")
    numbers = _NODE.findall(text)
    if len(set(numbers)) < len(numbers):
        raise ReadError(
            f"{path}: damaged: several programs wrote into one file (a node is defined twice); {_OF_ONE_RANK}"
        )
    reader = CaliperReader()
    try:
        reader.read(io.StringIO(text))
        records = [_record(values) for values in reader.records]
        units = {name: unit for name in reader.attributes() if (unit := _unit(reader, name))}
    except _BROKEN as error:
        raise ReadError(f"{path}: damaged: {_said(error)}; {_OF_ONE_RANK}") from error
    return Contents(records, {name: _text(value) for name, value in reader.globals.items()}, units)


def _record(values: Mapping[str, object]) -> Record:
    path = values.get("path", [])
    names = tuple(path) if isinstance(path, list) else (str(path),)
    return Record(names, {name: _text(value) for name, value in values.items() if name != "path"})


def _text(value: object) -> str:
    return "/".join(map(str, value)) if isinstance(value, list) else str(value)


def _unit(reader: CaliperReader, name: str) -> str:
    return str(reader.attribute(name).get("attribute.unit") or "")


def _said(error: Exception) -> str:
    """Return the kind of an error and what it says, in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
