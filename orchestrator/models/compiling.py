"""When the modeler's loops must be compiled first, somebody may want to be told.

Machine code is kept on disk, so this happens once per installation.
"""

from __future__ import annotations

from collections.abc import Callable

_tell: list[Callable[[], None]] = []


def when_compiling(tell: Callable[[], None]) -> None:
    """Have a function called once, before the first loop is compiled that is not on disk yet."""
    _tell.append(tell)


def begins() -> None:
    """Tell that a loop is about to be compiled."""
    while _tell:
        _tell.pop()()
