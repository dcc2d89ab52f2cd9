"""One line of the journal: what is in it, and how it is written and read back.

A line carries schema version, sequence number, time, event and a CRC-32 of all that precedes the checksum.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any

import orjson

from orchestrator.journal import events

_CHECKSUM = ',"checksum":"%08x"}'
_CHECKSUM_LENGTH = len(_CHECKSUM % 0)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: ``sequence`` counts from 1, ``time`` is in Unix seconds."""

    sequence: int
    time: float
    event: events.Event


class TornLine(ValueError):
    """A line whose checksum does not match."""


class NewerVersion(ValueError):
    """A line that a later version of the program wrote, and that this version cannot read."""


def encode(entry: Entry) -> bytes:
    """Return the line of an entry, with its newline."""
    content = {
        "schema": events.SCHEMA,
        "sequence": entry.sequence,
        "time": entry.time,
        "event": events.name_of(entry.event),
        "data": events.to_json(entry.event),
    }
    body = compact(content)[:-1].encode()
    return body + (_CHECKSUM % zlib.crc32(body)).encode() + b"\n"


def compact(content: Any) -> str:
    """Return JSON as it stands in a line."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def decode(line: bytes) -> Entry:
    """Read a line back.

    Raises
    ------
    TornLine
        If the line is torn or was altered.
    NewerVersion
        If it is of a schema, or holds an event, that this version does not know.
    ValueError
        If it is not complete.
    """
    line = line.rstrip(b"\n")
    body, checksum = line[:-_CHECKSUM_LENGTH], line[-_CHECKSUM_LENGTH:]
    if checksum != (_CHECKSUM % zlib.crc32(body)).encode():
        raise TornLine("its checksum does not match: the line is torn or was altered")
    data: dict[str, Any] = orjson.loads(body + b"}")
    if data["schema"] > events.SCHEMA:
        raise NewerVersion(f"it has schema {data['schema']}, this version reads up to {events.SCHEMA}")
    if data["event"] not in events.TYPES:
        raise NewerVersion(f"it holds an event {data['event']!r}, which this version does not know")
    try:
        event = events.from_json(data["event"], data["data"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"incomplete event {data['event']!r} ({error!r})") from error
    except ValueError as error:  # the checksum says that it is as it was written
        raise NewerVersion(
            f"event {data['event']!r} holds what this version does not know ({error})"
        ) from error
    return Entry(data["sequence"], data["time"], event)
