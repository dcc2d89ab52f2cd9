"""What readers of profiles share: files below an attempt's directory, values without those of called regions,
and aggregates over ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from orchestrator.errors import ReadError

DEPTH = 2  # folders below the attempt's directory

Lane = TypeVar("Lane", int, str)
"""One of the values at a call path: that of a rank, or an aggregate over ranks."""


def below(directory: Path, pattern: str, depth: int) -> list[Path]:
    """Return the files that match a pattern up to ``depth`` folders below a directory, hidden ones excepted.

    Those that are less deep come first, those of one depth by name.
    """
    patterns = ("*/" * folders + pattern for folders in range(depth + 1))
    found = (path for text in patterns for path in sorted(directory.glob(text)))
    return [path for path in found if not path.name.startswith(".")]


def only_one(directory: Path, suffix: str, depth: int, remedy: str) -> Path:
    """Return the file with a suffix that is the only one below a directory: see `below`.

    Raises
    ------
    ReadError
        Where there is none, with the remedy, and where there are several.
    """
    files = below(directory, f"*{suffix}", depth)
    if not files:
        raise ReadError(f"{directory}: no {suffix} file up to {depth} folders deep; {remedy}")
    if len(files) > 1:
        names = ", ".join(str(path.relative_to(directory)) for path in files)
        raise ReadError(f"{directory}: several {suffix} files where one was expected: {names}")
    return files[0]


def without_called(
    inclusive: Mapping[tuple[str, ...], Mapping[Lane, float]], rounding: float
) -> dict[tuple[str, ...], dict[Lane, float]]:
    """Return exclusive values by call path.

    What is called may exceed an inclusive value by this share of it, and is then all of it.
    """
    own = {path: dict(lanes) for path, lanes in inclusive.items()}
    for path, lanes in inclusive.items():
        caller = own.get(path[:-1], {}) if path[:-1] else {}
        for lane in caller:
            caller[lane] -= lanes.get(lane, 0.0)
    for path, values in own.items():
        for lane, value in values.items():
            if -rounding * inclusive[path][lane] <= value < 0:
                values[lane] = 0.0
    return own


def over_ranks(values: Sequence[float]) -> dict[str, float]:
    """Return the aggregates of a value per rank: ``mean``, ``max``, ``min`` and ``sum``."""
    total = sum(values)
    return {"mean": total / len(values), "max": max(values), "min": min(values), "sum": total}
