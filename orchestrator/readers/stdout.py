"""What an application prints: texts of the attempt's directory into samples."""

from __future__ import annotations

import codecs
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator.errors import ReadError
from orchestrator.types import Application, Sample, left_out

LIMIT = 16 * 2**20  # bytes per file that are looked at
MOST_FILES = 100


def read(directory: Path, application: Application, inclusive: bool = False) -> Sequence[Sample]:
    """Return what ``application.output`` finds in ``stdout``, ``stderr`` and its output files.

    Output files are named by their path below ``directory``. Texts are what `text_of` returns.

    Raises
    ------
    ReadError
        Where a file cannot be read, the application does not find its values in the output, or a value is
        not finite or negative. A negative remainder of a longer time is 0, within the errors of both.
    """
    for name in ("stdout", "stderr"):
        _refuse_pipe(directory / name)
    texts = {"stdout": text_of(directory / "stdout"), "stderr": ""}
    if (directory / "stderr").exists():
        texts["stderr"] = text_of(directory / "stderr")
    for path in _output_files(directory, application.output_files):
        texts[path.relative_to(directory).as_posix()] = text_of(path)
    names = ", ".join(name for name in texts if name != "stderr" or name in application.output_files)
    where = f"{directory / 'stdout'}" if names == "stdout" else f"{directory} ({names})"
    return _samples(texts, application, where)


def read_file(path: Path, application: Application) -> Sequence[Sample]:
    """Return what ``application.output`` finds in one file: all that a run printed or wrote.

    Raises
    ------
    ReadError
        As from `read`.
    """
    _refuse_pipe(path)
    text = text_of(path)
    return _samples(
        dict.fromkeys(("stdout", "stderr", *application.output_files), text), application, str(path)
    )


def _samples(texts: Mapping[str, str], application: Application, where: str) -> Sequence[Sample]:
    try:
        samples = application.output(texts)
    except (ValueError, LookupError, ArithmeticError, AttributeError, TypeError) as error:
        # The contract says ValueError. The other exceptions are what parsing unexpected text tends to raise.
        # An unexpected output must fail its attempt, not the campaign.
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise ReadError(f"{where}: {application.name}: {kind}{error}") from error
    if not samples:
        raise ReadError(f"{where}: {application.name}: no values found")
    return _checked(samples, where, application.name)


def _output_files(directory: Path, patterns: Iterable[str]) -> list[Path]:
    files = {path for pattern in patterns for path in directory.glob(pattern) if path.is_file()}
    if len(files) > MOST_FILES:
        raise ReadError(
            f"{directory}: {len(files)} output files match {', '.join(patterns)}; at most {MOST_FILES}"
        )
    return sorted(files)


def text_of(path: Path) -> str:
    """Return what a file says, of one beyond `LIMIT` bytes its first and its last part.

    Between them stands `types.left_out`. Both parts are whole lines: half of a number would be another one.
    Bytes that are no UTF-8 are read as Latin-1, so that patterns find what the program printed.

    Raises
    ------
    ReadError
        For a file that cannot be read.
    """
    half = LIMIT // 2
    try:
        with path.open("rb") as stream:
            head = stream.read(LIMIT)
            size = path.stat().st_size
            if size <= LIMIT:
                return _decoded(head)
            stream.seek(-half, 2)
            tail = stream.read(half)
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror}") from error
    head = head[: head.rfind(b"\n", 0, half) + 1 or half]
    tail = tail[tail.find(b"\n", 0, -1) + 1 :]
    return _decoded(head) + left_out(size - len(head) - len(tail)) + _decoded(tail)


def parts_of(path: Path) -> Iterator[str]:
    """Yield all that a file says, in parts of whole lines; raises ``ReadError``."""
    _refuse_pipe(path)
    try:
        with path.open("rb") as stream:
            while part := stream.read(LIMIT):
                yield _decoded(part + (b"" if part.endswith(b"\n") else stream.readline(LIMIT)))
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror}") from error


def _refuse_pipe(path: Path) -> None:
    """Refuse what a program put in place of its output: opening a pipe would wait for a writer for ever."""
    if path.exists() and not path.is_file():
        raise ReadError(f"{path}: is no regular file any more: the program replaced it")


def _decoded(content: bytes) -> str:
    """Return a text, whose lines may end as those of Windows do: ``$`` would not match before ``\\r``."""
    return content.decode(errors=_AS_LATIN_1).replace("\r\n", "\n")


def _as_latin_1(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("latin-1"), error.end


# A remainder may be negative by this share of the longest time. Chosen by hand; not derived.
_REMAINDER = 0.1
_AS_LATIN_1 = "orchestrator-as-latin-1"
codecs.register_error(_AS_LATIN_1, _as_latin_1)


def _is_remainder(item: Sample, longest: float) -> bool:
    """Tell whether a time is what others leave of a longer one: negative within the errors of both.

    A whole number is no such difference: -1 says that something was not measured.
    """
    small = item.metric == "time" and -_REMAINDER * longest <= item.value < 0
    return small and not item.value.is_integer()


def _checked(samples: Sequence[Sample], where: str, application: str) -> Sequence[Sample]:
    seen: set[tuple[str, str, str]] = set()
    longest = max((item.value for item in samples if item.metric == "time"), default=0.0)
    samples = [replace(item, value=0.0) if _is_remainder(item, longest) else item for item in samples]
    for sample in samples:
        key = (sample.callpath, sample.metric, sample.aggregate)
        name = f"{sample.metric} ({sample.aggregate}) at {sample.callpath}"
        if not math.isfinite(sample.value) or sample.value < 0:
            remedy = "correct what is read, or leave it out, in program.output, then see reread"
            remedy = remedy if application == "generic" else "correct the adapter, or the program"
            raise ReadError(f"{where}: {name} is {sample.value}: not a possible value; {remedy}")
        if key in seen:
            raise ReadError(f"{where}: {name} is found twice; one run has one value")
        seen.add(key)
    return samples
