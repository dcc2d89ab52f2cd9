"""How curves of real programs vary: a prior over the sizes of the components of the Gaussian process."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from orchestrator.models.base import Floats

# Decimal logarithm of the standard deviation of every component, and how far it varies between programs: by
# kind as in `features.KINDS`, then products of two parameters, then the noise of one run. Slopes are powers
# of the parameters; the others are per doubling or so. Broad, chosen by hand before any measurement was
# looked at; fitted to measured data instead they predict no better (docs/evaluation.md).
_CENTRE = {"slope": -0.2, "bend": -1.5, "smooth walk": -1.5, "walk": -1.0, "product": -1.5, "noise": -1.5}
_SPREAD = {"slope": 0.4, "bend": 0.7, "smooth walk": 0.7, "walk": 0.7, "product": 0.7, "noise": 0.7}
_CONSTANT = 10.0  # standard deviation of the mean logarithm: nothing is known of it
DRAWS = 1024


@cache
def draws(parameters: int) -> tuple[Floats, Floats]:
    """Return equally probable sizes of all components: the same ones every time, evenly spread.

    Returns
    -------
    Standard deviations of the components in the order of `features.Features.component`, shape
    (draws, components), and the relative noise of one run, shape (draws,).
    """
    kinds = ["slope", "bend", "smooth walk", "walk"] * parameters + ["product", "noise"]
    uniform = qmc.Sobol(len(kinds), scramble=True, seed=1).random(DRAWS)
    centre, spread = (np.array([table[kind] for kind in kinds]) for table in (_CENTRE, _SPREAD))
    sizes = 10 ** (centre + spread * ndtri(np.clip(uniform, 1e-6, 1 - 1e-6)))
    constant = np.full((DRAWS, 1), _CONSTANT)
    return np.concatenate([constant, sizes[:, :-1]], axis=1), sizes[:, -1]
