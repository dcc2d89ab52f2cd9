"""How the logarithm of a positive factor goes on beyond its nodes (section 5.3)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats

Line = tuple[float, float]
"""Value at the end, and the slope beyond it."""

Spline = Callable[[Floats, Floats], Line]
"""From rising coordinates and logarithms at them to the line beyond the last."""


def last_half(z: Floats, logs: Floats) -> Line:
    """Return the straight line of least squares through the last half of the range, at least two nodes."""
    if len(z) < 2:
        return float(logs[-1]), 0.0
    begin = min(int(np.searchsorted(z, (z[0] + z[-1]) / 2)), len(z) - 2)
    slope, value = np.polyfit(z[begin:] - z[-1], logs[begin:], 1)
    return float(value), float(slope)


def mars(z: Floats, logs: Floats) -> Line:
    """Return the end of a multivariate adaptive regression spline (Friedman 1991), as the paper takes.

    Raises
    ------
    ModelError
        When the library is not installed.
    """
    try:
        from pyearth import Earth
    except ImportError as missing:
        raise ModelError(
            "Splines of extrapolated factors need the library py-earth2: "
            "`pip install 'measurement-orchestrator[mars]'`."
        ) from missing
    if len(z) < 2:
        return float(logs[-1]), 0.0
    spline = Earth(max_degree=1).fit(z[:, None], logs)
    length = float(z[-1] - z[0])
    value, beyond = spline.predict(np.array([[z[-1]], [z[-1] + length]]))
    return float(value), float(beyond - value) / length
