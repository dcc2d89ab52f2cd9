"""What the data show before any hypothesis is tried: where values fall, turn or jump."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.noise import Located
from orchestrator.types import format_value

# Standard errors, and change of the logarithm, that count as falling. Chosen by hand; not derived.
_FALL = (3.0, 0.01)
# Standard errors, and change of the logarithm, that count as a turn or as a jump. Chosen by hand;
# not derived.
_TURN = (4.0, 0.03)
_JUMP = (5.0, 0.2)


def falling(points: Floats, located: Located) -> NDArray[np.bool_]:
    """Return along which parameters the values fall, from one value to the next or over the whole range.

    Where no points differ in one parameter only, a power law fitted to all of them decides.

    Parameters
    ----------
    points
        Coordinates, shape (points, parameters).
    located
        Locations of the values of all call paths.

    Returns
    -------
    Array of shape (call paths, parameters).
    """
    result = np.zeros((len(located.sigma), points.shape[1]), dtype=bool)
    for k in range(points.shape[1]):
        steps = _steps(k, points, located)
        if steps is None:
            result[:, k] = _power(k, points, located)
            continue
        whole = steps.change.sum(axis=1), np.sqrt((steps.error**2).sum(axis=1))
        result[:, k] = (steps.change < -np.maximum(_FALL[0] * steps.error, _FALL[1])).any(axis=1)
        result[:, k] |= whole[0] < -np.maximum(_FALL[0] * whole[1], _FALL[1])
    return result


def _power(k: int, points: Floats, located: Located) -> NDArray[np.bool_]:
    """Return where the exponent of parameter k in a fitted product of powers is negative."""
    logs = np.log(np.maximum(points, np.finfo(float).tiny))
    design = np.column_stack([np.ones(len(points)), logs])
    if len(points) < design.shape[1] + 2:
        return np.zeros(len(located.sigma), dtype=bool)
    inverse = np.linalg.pinv(design)
    residuals = located.log_value - located.log_value @ (design @ inverse).T
    scale = np.sqrt(np.sum(residuals**2, axis=1) / (len(points) - design.shape[1]))
    slope = located.log_value @ inverse[k + 1]
    return np.asarray(slope < -_FALL[0] * scale * float(np.linalg.norm(inverse[k + 1])))


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
        if steps is None or len(steps.low) < 2:
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
    if len(levels) < 2 or len(np.unique(step)) < len(levels) - 1:
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
