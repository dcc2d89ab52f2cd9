"""The elapsed time of an attempt, for applications that print no timers and carry no profiler."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.errors import ReadError
from orchestrator.types import Application, Sample


def read(directory: Path, application: Application, inclusive: bool = False) -> list[Sample]:
    """Return the seconds between ``started`` and ``finished`` in ``attempt.json`` as ``time`` of ``main``.

    They include the launcher and the start of the application.

    Raises
    ------
    ReadError
        Where ``attempt.json`` is missing, broken, not finished, or finished before it started.
    """
    path = directory / "attempt.json"
    try:
        record = json.loads(path.read_bytes())
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ReadError(f"{path}: not JSON: {error}") from error
    if not isinstance(record, dict):
        raise ReadError(f"{path}: not a JSON object")
    elapsed = (_instant(path, record, "finished") - _instant(path, record, "started")).total_seconds()
    if elapsed < 0:
        raise ReadError(
            f"{path}: finished {-elapsed} s before it started; was the clock of the node set back?"
        )
    return [Sample("main", "time", elapsed)]


def _instant(path: Path, record: dict[str, object], name: str) -> datetime:
    text = record.get(name)
    if text is None:
        raise ReadError(f"{path}: {name!r} is missing: the attempt has not {name}")
    try:
        instant = datetime.fromisoformat(str(text))
    except ValueError as error:
        raise ReadError(f"{path}: {name} is {text!r}, not an ISO 8601 instant") from error
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
