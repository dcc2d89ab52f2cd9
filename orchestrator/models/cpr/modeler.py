"""The modeler of tensor completion: the tensor that predicts best what was left out."""

from __future__ import annotations

from orchestrator.models.base import Modeler
from orchestrator.models.cpr.family import candidates, extrapolators
from orchestrator.models.regression.choice import Family
from orchestrator.models.regression.modeler import modeler_of


def modeler(*, aggregate: str = "auto", combine: bool = False, seed: int = 0) -> Modeler:
    """Return a modeler of low-rank tensors (Hutter and Solomonik, section 5).

    Parameters
    ----------
    aggregate
        How repetitions become one value, as for ``pmnf``.
    combine
        Whether several tensors may be combined; otherwise the best one is taken.
    seed
        Of the random parts of fits and of their comparison.

    Raises
    ------
    ModelError
        For an unknown aggregate; and by the modeler when no call path can be fitted.
    """
    family = Family(inside=candidates, outside=extrapolators, combine=combine)
    return modeler_of(family, aggregate=aggregate, seed=seed)
