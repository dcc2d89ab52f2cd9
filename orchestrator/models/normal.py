"""Small normal equations, very many at once: the small axes come first, hypotheses run along the last."""

from __future__ import annotations

import numpy as np

from orchestrator.models.hypotheses import Floats

_TINY = 1e-300


def solve(gram: Floats, right: Floats, least: float = 1e-13) -> Floats:
    """Solve symmetric positive systems stored as (t, t, ...) by elimination.

    Parameters
    ----------
    gram
        Matrices, shape (t, t, ...); only the upper triangles are read.
    right
        Right sides, shape (t, ...).
    least
        Pivots below this times the diagonal count as that.
    """
    size = len(gram)
    least_pivot = least * np.maximum(np.einsum("tt...->t...", gram), _TINY)
    work, c = gram.copy(), right.copy()
    for k in range(size):
        work[k, k] = np.maximum(work[k, k], least_pivot[k])
        for i in range(k + 1, size):
            factor = work[k, i] / work[k, k]
            work[i, i:] -= factor * work[k, i:]
            c[i] -= factor * c[k]
    for k in reversed(range(size)):
        for j in range(k + 1, size):
            c[k] -= work[k, j] * c[j]
        c[k] /= work[k, k]
    return c
