"""Libraries of linear algebra: on one thread, and where LAPACK fails."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

import numpy as np
import scipy.linalg
from threadpoolctl import ThreadpoolController

from orchestrator.models.base import Floats


def one_blas_thread() -> AbstractContextManager[object]:
    """Keep BLAS from waking threads for small matrices: on a busy node it costs forty times the work."""
    limit: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limit


def one_sklearn_thread() -> AbstractContextManager[object]:
    """Keep BLAS and OpenMP on one thread: scikit-learn uses both, and other processes the other cores."""
    limit: AbstractContextManager[object] = _controller_of_sklearn().limit(limits=1)
    return limit


def decomposed(matrix: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the singular value decomposition; LAPACK's fast one does not converge for every matrix."""
    try:
        left, size, right = np.linalg.svd(matrix, full_matrices=False)
    except np.linalg.LinAlgError:
        left, size, right = scipy.linalg.svd(matrix, full_matrices=False, lapack_driver="gesvd")
    return left, size, right


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@cache
def _controller_of_sklearn() -> ThreadpoolController:
    # Libraries that are loaded later are not seen: scikit-learn brings its own OpenMP.
    import sklearn.ensemble  # noqa: F401

    return ThreadpoolController()
