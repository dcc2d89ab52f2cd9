"""Readers of the output that leave before its end, as ``head`` does."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Print within this block; if nobody reads any more, leave it, and let later output go nowhere.

    So a command whose exit code says something ends with it whoever reads what it prints.
    """
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # the latter is rich's answer
        discard_output()


def discard_output() -> None:
    """Let what is printed from now on go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
