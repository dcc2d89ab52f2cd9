"""One thread for BLAS and OpenMP: scikit-learn uses both, and other processes use the other cores."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


def one_sklearn_thread() -> AbstractContextManager[object]:
    """Keep the libraries of scikit-learn on one thread."""
    limit: AbstractContextManager[object] = _controller().limit(limits=1)
    return limit


@cache
def _controller() -> ThreadpoolController:
    # Libraries that are loaded later are not seen: scikit-learn brings its own OpenMP.
    import sklearn.ensemble  # noqa: F401

    return ThreadpoolController()
