"""Coefficients that cannot be negative: from the mode of a Gaussian to the mean of what is above 0."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from orchestrator.models.base import Floats

_FAR = 30.0  # standard deviations beyond which nothing changes


def truncated(
    c: Floats,
    inverse: Floats,
    column: Floats,
    own: Floats,
    deviation: Floats,
    noise: Floats,
    dropped: NDArray[np.bool_] | bool = False,
) -> tuple[Floats, Floats]:
    """Move a coefficient of each hypothesis to its mean, given that it is not negative; the rest follows.

    A coefficient that would be negative is not known to be zero: near it, the mode is biased, and the
    extrapolation with it.

    Parameters
    ----------
    c, inverse
        Coefficients (t, l) and inverse normal matrices (t, t, l), with zeros for the coefficient where it was
        dropped.
    column, own
        Column (t, l) of the coefficient in the inverse normal matrix with it, and the diagonal element (l,).
    deviation
        The unrestricted coefficient in units of its standard deviation, shape (l,).
    noise
        Residual variance, shape (l,).
    dropped
        Where it was left out because it would be negative.
    """
    z, ratio = excess(deviation)
    width = np.sqrt(own * noise)
    change = width * np.where(dropped, z + ratio, ratio)
    left = own * np.clip(1 - z * ratio - ratio**2, 1e-6, 1.0)
    return moved(c, inverse, column / own, change, np.where(dropped, left, left - own))


def moved(
    c: Floats, inverse: Floats, direction: Floats, change: Floats, variance: Floats
) -> tuple[Floats, Floats]:
    """Move coefficients along a direction (t, l) by a change (l,), and add to the variance along it (l,)."""
    return c + direction * change, inverse + direction[:, None] * direction[None] * variance


def excess(deviation: Floats) -> tuple[Floats, Floats]:
    """Return a bounded deviation z, and how far the mean of what is above 0 is beyond z.

    In standard deviations of a normal variable around z: the density at 0 over the share above it.
    """
    z = np.clip(deviation, -_FAR, _FAR)
    return z, np.exp(-(z**2) / 2 - np.log(2 * np.pi) / 2 - log_ndtr(z))
