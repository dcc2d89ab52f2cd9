"""Growth that the measurements cannot exclude: terms too small to be seen where it was measured.

The posterior holds what explains the measurements. A term that takes a thousandth of the time at the cheap
points may still take most of it at P₊, and a run far out may cost a multiple of what is expected. How large
such a term can be follows from the noise at the measured points; that it is there at all is a small prior.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.types import Point

Floats = NDArray[np.float64]

_PRIOR = 0.03  # that there is one more term
_EXPONENTS = (1.0, 2.0, 3.0)  # such terms grow like these powers of a parameter
_LARGEST = 50.0  # of the logarithm of a share
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Unseen:
    """Possible terms, each as large as the noise at the measured points allows.

    Attributes
    ----------
    deviation
        By how much each term would raise the logarithm of the time, shape (terms, points).
    root
        Square root of the prior of each term.
    growth
        Expected relative increase of the time, shape (points,).
    """

    deviation: Floats
    root: float
    growth: Floats


def unseen(
    model: PmnfModel, points: Sequence[Point], done: Mapping[Point, int], centre: Floats | None = None
) -> Unseen:
    """Return what unseen terms could do at points.

    A term z has a coefficient of one standard deviation of what it would be fitted with alone,
    ``σ / √Σ r (z/f)²`` over the measured points with r runs and predicted times f.

    Parameters
    ----------
    model
        What is believed without such terms.
    points
        Where it is asked; their values must be positive for a term to matter there.
    done
        Runs per measured point.
    centre
        Predicted logarithm of the time at ``points``, where it is known already.
    """
    here, there = model.coordinates(points), model.coordinates(list(done))
    runs = np.array(list(done.values()), float)
    measured = np.all(there > 0, axis=1) & (runs > 0)
    if not len(model.parameters) or not np.any(measured):
        return Unseen(np.zeros((0, len(points))), 0.0, np.zeros(len(points)))
    exponents = np.array(list(_terms(here.shape[1]))).T
    share = np.log(there[measured]) @ exponents - _log_time(model, there[measured])[:, None]
    largest = share.max(axis=0)
    seen = np.sqrt(runs[measured] @ np.exp(2 * (share - largest)))
    size = np.log(model.noise / seen + _TINY) - largest
    time = _log_time(model, here) if centre is None else centre
    ratio = np.log(np.maximum(here, _TINY)) @ exponents - time[:, None]
    ratio = np.exp(np.minimum(ratio + size, _LARGEST)).T
    prior = _PRIOR / len(ratio)
    return Unseen(np.log1p(ratio), float(np.sqrt(prior)), prior * ratio.sum(axis=0))


def _log_time(model: PmnfModel, x: Floats) -> Floats:
    result: Floats = model.posterior.weights @ model.posterior.log_mean(x)
    return result


def _terms(parameters: int) -> Iterator[Floats]:
    """Yield the exponents of terms: of one parameter, products of two, and even products of more."""
    for size in range(1, parameters + 1):
        powers = product(_EXPONENTS, repeat=size) if size < 3 else ((e,) * size for e in _EXPONENTS)
        for exponents in powers:
            for some in combinations(range(parameters), size):
                term = np.zeros(parameters)
                term[list(some)] = exponents
                yield term
