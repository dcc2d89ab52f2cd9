"""What the data say before any hypothesis: where values fall, jump or turn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.correction import Features
from orchestrator.models.hypotheses import Floats
from orchestrator.models.noise import Located

# Standard errors below zero, and change of the logarithm over half a range, that count as falling.
_SURE = 2.0
_LEAST_FALL = 0.01


def falling(features: Features, points: Floats, located: Located) -> NDArray[np.bool_]:
    """Tell along which parameters the values fall, anywhere in the measured range.

    A quadratic surface is fitted to the logarithms; its slopes at both ends of each parameter decide.

    Returns
    -------
    Array of shape (call paths, parameters).
    """
    parameters = points.shape[1]
    result = np.zeros((len(located.sigma), parameters), dtype=bool)
    pairs = features.pairs
    if len(points) < len(pairs) + 3:
        pairs = pairs[pairs[:, 1] < 0]
    if len(points) < len(pairs) + 2:
        return result
    chosen = Features(features.middle, features.half, pairs)
    design = np.column_stack([np.ones(len(points)), chosen(points)])
    inverse = np.linalg.pinv(design)
    coefficients = located.log_value @ inverse.T
    residuals = located.log_value - coefficients @ design.T
    freedom = max(len(points) - design.shape[1], 1)
    scale = np.sqrt(np.sum(residuals**2, axis=1) / freedom)
    for k in range(parameters):
        for end in (-1.0, 1.0):
            slope = np.where((pairs[:, 0] == k) & (pairs[:, 1] < 0), 1.0, 0.0)
            slope += np.where((pairs[:, 0] == k) & (pairs[:, 1] == k), 2 * end, 0.0)
            along = np.concatenate([[0.0], slope])
            error = scale * float(np.linalg.norm(along @ inverse))
            result[:, k] |= coefficients @ along < -np.maximum(_SURE * error, _LEAST_FALL)
    return result
