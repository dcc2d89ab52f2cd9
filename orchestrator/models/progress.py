"""How far a fit is that takes minutes: whoever listens is told, and nobody else has to know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Listener = Callable[[str, int, int], None]
"""What takes the name of the work, how many of its parts are done, and how many there are."""

T = TypeVar("T")

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell a listener how far the fits of this block are, those of this thread."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def tracked(parts: Sequence[T], work: str) -> Iterator[T]:
    """Yield the parts of some work, and tell before each, and at the end, how many are done."""
    listener = _LISTENER.get()
    for done, part in enumerate(parts):
        if listener is not None:
            listener(work, done, len(parts))
        yield part
    if listener is not None and parts:
        listener(work, len(parts), len(parts))
