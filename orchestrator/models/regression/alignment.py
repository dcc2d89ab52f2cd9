"""Alignment of whole numbers: kernels are fast on multiples of vectors, cache lines and tiles."""

from __future__ import annotations

import numpy as np

from orchestrator.models.base import Floats

LENGTHS = (8, 16, 64)
"""Of vectors, cache lines and tiles, in elements."""

# A number is whole if it is to so much, relatively: coordinates are logarithms.
_WHOLE = 1e-9
# What is equally aligned is at most this share of the largest value away. Chosen by hand; not derived.
_NEAR = 1 / 16


def matters(values: Floats) -> bool:
    """Return whether values are whole numbers that may or may not be aligned."""
    rounded = np.round(values)
    if not len(values) or not np.all(np.abs(values - rounded) <= _WHOLE * np.abs(values)):
        return False
    # Multiples of 64 have one remainder only.
    large = rounded[rounded >= LENGTHS[0]]
    return any(len(np.unique(large % length)) > 2 for length in LENGTHS)


def period(values: Floats) -> int:
    """Return the difference of values that are equally aligned; 1 where that does not matter."""
    if not matters(values):
        return 1
    largest = 1
    for length in LENGTHS:
        # Powers of two are all aligned from here on.
        remainders = np.unique(np.round(values[values >= length]) % length)
        if length <= _NEAR * float(values.max()) and len(remainders) > 2:
            largest = length
    return largest


def within(values: Floats, low: float, high: float, step: int) -> Floats:
    """Return the nearest values within a range that differ from values beyond it by multiples of a step."""
    nearest = np.clip(values, low, high)
    if step == 1:
        return nearest
    whole = np.round(values)
    down, up = high - np.mod(high - whole, step), low + np.mod(whole - low, step)
    aligned = np.where(values > high, down, np.where(values < low, up, values))
    return np.asarray(np.where((aligned >= low) & (aligned <= high), aligned, nearest), np.float64)
