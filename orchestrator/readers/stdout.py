"""What an application prints: texts of the attempt's directory into samples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from orchestrator.errors import ReadError
from orchestrator.types import Application, Sample

LIMIT = 16 * 2**20  # bytes per file that are looked at
MOST_FILES = 100


def read(directory: Path, application: Application, inclusive: bool = False) -> Sequence[Sample]:
    """Return what ``application.output`` finds in ``stdout``, ``stderr`` and its output files.

    Output files are named by their path below ``directory``. Of a file beyond `LIMIT` bytes the first
    and the last half of that are read. Undecodable bytes are replaced.

    Raises
    ------
    ReadError
        Where a file cannot be read, the application does not find its values in the output, or a value is
        not finite or negative.
    """
    texts = {"stdout": text_of(directory / "stdout"), "stderr": ""}
    if (directory / "stderr").exists():
        texts["stderr"] = text_of(directory / "stderr")
    for path in _output_files(directory, application.output_files):
        texts[path.relative_to(directory).as_posix()] = text_of(path)
    names = ", ".join(name for name in texts if name != "stderr")
    where = f"{directory / 'stdout'}" if names == "stdout" else f"{directory} ({names})"
    try:
        samples = application.output(texts)
    except (ValueError, LookupError, ArithmeticError, AttributeError, TypeError) as error:
        # The contract says ValueError. The other exceptions are what parsing unexpected text tends to raise.
        # An unexpected output must fail its attempt, not the campaign.
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise ReadError(f"{where}: {application.name}: {kind}{error}") from error
    if not samples:
        raise ReadError(f"{where}: {application.name}: no values found")
    return _checked(samples, where)


def _output_files(directory: Path, patterns: Iterable[str]) -> list[Path]:
    found = {path for pattern in patterns for path in directory.glob(pattern) if path.is_file()}
    if len(found) > MOST_FILES:
        raise ReadError(
            f"{directory}: {len(found)} output files match {', '.join(patterns)}; at most {MOST_FILES}"
        )
    return sorted(found)


def text_of(path: Path) -> str:
    """Return what a file says, of a long one its first and its last part; raises ``ReadError``."""
    try:
        with path.open("rb") as stream:
            head = stream.read(LIMIT)
            size = path.stat().st_size
            if size <= LIMIT:
                return head.decode(errors="replace")
            stream.seek(-(LIMIT // 2), 2)
            tail = stream.read(LIMIT // 2)
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror}") from error
    cut = f"\n[{size - LIMIT} bytes left out]\n"
    return head[: LIMIT // 2].decode(errors="replace") + cut + tail.decode(errors="replace")


def _checked(samples: Sequence[Sample], where: str) -> Sequence[Sample]:
    seen: set[tuple[str, str, str]] = set()
    for sample in samples:
        key = (sample.callpath, sample.metric, sample.aggregate)
        name = f"{sample.metric} ({sample.aggregate}) at {sample.callpath}"
        if not math.isfinite(sample.value) or sample.value < 0:
            raise ReadError(f"{where}: {name} is {sample.value}: not a possible value")
        if key in seen:
            raise ReadError(f"{where}: {name} is found twice; one run has one value")
        seen.add(key)
    return samples
