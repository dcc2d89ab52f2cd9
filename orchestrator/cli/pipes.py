"""Readers of the output that leave before its end, as ``head`` does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class ReaderLeft(BrokenPipeError):
    """Nobody reads the output any more (``head``, ``less``): ``code`` is the exit code nonetheless."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


@contextmanager
def printed_with(code: int) -> Iterator[None]:
    """Print results within this block; the exit code is this one also if their reader leaves early.

    Raises
    ------
    ReaderLeft
        If it does.
    """
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # the latter is rich's answer
        raise ReaderLeft(code) from None
