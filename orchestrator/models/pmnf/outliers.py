"""Values that lie far from all others: they get little weight, and hypotheses are searched again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.noise import MAD_TO_SIGMA, relocate
from orchestrator.models.pmnf.plain import without_correction
from orchestrator.models.pmnf.solution import Solution, Task, best_residuals, poorly_fitted

# A value this many standard deviations off is examined as an outlier. Chosen by hand; not derived.
_SUSPICIOUS = 5.0


def without_outliers(task: Task, values: Floats, solution: Solution) -> Solution:
    """Give outlying values little weight, and search again for the call paths that have some."""
    located, points = solution.located, values.shape[1]
    if points < 6:
        return solution
    residuals = best_residuals(task, solution)
    size = len(task.tables) + 1
    spread = np.maximum(np.sqrt(solution.weighting.noise), _robust_scale(residuals, size))
    smooth, off = _smooth_residuals(
        task.features, located.log_value, poorly_fitted(solution, len(task.tables))
    )
    suspects = np.flatnonzero((np.abs(residuals).max(axis=1) > _SUSPICIOUS * spread) | off)
    if not len(suspects):
        return solution
    old, kept, some = located.rows(suspects), solution, task.rows(suspects)
    trial = smooth[suspects]
    expected = old.log_value - np.where(off[suspects][:, None], trial, residuals[suspects])
    for _ in range(2):
        scale = np.maximum(
            _robust_scale(old.log_value - expected, size), np.sqrt(solution.weighting.noise[suspects])
        )
        part = without_correction(some, relocate(values[suspects], old, expected, scale))
        expected = part.located.log_value - best_residuals(some, part)
    before, after = _surprise(residuals[suspects]), _surprise(old.log_value - expected)
    better = after < before - 2
    if np.any(better):
        rows = np.flatnonzero(better)
        kept = solution.put(suspects[rows], part.rows(rows))
    return kept


def _surprise(residuals: Floats) -> Floats:
    """Negative log likelihood of residuals with heavy tails, at the best scale."""
    points = residuals.shape[1]
    result = np.full(len(residuals), np.inf)
    for factor in (0.7, 1.0, 1.4, 2.0, 3.0, 5.0):
        scale = np.maximum(factor * MAD_TO_SIGMA * np.median(np.abs(residuals), axis=1), 1e-9)
        density = 2.5 * np.log1p((residuals / scale[:, None]) ** 2 / 4).sum(axis=1) + points * np.log(scale)
        result = np.minimum(result, density)
    return result


def _smooth_residuals(
    features: Floats, log_value: Floats, asked: NDArray[np.bool_]
) -> tuple[Floats, NDArray[np.bool_]]:
    """Residuals of a robust quadratic surface, for asked call paths in which the plain one sees outliers."""
    points = log_value.shape[1]
    design = np.column_stack([np.ones(points), features])
    if points < design.shape[1] + 4 or not np.any(asked):
        return np.zeros_like(log_value), np.zeros(len(log_value), dtype=bool)
    hat = design @ np.linalg.pinv(design)
    left_out = (log_value - log_value @ hat.T) / np.maximum(1 - np.diag(hat), 0.05)
    scale = np.maximum(MAD_TO_SIGMA * np.median(np.abs(left_out), axis=1), 1e-6)
    off = np.asarray(np.abs(left_out).max(axis=1) > _SUSPICIOUS * scale) & asked
    residuals = np.zeros_like(log_value)
    for row in np.flatnonzero(off):
        residuals[row] = _robust_surface(design, log_value[row])
    return residuals, off


def _robust_surface(design: Floats, target: Floats) -> Floats:
    """Residuals of a linear fit by iteratively reweighted least squares with Student t weights."""
    weights = np.ones(len(target))
    residuals = target - np.median(target)
    for _ in range(20):
        root = np.sqrt(weights)
        solution = np.linalg.lstsq(design * root[:, None], target * root, rcond=None)[0]
        residuals = target - design @ solution
        scale = max(MAD_TO_SIGMA * float(np.median(np.abs(residuals))), 1e-9)
        weights = 1 / (1 + (residuals / scale) ** 2)
    result: Floats = residuals
    return result


def _robust_scale(residuals: Floats, parameters: int) -> Floats:
    points = residuals.shape[-1]
    scale = MAD_TO_SIGMA * np.median(np.abs(residuals), axis=-1)
    result: Floats = scale * np.sqrt(points / max(points - parameters - 1, 1))
    return result
