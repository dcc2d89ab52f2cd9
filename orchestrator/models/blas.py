"""Linear algebra of small matrices: on one thread, and where LAPACK fails."""

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
