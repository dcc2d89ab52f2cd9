"""Numbers of the report's document: arrays as base64 of 32-bit floats, points as objects."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orchestrator.models.base import Prediction
from orchestrator.types import Point, Value

_LARGEST = float(np.finfo(np.float32).max)

_EXACT = 2**53


def packed(values: ArrayLike) -> str:
    """Return numbers as base64 of little-endian 32-bit floats; what they cannot hold becomes NaN."""
    array = np.asarray(values, dtype=np.float64).ravel()
    array = np.where(np.abs(array) <= _LARGEST, array, np.nan)
    return base64.b64encode(array.astype("<f4").tobytes()).decode("ascii")


def bands(prediction: Prediction) -> dict[str, str]:
    """Return a prediction at many points: ``value``, ``low`` and ``high``, each `packed`."""
    return {"value": packed(prediction.value), "low": packed(prediction.low), "high": packed(prediction.high)}


def tidy(value: Value) -> Value:
    """Return a whole number as such; beyond `_EXACT` JavaScript has none, and JSON little."""
    if not isinstance(value, str) and abs(value) > _EXACT:
        return float(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def place(point: Point, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return a point as an object."""
    return {name: tidy(value) for name, value in point.items if name not in without}
