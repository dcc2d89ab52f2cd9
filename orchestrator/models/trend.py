"""What the data say before any hypothesis: where values fall, turn or jump."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.correction import Features
from orchestrator.models.hypotheses import Floats
from orchestrator.models.noise import Located
from orchestrator.types import format_value

# Standard errors below zero, and change of the logarithm over half a range, that count as falling.
_SURE = 2.0
_LEAST_FALL = 0.01
# Standard errors, and change of the logarithm, that count as a turn or as a jump.
_TURN = (4.0, 0.03)
_JUMP = (5.0, 0.2)


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


@dataclass(frozen=True, slots=True)
class _Steps:
    """Mean change of the logarithm between neighbouring values of one parameter, others fixed.

    ``change`` and ``error`` have shape (call paths, steps); ``low`` and ``high`` are the values, (steps,).
    """

    change: Floats
    error: Floats
    low: Floats
    high: Floats


def remarks(names: tuple[str, ...], points: Floats, located: Located) -> list[list[str]]:
    """Say along which parameters the values turn or jump, in words, per call path."""
    notes: list[list[str]] = [[] for _ in located.sigma]
    for k, name in enumerate(names):
        steps = _steps(k, points, located)
        if steps is None:
            continue
        sure = np.maximum(_TURN[0] * steps.error, _TURN[1])
        turns = (steps.change > sure).any(axis=1) & (steps.change < -sure).any(axis=1)
        for row in np.flatnonzero(turns):
            notes[row].append(f"not monotone in {name}: rises and falls by more than the noise")
        for row, step in zip(*np.nonzero(_jumps(steps)), strict=True):
            low, high = (format_value(float(side[step])) for side in (steps.low, steps.high))
            notes[row].append(f"jumps between {name}={low} and {name}={high}: a model across it is doubtful")
    return notes


def _steps(k: int, points: Floats, located: Located) -> _Steps | None:
    """Collect pairs of points that are neighbours along parameter k and equal otherwise."""
    levels = np.unique(points[:, k])
    rest = np.delete(points, k, axis=1)
    order = np.lexsort((points[:, k], *rest.T))
    first, second = order[:-1], order[1:]
    along = np.all(rest[first] == rest[second], axis=1)
    step = np.searchsorted(levels, points[first, k])
    along &= np.searchsorted(levels, points[second, k]) == step + 1
    first, second, step = first[along], second[along], step[along]
    if len(levels) < 3 or len(np.unique(step)) < len(levels) - 1:
        return None
    share = np.zeros((len(step), len(levels) - 1))
    share[np.arange(len(step)), step] = 1.0
    share /= share.sum(axis=0)
    variance = located.sigma[:, None] ** 2 / located.count
    error = np.sqrt((variance[:, first] + variance[:, second]) @ share**2)
    change = (located.log_value[:, second] - located.log_value[:, first]) @ share
    return _Steps(change, error, levels[:-1], levels[1:])


def _jumps(steps: _Steps) -> NDArray[np.bool_]:
    """Find steps much steeper than both neighbours, or against them."""
    result = np.zeros(steps.change.shape, dtype=bool)
    if steps.change.shape[1] < 3 or steps.low[0] <= 0:
        return result
    width = np.log(steps.high / steps.low)
    slope = steps.change / width
    before, here, after = slope[:, :-2], slope[:, 1:-1], slope[:, 2:]
    # A power law that sets in or fades out is steeper than one neighbour only.
    least, most = np.minimum(before, after), np.maximum(before, after)
    excess = np.where(here > most, here - most, np.where(here < least, least - here, 0.0)) * width[1:-1]
    error = np.sqrt(steps.error[:, :-2] ** 2 + steps.error[:, 1:-1] ** 2 + steps.error[:, 2:] ** 2)
    result[:, 1:-1] = excess > np.maximum(_JUMP[0] * error, _JUMP[1])
    return result
