"""Small normal equations, very many at once: the small axes come first, hypotheses run along the last."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orchestrator.models.hypotheses import Floats

_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Inner:
    """Inner product over points, one per hypothesis: weights, less what a smooth correction absorbs.

    Attributes
    ----------
    weights
        Shape (hypotheses, points).
    features
        Monomials of the correction, shape (points, features), or None.
    root
        Square root of the covariance of its coefficients, shape (hypotheses, features, features).
    """

    weights: Floats
    features: Floats | None = None
    root: Floats | None = None

    def absorbed(self, vectors: Floats) -> Floats | None:
        """Coordinates of the part that the correction absorbs: (..., hypotheses, features)."""
        if self.features is None or self.root is None:
            return None
        along = (vectors * self.weights) @ self.features
        result: Floats = np.einsum("...lr,lrs->...ls", along, self.root)
        return result

    def square(self, vector: Floats) -> Floats:
        """Squared length of (hypotheses, points)."""
        total: Floats = np.einsum("ln,ln,ln->l", self.weights, vector, vector)
        part = self.absorbed(vector)
        if part is not None:
            total = total - np.einsum("lr,lr->l", part, part)
        return np.maximum(total, _TINY)


def normal(
    jacobian: Floats, target: Floats, inner: Inner, ridge: Floats | None = None
) -> tuple[Floats, Floats, Floats]:
    """Solve weighted normal equations.

    Parameters
    ----------
    jacobian
        Columns, shape (t, hypotheses, points).
    target
        Shape (hypotheses, points).
    inner
        Inner product of every hypothesis.
    ridge
        Added to the diagonal, shape (t, hypotheses): 1 for a column of zeros keeps the matrix regular.

    Returns
    -------
    Solution (t, hypotheses), inverse (t, t, hypotheses), normal matrix (t, t, hypotheses).
    """
    size = len(jacobian)
    weighted = jacobian * inner.weights
    gram = np.empty((size, size, jacobian.shape[1]))
    for i in range(size):
        for j in range(i + 1):
            gram[i, j] = gram[j, i] = np.einsum("ln,ln->l", weighted[i], jacobian[j])
    right = np.stack([np.einsum("ln,ln->l", column, target) for column in weighted])
    columns, absorbed = inner.absorbed(jacobian), inner.absorbed(target)
    if columns is not None and absorbed is not None:
        gram -= np.einsum("tlr,slr->tsl", columns, columns)
        right -= np.einsum("tlr,lr->tl", columns, absorbed)
    if ridge is not None:
        for i in range(size):
            gram[i, i] += ridge[i]
    inverse, _ = invert(gram)
    return np.einsum("stl,tl->sl", inverse, right), inverse, gram


def invert(gram: Floats, least: float = 1e-13) -> tuple[Floats, Floats]:
    """Invert symmetric positive matrices stored as (t, t, ...), by Gauss-Jordan elimination.

    Pivots below ``least`` times the diagonal count as that: the matrix is singular to working precision.

    Returns
    -------
    The inverses, and the log determinants.
    """
    size = len(gram)
    diagonal = np.sqrt(np.maximum(np.einsum("tt...->t...", gram), _TINY))
    unit = diagonal[:, None] * diagonal[None]
    work = gram / unit
    log_det = 2 * np.log(diagonal).sum(axis=0)
    for k in range(size):
        pivot = np.maximum(work[k, k], least)
        log_det += np.log(pivot)
        row = work[k] / pivot
        column = work[:, k].copy()
        work -= column[:, None] * row[None]
        work[k] = row
        work[:, k] = -column / pivot
        work[k, k] = 1 / pivot
    return work / unit, log_det


def solve(gram: Floats, right: Floats, least: float = 1e-13) -> Floats:
    """Solve symmetric positive systems stored as (t, t, ...) by elimination: a third of the work of `invert`.

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
