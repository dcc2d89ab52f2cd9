"""Loops over arrays as machine code, for what operations on whole arrays would do more slowly."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numba
from numba.core import event

from orchestrator.models import compiling


class _Compilation(event.Listener):
    """Tells that something is compiled; code that is on disk is only loaded."""

    def on_start(self, event: object) -> None:
        compiling.begins()

    def on_end(self, event: object) -> None:
        """Nothing is told of the end."""


event.register("numba:compile", _Compilation())  # type: ignore[no-untyped-call]

Function = TypeVar("Function", bound=Callable[..., object])

# Of LLVM's fast-math only what lets sums be vectorised: infinities and NaN keep their meaning.
_REASSOCIATED = {"reassoc", "nsz"}


def compiled(function: Function) -> Function:
    """Compile a function of arrays and numbers on its first call.

    Sums may be taken in any order, so that they use all lanes of the processor; divisions by zero give what
    numpy gives. The machine code is kept on disk for later processes, where there is a place for it.
    """
    try:
        result: Function = numba.njit(function, cache=True, error_model="numpy", fastmath=_REASSOCIATED)
    except RuntimeError:  # neither beside the source nor in the user's cache can be written
        result = numba.njit(function, error_model="numpy", fastmath=_REASSOCIATED)
    return result
