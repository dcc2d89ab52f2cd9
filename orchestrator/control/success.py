"""Whether a run did its work, by what it printed: programs may end with exit code 0 though they failed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from orchestrator.errors import ReadError
from orchestrator.launch.failures import printed_line, said
from orchestrator.readers.stdout import parts_of, text_of

_STREAMS = ("stderr", "stdout")


def check(directory: Path, success: str | None, failure: str | None) -> None:
    """Check what the run in a directory printed on standard output and standard error.

    Parameters
    ----------
    directory
        That of the attempt.
    success
        A regular expression (``^`` and ``$`` match at lines) that must match somewhere; None: nothing must.
    failure
        One that must not match anywhere; None: anything may.

    Raises
    ------
    ReadError
        Where a run did not print what it must, or printed what it must not, with the line.
    """
    paths = [directory / name for name in _STREAMS if (directory / name).exists()]
    check_files(paths, success, failure, f"{directory}: neither stdout nor stderr matches")


def check_files(paths: Sequence[Path], success: str | None, failure: str | None, unmatched: str) -> None:
    """Check all that a run printed, in files.

    ``unmatched`` begins the message where ``success`` does not match.

    Raises
    ------
    ReadError
        As from `check`.
    """
    if success is None and failure is None:
        return
    succeeded = success is None
    for path in paths:
        for text in parts_of(path):
            if failure is not None and (found := re.search(failure, text, re.MULTILINE)):
                line = printed_line(text, found.start())
                raise ReadError(f"{path}: measure.failure '{failure}' matches: {line}")
            succeeded = succeeded or (success is not None and bool(re.search(success, text, re.MULTILINE)))
    if succeeded:
        return
    text = said({path.name: text_of(path) for path in paths}) or "it printed nothing"
    raise ReadError(f"{unmatched} measure.success '{success}'; {text}")
