"""What repetitions say of the scatter of measured points, and which scatter is plausible then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.curves.design import Design
from orchestrator.models.noise import GUESS_WEIGHT

# From so many times the scatter of their repetitions on, points do not follow a formula.
_FAR_MORE = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """What repetitions say of the scatter of one of them: standard deviation and degrees of freedom."""

    sigma: float
    freedom: float

    @property
    def is_guess(self) -> bool:
        """Return whether nothing was repeated."""
        return self.freedom <= GUESS_WEIGHT

    def is_exceeded(self, noise: Floats, repetitions: float) -> NDArray[np.bool_]:
        """Return where means of so many repetitions scatter far more than these say, or than is guessed."""
        return np.asarray(noise > _FAR_MORE * self.sigma / np.sqrt(repetitions))


def log_plausible(noise: Floats, design: Design, scatter: Sequence[Scatter]) -> Floats:
    """Log probability of what repetitions showed if their means scatter by ``noise``, relative to the best.

    Points may scatter more than repetitions say (they also have their own lack of fit), but not less.

    Parameters
    ----------
    noise
        Scatter of the mean of all repetitions of a typical point, shape (draws,).
    design
        Says how many repetitions that are.
    scatter
        Of every call path.

    Returns
    -------
    Shape (draws, call paths).
    """
    location = np.array([item.sigma for item in scatter]) / np.sqrt(design.typical)
    # A guess says nothing.
    freedom = np.array([0.0 if item.is_guess else item.freedom for item in scatter])
    ratio = np.minimum((noise[:, None] / location) ** 2, 1.0)
    result: Floats = -freedom / 2 * (np.log(ratio) + 1 / ratio - 1)
    return result
