"""Loops over arrays as machine code, for what operations on whole arrays would do more slowly."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pickle import UnpicklingError
from typing import TypeVar

import numba
from numba.core import caching, event

from orchestrator.models import compiling


class _Compilation(event.Listener):
    """Tells that something is compiled; code that is on disk is only loaded."""

    def on_start(self, event: object) -> None:
        compiling.begins()

    def on_end(self, event: object) -> None:
        """Nothing is told of the end."""


event.register("numba:compile", _Compilation())  # type: ignore[no-untyped-call]

Function = TypeVar("Function", bound=Callable[..., object])


class _Kept(caching.FunctionCache):
    """Machine code on disk that nobody depends on: what cannot be read or written there is compiled anew."""

    def load_overload(self, sig: object, target_context: object) -> object:
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except (OSError, EOFError, UnpicklingError):  # the latter two where a power failure cut a file
            with suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]
            return None

    def save_overload(self, sig: object, data: object) -> None:
        with suppress(OSError):  # a full disk, a quota, a file system that is away
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]


# Of LLVM's fast-math only what lets sums be vectorised: infinities and NaN keep their meaning.
_REASSOCIATED = {"reassoc", "nsz"}


def compiled(function: Function) -> Function:
    """Compile a function of arrays and numbers on its first call.

    Sums may be taken in any order, so that they use all lanes of the processor; divisions by zero give what
    numpy gives. The machine code is kept on disk for later processes, where there is a place for it.
    """
    result: Function = numba.njit(function, error_model="numpy", fastmath=_REASSOCIATED)
    with suppress(RuntimeError):  # neither beside the source nor in the user's cache can be written
        result._cache = _Kept(function)  # type: ignore[attr-defined, no-untyped-call]
    return result
