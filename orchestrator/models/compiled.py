"""Loops over arrays as machine code, where operations on whole arrays would wait for memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., object])

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
